"""The rows of a gateway's database, as they are, whether or not it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from goclaw_py.store.postgres import Address, connection
from goclaw_py.store.postgres.pool import Connection
from tests.chaos.checker import Left, Reply, Taken
from tests.chaos.script import Trigger

_LEFT = """
select
    (select count(*) from inbox where state = 'pending') as inbox,
    (select count(*) from outbox where state in ('pending', 'sending')) as outbox,
    (select count(*) from runs where outcome is null) as runs,
    (select count(*) from drafts) as drafts
"""
_TAKEN = """
select message ->> 'text' as text, outcome, attempts
from inbox
where session = $1 and kind = 'message'
order by id
"""
_REPLIES = """
select message ->> 'text' as text, state, possible_duplicate, message ->> 'draft' as draft
from outbox
where chat = $1
order by id
"""
_MOMENTS = {
    Trigger.UNCONFIRMED: "select from inbox where session = $1",
    Trigger.COMMITTED: "select from inbox where session = $1",
    Trigger.BEGUN: "select from runs where session = $1",
    Trigger.DRAFT_NOTED: "select from drafts where chat = split_part($1, ':', 5)",
    Trigger.ENDED: "select from outbox where session = $1",
    Trigger.SETTLING: (
        "select from inbox where session = $1 and kind = 'command' and state = 'done'"
    ),
    Trigger.CLOSING: "select from runs where session = $1 and outcome = 'cancelled'",
    Trigger.SENT: "select from outbox where session = $1 and state = 'sent'",
}


class Books:
    """Reads. ``left`` does not know of updates."""

    def __init__(self, runner: asyncio.Runner, opened: Connection) -> None:
        self._runner = runner
        self._opened = opened

    def left(self) -> Left:
        """What is not done."""
        (row,) = self._runner.run(self._opened.fetch(_LEFT))
        return Left(row["inbox"], row["outbox"], row["runs"], row["drafts"])

    def taken(self, chat: int) -> Sequence[Taken]:
        """The messages of a chat, in order."""
        rows = self._runner.run(self._opened.fetch(_TAKEN, _session(chat)))
        return [Taken(row["text"], row["outcome"], row["attempts"]) for row in rows]

    def replies(self, chat: int) -> Sequence[Reply]:
        """What was to be sent to a chat, in order."""
        rows = self._runner.run(self._opened.fetch(_REPLIES, str(chat)))
        return [
            Reply(row["text"], row["state"], row["possible_duplicate"], row["draft"] is not None)
            for row in rows
        ]

    def shows(self, moment: Trigger, chat: int) -> bool:
        """Whether the moment has come in a chat that was new."""
        return bool(self._runner.run(self._opened.fetch(_MOMENTS[moment], _session(chat))))


B = TypeVar("B", bound=Books)
IN_BOOKS = frozenset(_MOMENTS)
"""The moments that can be seen in the database."""


def _session(chat: int) -> str:
    return f"agent:main:telegram:direct:{chat}"


@contextmanager
def books(dsn: str, kind: type[B]) -> Iterator[B]:
    """Read the database at ``dsn``, whose schema is up to date."""
    with asyncio.Runner() as runner:
        opening = connection(Address(dsn))
        opened = runner.run(opening.__aenter__())
        try:
            yield kind(runner, opened)
        finally:
            runner.run(opening.__aexit__(None, None, None))
