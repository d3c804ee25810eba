"""Whether a due job runs, what follows an attempt, and what becomes of the job.

SPEC AGENT-5, CRON-3, CRON-5 to CRON-13, CRON-17, CRON-20.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.targets import Maker
from goclaw_py.schedule.jobs.decisions import Finish, Recipients, after, begin, tells_failure
from goclaw_py.schedule.jobs.execution_models import MAX_CLAIMS, OccurrenceClaim, Why
from goclaw_py.schedule.jobs.execution_models import OccurrenceStatus as S
from goclaw_py.schedule.jobs.models import Job, JobState, Notify
from goclaw_py.schedule.jobs.policy import Anchor, Busy, History, JobPolicy, Misfire
from goclaw_py.schedule.jobs.schedule import MOST_COUNTED, Cron, Every, Schedule
from goclaw_py.schedule.models import Attempt, Next
from tests.unit.schedule.jobs.occurring import (
    HOURLY,
    NOON,
    ONCE,
    PLAIN,
    a_job,
    after_s,
    claimed,
    update,
)

SKIPPING = JobPolicy(misfire=Misfire.SKIP)
GRID = JobPolicy(anchor=Anchor.GRID)
OK = Finish(S.OK)
FAILED = Finish(S.FAILED)
SKIPPED = Finish(S.SKIPPED, Why.BUSY)


def begun(
    one: OccurrenceClaim, base: JobPolicy = PLAIN, *, busy: Why | None = None, late_s: float = 0.0
) -> Finish | None:
    return begin(one, base, now=after_s(late_s), busy=busy)


def late(seconds: float, **facts: Any) -> OccurrenceClaim:
    return claimed(claimed_at=after_s(seconds), **facts)


# ---------------------------------------------------------------------- does it run
MISSED = Finish(S.SKIPPED, Why.MISSED)
PATIENT = a_job(policy={"misfire_grace": 3600})


@pytest.mark.parametrize(("one", "base", "late_s", "end"), [
    (claimed(), PLAIN, 0, None),
    # Within the grace it is not missed, and what is missed is made up for or left out.
    (late(60), PLAIN, 60, None), (late(60), SKIPPING, 60, None),
    (late(86_400), PLAIN, 86_400, None), (late(60.001), SKIPPING, 60.001, MISSED),
    (late(3600, job=PATIENT), SKIPPING, 3600, None),
    # What another process left behind runs again, unless nothing is made up for.
    (late(600, claims=2), PLAIN, 600, None), (late(600, attempts=1), PLAIN, 600, None),
    (late(600, interrupted=True), PLAIN, 600, None),
    (claimed(claims=2), SKIPPING, 0, Finish(S.LOST)),
    (claimed(attempts=1), SKIPPING, 0, Finish(S.LOST)),
    (claimed(interrupted=True), SKIPPING, 0, Finish(S.INTERRUPTED)),
    (claimed(interrupted=True, attempts=1), SKIPPING, 0, Finish(S.INTERRUPTED)),
    # There are at most three attempts.
    (claimed(claims=MAX_CLAIMS), PLAIN, 0, None),
    (claimed(claims=MAX_CLAIMS + 1), PLAIN, 0, Finish(S.LOST)),
    # Its last moment.
    (claimed(a_job(not_after=NOON)), PLAIN, 0, None),
    (claimed(a_job(not_after=NOON)), PLAIN, 0.001, MISSED),
])  # fmt: skip
def test_a_due_job_runs_unless_its_time_is_over(
    one: OccurrenceClaim, base: JobPolicy, late_s: float, end: Finish | None
) -> None:
    assert begun(one, base, late_s=late_s) == end


@pytest.mark.parametrize(("schedule", "base_s", "runs"), [
    (Every(timedelta(minutes=59)), 3600, False), (Every(timedelta(minutes=60)), 3600, True),
    (Cron("0,30 9 * * *"), 3600, False), (Cron("0 9 * * *"), 3600, True),
    (Cron("0,30 9 * * *"), 1800, True), (Cron("* * * * * *"), 1, True),
    (Cron("* * * * * *"), 1.001, False), (Cron("* * * * *"), 60, True),
    (Cron("* * * * *"), 61, False), (ONCE, 3600, True), (Cron("not a schedule"), 3600, True),
])  # fmt: skip
def test_a_job_too_frequent_by_now_is_skipped(
    schedule: Schedule, base_s: float, *, runs: bool
) -> None:
    """SPEC CRON-15; an expression that nobody can read shows when its next run is looked for."""
    found = begun(claimed(a_job(schedule)), JobPolicy(min_interval=base_s))
    assert found == (None if runs else Finish(S.SKIPPED, Why.TOO_FREQUENT))


def test_a_run_by_hand_asks_for_nothing() -> None:
    job = a_job(Every(timedelta(seconds=1)), not_after=NOON - timedelta(days=1))
    base = JobPolicy(misfire=Misfire.SKIP, on_busy=Busy.SKIP, min_interval=3600)
    manual = late(86_400, job=job, manual=True, claims=9)
    assert begun(manual, base, busy=Why.BUSY, late_s=86_400) is None


def test_what_has_asked_a_person_goes_on_however_late_the_answer_comes() -> None:
    job = a_job(Every(timedelta(seconds=1)), not_after=NOON)
    base = JobPolicy(misfire=Misfire.SKIP, on_busy=Busy.SKIP, min_interval=3600)
    answered = claimed(job, waited=True, began_at=NOON)
    assert begun(answered, base, busy=Why.AT_CAPACITY, late_s=86_400) is None


@pytest.mark.parametrize("busy", [Why.BUSY, Why.AT_CAPACITY])
@pytest.mark.parametrize("schedule", [HOURLY, ONCE])
def test_a_busy_job_waits_is_left_out_or_comes_later(schedule: Schedule, busy: Why) -> None:
    one = claimed(a_job(schedule))
    assert begun(one, JobPolicy(on_busy=Busy.QUEUE), busy=busy) is None
    skipping = JobPolicy(on_busy=Busy.SKIP)
    assert begun(one, skipping) is None
    # What is due once waits rather than never to come.
    left_out = None if schedule is ONCE else Finish(S.SKIPPED, busy)
    assert begun(one, skipping, busy=busy) == left_out
    delayed = begun(one, JobPolicy(on_busy=Busy.DELAY, busy_delay=3600), busy=busy, late_s=5)
    assert delayed == Finish(S.SKIPPED, busy, after_s(3605))


# ---------------------------------------------------------------------- after an attempt


@pytest.mark.parametrize(("outcome", "facts", "verdict"), [
    (Outcome.COMPLETED, {}, Finish(S.OK)),
    (Outcome.INTERRUPTED, {"retryable": True}, Next.RELEASE),
    (Outcome.INTERRUPTED, {"reason": Reason.APPROVAL}, Next.PARK),
    (Outcome.DROPPED, {}, Finish(S.SKIPPED, Why.BUSY)),
    (Outcome.REJECTED, {}, Finish(S.SKIPPED, Why.BUSY)),
    (Outcome.CANCELLED, {"retryable": True}, Finish(S.CANCELLED, Why.STOPPED)),
    (Outcome.CANCELLED, {"reason": Reason.BUDGET}, Finish(S.CANCELLED, Why.BUDGET)),
    (Outcome.FAILED, {}, Finish(S.FAILED)),
    (Outcome.FAILED, {"reason": Reason.OUTAGE}, Finish(S.FAILED, Why.OUTAGE)),
    (Outcome.FAILED, {"reason": Reason.BUDGET, "retryable": True}, Finish(S.FAILED, Why.BUDGET)),
    (Outcome.FAILED, {"reason": Reason.STOPPED}, Finish(S.FAILED, Why.STOPPED)),
    (Outcome.FAILED, {"reason": Reason.STOPPED_ALL}, Finish(S.FAILED, Why.STOPPED)),
    (Outcome.FAILED, {"reason": Reason.RUN_TIMEOUT}, Finish(S.FAILED)),
    (Outcome.FAILED, {"retryable": True, "side_effects": True}, Finish(S.FAILED)),
    (Outcome.FAILED, {"retryable": True}, Next.RETRY),
    (Outcome.TIMED_OUT, {}, Finish(S.TIMED_OUT)),
    (Outcome.TIMED_OUT, {"retryable": True}, Next.RETRY),
    (Outcome.TIMED_OUT, {"reason": Reason.BUDGET, "retryable": True},
     Finish(S.TIMED_OUT, Why.BUDGET)),
    (Outcome.ABANDONED, {"retryable": True}, Finish(S.TIMED_OUT)),
])  # fmt: skip
def test_what_follows_an_attempt(outcome: Outcome, facts: dict[str, Any], verdict: object) -> None:
    """Which are tried again, and how often: tests/property/test_due_laws.py."""
    assert after(claimed(), PLAIN, Attempt(outcome, **facts), 1) == verdict


# ---------------------------------------------------------------------- when it runs next
@pytest.mark.parametrize(
    ("anchor", "next_s"),
    [(Anchor.COMPLETION, 3660), (Anchor.GRID, 3600), (Anchor.START, 3600)],
)
def test_an_interval_counts_from_its_anchor(anchor: Anchor, next_s: float) -> None:
    made = update(a_job(), OK, JobPolicy(anchor=anchor))
    assert (made.state, made.next_run_at) == (JobState.ACTIVE, after_s(next_s))
    assert (made.ran, made.failed, made.coalesced, made.delete) == (True, False, 0, False)


def test_what_came_due_meanwhile_is_counted_and_not_made_up_for() -> None:
    made = update(a_job(), OK, GRID, took_s=3 * 3600 + 60)
    assert (made.coalesced, made.next_run_at) == (3, after_s(4 * 3600))
    # A delayed run is the same one, later.
    end = Finish(S.SKIPPED, Why.BUSY, after_s(3600))
    assert update(a_job(), end, GRID, took_s=3 * 3600).coalesced == 0
    # A gateway that comes back after an outage has more to do than to count.
    week = 7 * 86_400.0
    assert update(a_job(Cron("* * * * *")), OK, took_s=week).coalesced == MOST_COUNTED
    grid = update(a_job(Every(timedelta(seconds=1), NOON)), OK, GRID, took_s=week)
    assert grid.coalesced == week


# ---------------------------------------------------------------------- failures in a row
@pytest.mark.parametrize(("status", "attempts", "ran"), [
    (S.OK, 0, True), (S.CANCELLED, 0, True), (S.LOST, 1, True), (S.LOST, 0, False),
    (S.SKIPPED, 0, False),
])  # fmt: skip
def test_a_run_counts_if_something_ran(status: S, attempts: int, *, ran: bool) -> None:
    assert update(a_job(), Finish(status), attempts=attempts).ran is ran


@pytest.mark.parametrize(("before", "delay_s"), [(0, 30), (1, 60), (2, 300), (3, 300), (99, 300)])
def test_failures_put_off_the_next_run_further_and_further(before: int, delay_s: float) -> None:
    """SPEC CRON-8: the last delay holds for all further failures."""
    job = a_job(Every(timedelta(seconds=10)), failures=before)
    made = update(job, FAILED, JobPolicy(backoff=(30, 60, 300)))
    assert made.next_run_at == after_s(60 + delay_s)


def test_after_a_failure_the_next_run_is_on_the_grid_of_its_retries() -> None:
    """SPEC CRON-8: ``error_retry``; at 12:01 that is 12:30."""
    made = update(a_job(Cron("0 9 * * *")), FAILED, JobPolicy(error_retry=1800))
    assert made.next_run_at == after_s(1800)
    # On the grid itself the next point counts.
    made = update(a_job(Cron("0 9 * * *")), FAILED, JobPolicy(error_retry=0.7), took_s=0.7 * 8)
    assert made.next_run_at is not None
    assert after_s(5.6) < made.next_run_at <= after_s(6.3)


def test_a_last_run_that_failed_is_tried_again_as_long_as_the_job_may_run() -> None:
    base = JobPolicy(error_retry=1800)
    made = update(a_job(Cron("0 9 * * *"), not_after=after_s(3600)), FAILED, base)
    assert (made.state, made.next_run_at) == (JobState.ACTIVE, after_s(1800))
    made = update(a_job(Cron("0 9 * * *"), not_after=after_s(900)), FAILED, base)
    assert (made.state, made.next_run_at) == (JobState.COMPLETED, None)


@pytest.mark.parametrize(("job", "base", "state"), [
    (a_job(failures=3), JobPolicy(auto_disable_after=5), JobState.ACTIVE),
    (a_job(failures=4), JobPolicy(auto_disable_after=5), JobState.DISABLED),
    (a_job(failures=4), PLAIN, JobState.ACTIVE),
    (a_job(failures=4, maker=Maker.MODEL), PLAIN, JobState.DISABLED),
])  # fmt: skip
def test_failures_in_a_row_switch_a_job_off(job: Job, base: JobPolicy, state: JobState) -> None:
    made = update(job, FAILED, base)
    assert made.state is state
    assert made.next_run_at is not None, "it counts if somebody resumes it meanwhile"


# ---------------------------------------------------------------------- the end of a job
def test_what_runs_once_and_was_put_off_is_not_over_but_what_failed_is() -> None:
    made = update(a_job(ONCE), Finish(S.SKIPPED, Why.BUSY, after_s(3600)))
    assert (made.state, made.next_run_at, made.delete) == (JobState.ACTIVE, after_s(3600), False)
    assert update(a_job(ONCE, max_runs=1), FAILED).state is JobState.FAILED


@pytest.mark.parametrize(("base", "maker", "delete", "forget"), [
    (JobPolicy(), Maker.OPERATOR, True, False),
    (JobPolicy(history_on_delete=History.DELETE), Maker.OPERATOR, True, True),
    (JobPolicy(history_on_delete=History.DELETE), Maker.MODEL, False, False),
    (JobPolicy(delete_after_run=False), Maker.OPERATOR, False, False),
])  # fmt: skip
def test_a_reminder_that_came_is_deleted_where_the_policy_says_so(
    base: JobPolicy, maker: Maker, *, delete: bool, forget: bool
) -> None:
    made = update(a_job(ONCE, maker), OK, base)
    assert (made.delete, made.forget) == (delete, forget)


@pytest.mark.parametrize(("runs", "end", "state"), [
    (1, OK, JobState.ACTIVE), (2, OK, JobState.COMPLETED), (2, FAILED, JobState.COMPLETED),
    (2, SKIPPED, JobState.ACTIVE), (2, Finish(S.LOST), JobState.ACTIVE),
])  # fmt: skip
def test_a_job_is_completed_after_so_many_runs(runs: int, end: Finish, state: JobState) -> None:
    """SPEC CRON-20; what did not run does not count."""
    made = update(a_job(max_runs=3, runs=runs), end)
    assert (made.state, made.delete) == (state, False)
    assert made.next_run_at is not None, "it counts if somebody lifts the limit meanwhile"


@pytest.mark.parametrize(("end", "base"), [
    (OK, PLAIN),
    (FAILED, JobPolicy(backoff=(3000,))),
    (Finish(S.SKIPPED, Why.BUSY, after_s(3600)), PLAIN),
])  # fmt: skip
def test_a_job_is_completed_when_nothing_is_ahead_of_its_end(end: Finish, base: JobPolicy) -> None:
    job = a_job(Every(timedelta(minutes=30)), not_after=after_s(1859))
    made = update(job, end, base)
    assert (made.state, made.next_run_at) == (JobState.COMPLETED, None)
    made = update(replace(job, spec=replace(job.spec, not_after=after_s(9999))), end, base)
    assert made.state is JobState.ACTIVE


# ---------------------------------------------------------------------- who is told
@pytest.mark.parametrize(("schedule", "notify", "told"), [
    (HOURLY, Notify.ALWAYS, [Recipients.TARGET] * 4),
    (ONCE, Notify.NEVER, [Recipients.TARGET] * 4),
    (HOURLY, Notify.CONDITIONAL, [None, None, Recipients.OWNER, None]),
    (HOURLY, Notify.NEVER, [None, None, Recipients.OWNER, None]),
])  # fmt: skip
def test_who_is_told_of_the_first_four_failures_in_a_row(
    schedule: Schedule, notify: Notify, told: list[Recipients | None]
) -> None:
    job = a_job(schedule, notify=notify)
    assert [tells_failure(job, failures) for failures in (1, 2, 3, 4)] == told
