"""Heartbeat runs as runs of agents (SPEC HB-5). A run owner for the dispatcher."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from goclaw_py.common.clock import new_run_id
from goclaw_py.common.retry import retry_until_available
from goclaw_py.heartbeat import texts
from goclaw_py.heartbeat.alerts import Alerts
from goclaw_py.heartbeat.execution import HeartbeatExecution, facts_of
from goclaw_py.heartbeat.executions import HeartbeatExecutions, HeartbeatOutcome
from goclaw_py.heartbeat.models import HeartbeatRunEnd, HeartbeatRunStatus
from goclaw_py.jobs.attempts import attempt_of, said_of
from goclaw_py.model.budget import Budget
from goclaw_py.model.errors import Fenced
from goclaw_py.model.ids import RunId, SessionKey
from goclaw_py.model.outcomes import Ending, Outcome, Reason, Trigger
from goclaw_py.model.run_events import AgentEvent
from goclaw_py.model.session_keys import beat_session
from goclaw_py.ports.agent import TextPart
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.store import NewRun, RunEnd, Store
from goclaw_py.runs.agent_executor import AgentExecutor
from goclaw_py.runs.agent_executor import AgentTask as Task
from goclaw_py.runs.budget_tracker import BudgetTracker
from goclaw_py.runs.event_broker import RunEventBroker, taken_over
from goclaw_py.runs.run_persistence import RunStart, end_of
from goclaw_py.runs.run_recorder import RunRecorder
from goclaw_py.runs.subagents import ChildRuns, ParentRun
from goclaw_py.scheduler.dispatcher import Dispatcher
from goclaw_py.scheduler.models import QueuePolicy, Request

log = logging.getLogger(__name__)


class HeartbeatSuperseded(Exception):
    """The heartbeat was turned off, muted or changed while its run waited for a lane."""


@dataclass(slots=True, eq=False)
class HeartbeatAgentRun:
    """The agent run of a heartbeat run in progress."""

    held: HeartbeatExecution
    run: NewRun
    progress: RunRecorder = field(default_factory=RunRecorder)
    beginning: RunStart | None = None


class HeartbeatRunExecutor:
    """Implements ``HeartbeatHandler``.

    Args:
        run_timeout_s: How long a run may work; None: as long as it likes.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        children: ChildRuns,
        feed: RunEventBroker,
        budget_tracker: BudgetTracker,
        run_timeout_s: float | None = None,
    ) -> None:
        self._run_timeout_s = run_timeout_s
        self._store = store
        self._clock = clock
        self._children = children
        self._feed = feed
        self._ledger = budget_tracker
        self._runs: dict[RunId, HeartbeatAgentRun] = {}

    def connect(
        self,
        dispatcher: Dispatcher,
        agent_executor: AgentExecutor,
        beats: HeartbeatExecutions,
        alerts: Alerts,
        release_later: Callable[[SessionKey], None],
    ) -> None:
        """Give it those with whom it works. Call it once, before anything is due."""
        self._dispatcher = dispatcher
        self._workshop = agent_executor
        self._beats = beats
        self._alerts = alerts
        self._release_later = release_later

    # ------------------------------------------------------------------ looking

    def owns(self, run_id: RunId) -> bool:
        """Whether it is a beat's run whose end is not stored."""
        return run_id in self._runs

    def progress(self, run_id: RunId) -> RunRecorder | None:
        """What is known of a beat's run while it works."""
        mine = self._runs.get(run_id)
        return None if mine is None else mine.progress

    # ------------------------------------------------------------------ performing

    def perform(self, held: HeartbeatExecution) -> None:
        """See ``HeartbeatHandler``."""
        agent, run_id = held.claimed.agent, new_run_id(self._clock)
        held.run = run_id
        now = self._clock.now()
        run = NewRun(
            id=run_id,
            session=beat_session(agent, run_id),
            agent=agent,
            trigger=Trigger.HEARTBEAT,
            lane=held.policy.lane,
            inbox=(),
            target=None,
            started_at=now,
            submitted_at=now,
            beat=held.id,
        )
        held.done = None
        self._runs[run_id] = HeartbeatAgentRun(held, run)
        self._feed.asked(run)
        self._dispatcher.submit(
            Request(
                id=run_id,
                session=run.session,
                lane=run.lane,
                agent=agent,
                policy=QueuePolicy(),
                run_timeout_s=self._run_timeout_s,
            )
        )

    async def told(
        self, held: HeartbeatExecution, end: HeartbeatRunEnd, told: HeartbeatOutcome
    ) -> None:
        """See ``HeartbeatHandler``."""
        await self._alerts.told(held, end, told)

    # ------------------------------------------------------------------ the dispatcher's host

    async def work(self, run_id: RunId) -> None:
        """Run the agent loop."""
        mine = self._runs[run_id]
        held, run = mine.held, mine.run
        self._feed.started(run)
        if not await self._beats.is_wanted(held):
            raise HeartbeatSuperseded(held.id)
        mine.beginning = RunStart(self._store, run, held.node)
        mine.progress.begun = await mine.beginning.begin()
        held.started_at = held.started_at or self._clock.now()
        now = self._clock.now()
        task = Task(
            run=run,
            parts=(TextPart(_prompt(held)),),
            # Nobody could be told later: its conversation is not a chat.
            children=self._children.of(ParentRun(run.id, run.agent, run.session, None)),
            system=(texts.beat_run(now, held.policy.zone),),
            budget=_left(held),
            model=held.policy.model,
            beat_done=partial(_note_done, held),
        )
        await self._workshop.work(task, mine.progress, _hear_nothing)

    async def record(self, ended: Ending, error: BaseException | None) -> None:
        """Store how a beat's run ended, with what follows from it."""
        mine = self._runs[ended.run_id]
        held, progress = mine.held, mine.progress
        ended, error = progress.judge(ended, error)
        unwanted = isinstance(error, HeartbeatSuperseded)
        if unwanted:
            error, ended = None, Ending(ended.run_id, Outcome.CANCELLED, Reason.STOPPED)
        if error is not None:
            log.warning("run_failed", extra={**facts_of(held), "error": str(error)})
        try:
            if unwanted:
                self._beats.decide_again(held)
            elif isinstance(error, Fenced):
                ended = taken_over(ended.run_id)
                await self._beats.lost(held)
            else:
                await self._record(mine, ended, error)
        finally:
            self._feed.ended(mine.run, ended, progress)
            if not unwanted:
                self._workshop.ended(mine.run, ended, progress, error)
            self._ledger.close(ended.run_id)
            del self._runs[ended.run_id]
            if mine.beginning is not None:
                self._release_later(mine.run.session)

    async def _record(
        self, mine: HeartbeatAgentRun, ended: Ending, error: BaseException | None
    ) -> None:
        held, progress = mine.held, mine.progress
        attempt = attempt_of(ended, error, progress)
        told = HeartbeatOutcome(HeartbeatRunStatus.FAILED)
        if attempt.outcome is Outcome.COMPLETED:
            try:
                told = await retry_until_available(lambda: self._alerts.of(held, said_of(progress)))
            except Exception as bug:
                # A boundary: a reply that cannot be written must not keep its beat open.
                log.exception("heartbeat_reply_failed", extra=facts_of(held))
                told = HeartbeatOutcome(
                    HeartbeatRunStatus.FAILED, f"{type(bug).__name__}: {bug}", progress.text
                )
        end = await self._run_end(mine, ended, error)
        await self._beats.ended(held, attempt, end, told)

    async def _run_end(
        self, mine: HeartbeatAgentRun, ended: Ending, error: BaseException | None
    ) -> RunEnd | None:
        if mine.beginning is None:
            return None
        await mine.beginning.settle(ended.outcome)
        return end_of(mine.progress, _prompt(mine.held), ended, error, self._clock.now())

    def joined(self, request_id: RunId, into: RunId) -> None:
        """Beats join nothing."""
        raise AssertionError(f"beat {request_id} joined {into}")

    def offered(self, request_id: RunId, run_id: RunId) -> None:
        """A beat takes no messages in."""
        del request_id, run_id


def _prompt(held: HeartbeatExecution) -> str:
    """What its agent reads."""
    assert held.go is not None, "it was decided that it comes to its agent"
    return texts.beat_prompt(held.go.due.text, held.go.events, held.policy.zone)


def _left(held: HeartbeatExecution) -> Budget | None:
    """What an attempt may use, after those before it."""
    if held.budget is None or held.usage is None:
        return held.budget
    return held.budget.less(held.usage)


def _hear_nothing(event: AgentEvent) -> None:
    """Nobody watches a beat in a chat: nothing of it is shown before it is judged (SPEC HB-6)."""


def _note_done(held: HeartbeatExecution, notify: bool, text: str) -> None:  # noqa: FBT001 - as ``Here`` calls it
    """The agent has said how its heartbeat ends; the last word counts."""
    held.done = notify, text
