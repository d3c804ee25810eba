"""Jobs as agent runs: what a gateway does when a job is due (SPEC section 6, AGENT-7)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence

from goclaw_py.core.errors import ApprovalNeeded, WorkSourceError
from goclaw_py.core.ids import (
    CRON_LANE,
    AgentName,
    NodeId,
    RunId,
    SessionKey,
)
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.core.outcomes import HeartbeatRunKind, Outcome, Trigger
from goclaw_py.core.retry import retry_until_available
from goclaw_py.core.targets import Maker
from goclaw_py.core.text import source_of_job
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.time.clocks import new_run_id
from goclaw_py.operations.jobs.models import Requester, RunNow, StartedNow
from goclaw_py.operations.jobs.operations import JobService
from goclaw_py.records import NewRun
from goclaw_py.records.bound import BoundStore
from goclaw_py.runs.agent_executor import AgentTask
from goclaw_py.runs.agent_loop import AgentLoop, TextPart
from goclaw_py.runs.approval_port import ApprovalChat, Ask, Questions
from goclaw_py.runs.subagents import ParentRun
from goclaw_py.schedule.agent_runs import ScheduledAgentRuns, ScheduledRunServices
from goclaw_py.schedule.jobs import texts
from goclaw_py.schedule.jobs.decisions import Finish
from goclaw_py.schedule.jobs.execution import EndReport, JobExecution, JobHandler
from goclaw_py.schedule.jobs.execution_models import (
    WAKING,
    JobUpdate,
    OccurrenceStatus,
    StoppableJob,
    Why,
)
from goclaw_py.schedule.jobs.executions import JobExecutions
from goclaw_py.schedule.jobs.models import (
    FixedMessage,
    Job,
    Program,
    Prompt,
    may_schedule,
    session_for,
)
from goclaw_py.schedule.jobs.notifications import JobNotifications
from goclaw_py.schedule.jobs.policy import JobPolicy
from goclaw_py.schedule.jobs.targets import JobTargets
from goclaw_py.schedule.jobs.work_items import NoWork, WorkItems
from goclaw_py.schedule.models import NOTHING, Attempt
from goclaw_py.scheduler.state_machine import StopResult
from goclaw_py.scheduler.views import RunState


class JobRuns(ScheduledAgentRuns[JobExecution], JobHandler):
    """Executes jobs as agent runs.

    Args:
        base: The policy of the settings.
        program: Creates the loop that runs a program instead of an agent.
        limits: The number of concurrent runs of an agent, where the settings limit it.
        ask: Asks people about tool calls.
        freed: Called when there is room for more occurrences.
        on_disabled: Called with a job that was disabled after failures.
    """

    def __init__(
        self,
        store: BoundStore,
        clock: Clock,
        shared: ScheduledRunServices,
        *,
        base: JobPolicy,
        service: JobService,
        places: JobTargets,
        notifications: JobNotifications,
        work: WorkItems,
        program: Callable[[tuple[str, ...]], AgentLoop],
        limits: Mapping[AgentName, int],
        ask: Ask,
        freed: Callable[[], None],
        on_disabled: Callable[[Job], Coroutine[None, None, None]],
    ) -> None:
        self.occurrences = JobExecutions(
            store,
            clock,
            base,
            handler=self,
            freed=freed,
            on_disabled=on_disabled,
            meter=shared.meter,
        )
        super().__init__(store, clock, shared, self.occurrences)
        self._service = service
        self._places = places
        self._notifications = notifications
        self._work = work
        self._program = program
        self._limits = limits
        self._ask = ask

    # ------------------------------------------------------------------ looking

    def stoppable(self, target: Target) -> list[StoppableJob]:
        """Return the occurrences in progress with this chat as target, the first claimed first."""
        return [
            StoppableJob(
                run := _stopped_by(execution),
                execution.id,
                execution.claimed.job.creator,
                execution.claimed.job.spec.title,
                was_stopped=execution.stopped,
                is_stopping=self._dispatcher.state(run) in (RunState.STOPPING, RunState.ABANDONED),
            )
            for execution in self.occurrences.all()
            if not execution.is_over
            and target == (execution.target or execution.claimed.job.spec.target)
        ]

    def stop_run(self, run_id: RunId) -> StopResult:
        """Stop a run, and the retries after it; takes effect before this returns."""
        stopped = self._dispatcher.stop_one(run_id)
        for execution in self.occurrences.all():
            if _stopped_by(execution) == run_id and not (execution.is_over or execution.stopped):
                # Its run may have ended, and that be on its way into the database.
                self.occurrences.stop(execution)
                return stopped if run_id in stopped.stopped else StopResult(stopped=[run_id])
        return stopped

    async def stop_waiting(
        self,
        where: Target | SessionKey,
        *,
        everything: bool,
        run: RunId | None = None,
        creator: str | None = None,
        reached: Collection[NodeId] = (),
    ) -> int:
        """Stop occurrences that wait and are not claimed; return their number.

        ``where`` is their target, or the session of the run that waits for an answer. Stops the one
        that ``run`` names, otherwise the first due, or ``everything``; ``creator`` selects the jobs
        that this person requested. With ``reached``, the nodes that have stopped their own, also
        all with this target of other nodes, which may be dead. Raises ``StoreUnavailable``.
        """
        stopped, target = 0, where if isinstance(where, Target) else None
        asking_in = None if isinstance(where, Target) else where
        for one in await self._store.waiting_occurrences(asking_in=asking_in):
            if creator not in (None, one.job.creator) or run not in (None, RunId(one.id)):
                continue
            if target is None or await self._places.target_of(one.job) == target:
                stopped += await self.occurrences.end_waiting(one)
                if stopped and not everything:
                    break
        left = await self._store.occurrences_elsewhere(reached) if reached else ()
        marked = [
            one.id
            for one in left
            if creator in (None, one.job.creator)
            and await self._places.target_of(one.job) == target
        ]
        if marked:
            await self._store.mark_stopped(marked)  # The next claim finds it stopped.
        return stopped + len(marked)

    # ------------------------------------------------------------------ performing

    def busy(self, job: Job, policy: JobPolicy) -> Why | None:
        """Return why a job must wait, as far as this process knows."""
        agent = job.spec.agent
        # This one is claimed already.
        if policy.max_per_agent and self.occurrences.of_agent(agent) > policy.max_per_agent:
            return Why.AT_CAPACITY
        limit = self._limits.get(agent)
        active = sum(run.agent == agent for run in self._dispatcher.runs()) if limit else 0
        if limit and active >= limit:
            return Why.AT_CAPACITY
        session = session_for(job, policy, None)
        return Why.BUSY if session is not None and self._is_busy(session, job) else None

    def session(self, job: Job, policy: JobPolicy) -> SessionKey | None:
        """Return the session of a job's run; None for a message or an isolated run."""
        return (
            None if isinstance(job.spec.payload, FixedMessage) else session_for(job, policy, None)
        )

    def _is_busy(self, session: SessionKey, job: Job) -> bool:
        """Return whether a session has runs, except one that is just ending."""
        if not self._dispatcher.has_session(session):
            return False
        own = {id_ for id_, mine in self._runs.items() if mine.execution.claimed.job.id == job.id}
        return any(
            run.session == session and run.id not in own and run.state is not RunState.FINISHING
            for run in self._dispatcher.runs()
        )

    async def perform(self, execution: JobExecution) -> None:
        """Start an attempt."""
        try:
            await self._prepare(execution)
        except NoWork:
            await self.occurrences.end(execution, Finish(OccurrenceStatus.SKIPPED, Why.NO_WORK))
        except WorkSourceError as error:
            attempt = Attempt(Outcome.FAILED, error=str(error), retryable=True)
            await self.occurrences.ended(execution, attempt, None)

    async def _prepare(self, execution: JobExecution) -> None:
        """Submit its run, or finish at once. Raises ``NoWork`` and ``WorkSourceError``."""
        spec = execution.claimed.job.spec
        if isinstance(spec.payload, FixedMessage):
            await execution.until_due(self._clock)
            execution.started_at = execution.started_at or self._clock.now()
            said = Attempt(Outcome.COMPLETED, text=spec.payload.text)
            await self.occurrences.ended(execution, said, None)
            return
        await self._work.claim(execution)
        job = execution.claimed.job
        execution.target = await retry_until_available(lambda: self._places.target_of(job))
        if self.occurrences.holds(execution):
            self._submit(execution)

    def _submit(self, execution: JobExecution) -> None:
        job = execution.claimed.job
        first = (
            execution.claimed.manual
            and execution.attempt == 1
            and execution.claimed.began_at is None
        )
        run_id = _manual_run(execution) if first else new_run_id(self._clock)
        session = session_for(job, execution.policy, run_id)
        assert session is not None
        now = max(self._clock.now(), execution.claimed.due_at)
        run = NewRun(
            id=run_id,
            session=session,
            agent=job.spec.agent,
            trigger=Trigger.CRON,
            lane=CRON_LANE,
            inbox=(),
            target=execution.target,
            started_at=now,
            submitted_at=now,
            occurrence=execution.id,
        )
        policy = self._places.policy_of(job, session)
        timeout_s = execution.policy.run_timeout or None
        if timeout_s is not None:
            # The run may start now, and waits until it is due.
            timeout_s += max((execution.claimed.due_at - self._clock.now()).total_seconds(), 0)
        self.submit(execution, run, policy, timeout_s)

    async def notifications(
        self, execution: JobExecution, end: Finish, update: JobUpdate | None, attempt: Attempt
    ) -> EndReport:
        return await self._notifications.build(execution, end, update, attempt)

    async def on_notified(
        self, execution: JobExecution, end: Finish, say: Sequence[OutboundMessage], attempt: Attempt
    ) -> None:
        job = execution.claimed.job
        await self._notifications.remember(job, say, besides=execution.session)
        await self._work.finish(execution, end, attempt)
        if job.spec.wake_heartbeat and end.status in WAKING:
            agent, now = job.spec.agent, self._clock.now()
            await self._store.retried.wake_heartbeat(agent, HeartbeatRunKind.JOB, now=now)

    # ------------------------------------------------------------------ by hand

    async def run_now(self, job: Job) -> StartedNow | RunNow:
        if self._dispatcher.draining:
            return RunNow.OFF
        policy = job.policy(self._service.rules.profile.policy)
        most = policy.max_per_agent
        if most and self.occurrences.of_agent(job.spec.agent) >= most:
            return RunNow.AT_CAPACITY
        execution = await self.occurrences.claim_manual(job.id)
        if execution is None:
            return RunNow.ALREADY_RUNNING
        execution.attempt = 1
        try:
            if await self.occurrences.wait_elsewhere(execution):
                session = self.session(job, policy) or ""
                return StartedNow(execution.id, _manual_run(execution), session)
            await self._prepare(execution)
        except NoWork:
            await self.occurrences.end(execution, Finish(OccurrenceStatus.SKIPPED, Why.NO_WORK))
            return RunNow.NO_WORK
        except BaseException as error:
            # Also if the caller is cancelled: it is claimed, and no other code ends it.
            self.occurrences.fail(execution, error)
            raise
        return StartedNow(execution.id, execution.run, execution.session or "")

    # ------------------------------------------------------------------ the dispatcher's host

    def task(self, execution: JobExecution, run: NewRun) -> AgentTask:
        job, policy = execution.claimed.job, execution.policy
        payload = job.spec.payload
        loop = self._program(payload.argv) if isinstance(payload, Program) else None
        schedules = self._service.rules.enabled and may_schedule(
            job, policy, item=execution.item is not None
        )
        return AgentTask(
            run=run,
            parts=(TextPart(self.prompt(execution)),),
            # It could not be announced later: its session is not a chat.
            children=self._shared.children.of(
                ParentRun(run.id, run.agent, run.session, None, asks=self._approval_chat(execution))
            ),
            target=execution.target,
            system=(self._notifications.system(execution),),
            budget=policy.budget,
            model=payload.model if isinstance(payload, Prompt) else "",
            loop=loop,
            jobs=self._service if schedules else None,
            asker=Requester(
                job.owner,
                Maker.MODEL,
                run.agent,
                execution.target,
                job.spec.peer,
                job.creator,
                chained=0 if execution.claimed.manual else job.chained + 1,
            ),
            can_ask=True,
        )

    def prompt(self, execution: JobExecution) -> str:
        payload = execution.claimed.job.spec.payload
        if not isinstance(payload, Prompt):
            return ""
        if execution.item is None:
            return payload.text
        item = execution.item
        return texts.work_prompt(payload.text, item.title, item.body, item.url)

    def source(self, execution: JobExecution) -> str:
        """See ``ScheduledAgentRuns``. The session may be that of a chat, where people read it."""
        return source_of_job(execution.claimed.job.spec.slug)

    async def questions(self, execution: JobExecution, needed: ApprovalNeeded) -> Questions:
        return await self._ask(
            needed, execution.claimed.job.spec.agent, self._approval_chat(execution)
        )

    def _approval_chat(self, execution: JobExecution) -> ApprovalChat:
        """Return where people are asked about the tool calls of a job."""
        target, job, session = execution.target, execution.claimed.job, execution.session
        # Nobody has just written there. A direct chat has the id of its person.
        person = "" if target is None else target.chat
        return ApprovalChat(
            target,
            job.spec.peer,
            person,
            SessionKey("") if session is None else session,
            job.spec.title,
            request=self.prompt(execution),
            creator=job.creator,
        )

    async def lost(self, execution: JobExecution) -> None:
        """Make an execution wait for its session, which another node owns or has just owned."""
        if await self.occurrences.refused(execution):
            # The node that starts it takes its own item.
            busy = Finish(OccurrenceStatus.SKIPPED, Why.BUSY)
            await self._work.finish(execution, busy, NOTHING)


def _manual_run(execution: JobExecution) -> RunId:
    """Return the id of the first run of a manual run, which is reported before it starts."""
    return RunId(execution.id)


def _stopped_by(execution: JobExecution) -> RunId:
    """Return the id under which an occurrence can be stopped."""
    return execution.run or RunId(execution.id)
