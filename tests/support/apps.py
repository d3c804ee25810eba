"""The HTTP API for tests: made once per process, since making it costs more than asking it.

An app keeps the parts that it was made with, so those of tests stand behind stand-ins.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, cast

from fastapi import FastAPI

from goclaw_py.chat.terminals import Terminals
from goclaw_py.observability.log_lines import Logs, NoLogs
from goclaw_py.observability.readiness import Health
from goclaw_py.operations.control import Control
from goclaw_py.web.api.routes import closing_of, make_api

RELEASE = "1.2.3"


class _StandIn:
    """Whatever is asked of it, the part of the present test answers."""

    part: object = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.part, name)


class _Lent:
    """One app with the stand-ins that it was made with."""

    def __init__(self, *, chats: bool, probes: bool) -> None:
        self.parts = chats, probes
        self.control, self.terminals, self.logs = _StandIn(), _StandIn(), _StandIn()
        self.health = _StandIn()
        self.app = make_api(
            cast("Control", self.control),
            cast("Terminals", self.terminals) if chats else None,
            release=RELEASE,
            health=cast("Health", self.health) if probes else None,
            agents=("main", "coder"),
            logs=cast("Logs", self.logs),
        )


_free: dict[tuple[bool, bool], list[_Lent]] = defaultdict(list)
_out: list[_Lent] = []


def lend_api(
    control: Control,
    terminals: Terminals | None = None,
    logs: Logs | None = None,
    health: Health | None = None,
) -> FastAPI:
    """An app over these parts until the end of the test."""
    chats, probes = terminals is not None, health is not None
    free = _free[chats, probes]
    lent = free.pop() if free else _Lent(chats=chats, probes=probes)
    lent.control.part, lent.terminals.part, lent.logs.part = control, terminals, logs or NoLogs()
    lent.health.part = health
    closing = closing_of(lent.app)
    closing.clear()
    # An event belongs to the first loop that waits for it, and each test has a loop of its own.
    closing.__dict__.pop("_loop", None)
    _out.append(lent)
    return lent.app


def reclaim_all() -> None:
    """The test is over: what was lent may be lent again."""
    while _out:
        lent = _out.pop()
        _free[lent.parts].append(lent)
