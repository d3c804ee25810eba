"""Decides what people see of a run that does not go on: one line, whatever the causes.

A tool in use or a server that is awaited is named; only without them a silent model is. That an
interrupted run continues is said in the same line, until its agent says something new.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from goclaw_py.chat.outbound.wait_texts import wait_line
from goclaw_py.core.run_events import AgentEvent, TextDelta, ToolEnded, ToolStarted, Waiting
from goclaw_py.core.run_steps import ResponseStep, ValueStep
from goclaw_py.records import RunStartResult
from goclaw_py.runs.agent_loop import RequestSent

HeardEvent = AgentEvent | RequestSent | ValueStep
"""What people may see of an agent's events, or what changes what they see."""

SILENT_S = 30.0
"""Seconds after which a model that sends nothing for people is named."""

RESUMED_S = 5.0
"""Seconds within which the answer of an interrupted run needs no word about the restart."""


class WaitLine:
    """The line about one run.

    Args:
        begun: What the run continues from.
        changed: Called when the line may have changed.
    """

    def __init__(self, begun: RunStartResult, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._tools: list[str] = []
        self._waits: list[str] = []
        self._loop = asyncio.get_running_loop()
        self._heard_at = 0.0
        """When the model sent something, or was asked, by the loop's clock."""
        self._silence: asyncio.TimerHandle | None = None
        self._is_silent = False
        self._is_resumed = False
        self._restart: asyncio.TimerHandle | None = None
        # What it says before its first request was said before the restart.
        self._is_replayed = False
        self.signalled = ""
        """The line that was signalled to a channel without drafts."""
        if begun.is_restarted:
            self._is_replayed = any(isinstance(step, ResponseStep) for step in begun.steps or ())
            self._restart = self._loop.call_later(RESUMED_S, self._resumed)

    @property
    def text(self) -> str:
        """Return the line, "" if there is none."""
        return self._text([*self._tools, *self._waits])

    @property
    def text_without_tools(self) -> str:
        """Return the line for channels that show tools themselves."""
        return self._text(self._waits)

    def on_event(self, event: HeardEvent) -> None:
        """Follow an event of the agent. While it uses a tool, its model is not awaited."""
        match event:
            case TextDelta():
                self._on_output()
            case RequestSent():
                self._is_replayed = False
                self._await_model()
            case ToolStarted(name=name):
                self._change(self._tools, name, is_there=True)
            case ToolEnded(name=name):
                self._change(self._tools, name, is_there=False)
            case Waiting(what, is_over):
                self._change(self._waits, f"waiting for {what}", is_there=not is_over)
            case _:
                pass

    def close(self) -> None:
        """Change no more."""
        for timer in (self._silence, self._restart):
            if timer is not None:
                timer.cancel()

    def _on_output(self) -> None:
        if self._silence is not None:
            self._heard_at = self._loop.time()
        elif self._is_silent:
            self._is_silent = False
            self._await_model()
            self._changed()
        if self._restart is not None and not self._is_replayed:
            self._restart.cancel()
            self._restart, self._is_resumed = None, False
            self._changed()

    def _text(self, names: list[str]) -> str:
        return wait_line(names, is_silent=self._is_silent, is_resumed=self._is_resumed)

    def _change(self, names: list[str], name: str, *, is_there: bool) -> None:
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None
        self._is_silent = False
        if is_there:
            names.append(name)
        elif name in names:
            names.remove(name)
        self._changed()

    def _await_model(self) -> None:
        self._heard_at = self._loop.time()
        if self._silence is None:
            self._silence = self._loop.call_at(self._heard_at + SILENT_S, self._check)

    def _check(self) -> None:
        """Find the model silent, or look again when it may be."""
        due = self._heard_at + SILENT_S
        if due > self._loop.time():
            # One timer for all pieces of an answer: setting one for each would cost more.
            self._silence = self._loop.call_at(due, self._check)
            return
        self._silence, self._is_silent = None, True
        self._changed()

    def _resumed(self) -> None:
        self._is_resumed = True
        self._changed()
