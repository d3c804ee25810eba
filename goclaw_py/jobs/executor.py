"""Jobs as runs of agents: what a gateway does when a job is due (SPEC section 6, AGENT-7).

The host of the dispatcher for scheduled runs. The end of a run, what its job makes of it and what
people are told are stored in one transaction; until then the run keeps its slots.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from goclaw_py.common.clock import new_run_id
from goclaw_py.common.retry import retry_until_available
from goclaw_py.jobs import texts
from goclaw_py.jobs.attempts import attempt_of, said_of
from goclaw_py.jobs.decisions import Finish
from goclaw_py.jobs.execution import JobExecution, OccurrenceSuperseded, facts_of
from goclaw_py.jobs.execution_ends import AttemptOutput, EndReport
from goclaw_py.jobs.execution_models import Attempt, JobUpdate, OccurrenceStatus, Why
from goclaw_py.jobs.executions import JobExecutions
from goclaw_py.jobs.models import FixedMessage, Job, Program, Prompt, may_schedule, session_for
from goclaw_py.jobs.notifications import JobNotifications
from goclaw_py.jobs.policy import JobPolicy
from goclaw_py.jobs.targets import JobTargets
from goclaw_py.jobs.work_items import NoWork, WorkItems
from goclaw_py.model.errors import Fenced, WorkSourceError
from goclaw_py.model.ids import (
    CRON_LANE,
    AgentName,
    LaneName,
    RunId,
    SessionKey,
)
from goclaw_py.model.messages import OutboundMessage, Target
from goclaw_py.model.outcomes import Ending, HeartbeatRunKind, Outcome, Reason, Trigger
from goclaw_py.model.owners import Maker
from goclaw_py.model.run_events import AgentEvent
from goclaw_py.ports.agent import AgentLoop, TextPart
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.jobs import JobService, Requester, RunNow, StartedNow
from goclaw_py.ports.store import NewRun, RunEnd, Store
from goclaw_py.runs.agent_executor import AgentExecutor
from goclaw_py.runs.agent_executor import AgentTask as Task
from goclaw_py.runs.budget_tracker import BudgetTracker
from goclaw_py.runs.event_broker import RunEventBroker, taken_over
from goclaw_py.runs.run_persistence import RunStart, end_of
from goclaw_py.runs.run_recorder import RunRecorder
from goclaw_py.runs.subagents import ChildRuns
from goclaw_py.runs.subagents import ParentRun as Parent
from goclaw_py.scheduler.dispatcher import Dispatcher
from goclaw_py.scheduler.models import Request
from goclaw_py.scheduler.state_machine import StopResult
from goclaw_py.scheduler.views import RunState

log = logging.getLogger(__name__)

_WAKING = frozenset({OccurrenceStatus.OK, OccurrenceStatus.FAILED, OccurrenceStatus.TIMED_OUT})
"""Ends that a beat follows if the job says so (SPEC CRON-20)."""


@dataclass(frozen=True, slots=True)
class JobRunDeps:
    """The dependencies of scheduled runs.

    Args:
        program: Makes the loop that runs a program instead of an agent.
        limits: How many runs of an agent may work at once, where the settings say so.
    """

    service: JobService
    children: ChildRuns
    feed: RunEventBroker
    budget_tracker: BudgetTracker
    work: WorkItems
    program: Callable[[tuple[str, ...]], AgentLoop]
    limits: Mapping[AgentName, int] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class JobRun:
    """A scheduled run in progress."""

    held: JobExecution
    run: NewRun
    progress: RunRecorder = field(default_factory=RunRecorder)
    beginning: RunStart | None = None


class JobRuns:
    """Implements ``JobHandler``; a run owner for the dispatcher. ``lane``: where its runs go."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        places: JobTargets,
        shop: JobRunDeps,
        lane: LaneName = CRON_LANE,
    ) -> None:
        self._store = store
        self._clock = clock
        self._places = places
        self._shop = shop
        self._lane = lane
        self._runs: dict[RunId, JobRun] = {}

    def connect(
        self,
        dispatcher: Dispatcher,
        agent_executor: AgentExecutor,
        occurrences: JobExecutions,
        notifications: JobNotifications,
        release_later: Callable[[SessionKey], None],
    ) -> None:
        """Give it those with whom it works. Call it once, before anything is due."""
        self._release_later = release_later
        self._dispatcher = dispatcher
        self._workshop = agent_executor
        self._occurrences = occurrences
        self._telling = notifications

    # ------------------------------------------------------------------ looking

    def owns(self, run_id: RunId) -> bool:
        """Whether it is a scheduled run whose end is not stored."""
        return run_id in self._runs

    def progress(self, run_id: RunId) -> RunRecorder | None:
        """What is known of a scheduled run while it works."""
        run = self._runs.get(run_id)
        return None if run is None else run.progress

    def delivering_to(self, target: Target, creator: str | None = None) -> list[RunId]:
        """Runs of jobs that tell their result in this chat, the first claimed first.

        With a ``creator`` only of the jobs that this person has asked for.
        Of a job that waits for its next attempt it is the run of the last one; one that has not
        begun any goes by the id of its occurrence.
        """
        return [
            _stopped_by(held)
            for held in self._occurrences.all()
            if not held.is_over
            and target == (held.target or held.claimed.job.spec.target)
            and creator in (None, held.claimed.job.creator)
        ]

    def stop_run(self, run_id: RunId) -> StopResult:
        """Stop a run, or what would follow its last attempt; takes effect before this returns."""
        stopped = self._dispatcher.stop_one(run_id)
        for held in self._occurrences.all():
            if _stopped_by(held) == run_id and not (held.is_over or held.stopped):
                # Its run may have ended, and that be on its way into the database.
                self._occurrences.stop(held)
                return stopped if run_id in stopped.stopped else StopResult(stopped=[run_id])
        return stopped

    async def stop_waiting(
        self,
        target: Target,
        *,
        everything: bool,
        run: RunId | None = None,
        creator: str | None = None,
    ) -> int:
        """Stop what waits for its session and is claimed by no node; how many were stopped.

        The one that ``run`` names, else the first due, or ``everything`` that tells its result in
        this chat; with a ``creator`` only of jobs that this person has asked for. Raises
        ``StoreUnavailable``.
        """
        stopped = 0
        for one in await self._store.waiting_occurrences():
            if creator not in (None, one.job.creator):
                continue
            if run in (None, RunId(one.id)) and await self._places.target_of(one.job) == target:
                stopped += await self._occurrences.end_waiting(one)
                if stopped and not everything:
                    break
        return stopped

    # ------------------------------------------------------------------ performing

    def busy(self, job: Job, policy: JobPolicy) -> Why | None:
        """By what this process knows."""
        agent = job.spec.agent
        # This one is in hand already.
        if policy.max_per_agent and self._occurrences.of_agent(agent) > policy.max_per_agent:
            return Why.AT_CAPACITY
        limit = self._shop.limits.get(agent)
        active = sum(run.agent == agent for run in self._dispatcher.runs()) if limit else 0
        if limit and active >= limit:
            return Why.AT_CAPACITY
        session = session_for(job, policy, None)
        return Why.BUSY if session is not None and self._is_busy(session, job) else None

    def session(self, job: Job, policy: JobPolicy) -> SessionKey | None:
        """That of a message is never used, and one of its own is nobody else's."""
        return (
            None if isinstance(job.spec.payload, FixedMessage) else session_for(job, policy, None)
        )

    def _is_busy(self, session: SessionKey, job: Job) -> bool:
        """Whether anything runs or waits in a conversation, but for what is just ending."""
        if not self._dispatcher.has_session(session):
            return False
        own = {id_ for id_, mine in self._runs.items() if mine.held.claimed.job.id == job.id}
        return any(
            run.session == session and run.id not in own and run.state is not RunState.FINISHING
            for run in self._dispatcher.runs()
        )

    async def perform(self, held: JobExecution) -> None:
        """Begin an attempt."""
        try:
            await self._prepare(held)
        except NoWork:
            await self._occurrences.end(held, Finish(OccurrenceStatus.SKIPPED, Why.NO_WORK))
        except WorkSourceError as error:
            attempt = Attempt(Outcome.FAILED, error=str(error), retryable=True)
            await self._occurrences.ended(held, attempt, AttemptOutput(), None)

    async def _prepare(self, held: JobExecution) -> None:
        """Submit its run, or be done at once. Raises ``NoWork`` and ``WorkSourceError``."""
        spec = held.claimed.job.spec
        if isinstance(spec.payload, FixedMessage):
            await held.until_due(self._clock)
            held.started_at = held.started_at or self._clock.now()
            said = AttemptOutput(spec.payload.text)
            await self._occurrences.ended(held, Attempt(Outcome.COMPLETED), said, None)
            return
        await self._shop.work.take(held)
        job = held.claimed.job
        held.target = await retry_until_available(lambda: self._places.target_of(job))
        if self._occurrences.holds(held):
            self._submit(held)

    def _submit(self, held: JobExecution) -> None:
        job, first = held.claimed.job, held.claimed.by_hand and held.attempt == 1
        held.run = run_id = _run_by_hand(held) if first else new_run_id(self._clock)
        held.session = session = session_for(job, held.policy, run_id)
        assert session is not None
        now = max(self._clock.now(), held.claimed.due_at)
        run = NewRun(
            id=run_id,
            session=session,
            agent=job.spec.agent,
            trigger=Trigger.CRON,
            lane=self._lane,
            inbox=(),
            target=held.target,
            started_at=now,
            submitted_at=now,
            occurrence=held.id,
        )
        self._runs[run_id] = JobRun(held, run)
        self._shop.feed.asked(run)
        self._dispatcher.submit(
            Request(
                id=run_id,
                session=session,
                lane=self._lane,
                agent=job.spec.agent,
                policy=self._places.policy_of(job, session),
                run_timeout_s=held.policy.run_timeout_s or None,
            )
        )

    async def tell(
        self,
        held: JobExecution,
        end: Finish,
        update: JobUpdate | None,
        attempt: Attempt,
        said: AttemptOutput,
    ) -> EndReport:
        """See ``JobHandler``."""
        return await self._telling.tell(held, end, update, attempt, said)

    async def told(
        self,
        held: JobExecution,
        end: Finish,
        say: Sequence[OutboundMessage],
        said: AttemptOutput,
        error: str,
    ) -> None:
        """See ``JobHandler``."""
        job = held.claimed.job
        await self._telling.remember(job, say, besides=held.session)
        await self._shop.work.finish(held, end, said, error)
        await self._wake_heartbeat(held, end)

    async def _wake_heartbeat(self, held: JobExecution, end: Finish) -> None:
        """Let a beat follow if the job says so (SPEC CRON-20)."""
        spec = held.claimed.job.spec
        if spec.wake_heartbeat and end.status in _WAKING:
            agent, now = spec.agent, self._clock.now()
            await retry_until_available(
                lambda: self._store.wake_heartbeat(agent, HeartbeatRunKind.JOB, now=now)
            )

    # ------------------------------------------------------------------ by hand

    async def run_now(self, job: Job) -> StartedNow | RunNow:
        """See ``service.Hand``."""
        if self._dispatcher.draining:
            return RunNow.OFF
        policy = job.policy(self._shop.service.profile.policy)
        most = policy.max_per_agent
        if most and self._occurrences.of_agent(job.spec.agent) >= most:
            return RunNow.AT_CAPACITY
        held = await self._occurrences.claim_by_hand(job.id)
        if held is None:
            return RunNow.ALREADY_RUNNING
        held.attempt = 1
        try:
            if await self._occurrences.wait_elsewhere(held):
                session = self.session(job, policy) or ""
                return StartedNow(held.id, _run_by_hand(held), session)
            await self._prepare(held)
        except NoWork:
            await self._occurrences.end(held, Finish(OccurrenceStatus.SKIPPED, Why.NO_WORK))
            return RunNow.NO_WORK
        except BaseException as error:
            # Also if whoever asks for it has gone away: it is claimed, and nobody else ends it.
            self._occurrences.fail(held, error)
            raise
        return StartedNow(held.id, held.run, held.session or "")

    # ------------------------------------------------------------------ the dispatcher's host

    async def work(self, run_id: RunId) -> None:
        """Run the agent loop."""
        mine = self._runs[run_id]
        held = mine.held
        self._shop.feed.started(mine.run)
        if not await self._occurrences.is_wanted(held):
            raise OccurrenceSuperseded(held.id)
        # It may have waited for its session, its agent or its lane since it was asked for.
        began_at = max(self._clock.now(), held.claimed.due_at)
        run = mine.run = replace(mine.run, started_at=began_at)
        mine.beginning = RunStart(self._store, run, held.node)
        mine.progress.begun = await mine.beginning.begin()
        await held.until_due(self._clock)
        held.started_at = held.started_at or self._clock.now()
        await self._workshop.work(self._task(held, run), mine.progress, _hear_nothing)

    def _task(self, held: JobExecution, run: NewRun) -> Task:
        job, policy = held.claimed.job, held.policy
        payload = job.spec.payload
        loop = self._shop.program(payload.argv) if isinstance(payload, Program) else None
        schedules = self._shop.service.enabled and may_schedule(
            job, policy, item=held.item is not None
        )
        return Task(
            run=run,
            parts=(TextPart(self._prompt(held)),),
            # Nobody could be told later: its conversation is not a chat.
            children=self._shop.children.of(Parent(run.id, run.agent, run.session, None)),
            target=held.target,
            system=(self._telling.system(held),),
            budget=policy.budget,
            model=payload.model if isinstance(payload, Prompt) else "",
            loop=loop,
            jobs=self._shop.service if schedules else None,
            asker=Requester(
                job.owner, Maker.MODEL, run.agent, held.target, job.spec.peer, job.creator
            ),
        )

    def _prompt(self, held: JobExecution) -> str:
        payload = held.claimed.job.spec.payload
        if not isinstance(payload, Prompt):
            return ""
        if held.item is None:
            return payload.text
        item = held.item
        return texts.work_prompt(payload.text, item.title, item.body, item.url)

    async def record(self, ended: Ending, error: BaseException | None) -> None:
        """Store how a scheduled run ended, with what follows from it."""
        mine = self._runs[ended.run_id]
        held, progress = mine.held, mine.progress
        ended, error = progress.judge(ended, error)
        if isinstance(error, OccurrenceSuperseded):
            error, ended = None, Ending(ended.run_id, Outcome.CANCELLED, Reason.STOPPED)
        if error is not None:
            log.warning("run_failed", extra={**facts_of(held), "error": str(error)})
        try:
            if isinstance(error, Fenced):
                await self._elsewhere(held)
                ended = taken_over(ended.run_id)
            else:
                attempt = attempt_of(ended, error, progress)
                end = await self._run_end(mine, ended, error)
                await self._occurrences.ended(held, attempt, said_of(progress), end)
        finally:
            self._shop.feed.ended(mine.run, ended, progress)
            self._workshop.ended(mine.run, ended, progress, error)
            self._shop.budget_tracker.close(ended.run_id)
            del self._runs[ended.run_id]
            if mine.beginning is not None:
                self._release_later(mine.run.session)

    async def _elsewhere(self, held: JobExecution) -> None:
        """Another node holds its session, or did a moment ago: it waits for that."""
        if await self._occurrences.refused(held):
            # Whoever begins it takes an item of its own.
            await self._shop.work.finish(
                held, Finish(OccurrenceStatus.SKIPPED, Why.BUSY), AttemptOutput(), ""
            )

    async def _run_end(
        self, mine: JobRun, ended: Ending, error: BaseException | None
    ) -> RunEnd | None:
        if mine.beginning is None:
            return None
        await mine.beginning.settle(ended.outcome)
        return end_of(mine.progress, self._prompt(mine.held), ended, error, self._clock.now())

    def joined(self, request_id: RunId, into: RunId) -> None:
        """Scheduled runs join nothing."""
        raise AssertionError(f"scheduled run {request_id} joined {into}")

    def offered(self, request_id: RunId, run_id: RunId) -> None:
        """A scheduled run takes no messages in: what is said in its chat waits for its turn."""
        del request_id, run_id


def _run_by_hand(held: JobExecution) -> RunId:
    """The id of the first run of one by hand, which is told before it is known where it begins."""
    return RunId(held.id)


def _stopped_by(held: JobExecution) -> RunId:
    """What names an occurrence to whoever stops it."""
    return held.run or RunId(held.id)


def _hear_nothing(event: AgentEvent) -> None:
    """Nobody watches a scheduled run in a chat."""
