"""Decides whether a due job runs, what follows an attempt, and when it runs next.

Pure: ``executions`` carries out the decisions, the store stores them. They concern one scheduled
occurrence; manual runs do not change their job.

The rules of SPEC CRON-7:

Retry inside an occurrence: 3 retries, `min(2 s · 2^n, 30 s) ± 25 %` (`tenacity`); `retry.on =
transient` (default) | `any`; never after a tool with side effects ran. Transient, for agents of all
kinds and for handlers of the library alike: `ConnectionError`, `TimeoutError`, `AgentError(…,
retryable=True)`, an unavailable database, a failed work source. A request to a model that its
server refused (AGENT-8) was repeated already, 5 times in runs of jobs and heartbeats, and is not
repeated by a run. The lane slot is free between attempts, the lease kept; interruptible. Each
attempt has its own run id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

from goclaw_py.core.errors import BadSchedule, TooFrequent
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.schedule.jobs.execution_models import (
    ENDED_BADLY,
    MAX_CLAIMS,
    JobUpdate,
    OccurrenceClaim,
    OccurrenceStatus,
    Why,
)
from goclaw_py.schedule.jobs.models import Job, JobState, Notify
from goclaw_py.schedule.jobs.policy import Busy, History, JobPolicy, Misfire, OnShort, RetryOn
from goclaw_py.schedule.jobs.schedule import At, Every, Ran, Timing, coalesced, next_run_at
from goclaw_py.schedule.jobs.schedule import replanned as replanned_timing
from goclaw_py.schedule.jobs.schedule import spaced as spaced_timing
from goclaw_py.schedule.models import Attempt, Next

THIRD: Final = 3
"""Owners are notified at this failure in a row, for jobs without a notice of each (CRON-13)."""

MISSED_APART: Final = timedelta(seconds=1)
"""Between the starts of missed occurrences, so that a restart causes no burst (CRON-6)."""

_RAN = frozenset(
    {
        OccurrenceStatus.OK,
        OccurrenceStatus.FAILED,
        OccurrenceStatus.TIMED_OUT,
        OccurrenceStatus.CANCELLED,
    }
)
_FAILED = {OccurrenceStatus.OK: False, **dict.fromkeys(ENDED_BADLY, True)}
"""How the result of an occurrence changes the count of failures in a row."""
_WHY: Final[Mapping[Reason | None, Why]] = {
    Reason.BUDGET: Why.BUDGET,
    Reason.STOPPED: Why.STOPPED,
    Reason.STOPPED_ALL: Why.STOPPED,
    Reason.OUTAGE: Why.OUTAGE,
}
"""The reason of an occurrence's result, by the reason of its run."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of an occurrence. ``delay_until``: the next due time, if not by the schedule."""

    status: OccurrenceStatus
    why: Why | None = None
    delay_until: datetime | None = None


def begin(
    claimed: OccurrenceClaim, base: JobPolicy, *, now: datetime, busy: Why | None
) -> Finish | None:
    """Return the end of a claimed occurrence that does not run; None if it runs.

    Args:
        claimed: The claim.
        base: The policy of the settings.
        now: The present instant.
        busy: Why its session or agent is busy; None if it is not.
        Source: SPEC CRON-5, CRON-6, CRON-10, CRON-15.
    """
    if claimed.stopped:
        return Finish(OccurrenceStatus.CANCELLED, Why.STOPPED)
    if claimed.manual or claimed.began_at is not None:
        # What has begun and waited goes on, however late and busy it is.
        return None
    job, policy = claimed.job, claimed.job.policy(base)
    if not claimed.waited and (left := _left_behind(claimed, policy)) is not None:
        return left
    grace = timedelta(seconds=policy.misfire_grace)
    missed = claimed.claimed_at - claimed.due_at > grace and _is_new(claimed)
    if missed and policy.misfire is Misfire.SKIP:
        return Finish(OccurrenceStatus.SKIPPED, Why.MISSED)
    if job.spec.not_after is not None and now > job.spec.not_after:
        return Finish(OccurrenceStatus.SKIPPED, Why.MISSED)
    if not _is_spaced(Timing(job.spec.schedule, job.spec.zone), policy.min_interval, now):
        return Finish(OccurrenceStatus.SKIPPED, Why.TOO_FREQUENT)
    return None if busy is None else _when_busy(job, policy, busy, now)


def _is_new(claimed: OccurrenceClaim) -> bool:
    return claimed.claims <= 1 and claimed.attempts == 0 and not claimed.interrupted


def _left_behind(claimed: OccurrenceClaim, policy: JobPolicy) -> Finish | None:
    """Return the end of an occurrence whose process died, if it does not run again."""
    if claimed.claims > MAX_CLAIMS:
        return Finish(OccurrenceStatus.LOST)
    if claimed.called and not policy.retry_after_effects:
        return Finish(OccurrenceStatus.LOST, Why.EFFECTS)
    if policy.misfire is Misfire.SKIP and not _is_new(claimed):
        return Finish(
            OccurrenceStatus.INTERRUPTED if claimed.interrupted else OccurrenceStatus.LOST
        )
    return None


def _is_spaced(timing: Timing, least_s: float, now: datetime) -> bool:
    """Return whether firings are far enough apart."""
    if least_s <= 1 and not isinstance(timing.schedule, Every):
        # No expression fires more than once a second: nearly always there is nothing to look at.
        return True
    try:
        spaced_timing(timing, timedelta(seconds=least_s), OnShort.REJECT, now=now)
    except TooFrequent:
        return False
    except BadSchedule:
        # Whatever else is wrong with it shows when its next run is looked for.
        return True
    return True


def _when_busy(job: Job, policy: JobPolicy, busy: Why, now: datetime) -> Finish | None:
    match policy.on_busy:
        case Busy.QUEUE:
            return None
        case Busy.DELAY:
            again = now + timedelta(seconds=policy.busy_delay)
            return Finish(OccurrenceStatus.SKIPPED, busy, again)
        case Busy.SKIP:
            # Something that is due once would never come: it waits for its turn instead.
            return (
                None
                if isinstance(job.spec.schedule, At)
                else Finish(OccurrenceStatus.SKIPPED, busy)
            )


def after(
    claimed: OccurrenceClaim, base: JobPolicy, attempt: Attempt, number: int
) -> Next | Finish:
    """Decide what follows the attempt with this ``number``, from 1 (SPEC CRON-7)."""
    policy, why = claimed.job.policy(base), _WHY.get(attempt.reason)
    if attempt.outcome is Outcome.INTERRUPTED:
        return Next.PARK if attempt.reason is Reason.APPROVAL else Next.RELEASE
    if attempt.outcome in (Outcome.DROPPED, Outcome.REJECTED):
        return Finish(OccurrenceStatus.SKIPPED, Why.BUSY)
    if attempt.outcome is Outcome.CANCELLED:
        return Finish(OccurrenceStatus.CANCELLED, why or Why.STOPPED)
    if attempt.outcome is Outcome.COMPLETED:
        return Finish(OccurrenceStatus.OK)
    if attempt.outcome is Outcome.LOST:
        return Finish(OccurrenceStatus.LOST)
    again = policy.retry_on is RetryOn.ANY or attempt.retryable
    spent = why is Why.BUDGET or attempt.outcome is Outcome.ABANDONED
    done = attempt.side_effects and not policy.retry_after_effects
    if again and number <= policy.retries and not (done or spent):
        return Next.RETRY
    if attempt.outcome is Outcome.FAILED:
        return Finish(OccurrenceStatus.FAILED, why)
    return Finish(OccurrenceStatus.TIMED_OUT, why)


def settled(
    claimed: OccurrenceClaim,
    base: JobPolicy,
    end: Finish,
    *,
    started_at: datetime | None,
    now: datetime,
) -> JobUpdate | None:
    """Return how the end of an occurrence changes its job; None for manual runs.

    Source: SPEC CRON-3, CRON-8, CRON-9, CRON-10, CRON-20.
    """
    if claimed.manual:
        return None
    job, policy = claimed.job, claimed.job.policy(base)
    ran = end.status in _RAN or (end.status is OccurrenceStatus.LOST and claimed.attempts > 0)
    due = claimed.due_at
    missed = coalesced(job.timing(base), due_at=due, now=now) if end.delay_until is None else 0
    state, next_at = _next(claimed, policy, end, _Past(base, started_at, now, ran))
    delete = (
        isinstance(job.spec.schedule, At)
        and end.status is OccurrenceStatus.OK
        and policy.delete_after_run
        and state is JobState.COMPLETED
    )
    return JobUpdate(
        next_run_at=next_at,
        state=state,
        failed=_FAILED.get(end.status),
        coalesced=missed,
        ran=ran,
        delete=delete,
        forget=delete and policy.history_on_delete is History.DELETE,
    )


@dataclass(frozen=True, slots=True)
class _Past:
    """The times of the present run, for computing the next one."""

    base: JobPolicy
    started_at: datetime | None
    now: datetime
    ran: bool


def _next(
    claimed: OccurrenceClaim, policy: JobPolicy, end: Finish, past: _Past
) -> tuple[JobState, datetime | None]:
    """Return the new state and next run of the job, unless the job was changed in the meantime."""
    job, spec = claimed.job, claimed.job.spec
    failures = failures_with(claimed) if end.status in ENDED_BADLY else 0
    once = isinstance(spec.schedule, At)
    if end.delay_until is not None:
        next_at: datetime | None = end.delay_until
    elif once:
        next_at = None
    else:
        next_at = _after_run(claimed, policy, past, failures)
    if next_at is None or (spec.not_after is not None and next_at > spec.not_after):
        return _over(job, end.status), None
    # The time counts if the limit was lifted, or the job resumed, in the meantime.
    if past.ran and spec.max_runs is not None and job.runs + 1 >= spec.max_runs:
        return _over(job, end.status), next_at
    # One that runs once has failed; there is nothing to switch off.
    if failures and not once and 0 < policy.auto_disable_after <= failures:
        return JobState.DISABLED, next_at
    return JobState.ACTIVE, next_at


def _after_run(
    claimed: OccurrenceClaim, policy: JobPolicy, past: _Past, failures: int
) -> datetime | None:
    """Return the next run of a repeating job; ``failures`` is 0 if this run did not fail."""
    timing = claimed.job.timing(past.base)
    regular = next_run_at(timing, Ran(claimed.due_at, past.started_at, past.now))
    if failures and policy.error_retry:
        soon = _grid_after(past.now, policy.error_retry)
        return soon if regular is None else min(regular, soon)
    if regular is not None and failures and policy.backoff:
        return max(regular, past.now + timedelta(seconds=_backoff_s(policy, failures)))
    return regular


def replanned(job: Job, base: JobPolicy, *, now: datetime) -> datetime | None:
    """Return the next run of a waiting job if a clock that was ahead has planned it (CRON-4).

    None if the planned one is right. A job that was delayed may be further ahead than its interval.
    """
    policy, timing, due_at = job.policy(base), job.timing(base), job.next_run_at
    every = timing.schedule
    has_begun = job.last_run_at is not None or job.created_at > now
    if due_at is None or (isinstance(every, Every) and every.origin is not None and not has_begun):
        return None
    earliest = now
    if job.failures and policy.backoff:
        earliest += timedelta(seconds=_backoff_s(policy, job.failures))
    is_delayed = job.last_status == OccurrenceStatus.SKIPPED and policy.on_busy is Busy.DELAY
    delay = timedelta(seconds=policy.busy_delay) if is_delayed else timedelta()
    if due_at <= max(earliest, now + delay):
        return None
    at = replanned_timing(timing, due_at, now=now)
    return None if at is None or max(at, earliest) >= due_at else max(at, earliest)


def _backoff_s(policy: JobPolicy, failures: int) -> float:
    return policy.backoff[min(failures, len(policy.backoff)) - 1]


def _over(job: Job, status: OccurrenceStatus) -> JobState:
    """Return the state of a job without a next run."""
    once = isinstance(job.spec.schedule, At)
    if once and (
        status in ENDED_BADLY or status in (OccurrenceStatus.SKIPPED, OccurrenceStatus.INTERRUPTED)
    ):
        return JobState.FAILED
    return JobState.COMPLETED


def _grid_after(now: datetime, step_s: float) -> datetime:
    """Return the first multiple of a time after now, counted from 1970-01-01."""
    step = timedelta(seconds=step_s)
    return _EPOCH + ((now - _EPOCH) // step + 1) * step


def failures_with(claimed: OccurrenceClaim) -> int:
    """Return the number of failures in a row if this run failed, as known at its claim."""
    return claimed.job.failures + 1


def tells_failure(job: Job, failures: int) -> Recipients | None:
    """Return who is notified that a run failed after its last retry (SPEC CRON-13)."""
    if job.spec.notify is Notify.ALWAYS or isinstance(job.spec.schedule, At):
        return Recipients.TARGET
    return Recipients.OWNER if failures == THIRD else None


class Recipients(StrEnum):
    """Who is notified."""

    TARGET = "target"
    OWNER = "owner"
