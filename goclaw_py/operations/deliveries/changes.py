"""What the audit log has of operations on messages (SPEC SEC-9)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from goclaw_py.operations.declare import Arguments, Change
from goclaw_py.records.audit import Facts

_MOST_NAMED: Final = 20


def _rows(arguments: Arguments, _result: object) -> str:
    ids: Collection[int] = arguments["ids"]
    some = ", ".join(map(str, sorted(ids)[:_MOST_NAMED]))
    return f"messages {some}{', …' if len(ids) > _MOST_NAMED else ''}"


def _retried(_arguments: Arguments, number: Any) -> Facts:
    return {"retried": number}


RETRY_OUTBOX: Final = Change("outgoing.retry", _rows, told=_retried)
DROP_OUTBOX: Final = Change("outgoing.drop", _rows, told=lambda _, number: {"dropped": number})
RETRY_INBOX: Final = Change("incoming.retry", _rows, told=_retried)
RETRY_IN_CHAT: Final = Change(
    "incoming.retry", _rows, told=_retried, is_done=lambda _arguments, number: bool(number)
)
DISMISS: Final = Change("incoming.dismiss", _rows, told=lambda _, number: {"dismissed": number})
