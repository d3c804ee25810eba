"""Executions as agent runs: a run owner for the dispatcher.

The end of a run, its consequences and its notifications are stored in one transaction; until then
the run keeps its slots.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic

from goclaw_py.chat.access.incident_alerts import IncidentAlerts
from goclaw_py.chat.channel import Channel
from goclaw_py.chat.outbound import texts
from goclaw_py.core.errors import AgentError, ApprovalNeeded, Fenced
from goclaw_py.core.ids import RunId, SessionKey
from goclaw_py.core.messages import Role
from goclaw_py.core.metrics import MetricsRecorder
from goclaw_py.core.outcomes import Ending, Outcome, Reason
from goclaw_py.core.run_events import RunNote
from goclaw_py.core.time.clock import Clock
from goclaw_py.records import NewRun, Place, RunEnd
from goclaw_py.records.bound import BoundStore
from goclaw_py.runs.agent_executor import AgentExecutor, AgentTask, prompt_words
from goclaw_py.runs.approval_port import Questions
from goclaw_py.runs.budget_tracker import BudgetTracker
from goclaw_py.runs.events.broker import RunEventBroker, ended_elsewhere
from goclaw_py.runs.replies.replies import Replies
from goclaw_py.runs.replies.wait_line import HeardEvent
from goclaw_py.runs.run_persistence import RunStart
from goclaw_py.runs.run_recorder import RunRecorder, without_success
from goclaw_py.runs.session_settings import SessionSettings
from goclaw_py.runs.subagents import ChildRuns
from goclaw_py.schedule.engine import ExecutionEngine, ExecutionT
from goclaw_py.schedule.models import Attempt, Superseded, is_transient
from goclaw_py.scheduler.dispatcher import Dispatcher
from goclaw_py.scheduler.models import QueuePolicy, Request

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ScheduledRunServices:
    """What all runs of jobs and heartbeats share: one record, which each of them passes on whole.

    Args:
        release_later: Takes sessions that this node need not own any longer.
    """

    dispatcher: Dispatcher
    agent_executor: AgentExecutor
    children: ChildRuns
    feed: RunEventBroker
    budget_tracker: BudgetTracker
    release_later: Callable[[SessionKey], None]
    channels: Mapping[Place, Channel]
    policies: SessionSettings
    replies: Replies
    incidents: IncidentAlerts
    meter: MetricsRecorder


@dataclass(slots=True, eq=False)
class ScheduledRun(Generic[ExecutionT]):
    """A run in progress."""

    execution: ExecutionT
    run: NewRun
    progress: RunRecorder
    beginning: RunStart | None = None


class ScheduledAgentRuns(ABC, Generic[ExecutionT]):
    """The agent runs of executions in this process.

    Args:
        engine: The executions, for which this is the one that performs them.
    """

    def __init__(
        self,
        store: BoundStore,
        clock: Clock,
        shared: ScheduledRunServices,
        engine: ExecutionEngine[Any, ExecutionT, Any, Any],
    ) -> None:
        self._store = store
        self._clock = clock
        self._shared = shared
        self._engine = engine
        self._dispatcher, self._agent_executor = shared.dispatcher, shared.agent_executor
        self._runs: dict[RunId, ScheduledRun[ExecutionT]] = {}

    # ------------------------------------------------------------------ what a feature supplies

    @abstractmethod
    def prompt(self, execution: ExecutionT) -> str:
        """Return the prompt of the agent."""

    def source(self, execution: ExecutionT) -> str:
        """Return what marks the prompt in the history of the session; "" for nothing."""
        del execution
        return ""

    @abstractmethod
    def task(self, execution: ExecutionT, run: NewRun) -> AgentTask:
        """Return the task of a run."""

    async def questions(self, execution: ExecutionT, needed: ApprovalNeeded) -> Questions:
        """Return the questions of a run to people; none if its feature does not ask."""
        del execution, needed
        return Questions()

    async def lost(self, execution: ExecutionT) -> None:
        """Handle a run that could not start in its session, or whose claim another node has now."""
        await self._engine.give_back(execution)

    # ------------------------------------------------------------------ looking

    def owns(self, run_id: RunId) -> bool:
        """Return whether this is the run of an execution and has no stored end."""
        return run_id in self._runs

    def progress(self, run_id: RunId) -> RunRecorder | None:
        """Return the recorder of such a run."""
        run = self._runs.get(run_id)
        return None if run is None else run.progress

    # ------------------------------------------------------------------ running

    def submit(
        self, execution: ExecutionT, run: NewRun, policy: QueuePolicy, timeout_s: float | None
    ) -> None:
        """Submit a run of an execution to the scheduler."""
        execution.run, execution.session = run.id, run.session
        # Known before its start, for operators who look at what waits.
        progress = RunRecorder(prompt=prompt_words(self.prompt(execution)))
        self._runs[run.id] = ScheduledRun(execution, run, progress)
        self._shared.feed.on_requested(run)
        self._dispatcher.submit(
            Request(
                id=run.id,
                session=run.session,
                lane=run.lane,
                agent=run.agent,
                policy=policy,
                run_timeout_s=timeout_s,
            )
        )

    async def work(self, run_id: RunId) -> None:
        """Run the agent loop."""
        mine = self._runs[run_id]
        execution = mine.execution
        self._shared.feed.started(mine.run)
        if not await self._engine.is_wanted(execution):
            raise Superseded(execution.id)
        # It may have waited for its session, its agent or its lane since it was asked for.
        began_at = max(self._clock.now(), mine.run.started_at)
        run = mine.run = replace(mine.run, started_at=began_at)
        mine.beginning = RunStart(self._store, run, execution.node)
        mine.progress.begun = await mine.beginning.begin()
        await self._agent_executor.work(
            self.task(execution, run),
            mine.progress,
            _ignore_event,
            partial(self._until_due, execution),
        )

    async def _until_due(self, execution: ExecutionT) -> None:
        await execution.until_due(self._clock)
        execution.started_at = execution.started_at or self._clock.now()

    async def record(self, ended: Ending, error: BaseException | None) -> None:
        """Store the end of a run, with its consequences."""
        mine = self._runs[ended.run_id]
        execution, progress = mine.execution, mine.progress
        is_again = False
        if isinstance(error, Superseded):
            error, ended = None, Ending(ended.run_id, Outcome.CANCELLED, Reason.STOPPED)
            is_again = self._engine.decide_again(execution)
        try:
            if not is_again:
                ended, error = await self._store_end(mine, ended, error)
        except Exception as bug:
            # A boundary: what met the bug may be what the agent gave back.
            log.exception("run_end_not_stored", extra=execution.facts)
            ended = without_success(ended)
            await self._engine.crashed(execution, bug, self._bare_end(mine, ended, bug))
        finally:
            self._shared.feed.ended(mine.run, ended, progress)
            if not is_again:
                self._agent_executor.ended(mine.run, ended, progress, error)
            self._shared.budget_tracker.close(ended.run_id)
            del self._runs[ended.run_id]
            if mine.beginning is not None:
                self._shared.release_later(mine.run.session)

    async def _store_end(
        self, mine: ScheduledRun[ExecutionT], ended: Ending, error: BaseException | None
    ) -> tuple[Ending, BaseException | None]:
        """Store the end of a run; return its outcome and its error, as stored."""
        execution, progress = mine.execution, mine.progress
        ended, error = progress.judge(ended, error)
        questions = Questions()
        if isinstance(error, ApprovalNeeded) and ended.reason is Reason.APPROVAL:
            questions, error = await self.questions(execution, error), None
        if error is not None:
            log.warning(
                "run_failed", extra={**execution.facts, "error": progress.stored_text(error)}
            )
        if isinstance(error, Fenced):
            await self.lost(execution)
            return ended_elsewhere(ended.run_id), error
        attempt = attempt_of(ended, error, progress)
        end = await self._run_end(mine, ended, error, questions)
        bare = partial(self._bare_end, mine, without_success(ended))
        await self._engine.ended(execution, attempt, end, bare)
        return ended, error

    def _bare_end(
        self, mine: ScheduledRun[ExecutionT], ended: Ending, bug: Exception
    ) -> RunEnd | None:
        if mine.beginning is None:
            return None
        prompt = self.prompt(mine.execution)
        end = mine.progress.bare_end(ended, bug, self._clock.now(), prompt=prompt)
        return _marked(end, self.source(mine.execution))

    async def _run_end(
        self,
        mine: ScheduledRun[ExecutionT],
        ended: Ending,
        error: BaseException | None,
        asks: Questions,
    ) -> RunEnd | None:
        if mine.beginning is None:
            return None
        await mine.beginning.settle(ended.outcome)
        prompt, now = self.prompt(mine.execution), self._clock.now()
        end = mine.progress.run_end(ended, error, now, prompt=prompt, asks=asks)
        return _marked(end, self.source(mine.execution))

    def joined(self, request_id: RunId, into: RunId) -> None:
        """Never called: these runs do not join others."""
        raise AssertionError(f"scheduled run {request_id} joined {into}")

    def restarted(self, run_id: RunId, into: RunId) -> None:
        """Never called: these runs do not join others."""
        raise AssertionError(f"run {run_id} restarted in {into}")

    def offered(self, request_id: RunId, run_id: RunId) -> None:
        """Never called: these runs take no messages of their chats."""


def attempt_of(ended: Ending, error: BaseException | None, progress: RunRecorder) -> Attempt:
    """Return how an attempt ended, from the end of its run."""
    outcome, result = ended.outcome, progress.result
    if ended.reason in (Reason.DRAINING, Reason.SHUTDOWN):
        outcome = Outcome.INTERRUPTED
    elif outcome is Outcome.ABANDONED and ended.reason in (Reason.STOPPED, Reason.STOPPED_ALL):
        outcome = Outcome.CANCELLED
    friendly = texts.FAILED
    if isinstance(error, AgentError):
        friendly = error.friendly
    elif outcome in (Outcome.TIMED_OUT, Outcome.ABANDONED):
        friendly = texts.timed_out(ended.reason)
    return Attempt(
        outcome=outcome,
        reason=ended.reason,
        error=progress.stored_text(error) or "",
        friendly=friendly,
        retryable=is_transient(error),
        side_effects=progress.has_side_effects,
        text=progress.text if result is None else result.text,
        usage=progress.usage,
        files=() if result is None else result.files,
        is_cut=RunNote.ANSWER_CUT in progress.notes,
    )


def _marked(end: RunEnd, source: str) -> RunEnd:
    """Return the end of a run whose prompt is marked with its source in the history.

    The agent has read the prompt as it is: only the text for people and other loops is marked.
    """
    if not source or not end.history or end.history[0].role is not Role.USER:
        return end
    asked, *rest = end.history
    text = f"{source} {asked.text}".rstrip()
    return replace(end, history=(replace(asked, text=text), *rest))


def _ignore_event(event: HeardEvent) -> None:
    """Ignore an event: nothing is shown in a chat before the run has ended (SPEC HB-6)."""
