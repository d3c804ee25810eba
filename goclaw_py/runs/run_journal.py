"""Stores what a run does while it does it, so that it is known after a crash (AGENT-9).

The rules of SPEC AGENT-9:

The progress of a run is stored during the run: each tool call before it starts (an unavailable
database delays the call) and after it has ended, usage and model after each model response. So the
record of a run that a crash or a shutdown interrupted has them, and budgets count them. If the
interrupted run cannot be continued (AGENT-10), the next run for the same message, occurrence or
heartbeat run is told first which calls were made with which results, which have an unknown
outcome, and that none may be repeated blindly; an occurrence whose interrupted run had called a
tool with side effects is then not run again but reported, as `lost` with the reason `effects`
(`retry_after_effects`, default false, allows it, also after a failure). An agent that is a program
of its own reports its calls when they have begun already; what it did in the last moment before a
crash may be missing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Protocol

from goclaw_py.chat.outbound import texts
from goclaw_py.core.errors import Fenced, StoreUnavailable
from goclaw_py.core.ids import NodeId, RunId
from goclaw_py.core.run_events import ToolEnded, ToolStarted
from goclaw_py.core.run_steps import MOST_STORED, NewMessagesStep, RunStep, ValueStep
from goclaw_py.core.text import truncate
from goclaw_py.records import RunSoFar, ToolCall
from goclaw_py.runs.agent_loop import LoopEvent, ModelStep
from goclaw_py.runs.run_recorder import RunRecorder

log = logging.getLogger(__name__)

_AWAY_S: Final = 0.5
"""Seconds between two attempts while the database is unavailable."""

_MOST_CALLS: Final = 50
_ARGUMENTS: Final = 300
_RESULT: Final = 1_000
"""The number of characters of a call in the prompt of the next run."""


class NoteStore(Protocol):
    """The store operations that this module needs."""

    async def note_run(self, run: RunId, known: RunSoFar, *, node: NodeId) -> None: ...


class Journal:
    """Stores the tool calls and the usage of one run, combining changes during a write.

    A write is repeated while the database is unavailable, until the run ends.
    """

    def __init__(self, store: NoteStore, run: RunId, node: NodeId, progress: RunRecorder) -> None:
        self._store = store
        self._run = run
        self._node = node
        self._progress = progress
        self._steps: list[RunStep] = []
        self._first = 0
        """The number of the first step in ``_steps``; those before it are stored."""
        self._keys: dict[str, str] = {}
        self._heard = 0
        self._stored = 0
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def on_event(self, event: LoopEvent) -> None:
        """Start to store what ``progress`` has recorded, if it matters."""
        step = step_of(event)
        if isinstance(step, ToolStarted):
            # A repeated call has a key already.
            key = step.key or f"{self._run}-{self._first + len(self._steps)}"
            self._keys[step.call_id] = key
            step = replace(step, key=key)
        if step is not None:
            self._steps.append(step)
        elif not isinstance(event, ModelStep) or not event.usage.requests or event.done:
            return
        self._heard += 1
        self._writing()

    async def recorded(self) -> None:
        """Return when everything that was recorded is stored. Raises ``Fenced``."""
        wanted = self._heard
        while self._stored < wanted and not self._closed:
            await asyncio.shield(self._writing())

    def call_key(self, call_id: str) -> str:
        """Return the idempotency key of a tool call: its first run, and its step there."""
        return self._keys.get(call_id, "")

    def close(self) -> None:
        """Start no more writes: the end of the run stores everything."""
        self._closed = True

    def _writing(self) -> asyncio.Task[None]:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write(), name=f"journal {self._run}")
            self._task.add_done_callback(self._over)
        return self._task

    async def _write(self) -> None:
        while self._stored < self._heard and not self._closed:
            heard, known = self._heard, self._progress
            steps = tuple(self._steps)
            state = RunSoFar(known.calls, known.usage, known.model, steps, self._first)
            try:
                await self._store.note_run(self._run, state, node=self._node)
            except StoreUnavailable as error:
                log.debug("store_unavailable", extra={"error": str(error), "part": "run_progress"})
                await asyncio.sleep(_AWAY_S)
            else:
                self._stored = heard
                self._first += len(steps)
                del self._steps[: len(steps)]

    def _over(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or (error := task.exception()) is None:
            return
        if not isinstance(error, Fenced):
            log.error("run_progress_not_stored", extra={"run_id": self._run}, exc_info=error)


def step_of(event: LoopEvent) -> RunStep | None:
    """Return the step that an event reports, if any."""
    match event:
        case ModelStep(response=response):
            return response
        case ToolEnded(result=result) if len(result) > MOST_STORED:
            more = f"[{len(result) - MOST_STORED} more characters were not stored]"
            return replace(event, result=f"{result[:MOST_STORED]}\n{more}")
        case ToolStarted() | ToolEnded() | NewMessagesStep() | ValueStep():
            return event
        case _:
            return None


def interrupted_calls_prompt(calls: Sequence[ToolCall]) -> str:
    """Return the prompt about tool calls of interrupted runs; "" if there were none."""
    lines = [_line(call) for call in calls[-_MOST_CALLS:]]
    return texts.interrupted_calls(lines, len(calls) - len(lines)) if lines else ""


def _line(call: ToolCall) -> str:
    arguments = truncate(" ".join(call.arguments.split()), _ARGUMENTS)
    if call.ok is None:
        became = texts.CALL_UNKNOWN
    else:
        became = texts.CALL_DONE if call.ok else texts.CALL_FAILED
        became = f"{became}: {truncate(' '.join(call.result.split()), _RESULT)}"
    return f"- {call.name}({arguments}) -> {became}"
