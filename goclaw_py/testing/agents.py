"""An agent loop that follows the script of a test.

::

    agent = ScriptedAgent(
        Say("hello"), Stream(("one ", "two"), every_s=1), Block("late"), Fail(OSError("gone"))
    )

Each run takes the next step of the script; when the script is used up, ``otherwise`` answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import assert_never

from goclaw_py.core.ids import RunId, SessionKey
from goclaw_py.core.run_events import TextDelta, Usage
from goclaw_py.runs.agent_loop import AgentResult, Emit, LoopEvent, RunRequest


@dataclass(frozen=True, slots=True)
class Say:
    """Reply at once, or after ``after_s`` seconds of the loop's clock."""

    text: str
    after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Stream:
    """Emit each piece ``every_s`` after the previous one; the reply is all pieces joined."""

    pieces: tuple[str, ...]
    every_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Block:
    """Wait for ``ScriptedAgent.release``, then reply."""

    text: str = "released"


@dataclass(frozen=True, slots=True)
class Ignore:
    """Wait for cancellation, keep running for ``for_s`` seconds, then end.

    It ends as cancelled, or returns ``reply`` as if it had not been cancelled.
    """

    for_s: float
    reply: str | None = None


@dataclass(frozen=True, slots=True)
class Fail:
    """Raise ``error``, or raise it ``after_s`` later."""

    error: Exception
    after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Emitting:
    """Emit these events, then do another step."""

    events: tuple[LoopEvent, ...]
    then: Say | Stream | Block | Ignore | Fail


@dataclass(frozen=True, slots=True)
class Do:
    """Reply with what ``work`` returns; it may call tools."""

    work: Callable[[RunRequest, Emit], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Return:
    """Return this result unchanged."""

    result: AgentResult


Step = Say | Stream | Block | Ignore | Fail | Emitting | Do | Return


def echo(request: RunRequest) -> Step:
    """Return a step that replies ``re: <prompt>`` at once."""
    return Say(f"re: {request.prompt}")


@dataclass(slots=True)
class ScriptedAgent:
    """Implements ``AgentLoop``; see the module's docstring. Use one in one event loop only."""

    script: tuple[Step, ...]
    otherwise: Callable[[RunRequest], Step]
    requests: list[RunRequest]
    """All requests, in order of start."""
    finished: list[RunId]
    """Runs that returned a result."""
    cancelled: list[RunId]
    """Runs that ended as cancelled."""
    active: set[RunId]
    """Runs in progress."""
    overlaps: dict[SessionKey, int]
    """The highest number of concurrent runs of each session."""
    warmed: int
    closed: bool
    _working: dict[SessionKey, int] = field(repr=False)
    _changed: asyncio.Event = field(repr=False)
    _gates: dict[RunId, asyncio.Event] = field(repr=False)

    def __init__(self, *script: Step, otherwise: Callable[[RunRequest], Step] = echo) -> None:
        self.script = script
        self.otherwise = otherwise
        self.requests = []
        self.finished = []
        self.cancelled = []
        self.active = set()
        self.overlaps = {}
        self.warmed = 0
        self.closed = False
        self._working = {}
        self._changed = asyncio.Event()
        self._gates = {}

    @property
    def prompts(self) -> list[str]:
        """Return the prompts of ``requests``."""
        return [request.prompt for request in self.requests]

    @property
    def texts(self) -> list[str]:
        """Return the prompts of ``requests`` without the names of their senders."""
        return [request.own_texts for request in self.requests]

    async def run(self, request: RunRequest, emit: Emit) -> AgentResult:
        """Execute the next step of the script."""
        number = len(self.requests)
        step = self.script[number] if number < len(self.script) else self.otherwise(request)
        self._enter(request)
        try:
            result = await self._do(step, request, emit)
        except asyncio.CancelledError:
            self.cancelled.append(request.run_id)
            raise
        else:
            self.finished.append(request.run_id)
            return result
        finally:
            self._leave(request)

    async def warm_up(self) -> None:
        """Count the call."""
        self.warmed += 1

    async def close(self) -> None:
        """Record the call."""
        self.closed = True

    def release(self, run_id: RunId | None = None) -> None:
        """Release one blocked run, or all runs that are blocked now."""
        for blocked, gate in self._gates.items():
            if run_id is None or blocked == run_id:
                gate.set()

    async def until_started(self, runs: int) -> None:
        """Wait until that many runs have started, ended ones included."""
        await self._until(lambda: len(self.requests) >= runs)

    async def until_active(self, runs: int) -> None:
        """Wait until exactly that many runs are in progress."""
        await self._until(lambda: len(self.active) == runs)

    async def _until(self, reached: Callable[[], bool]) -> None:
        while not reached():
            self._changed.clear()
            await self._changed.wait()

    def _enter(self, request: RunRequest) -> None:
        self.requests.append(request)
        self.active.add(request.run_id)
        count = self._working.get(request.session, 0) + 1
        self._working[request.session] = count
        self.overlaps[request.session] = max(count, self.overlaps.get(request.session, 0))
        self._changed.set()

    def _leave(self, request: RunRequest) -> None:
        self.active.discard(request.run_id)
        self._gates.pop(request.run_id, None)
        self._working[request.session] -= 1
        self._changed.set()

    async def _do(self, step: Step, request: RunRequest, emit: Emit) -> AgentResult:
        match step:
            case Say(text, after_s):
                await asyncio.sleep(after_s)
                return _reply(text, emit)
            case Stream(pieces, every_s):
                return await _stream(pieces, every_s, emit)
            case Block(text):
                gate = self._gates[request.run_id] = asyncio.Event()
                await gate.wait()
                return _reply(text, emit)
            case Ignore():
                return await _ignore(step, emit)
            case Fail(error, after_s):
                await asyncio.sleep(after_s)
                raise error
            case Emitting(events, then):
                for event in events:
                    emit(event)
                return await self._do(then, request, emit)
            case Do(work):
                return _reply(await work(request, emit), emit)
            case Return(result):
                return result
            case _:
                assert_never(step)


def _reply(text: str, emit: Emit) -> AgentResult:
    emit(TextDelta(text))
    return AgentResult(text, usage=Usage(requests=1))


async def _stream(pieces: tuple[str, ...], every_s: float, emit: Emit) -> AgentResult:
    for position, piece in enumerate(pieces):
        await asyncio.sleep(every_s if position else 0)
        emit(TextDelta(piece))
    return AgentResult("".join(pieces), usage=Usage(requests=1))


async def _ignore(step: Ignore, emit: Emit) -> AgentResult:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await _stay(step.for_s)
        if step.reply is None:
            raise
    return _reply(step.reply or "", emit)


async def _stay(for_s: float) -> None:
    """Sleep for ``for_s`` seconds and ignore cancellation."""
    loop = asyncio.get_running_loop()
    until = loop.time() + for_s
    while (left := until - loop.time()) > 0:
        try:
            await asyncio.sleep(left)
        except asyncio.CancelledError:
            continue
