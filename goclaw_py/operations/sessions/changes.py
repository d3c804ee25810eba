"""What the audit log has of operations on sessions (SPEC SEC-9)."""

from __future__ import annotations

from typing import Any, Final

from goclaw_py.gateway.audit.facts import digest
from goclaw_py.operations.declare import Arguments, Change, named
from goclaw_py.records.audit import Facts
from goclaw_py.schedule.jobs.job_json import plain

_SESSION: Final = named("session {key}")


async def _whole_key(sessions: Any, arguments: Arguments) -> Arguments:
    return {"key": (await sessions.get(arguments["key"])).key}


async def _title(sessions: Any, arguments: Arguments) -> Facts:
    key = arguments["key"]
    return {"title": (await sessions.names([key])).get(key, "")}


def _stopped(arguments: Arguments, report: Any) -> Facts:
    found = {
        "run": arguments["run"],
        "stopped": len(report.stopped),
        "dropped": len(report.dropped),
        "unsent": report.unsent,
        "asking": report.asking,
    }
    return {name: value for name, value in found.items() if value}


STOP: Final = Change(
    lambda arguments: "session.stop_all" if arguments["everything"] else "session.stop",
    _SESSION,
    told=_stopped,
)
SEND: Final = Change("session.send", _SESSION, told=lambda arguments, _: digest(arguments["text"]))
RESET: Final = Change("session.reset", _SESSION)
RENAME: Final = Change(
    "session.rename", _SESSION, _title, lambda _, title: {"title": title}, find=_whole_key
)
DELETE: Final = Change("session.delete", _SESSION, find=_whole_key)
FORK: Final = Change(
    "session.fork", _SESSION, told=lambda _, fork: {"session": fork.session}, find=_whole_key
)

RESET_IN_CHAT: Final = Change("session.reset", _SESSION)
UNDO_IN_CHAT: Final = Change(
    "session.undo",
    _SESSION,
    told=lambda arguments, _: {"run": arguments["run"]},
    is_done=lambda _arguments, undone: bool(undone),
)
MODE_IN_CHAT: Final = Change(
    "session.queue_mode", _SESSION, told=lambda arguments, _: {"mode": plain(arguments["mode"])}
)
