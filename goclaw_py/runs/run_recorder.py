"""The record of a run, collected during the run and stored at its end (SPEC OPS-5).

The rules of SPEC OPS-8:

The journal, the session history and the run record are one source. `runs show` lists the steps of a
run of any outcome, also in progress: number, kind, tool, text, tokens (`GET /api/runs/{id}/record`,
page of the run). A step that cannot be read is listed as `unreadable`. - `sessions fork SESSION
[--at RUN]` copies what a session remembers (history, summary, pinned facts) into a new one,
`agent:<a>:console:direct:fork-<id>`: now, or when RUN ended, also if it was undone or reset since
(then without the summary, if that stands for more). Forks from one point are equal; the original
does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from goclaw_py.chat.outbound import texts
from goclaw_py.core.errors import (
    AgentError,
    ApprovalNeeded,
    BudgetReached,
    ChainLimitReached,
    NotContinued,
)
from goclaw_py.core.messages import HistoryEntry, OutFile, Role
from goclaw_py.core.outcomes import Ending, Outcome, Reason
from goclaw_py.core.run_events import (
    NO_USAGE,
    Compacted,
    RunNote,
    RunNoted,
    TextDelta,
    ToolEnded,
    ToolStarted,
    Usage,
)
from goclaw_py.core.text import error_text, truncate
from goclaw_py.core.time.clock import Clock
from goclaw_py.records import RunEnd, RunStartResult, Summary, ToolCall
from goclaw_py.runs.agent_loop import (
    AgentResult,
    FilePart,
    LoopEvent,
    MessagePart,
    ModelStep,
    RequestSent,
)
from goclaw_py.runs.approval_port import Questions
from goclaw_py.runs.thoughts import ThoughtFilter
from goclaw_py.scheduler.views import RunProgress

MOST_CALLS = 200
"""The number of tool calls that are recorded; a model in a loop makes no huge record."""

MOST_CHARS = 2_000
"""The number of characters of arguments and results that are recorded."""


@dataclass(slots=True)
class RunRecorder:
    """Collects the events of an agent loop."""

    prompt: str = ""
    """The first words of its prompt."""
    said: list[str] = field(default_factory=list)
    first_text_at: datetime | None = None
    step: ModelStep | None = None
    compacted: Compacted | None = None
    files: list[OutFile] = field(default_factory=list)
    """Files that tools attach to the reply."""
    received: tuple[OutFile, ...] = ()
    """The files of the messages that it answers."""
    result: AgentResult | None = None
    over: BudgetReached | None = None
    """The budget for which the runtime has stopped it, if any."""
    is_asking: bool = False
    """Whether a request was sent that ``step`` does not contain."""
    half: str = ""
    """Half of a surrogate pair at the end of the last text; its other half may come next."""
    thoughts: ThoughtFilter = field(default_factory=ThoughtFilter)
    """Removes thoughts from the text of the present request."""
    can_continue: bool = False
    """Whether a later run can continue it after its last step (SPEC AGENT-10)."""
    begun: RunStartResult = field(default_factory=RunStartResult)
    """The result of its start."""
    notes: set[RunNote] = field(default_factory=set)
    hide: Callable[[str], str] = str
    """Masks secrets in an agent's error, which is stored and shown (SPEC SEC-2)."""
    _calls: dict[str, ToolCall] = field(default_factory=dict)
    _has_effects: bool = False

    def on_event(self, event: LoopEvent, clock: Clock) -> None:
        """Record an event."""
        match event:
            case TextDelta(text):
                if text and self.first_text_at is None:
                    self.first_text_at = clock.now()
                self.said.append(text)
            case RequestSent():
                self.is_asking = True
            case ModelStep():
                self.step, self.is_asking = event, False
                self.can_continue |= event.response is not None
            case ToolStarted():
                self._begin_call(event, clock.now())
            case ToolEnded():
                self._end_call(event, clock.now())
            case Compacted():
                self.compacted = event
            case RunNoted(note):
                self.notes.add(note)

    def _begin_call(self, event: ToolStarted, now: datetime) -> None:
        self._has_effects |= event.side_effects
        if len(self._calls) < MOST_CALLS:
            arguments = truncate(event.arguments, MOST_CHARS)
            self._calls[event.call_id] = ToolCall(
                event.name,
                arguments,
                now,
                event.side_effects,
                text_before=sum(map(len, self.said)),
            )

    def _end_call(self, event: ToolEnded, now: datetime) -> None:
        call = self._calls.get(event.call_id)
        if call is not None:
            self._calls[event.call_id] = replace(
                call,
                seconds=(now - call.started_at).total_seconds(),
                ok=event.ok,
                result=truncate(event.result, MOST_CHARS),
                uncertain=event.uncertain,
            )

    def pop_files(
        self, files: Mapping[int, Sequence[MessagePart]]
    ) -> Mapping[int, Sequence[MessagePart]]:
        """Record and return the files of its messages, for the history."""
        parts = [part for row in files.values() for part in row if isinstance(part, FilePart)]
        found = [OutFile(part.kind, str(part.path), part.name, part.mime) for part in parts]
        self.received = tuple(found)
        return files

    @property
    def has_side_effects(self) -> bool:
        """Return whether repeating it may repeat a side effect (SPEC CRON-7)."""
        return self._has_effects or any(call.side_effects for call in self.begun.cut_calls)

    @property
    def text(self) -> str:
        """Return what the agent has said so far."""
        return "".join(self.said)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """Return its tool calls."""
        return tuple(self._calls.values())

    @property
    def tools_in_use(self) -> tuple[str, ...]:
        """Return the names of the tools that are running."""
        return tuple(call.name for call in self.calls if call.seconds is None)

    @property
    def usage(self) -> Usage | None:
        """Return its usage, as far as known."""
        if self.result is not None:
            return self.result.usage
        return None if self.step is None else self.step.usage

    @property
    def model(self) -> str:
        """Return the model that answered last."""
        if self.result is not None and self.result.model:
            return self.result.model
        return "" if self.step is None else self.step.model

    @property
    def activity(self) -> RunProgress:
        """Return what the run does at present."""
        tokens = 0 if (usage := self.usage) is None else usage.tokens
        return RunProgress(self.prompt, self.tools_in_use, self.model, tokens, self.first_text_at)

    def history(self, prompt: str, outcome: Outcome) -> tuple[HistoryEntry, ...]:
        """Return its history entries. An interrupted run leaves readable entries."""
        entries = list(self._entries(prompt, outcome))
        if entries and entries[0].role is Role.USER and entries[0].files != self.received:
            entries[0] = replace(entries[0], files=self.received)
        result = self.result if outcome is Outcome.COMPLETED else None
        if result is not None and entries[-1].files != result.files:
            entries[-1] = replace(entries[-1], files=result.files)
        return tuple(entries)

    def _entries(self, prompt: str, outcome: Outcome) -> tuple[HistoryEntry, ...]:
        result = self.result
        if outcome is Outcome.COMPLETED and result is not None:
            asked = HistoryEntry(Role.USER, prompt)
            return result.entries or (asked, HistoryEntry(Role.ASSISTANT, result.text))
        if outcome is Outcome.INTERRUPTED:
            return ()
        note = texts.interrupted_note(outcome)
        if outcome is Outcome.ABANDONED:
            return _plain(prompt, note)
        if self.step is not None and self.step.entries is not None:
            return self.step.entries(note)
        return _plain(prompt, texts.interrupted_reply(self.text, outcome))

    def judge(
        self, ended: Ending, error: BaseException | None
    ) -> tuple[Ending, BaseException | None]:
        """Return the end of a run that a budget or a question has ended, or that is lost."""
        if isinstance(error, ApprovalNeeded) and ended == Ending(ended.run_id, Outcome.INTERRUPTED):
            return replace(ended, reason=Reason.APPROVAL), error
        if ended.reason is Reason.BUDGET and error is None:
            error = self.over
        elif isinstance(error, BudgetReached) and ended.outcome is Outcome.FAILED:
            is_chain = isinstance(error, ChainLimitReached)
            reason = Reason.CHAIN_LIMIT if is_chain else Reason.BUDGET
            ended, error = replace(ended, reason=reason), self.over or error
        elif isinstance(error, NotContinued) and ended.outcome is Outcome.FAILED:
            ended = replace(ended, outcome=Outcome.LOST, reason=Reason.NOT_CONTINUED)
        else:
            return ended, error
        if isinstance(error, AgentError) and self.begun.cut_calls:
            done = texts.done_before((*self.begun.cut_calls, *self.calls))
            error = type(error)(f"{error.friendly} {done}", str(error))
        return ended, error

    def stored_text(self, error: BaseException | None) -> str | None:
        """Return the stored text of an error, if there is one."""
        return None if error is None else self.hide(error_text(error))

    def run_end(
        self,
        ended: Ending,
        error: BaseException | None,
        now: datetime,
        *,
        prompt: str,
        asks: Questions,
        joined_rows: tuple[int, ...] = (),
    ) -> RunEnd:
        """Return the end of a run with this prompt, with everything that was recorded.

        The messages of ``asks`` are all that are sent with it.
        """
        usage = self.usage
        if ended.reason is Reason.MERGED and self.is_asking:
            # Cancelled by the runtime itself, and paid for all the same.
            usage = (usage or NO_USAGE).plus(Usage(requests=1))
        return RunEnd(
            id=ended.run_id,
            outcome=ended.outcome,
            finished_at=now,
            reason=ended.reason,
            error=self.stored_text(error),
            history=self.history(prompt, ended.outcome),
            say=asks.say,
            usage=usage,
            taken_in=joined_rows,
            model=self.model,
            tools=self.calls,
            first_text_at=self.first_text_at,
            summary=self._summary(self.begun.places),
            approvals=asks.approvals,
            notes=tuple(note for note in RunNote if note in self.notes),
        )

    def bare_end(self, ended: Ending, bug: Exception, now: datetime, *, prompt: str) -> RunEnd:
        """Return an end without what the agent gave back, for one that a bug kept from the store.

        The prompt stays in the history: the person has said it, and the next run can refer to it.
        """
        again = ended.outcome is Outcome.INTERRUPTED
        return RunEnd(
            id=ended.run_id,
            outcome=ended.outcome,
            finished_at=now,
            reason=ended.reason,
            error=f"not stored: {self.stored_text(bug)}",
            history=() if again else _plain(prompt, texts.interrupted_note(ended.outcome)),
        )

    def _summary(self, places: Sequence[int]) -> Summary | None:
        made = self.compacted
        if made is None or not 0 < made.replaced <= len(places):
            return None
        return Summary(made.summary, places[made.replaced - 1])


def without_success(ended: Ending) -> Ending:
    """Return the outcome of a run whose whole end a bug kept from the store: it has failed.

    One that was stopped, timed out, or runs again stays that.
    """
    asks = ended.reason is Reason.APPROVAL
    is_success = ended.outcome is Outcome.COMPLETED or asks
    return Ending(ended.run_id, Outcome.FAILED) if is_success else ended


def _plain(prompt: str, reply: str) -> tuple[HistoryEntry, ...]:
    return HistoryEntry(Role.USER, prompt), HistoryEntry(Role.ASSISTANT, reply)
