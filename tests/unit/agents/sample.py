"""Agents as somebody else would write them, for ``python:tests.unit.agents.sample:…``."""

from __future__ import annotations

import contextvars
import functools
import threading
from collections.abc import Coroutine

from goclaw_py.core.run_events import TextDelta
from goclaw_py.runs.agent_loop import AgentResult, Emit, RunRequest

TRACE = contextvars.ContextVar("TRACE", default="")

not_callable = 42
gate = threading.Event()
thread_names: list[str] = []


async def greet(request: RunRequest, emit: Emit) -> str:
    emit(TextDelta("hello "))
    return f"hello {request.prompt}"


async def whole(request: RunRequest, emit: Emit) -> AgentResult:
    return AgentResult("whole")


async def number(request: RunRequest, emit: Emit) -> int:
    return 5


def plain(request: RunRequest, emit: Emit) -> str:
    thread_names.append(threading.current_thread().name)
    for piece in ("a", "b", "c"):
        emit(TextDelta(piece))
    return TRACE.get() or "abc"


async def steerable(request: RunRequest, emit: Emit) -> str:
    return steerable_plain(request, emit)


def steerable_plain(request: RunRequest, emit: Emit) -> str:
    said = [request.prompt]
    for _ in range(2):
        said += [part.text for part in request.take_messages()]
    return ", ".join(said)


def broken(request: RunRequest, emit: Emit) -> str:
    raise OSError("disk on fire")


def stuck(request: RunRequest, emit: Emit) -> str:
    gate.wait(5)
    if request.prompt == "break":
        raise OSError("too late to matter")
    return "too late"


def delayed(request: RunRequest, emit: Emit) -> Coroutine[None, None, str]:
    return greet(request, emit)


decorated = functools.partial(greet)


class Agent:
    def __init__(self) -> None:
        self.calls: list[str] = []

    async def run(self, request: RunRequest, emit: Emit) -> str:
        self.calls.append("run")
        return "from an object"

    async def warm_up(self) -> None:
        self.calls.append("warm_up")

    def close(self) -> None:
        self.calls.append("close")


class Callable:
    async def __call__(self, request: RunRequest, emit: Emit) -> str:
        return "from a call"


instance = Agent()
caller = Callable()
