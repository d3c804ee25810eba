"""The HTTP API for tests: made once per process, since making it costs more than asking it.

An app keeps the parts that it was made with, so those of tests stand behind stand-ins.
"""

from __future__ import annotations

from typing import Any, cast

from fastapi import FastAPI

from goclaw_py.ports.control import Control
from goclaw_py.ports.terminals import Terminals
from goclaw_py.web.api.routes import closing_of, make_api

RELEASE = "1.2.3"


class _StandIn:
    """Whatever is asked of it, the part of the present test answers."""

    part: object = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.part, name)


class _Lent:
    """One app with the stand-ins that it was made with."""

    def __init__(self, *, chats: bool) -> None:
        self.chats = chats
        self.control, self.terminals = _StandIn(), _StandIn()
        terminals = cast("Terminals", self.terminals) if chats else None
        control = cast("Control", self.control)
        self.app = make_api(control, terminals, release=RELEASE, agents=("main", "coder"))


_free: dict[bool, list[_Lent]] = {True: [], False: []}
_out: list[_Lent] = []


def lend_api(control: Control, terminals: Terminals | None = None) -> FastAPI:
    """An app over these parts until the end of the test."""
    chats = terminals is not None
    lent = _free[chats].pop() if _free[chats] else _Lent(chats=chats)
    lent.control.part, lent.terminals.part = control, terminals
    closing = closing_of(lent.app)
    closing.clear()
    # An event belongs to the first loop that waits for it, and each test has a loop of its own.
    closing.__dict__.pop("_loop", None)
    _out.append(lent)
    return lent.app


def take_back_all() -> None:
    """The test is over: what was lent may be lent again."""
    while _out:
        lent = _out.pop()
        _free[lent.chats].append(lent)
