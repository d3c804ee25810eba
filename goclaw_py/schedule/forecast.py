"""Forecasts of jobs and heartbeats, by the product's own rules (SPEC OPS-6).

Pure: a clock that jumps from one event to the next. Runs take the assumed time and cost, and
succeed; nobody writes in the chats meanwhile. What is due, runs, is skipped and is coalesced is
decided by the functions that decide it in the gateway (``jobs.decisions``,
``heartbeat.decisions``, ``heartbeat.grid``), and slots are given by its scheduler.

At each instant, as in the gateway, runs end and release their slots, and those that waited for them
start; then jobs that are due are claimed, as far as there is room, and all of them start or are
skipped; then heartbeats. Retries follow at once, and wakes of heartbeats are not limited (HB-11).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Final

from goclaw_py.core.errors import JobError
from goclaw_py.core.ids import CRON_LANE, AgentName, LaneName, OccurrenceId, RunId, SessionKey
from goclaw_py.core.outcomes import HeartbeatRunKind, Outcome
from goclaw_py.core.run_events import NO_USAGE, Usage
from goclaw_py.core.targets import Maker
from goclaw_py.schedule.forecast_models import (
    Assumed,
    Forecast,
    ForecastHeartbeatRun,
    ForecastHeartbeats,
    ForecastInput,
    ForecastJob,
    ForecastOccurrence,
    ForecastRules,
    KnownHeartbeat,
)
from goclaw_py.schedule.heartbeat import grid
from goclaw_py.schedule.heartbeat.decisions import (
    FRESH,
    AskAgent,
    HeartbeatFacts,
    HeartbeatPolicy,
    Skipped,
    decide,
)
from goclaw_py.schedule.heartbeat.models import (
    Heartbeat,
    HeartbeatEvent,
    HeartbeatRunStatus,
    PreconditionQuery,
    Skip,
)
from goclaw_py.schedule.jobs.decisions import MISSED_APART, Finish, after, begin, settled
from goclaw_py.schedule.jobs.execution_models import WAKING, OccurrenceClaim, OccurrenceStatus, Why
from goclaw_py.schedule.jobs.models import FixedMessage, Job, JobState, session_for
from goclaw_py.schedule.jobs.policy import JobPolicy, Misfire
from goclaw_py.schedule.models import Attempt
from goclaw_py.scheduler.effects import Effect, Start
from goclaw_py.scheduler.models import QueuePolicy, Request
from goclaw_py.scheduler.scheduler import RunScheduler

MOST_RUNS: Final = 500_000
"""A forecast ends after this many runs, including skipped ones."""

MOST_DAYS: Final = 3_660
_LONGEST_S: Final = MOST_DAYS * 86_400.0
_HOUR: Final = timedelta(hours=1)
_QUEUE: Final = QueuePolicy(capacity=10**9)
_DONE: Final = Attempt(Outcome.COMPLETED)
_TIMED_OUT: Final = Attempt(Outcome.TIMED_OUT)
_UNDECIDED: Final = Skipped(Skip.DISABLED)


def forecast(
    rules: ForecastRules,
    given: ForecastInput,
    *,
    since: datetime,
    days: int,
    on_progress: Callable[[int], None] = lambda _: None,
) -> Forecast:
    """Forecast ``days`` days from ``since`` on.

    Paused and finished jobs do nothing, nor do heartbeats that are off or whose agents are not
    configured. Blocks: call it in a thread. ``on_progress`` is called with the hours that are done.
    Raises ``ValueError`` for days out of range, and for invalid durations of runs.
    """
    if not 1 <= days <= MOST_DAYS:
        raise ValueError(f"days are from 1 to {MOST_DAYS}: {days}")
    taken = [one.seconds for one in given.assumed.values()]
    for seconds in (*taken, *(one.seconds for one in given.heartbeats)):
        if not 0 <= seconds < _LONGEST_S:
            raise ValueError(f"a run does not take {seconds} s")
    return _Course(rules, given, since).run(since + timedelta(days=days), on_progress)


@dataclass(slots=True, eq=False)
class _Job:
    """A job, and its occurrence in progress.

    Args:
        known: The job without policy keys of its own; ``policy`` contains them.
    """

    known: Job
    policy: JobPolicy
    session: SessionKey | None
    assumed: Assumed
    result: ForecastJob
    claim: OccurrenceClaim
    attempt: int = 0
    started_at: datetime | None = None

    @property
    def is_message(self) -> bool:
        return isinstance(self.known.spec.payload, FixedMessage)


@dataclass(slots=True, eq=False)
class _Heart:
    """A heartbeat, and its run in progress, if it has a ``cause``."""

    known: KnownHeartbeat
    policy: HeartbeatPolicy
    heartbeat: Heartbeat
    events: tuple[HeartbeatEvent, ...]
    result: ForecastHeartbeats
    decided_at: datetime
    done: dict[str, datetime] = field(default_factory=dict)
    spent: dict[date, Usage] = field(default_factory=dict)
    cause: grid.DueCause | None = None
    verdict: AskAgent | Skipped = _UNDECIDED
    started_at: datetime | None = None


class _Course:
    """The future, up to ``now``."""

    def __init__(self, rules: ForecastRules, given: ForecastInput, since: datetime) -> None:
        self._rules = rules
        self._since = self._now = since
        self._scheduler = RunScheduler(rules.lanes, agents=rules.limits)
        self._room = 2 * self._scheduler.lane_load(CRON_LANE).concurrency
        """How many occurrences may be claimed: those that can run, and as many again (CRON-5)."""
        self._load = 0
        """The claimed occurrences that do not wait for a timer or for their agent."""
        self._numbers = count()
        self._timers: list[tuple[datetime, int, Callable[[], None]]] = []
        self._due: list[tuple[datetime, str, _Job]] = []
        self._due_messages: list[tuple[datetime, str, _Job]] = []
        self._due_hearts: list[tuple[datetime, str]] = []
        self._claimed: Counter[str] = Counter()
        """The claimed occurrences of an agent."""
        self._begun: Counter[str] = Counter()
        """Those of them that have begun."""
        self._runs: dict[str, _Job | _Heart] = {}
        """The runs in the scheduler."""
        self._of_agent: Counter[str] = Counter()
        self._in_session: Counter[str | None] = Counter()
        """The numbers of them, for sessions that jobs may share."""
        self._line: list[_Job] = []
        """Those whose agent is at its limit (SPEC CRON-10)."""
        self._starting: list[tuple[_Job, Finish | None]] = []
        self._last_missed = since - MISSED_APART
        self._events: list[ForecastOccurrence] = []
        self._heartbeat_runs: list[ForecastHeartbeatRun] = []
        self._jobs = [self._job(job, given.assumed.get(job.id, Assumed())) for job in given.jobs]
        hearts = [one for one in given.heartbeats if one.agent in rules.plans]
        self._hearts = {str(one.agent): self._heart(one) for one in hearts}

    def run(self, until: datetime, on_progress: Callable[[int], None]) -> Forecast:
        """Go on to the end."""
        hours = 0
        while (at := self._next()) is not None and at < until and not self._is_full:
            while self._since + hours * _HOUR <= at:
                on_progress(hours)
                hours += 1
            self._now = max(at, self._now)
            while self._timers and self._timers[0][0] <= self._now:
                heappop(self._timers)[2]()
            self._start_claimed()
            self._claim_jobs()
            self._start_claimed()
            if not (self._timers and self._timers[0][0] <= self._now):
                self._claim_heartbeats()
        on_progress((until - self._since) // _HOUR)
        return Forecast(
            self._since,
            self._now if self._is_full else until,
            tuple(one.result for one in self._jobs),
            tuple(self._events),
            self._is_full,
            tuple(one.result for one in self._hearts.values()),
            tuple(sorted(self._heartbeat_runs, key=lambda one: (one.due_at, one.agent))),
        )

    @property
    def _is_full(self) -> bool:
        return len(self._events) + len(self._heartbeat_runs) >= MOST_RUNS

    def _next(self) -> datetime | None:
        times = [
            heap[0][0] for heap in (self._timers, self._due_hearts, self._due_messages) if heap
        ]
        if self._due and self._load < self._room:
            times.append(self._due[0][0])
        return min(times, default=None)

    def _at(self, at: datetime, do: Callable[[], None]) -> None:
        heappush(self._timers, (at, next(self._numbers), do))

    # ------------------------------------------------------------------ slots of lanes

    def _submit(self, run: _Job | _Heart, agent: AgentName, lane: LaneName) -> None:
        run_id = RunId(str(next(self._numbers)))
        session = run.session if isinstance(run, _Job) else None
        request = Request(run_id, session or SessionKey(run_id), lane, agent, policy=_QUEUE)
        self._runs[run_id] = run
        self._of_agent[agent] += 1
        self._in_session[session] += session is not None
        self._begin_runs(self._scheduler.submit(request, self._seconds))

    def _begin_runs(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Start):
                request, run = effect.request, self._runs[effect.request.id]
                seconds, most = self._takes(run)
                is_late = most is not None and seconds > most
                attempt = _TIMED_OUT if is_late else _DONE
                ends_at = self._now + timedelta(seconds=most if is_late and most else seconds)
                self._at(ends_at, partial(self._end, request, run, attempt))

    def _takes(self, run: _Job | _Heart) -> tuple[float, float | None]:
        """Begin a run; return how many seconds it takes and may take."""
        if isinstance(run, _Job):
            run.started_at = run.started_at or self._now
            return run.assumed.seconds, run.policy.run_timeout or None
        if self._now - run.decided_at > FRESH:
            self._decide(run)
        if isinstance(run.verdict, Skipped):
            return 0.0, None
        run.started_at = self._now
        return run.known.seconds, self._rules.heartbeat_timeout_s

    def _end(self, request: Request, run: _Job | _Heart, attempt: Attempt) -> None:
        """End a run, and then release its slots."""
        if isinstance(run, _Heart):
            self._finish_heartbeat(run, attempt)
        else:
            self._load -= 1
            verdict = after(run.claim, run.policy, attempt, run.attempt)
            if isinstance(verdict, Finish):
                self._finish(run, verdict)
            else:
                self._begin(run)
        del self._runs[request.id]
        self._of_agent[request.agent] -= 1
        if isinstance(run, _Job):
            self._in_session[run.session] -= run.session is not None
        self._begin_runs(self._scheduler.finished(request.id, attempt.outcome, self._seconds))
        self._serve_line()

    @property
    def _seconds(self) -> float:
        return (self._now - self._since).total_seconds()

    # ------------------------------------------------------------------ jobs

    def _job(self, job: Job, assumed: Assumed) -> _Job:
        # Its policy is computed once, not for each decision.
        known = replace(job, spec=replace(job.spec, policy={}), maker=Maker.OPERATOR)
        claim = OccurrenceClaim(OccurrenceId(job.id), known, self._now, self._now)
        found = _Job(known, self._rules.base, None, assumed, ForecastJob(job), claim)
        try:
            found.policy = job.policy(self._rules.base)
        except JobError:
            return found  # the gateway disables it
        found.session = session_for(job, found.policy, None)
        if job.state is JobState.ACTIVE:
            self._plan(found, job.next_run_at)
        return found

    def _plan(self, job: _Job, at: datetime | None) -> None:
        if at is not None:
            heap = self._due_messages if job.is_message else self._due
            heappush(heap, (at, job.known.id, job))

    def _claim_jobs(self) -> None:
        """Claim what is due; messages need no room (SPEC CRON-4)."""
        while True:
            heap = self._due_messages
            if self._due and self._load < self._room and (not heap or self._due[0] < heap[0]):
                heap = self._due
            if not heap or heap[0][0] > self._now:
                return
            due_at, _, job = heappop(heap)
            job.claim = OccurrenceClaim(job.claim.id, job.known, due_at, self._now)
            job.attempt, job.started_at = 0, None
            self._claim(job)

    def _claim(self, job: _Job) -> None:
        policy, agent = job.policy, job.known.spec.agent
        self._claimed[agent] += 1
        try:
            skip = begin(job.claim, policy, now=self._now, busy=self._busy(job))
        except JobError:
            skip = Finish(OccurrenceStatus.FAILED)
        late = self._now - job.claim.due_at > timedelta(seconds=policy.misfire_grace)
        if skip is not None:
            self._load += 1
            self._claimed[agent] -= 1
            self._starting.append((job, skip))
        elif late and policy.misfire is Misfire.ONCE:
            self._last_missed = max(self._now, self._last_missed + MISSED_APART)
            self._at(self._last_missed, partial(self._begin, job))
        else:
            self._begin(job)

    def _busy(self, job: _Job) -> Why | None:
        agent, most = job.known.spec.agent, job.policy.max_per_agent
        limit = self._rules.limits.get(agent)
        if (most and self._claimed[agent] > most) or (limit and self._of_agent[agent] >= limit):
            return Why.AT_CAPACITY
        return Why.BUSY if self._in_session[job.session] else None

    def _begin(self, job: _Job) -> None:
        """Start an attempt once its agent is below its limit."""
        most, agent = job.policy.max_per_agent, job.known.spec.agent
        if most is not None and self._begun[agent] - (job.attempt > 0) >= most:
            self._line.append(job)
            return
        self._begun[agent] += job.attempt == 0
        self._load += 1
        job.attempt += 1
        self._starting.append((job, None))

    def _serve_line(self) -> None:
        waiting, self._line = self._line, []
        for job in waiting:
            self._begin(job)

    def _start_claimed(self) -> None:
        # Those that start when a message has ended are appended meanwhile.
        for job, end in self._starting:
            if end is None and not job.is_message:
                self._submit(job, job.known.spec.agent, CRON_LANE)
                continue
            if end is None:
                job.started_at = self._now
            self._load -= 1
            self._finish(job, end or Finish(OccurrenceStatus.OK))
            self._serve_line()
        self._starting.clear()

    def _finish(self, job: _Job, end: Finish) -> None:
        """End an occurrence, and plan the next one of its job."""
        known, now, due_at = job.known, self._now, job.claim.due_at
        if job.attempt:
            self._claimed[known.spec.agent] -= 1
            self._begun[known.spec.agent] -= 1
        event = ForecastOccurrence(known.id, due_at, job.started_at, now, end.status, end.why)
        self._events.append(event)
        job.result.count(event, job.assumed.usd)
        heart = self._hearts.get(known.spec.agent)
        if heart is not None and known.spec.wake_heartbeat and end.status in WAKING:
            heart.heartbeat = grid.woken(heart.heartbeat, HeartbeatRunKind.JOB, now)
            self._plan_heartbeat(heart)
        try:
            update = settled(job.claim, job.policy, end, started_at=job.started_at, now=now)
        except JobError:
            return  # the gateway disables it
        assert update is not None, "it was not started by hand"
        job.result.coalesced += update.coalesced
        if update.failed or known.failures or known.spec.max_runs is not None:
            failures = known.failures if update.failed is None else 0
            failures = known.failures + 1 if update.failed else failures
            job.known = replace(known, failures=failures, runs=known.runs + update.ran)
        if update.state is JobState.ACTIVE:
            self._plan(job, update.next_run_at)

    # ------------------------------------------------------------------ heartbeats

    def _heart(self, known: KnownHeartbeat) -> _Heart:
        agent, now, plan = known.agent, self._now, self._rules.plans[known.agent]
        stored = replace(known.heartbeat, heartbeat_run=None, node=None)
        heartbeat = grid.replanned(grid.planned(stored, plan, now), plan, now)
        events = tuple(HeartbeatEvent(n, agent, text, now) for n, text in enumerate(known.events))
        result = ForecastHeartbeats(agent, heartbeat.is_on)
        heart = _Heart(known, self._rules.policies[agent], heartbeat, events, result, now)
        if known.today is not None:
            heart.spent[_day(now)] = known.today
        self._plan_heartbeat(heart)
        return heart

    def _plan_heartbeat(self, heart: _Heart) -> None:
        at = grid.due_from(heart.heartbeat, wakes=True)
        if at is not None and heart.cause is None:
            heappush(self._due_hearts, (at, heart.known.agent))

    def _claim_heartbeats(self) -> None:
        while self._due_hearts and self._due_hearts[0][0] <= self._now:
            heart = self._hearts[heappop(self._due_hearts)[1]]
            cause = grid.due(heart.heartbeat, self._now)
            if cause is None or heart.cause is not None:
                continue  # another time was planned since
            heart.cause, heart.started_at = cause, None
            heart.heartbeat = grid.claimed(heart.heartbeat, cause, self._now)
            self._decide(heart)
            if isinstance(heart.verdict, Skipped):
                self._finish_heartbeat(heart, _DONE)
            else:
                self._submit(heart, heart.known.agent, heart.policy.lane)

    def _decide(self, heart: _Heart) -> None:
        assert heart.cause is not None
        facts = HeartbeatFacts(
            kind=heart.cause.kind,
            now=self._now,
            policy=heart.policy,
            is_on=heart.heartbeat.is_on and heart.policy.interval is not None,
            muted_until=heart.heartbeat.muted_until,
            checklist=heart.known.checklist,
            looks=PreconditionQuery(
                heart.events, heart.done, spent=heart.spent.get(_day(self._now))
            ),
        )
        verdict = decide(facts)
        assert isinstance(verdict, AskAgent | Skipped), "all facts are there, and nobody chats"
        heart.verdict, heart.decided_at = verdict, self._now

    def _finish_heartbeat(self, heart: _Heart, attempt: Attempt) -> None:
        cause, verdict, usage = heart.cause, heart.verdict, None
        assert cause is not None
        status, skip, keys = HeartbeatRunStatus.FAILED, None, tuple[str, ...]()
        if isinstance(verdict, Skipped):
            status, skip, keys = HeartbeatRunStatus.SKIPPED, verdict.skip, verdict.noted
        elif attempt.outcome is Outcome.COMPLETED:
            status, keys, usage = HeartbeatRunStatus.OK, verdict.due.keys, heart.known.usage
            heart.events = ()
            day = _day(heart.heartbeat.began_at or self._now)
            heart.spent = {day: heart.spent.get(day, NO_USAGE).plus(usage)}
        heart.done |= dict.fromkeys(keys, heart.decided_at)
        heart.heartbeat = grid.answered(heart.heartbeat, heart.decided_at)
        event = ForecastHeartbeatRun(
            heart.known.agent,
            cause.at,
            heart.started_at,
            self._now,
            status,
            skip,
            int(heart.started_at is not None),
            None if usage is None else usage.cost_usd,
        )
        self._heartbeat_runs.append(event)
        heart.result.count(event)
        heart.cause = None
        self._plan_heartbeat(heart)


def _day(at: datetime) -> date:
    return at.astimezone(UTC).date()
