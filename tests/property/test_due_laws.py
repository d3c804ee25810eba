"""Laws of what becomes of a job, whatever its policy, its schedule and the ends of its runs."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.targets import Maker
from goclaw_py.schedule.jobs.decisions import Finish, after, begin, settled
from goclaw_py.schedule.jobs.execution_models import ENDED_BADLY, OccurrenceStatus, Why
from goclaw_py.schedule.jobs.models import Job, JobState
from goclaw_py.schedule.jobs.policy import PROFILES, Anchor, Busy, JobPolicy, Misfire, RetryOn
from goclaw_py.schedule.jobs.schedule import At, Cron, Every, Schedule
from goclaw_py.schedule.models import Attempt, Next
from tests.unit.schedule.jobs.occurring import NOON, a_job, after_s, claimed, update

SECONDS = st.floats(0, 1_000_000)
ENDED = st.sampled_from(
    [status for status in OccurrenceStatus if status is not OccurrenceStatus.RUNNING]
)
ONCE: st.SearchStrategy[Schedule] = SECONDS.map(lambda seconds: At(after_s(-seconds)))
AGAIN: st.SearchStrategy[Schedule] = st.one_of(
    st.integers(1, 10_000).map(lambda seconds: Every(timedelta(seconds=seconds), NOON)),
    st.sampled_from(["0 9 * * *", "*/5 * * * *", "30 * * * * *", "0 0 29 2 *"]).map(Cron),
)
POLICIES = st.one_of(
    st.sampled_from([profile.policy for profile in PROFILES.values()]),
    st.builds(
        JobPolicy,
        anchor=st.sampled_from(Anchor),
        retries=st.integers(0, 10),
        retry_on=st.sampled_from(RetryOn),
        error_retry=st.sampled_from([0.0, 1.0, 1.7, 1800.0, 86_400.0]),
        backoff=st.lists(st.floats(0, 10_000), max_size=5).map(tuple),
        auto_disable_after=st.integers(0, 6),
        misfire=st.sampled_from(Misfire),
        on_busy=st.sampled_from(Busy),
        jitter=st.floats(0, 0.1),
        stagger=st.booleans(),
    ),
)
BUSY = st.sampled_from([None, Why.BUSY, Why.AT_CAPACITY])


@st.composite
def jobs(draw: st.DrawFn, schedules: st.SearchStrategy[Schedule] = AGAIN | ONCE) -> Job:
    return a_job(
        draw(schedules),
        draw(st.sampled_from(Maker)),
        failures=draw(st.integers(0, 9)),
        runs=draw(st.integers(0, 5)),
        max_runs=draw(st.none() | st.integers(1, 5)),
        not_after=draw(st.none() | SECONDS.map(after_s)),
    )


def is_late(job: Job, base: JobPolicy, took_s: float) -> bool:
    """Whether a run took longer than its interval, and the next one is due at once."""
    every = job.spec.schedule
    return (
        isinstance(every, Every)
        and job.policy(base).anchor is Anchor.START
        and took_s >= every.interval.total_seconds()
    )


# ---------------------------------------------------------------------- the next run


@given(jobs(), POLICIES, ENDED, SECONDS)
def test_the_next_run_lies_ahead_or_there_is_none(
    job: Job, base: JobPolicy, status: OccurrenceStatus, took_s: float
) -> None:
    """SPEC CRON-3, CRON-10, CRON-20: there is one while the job is active."""
    made = update(job, Finish(status), base, took_s=took_s)
    assert made.next_run_at is not None or made.state is not JobState.ACTIVE
    if made.next_run_at is not None:
        now = after_s(took_s)
        assert made.next_run_at > now or (made.next_run_at == now and is_late(job, base, took_s))
        assert job.spec.not_after is None or made.next_run_at <= job.spec.not_after


@given(jobs(), POLICIES, BUSY, SECONDS)
def test_a_job_that_does_not_run_now_never_comes_again_at_once(
    job: Job, base: JobPolicy, busy: Why | None, late_s: float
) -> None:
    """SPEC CRON-6, CRON-10: or it would come, and be skipped, without a pause."""
    one, now = claimed(job, claimed_at=after_s(late_s)), after_s(late_s)
    decided = begin(one, base, now=now, busy=busy)
    if isinstance(decided, Finish):
        made = settled(one, base, decided, started_at=None, now=now)
        assert made is not None
        assert made.next_run_at is None or made.next_run_at > now
        assert not made.ran
        assert made.failed is None


@given(jobs(AGAIN), POLICIES, ENDED, SECONDS)
def test_backoff_never_brings_a_run_forward(
    job: Job, base: JobPolicy, status: OccurrenceStatus, took_s: float
) -> None:
    """SPEC CRON-8."""
    base = replace(base, error_retry=0.0)
    plain = update(job, Finish(status), replace(base, backoff=()), took_s=took_s)
    made = update(job, Finish(status), base, took_s=took_s)
    if made.next_run_at is not None:
        assert plain.next_run_at is not None
        assert made.next_run_at >= plain.next_run_at
        assert made == plain or status in ENDED_BADLY


@given(jobs(AGAIN), POLICIES, ENDED, SECONDS)
def test_a_retry_after_an_error_is_never_later_than_the_regular_run(
    job: Job, base: JobPolicy, status: OccurrenceStatus, took_s: float
) -> None:
    """SPEC CRON-8."""
    plain = replace(base, error_retry=0.0, backoff=())
    regular = update(job, Finish(status), plain, took_s=took_s)
    made = update(job, Finish(status), replace(plain, error_retry=1800.0), took_s=took_s)
    if regular.next_run_at is not None:
        assert made.next_run_at is not None
        assert made.next_run_at <= regular.next_run_at
        assert made == regular or status in ENDED_BADLY


# ---------------------------------------------------------------------- how a job ends


@given(jobs(ONCE), POLICIES, ENDED, SECONDS)
def test_what_runs_once_is_over_after_its_run(
    job: Job, base: JobPolicy, status: OccurrenceStatus, took_s: float
) -> None:
    """SPEC CRON-9, CRON-11: completed, failed, or deleted."""
    made = update(job, Finish(status), base, took_s=took_s)
    assert made.next_run_at is None
    failed = status in ENDED_BADLY or status in (
        OccurrenceStatus.SKIPPED,
        OccurrenceStatus.INTERRUPTED,
    )
    assert made.state is (JobState.FAILED if failed else JobState.COMPLETED)
    assert made.delete is (status is OccurrenceStatus.OK and job.policy(base).delete_after_run)


@given(jobs(), POLICIES, ENDED, SECONDS)
def test_only_bad_ends_are_failures(
    job: Job, base: JobPolicy, status: OccurrenceStatus, took_s: float
) -> None:
    """SPEC CRON-8: success resets; cancelled and skipped change nothing."""
    expected = {OccurrenceStatus.OK: False, **dict.fromkeys(ENDED_BADLY, True)}
    assert update(job, Finish(status), base, took_s=took_s).failed is expected.get(status)


@given(jobs(), POLICIES, ENDED, BUSY, SECONDS)
def test_a_run_by_hand_always_begins_and_changes_nothing(
    job: Job, base: JobPolicy, status: OccurrenceStatus, busy: Why | None, late_s: float
) -> None:
    """SPEC CRON-11."""
    one = claimed(job, manual=True, claimed_at=after_s(late_s))
    assert begin(one, base, now=after_s(late_s), busy=busy) is None
    assert settled(one, base, Finish(status), started_at=NOON, now=after_s(late_s)) is None


def lived(job: Job, base: JobPolicy, ends: list[OccurrenceStatus]) -> Job:
    """The job after these ends, as far as it goes on."""
    for status in ends:
        made = update(job, Finish(status), base)
        failures = job.failures if made.failed is None else (job.failures + 1) * made.failed
        job = replace(job, state=made.state, runs=job.runs + made.ran, failures=failures)
        if made.state is not JobState.ACTIVE:
            break
    return job


@given(POLICIES, st.integers(1, 9), st.lists(ENDED, max_size=60))
def test_a_job_never_runs_more_often_than_it_is_to(
    base: JobPolicy, most: int, ends: list[OccurrenceStatus]
) -> None:
    """SPEC CRON-20."""
    base = replace(base, auto_disable_after=0)
    job = lived(a_job(max_runs=most), base, ends)
    assert job.runs <= most
    assert (job.state is JobState.COMPLETED) is (job.runs == most)


@given(POLICIES, st.integers(1, 5), st.lists(ENDED, max_size=60))
def test_a_job_is_switched_off_by_so_many_failures_in_a_row_and_by_nothing_else(
    base: JobPolicy, limit: int, ends: list[OccurrenceStatus]
) -> None:
    """SPEC CRON-8."""
    row = longest = 0
    for status in ends:
        if status in ENDED_BADLY:
            row += 1
        elif status is OccurrenceStatus.OK:
            row = 0
        longest = max(longest, row)
    job = lived(a_job(), replace(base, auto_disable_after=limit), ends)
    assert (job.state is JobState.DISABLED) is (longest >= limit)


# ---------------------------------------------------------------------- attempts


@given(
    POLICIES,
    st.builds(
        Attempt,
        outcome=st.sampled_from(Outcome),
        reason=st.sampled_from([None, *Reason]),
        retryable=st.booleans(),
        side_effects=st.booleans(),
    ),
    st.integers(1, 12),
)
def test_another_attempt_follows_only_where_it_may_help_and_harms_nobody(
    base: JobPolicy, attempt: Attempt, number: int
) -> None:
    """SPEC CRON-7."""
    again = after(claimed(), base, attempt, number) is Next.RETRY
    # What a lost attempt did is not known, so it is never repeated.
    failed = attempt.outcome in (Outcome.FAILED, Outcome.TIMED_OUT)
    allowed = (
        number <= base.retries
        and (attempt.retryable or base.retry_on is RetryOn.ANY)
        and not attempt.side_effects
        and attempt.reason is not Reason.BUDGET
    )
    assert again is (failed and allowed)
