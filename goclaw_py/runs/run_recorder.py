"""The record of a run, collected while it is in progress and stored at its end (SPEC OPS-5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from goclaw_py.common.text import cut_text
from goclaw_py.delivery import texts
from goclaw_py.model.errors import BudgetReached
from goclaw_py.model.messages import OutFile
from goclaw_py.model.outcomes import Ending, Outcome, Reason
from goclaw_py.model.run_events import (
    Compacted,
    TextDelta,
    ToolEnded,
    ToolStarted,
    Usage,
)
from goclaw_py.ports.agent import AgentResult, HistoryEntry, LoopEvent, ModelStep, Role
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.store import RunEnd, RunStartResult, Summary, ToolCall

MOST_CALLS = 200
"""How many calls of tools are kept of a run; a model in a circle makes no record of megabytes."""

MOST_CHARS = 2_000
"""How much is kept of the arguments of a call, and of its result."""


@dataclass(slots=True)
class RunRecorder:
    """Collects what an agent loop reports."""

    said: list[str] = field(default_factory=list)
    first_text_at: datetime | None = None
    step: ModelStep | None = None
    compacted: Compacted | None = None
    files: list[OutFile] = field(default_factory=list)
    """Those that tools want to be sent."""
    result: AgentResult | None = None
    over: BudgetReached | None = None
    """Why the runtime has stopped it, if it has for want of budget."""
    has_side_effects: bool = False
    """Whether to run it again may do something twice (SPEC CRON-7)."""
    begun: RunStartResult = field(default_factory=RunStartResult)
    """What it began with."""
    hide: Callable[[str], str] = str
    """Takes secrets out of what an agent's error says: it is stored and shown (SPEC SEC-2)."""
    _calls: dict[str, ToolCall] = field(default_factory=dict)

    def hear(self, event: LoopEvent, clock: Clock) -> None:
        """Note an event."""
        match event:
            case TextDelta(text):
                if text and self.first_text_at is None:
                    self.first_text_at = clock.now()
                self.said.append(text)
            case ModelStep():
                self.step = event
            case ToolStarted():
                self._begin_call(event, clock.now())
            case ToolEnded():
                self._end_call(event, clock.now())
            case Compacted():
                self.compacted = event

    def _begin_call(self, event: ToolStarted, now: datetime) -> None:
        self.has_side_effects |= event.side_effects
        if len(self._calls) < MOST_CALLS:
            arguments = cut_text(event.arguments, MOST_CHARS)
            self._calls[event.call_id] = ToolCall(event.name, arguments, now, event.side_effects)

    def _end_call(self, event: ToolEnded, now: datetime) -> None:
        call = self._calls.get(event.call_id)
        if call is not None:
            self._calls[event.call_id] = replace(
                call,
                seconds=(now - call.started_at).total_seconds(),
                ok=event.ok,
                result=cut_text(event.result, MOST_CHARS),
            )

    @property
    def text(self) -> str:
        """What the agent has said so far."""
        return "".join(self.said)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tools that it has called."""
        return tuple(self._calls.values())

    @property
    def tools_in_use(self) -> tuple[str, ...]:
        """The names of the tools that work now."""
        return tuple(call.name for call in self.calls if call.seconds is None)

    @property
    def usage(self) -> Usage | None:
        """What it has used, as far as that is known."""
        if self.result is not None:
            return self.result.usage
        return None if self.step is None else self.step.usage

    @property
    def model(self) -> str:
        """The model that has answered last."""
        if self.result is not None and self.result.model:
            return self.result.model
        return "" if self.step is None else self.step.model

    def history(self, prompt: str, outcome: Outcome) -> tuple[HistoryEntry, ...]:
        """What its session remembers of it. A run that was cut short leaves readable entries."""
        result = self.result
        if outcome is Outcome.COMPLETED and result is not None:
            asked = HistoryEntry(Role.USER, prompt)
            return result.entries or (asked, HistoryEntry(Role.ASSISTANT, result.text))
        if outcome is Outcome.INTERRUPTED:
            return ()
        note = texts.cut_note(outcome)
        if outcome is Outcome.ABANDONED:
            return _plain(prompt, note)
        if self.step is not None and self.step.entries is not None:
            return self.step.entries(note)
        return _plain(prompt, texts.cut_reply(self.text, outcome))

    def judge(
        self, ended: Ending, error: BaseException | None
    ) -> tuple[Ending, BaseException | None]:
        """Why a run has ended for want of budget, whoever noticed it: the runtime or its loop."""
        if ended.reason is Reason.BUDGET and error is None:
            return ended, self.over
        if isinstance(error, BudgetReached) and ended.outcome is Outcome.FAILED:
            return replace(ended, reason=Reason.BUDGET), self.over or error
        return ended, error

    def told(self, error: BaseException | None) -> str | None:
        """What is stored of an error, if there is one."""
        return None if error is None else self.hide(f"{type(error).__name__}: {error}")

    def recorded(self, end: RunEnd) -> RunEnd:
        """An end with all that is stored of the work."""
        return replace(
            end,
            usage=self.usage,
            model=self.model,
            tools=self.calls,
            first_text_at=self.first_text_at,
            summary=self._summary(self.begun.places),
        )

    def _summary(self, places: Sequence[int]) -> Summary | None:
        made = self.compacted
        if made is None or not 0 < made.replaced <= len(places):
            return None
        return Summary(made.summary, places[made.replaced - 1])


def _plain(prompt: str, reply: str) -> tuple[HistoryEntry, ...]:
    return HistoryEntry(Role.USER, prompt), HistoryEntry(Role.ASSISTANT, reply)
