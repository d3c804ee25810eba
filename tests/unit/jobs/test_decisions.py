"""Whether a due job runs, what follows an attempt, and what becomes of the job.

SPEC AGENT-5, CRON-3, CRON-5 to CRON-13, CRON-17, CRON-20.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from goclaw_py.jobs.decisions import (
    Finish,
    Recipients,
    after,
    begin,
    settled,
    tells_failure,
)
from goclaw_py.jobs.execution_models import (
    MAX_CLAIMS,
    OccurrenceClaim,
    OccurrenceStatus,
    Why,
)
from goclaw_py.jobs.models import JobState, Notify
from goclaw_py.jobs.policy import Anchor, Busy, History, JobPolicy, Misfire, RetryOn
from goclaw_py.jobs.schedule import MOST_COUNTED, Cron, Every, Schedule
from goclaw_py.model.outcomes import Outcome, Reason
from goclaw_py.model.owners import Maker
from goclaw_py.scheduled_work.models import Attempt, Next
from tests.unit.jobs.occurring import HOURLY, NOON, ONCE, PLAIN, a_job, after_s, claimed, update

SKIPPING = JobPolicy(misfire=Misfire.SKIP)
GRID = JobPolicy(anchor=Anchor.GRID)
OK = Finish(OccurrenceStatus.OK)
FAILED = Finish(OccurrenceStatus.FAILED)
SKIPPED = Finish(OccurrenceStatus.SKIPPED, Why.BUSY)


def begun(
    one: OccurrenceClaim, base: JobPolicy = PLAIN, *, busy: Why | None = None, late_s: float = 0.0
) -> Finish | None:
    return begin(one, base, now=after_s(late_s), busy=busy)


def late(seconds: float, **facts: Any) -> OccurrenceClaim:
    return claimed(claimed_at=after_s(seconds), **facts)


# ---------------------------------------------------------------------- does it run


def test_a_due_job_runs() -> None:
    assert begun(claimed()) is None


@pytest.mark.parametrize("misfire", Misfire)
def test_a_job_that_is_claimed_within_the_grace_is_not_missed(misfire: Misfire) -> None:
    assert begun(late(60), JobPolicy(misfire=misfire), late_s=60) is None


def test_a_missed_run_is_made_up_for() -> None:
    """SPEC CRON-6: ``misfire = once``."""
    assert begun(late(86_400), late_s=86_400) is None


def test_a_missed_run_is_left_out_where_the_policy_says_so() -> None:
    """SPEC CRON-6: ``misfire = skip``."""
    assert begun(late(60.001), SKIPPING, late_s=60.001) == Finish(
        OccurrenceStatus.SKIPPED, Why.MISSED
    )


def test_the_grace_can_be_chosen() -> None:
    patient = a_job(policy={"misfire_grace_s": 3600})
    assert begun(late(3600, job=patient), SKIPPING) is None


@pytest.mark.parametrize("facts", [{"claims": 2}, {"attempts": 1}, {"interrupted": True}])
def test_what_another_process_left_behind_runs_again(facts: dict[str, Any]) -> None:
    """SPEC CRON-5, CRON-6: with ``misfire = once`` the occurrence goes back."""
    assert begun(late(600, **facts)) is None


@pytest.mark.parametrize(("facts", "status"), [
    ({"claims": 2}, OccurrenceStatus.LOST),
    ({"attempts": 1}, OccurrenceStatus.LOST),
    ({"interrupted": True}, OccurrenceStatus.INTERRUPTED),
    ({"interrupted": True, "attempts": 1}, OccurrenceStatus.INTERRUPTED),
])  # fmt: skip
def test_what_another_process_left_behind_ends_where_nothing_is_made_up_for(
    facts: dict[str, Any], status: OccurrenceStatus
) -> None:
    assert begun(claimed(**facts), SKIPPING) == Finish(status)


def test_an_occurrence_that_ended_three_processes_is_given_up() -> None:
    """SPEC CRON-5: at most three attempts."""
    assert begun(claimed(claims=MAX_CLAIMS)) is None
    assert begun(claimed(claims=MAX_CLAIMS + 1)) == Finish(OccurrenceStatus.LOST)


def test_a_job_does_not_run_after_its_last_moment() -> None:
    job = a_job(not_after=NOON)
    assert begun(claimed(job)) is None
    assert begun(claimed(job), late_s=0.001) == Finish(OccurrenceStatus.SKIPPED, Why.MISSED)


@pytest.mark.parametrize(("schedule", "base_s", "runs"), [
    (Every(timedelta(minutes=59)), 3600, False),
    (Every(timedelta(minutes=60)), 3600, True),
    (Cron("0,30 9 * * *"), 3600, False),
    (Cron("0 9 * * *"), 3600, True),
    (Cron("0,30 9 * * *"), 1800, True),
    (Cron("* * * * * *"), 1, True),
    (Cron("* * * * * *"), 1.001, False),
    (Cron("* * * * *"), 60, True),
    (Cron("* * * * *"), 61, False),
    (ONCE, 3600, True),
    (Cron("not a schedule"), 3600, True),
])  # fmt: skip
def test_a_job_that_is_too_frequent_by_now_is_skipped(
    schedule: Schedule, base_s: float, *, runs: bool
) -> None:
    """SPEC CRON-15; an expression that nobody can read shows when its next run is looked for."""
    found = begun(claimed(a_job(schedule)), JobPolicy(min_interval_s=base_s))
    assert found == (None if runs else Finish(OccurrenceStatus.SKIPPED, Why.TOO_FREQUENT))


def test_a_run_by_hand_asks_for_nothing() -> None:
    job = a_job(Every(timedelta(seconds=1)), not_after=NOON - timedelta(days=1))
    base = JobPolicy(misfire=Misfire.SKIP, on_busy=Busy.SKIP, min_interval_s=3600)
    manual = late(86_400, job=job, manual=True, claims=9)
    assert begun(manual, base, busy=Why.BUSY, late_s=86_400) is None


@pytest.mark.parametrize("busy", [Why.BUSY, Why.AT_CAPACITY])
@pytest.mark.parametrize("schedule", [HOURLY, ONCE])
def test_a_busy_job_waits_for_its_turn_where_it_queues(schedule: Schedule, busy: Why) -> None:
    assert begun(claimed(a_job(schedule)), JobPolicy(on_busy=Busy.QUEUE), busy=busy) is None


@pytest.mark.parametrize("busy", [Why.BUSY, Why.AT_CAPACITY])
def test_a_busy_job_is_left_out_where_it_skips(busy: Why) -> None:
    base = JobPolicy(on_busy=Busy.SKIP)
    assert begun(claimed(), base, busy=busy) == Finish(OccurrenceStatus.SKIPPED, busy)
    assert begun(claimed(), base) is None


def test_what_is_due_once_waits_rather_than_never_to_come() -> None:
    assert begun(claimed(a_job(ONCE)), JobPolicy(on_busy=Busy.SKIP), busy=Why.BUSY) is None


@pytest.mark.parametrize("schedule", [HOURLY, ONCE])
def test_a_busy_job_comes_again_after_the_delay(schedule: Schedule) -> None:
    base = JobPolicy(on_busy=Busy.DELAY, busy_delay_s=3600)
    end = begun(claimed(a_job(schedule)), base, busy=Why.BUSY, late_s=5)
    assert end == Finish(OccurrenceStatus.SKIPPED, Why.BUSY, after_s(3605))


# ---------------------------------------------------------------------- after an attempt


def follows(outcome: Outcome, number: int = 1, base: JobPolicy = PLAIN, **facts: Any) -> object:
    return after(claimed(), base, Attempt(outcome, **facts), number)


@pytest.mark.parametrize(("outcome", "facts", "verdict"), [
    (Outcome.COMPLETED, {}, Finish(OccurrenceStatus.OK)),
    (Outcome.INTERRUPTED, {"retryable": True}, Next.RELEASE),
    (Outcome.DROPPED, {}, Finish(OccurrenceStatus.SKIPPED, Why.BUSY)),
    (Outcome.REJECTED, {}, Finish(OccurrenceStatus.SKIPPED, Why.BUSY)),
    (Outcome.CANCELLED, {"retryable": True}, Finish(OccurrenceStatus.CANCELLED, Why.STOPPED)),
    (Outcome.CANCELLED, {"reason": Reason.BUDGET}, Finish(OccurrenceStatus.CANCELLED, Why.BUDGET)),
    (Outcome.FAILED, {}, Finish(OccurrenceStatus.FAILED)),
    (Outcome.FAILED, {"reason": Reason.OUTAGE}, Finish(OccurrenceStatus.FAILED, Why.OUTAGE)),
    (Outcome.FAILED, {"retryable": True}, Next.RETRY),
    (Outcome.TIMED_OUT, {}, Finish(OccurrenceStatus.TIMED_OUT)),
    (Outcome.TIMED_OUT, {"retryable": True}, Next.RETRY),
    (Outcome.TIMED_OUT, {"reason": Reason.BUDGET, "retryable": True},
     Finish(OccurrenceStatus.TIMED_OUT, Why.BUDGET)),
    (Outcome.ABANDONED, {"retryable": True}, Finish(OccurrenceStatus.TIMED_OUT)),
])  # fmt: skip
def test_what_follows_an_attempt(outcome: Outcome, facts: dict[str, Any], verdict: object) -> None:
    assert follows(outcome, **facts) == verdict


def test_three_attempts_follow_the_first_one() -> None:
    verdicts = [follows(Outcome.FAILED, number, retryable=True) for number in (1, 2, 3, 4)]
    assert verdicts == [Next.RETRY, Next.RETRY, Next.RETRY, Finish(OccurrenceStatus.FAILED)]


def test_a_failure_that_would_repeat_itself_is_tried_again_only_if_the_policy_says_any() -> None:
    """SPEC CRON-7: ``retry.on``."""
    assert follows(Outcome.FAILED) == Finish(OccurrenceStatus.FAILED)
    assert follows(Outcome.FAILED, base=JobPolicy(retry_on=RetryOn.ANY)) == Next.RETRY


def test_nothing_is_done_twice_that_had_effects() -> None:
    base = JobPolicy(retry_on=RetryOn.ANY)
    failed = follows(Outcome.FAILED, base=base, retryable=True, side_effects=True)
    assert failed == Finish(OccurrenceStatus.FAILED)


def test_what_used_up_its_budget_does_not_get_another_one() -> None:
    base = JobPolicy(retry_on=RetryOn.ANY)
    spent = follows(Outcome.FAILED, base=base, reason=Reason.BUDGET, retryable=True)
    assert spent == Finish(OccurrenceStatus.FAILED, Why.BUDGET)


@pytest.mark.parametrize(("reason", "why"), [
    (Reason.BUDGET, Why.BUDGET),
    (Reason.STOPPED, Why.STOPPED),
    (Reason.STOPPED_ALL, Why.STOPPED),
    (Reason.OUTAGE, Why.OUTAGE),
    (Reason.RUN_TIMEOUT, None),
    (None, None),
])  # fmt: skip
def test_why_an_occurrence_ended_so(reason: Reason | None, why: Why | None) -> None:
    assert follows(Outcome.FAILED, reason=reason) == Finish(OccurrenceStatus.FAILED, why)


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
    made = update(a_job(), OK, JobPolicy(anchor=Anchor.GRID), took_s=3 * 3600 + 60)
    assert (made.coalesced, made.next_run_at) == (3, after_s(4 * 3600))


def test_a_run_by_hand_leaves_no_trace_in_its_job() -> None:
    for end in (OK, FAILED, SKIPPED):
        one = claimed(a_job(max_runs=1), manual=True)
        assert settled(one, PLAIN, end, started_at=NOON, now=after_s(60)) is None


# ---------------------------------------------------------------------- failures in a row


@pytest.mark.parametrize(("status", "failed"), [
    (OccurrenceStatus.OK, False),
    (OccurrenceStatus.FAILED, True),
    (OccurrenceStatus.TIMED_OUT, True),
    (OccurrenceStatus.LOST, True),
    (OccurrenceStatus.CANCELLED, None),
    (OccurrenceStatus.SKIPPED, None),
    (OccurrenceStatus.INTERRUPTED, None),
])  # fmt: skip
@pytest.mark.parametrize("before", [0, 2])
def test_only_bad_ends_count_as_failures_and_only_a_good_one_ends_the_row(
    before: int, status: OccurrenceStatus, *, failed: bool | None
) -> None:
    """SPEC CRON-8: one more than there are by then; None leaves the number as it is."""
    assert update(a_job(failures=before), Finish(status)).failed is failed


@pytest.mark.parametrize(("status", "attempts", "ran"), [
    (OccurrenceStatus.OK, 0, True),
    (OccurrenceStatus.CANCELLED, 0, True),
    (OccurrenceStatus.LOST, 1, True),
    (OccurrenceStatus.LOST, 0, False),
    (OccurrenceStatus.SKIPPED, 0, False),
])  # fmt: skip
def test_a_run_counts_if_something_ran(
    status: OccurrenceStatus, attempts: int, *, ran: bool
) -> None:
    assert update(a_job(), Finish(status), attempts=attempts).ran is ran


@pytest.mark.parametrize(("before", "delay_s"), [(0, 30), (1, 60), (2, 300), (3, 300), (99, 300)])
def test_failures_put_off_the_next_run_further_and_further(before: int, delay_s: float) -> None:
    """SPEC CRON-8: the last delay holds for all further failures."""
    job = a_job(Every(timedelta(seconds=10)), failures=before)
    made = update(job, FAILED, JobPolicy(backoff_s=(30, 60, 300)))
    assert made.next_run_at == after_s(60 + delay_s)


def test_backoff_never_brings_a_run_forward() -> None:
    """SPEC CRON-8: ``max(normal next, end + delay)``."""
    assert update(a_job(), FAILED, JobPolicy(backoff_s=(30,))).next_run_at == after_s(3660)


def test_a_run_that_did_not_fail_is_not_put_off() -> None:
    job = a_job(Every(timedelta(seconds=10)), failures=2)
    for end in (OK, SKIPPED, Finish(OccurrenceStatus.CANCELLED)):
        assert update(job, end, JobPolicy(backoff_s=(30,))).next_run_at == after_s(70)


def test_after_a_failure_the_next_run_is_on_the_grid_of_half_hours() -> None:
    """SPEC CRON-8: ``error_retry``; at 12:01 that is 12:30."""
    made = update(a_job(Cron("0 9 * * *")), FAILED, JobPolicy(error_retry_s=1800))
    assert made.next_run_at == after_s(1800)


def test_on_the_grid_itself_the_next_point_counts() -> None:
    made = update(a_job(Cron("0 9 * * *")), FAILED, JobPolicy(error_retry_s=0.7), took_s=0.7 * 8)
    assert made.next_run_at is not None
    assert after_s(5.6) < made.next_run_at <= after_s(6.3)


def test_a_retry_after_an_error_is_never_later_than_the_regular_run() -> None:
    job = a_job(Every(timedelta(minutes=10)))
    assert update(job, FAILED, JobPolicy(error_retry_s=1800)).next_run_at == after_s(660)


def test_a_last_run_that_failed_is_tried_again_as_long_as_the_job_may_run() -> None:
    base = JobPolicy(error_retry_s=1800)
    made = update(a_job(Cron("0 9 * * *"), not_after=after_s(3600)), FAILED, base)
    assert (made.state, made.next_run_at) == (JobState.ACTIVE, after_s(1800))
    made = update(a_job(Cron("0 9 * * *"), not_after=after_s(900)), FAILED, base)
    assert (made.state, made.next_run_at) == (JobState.COMPLETED, None)


@pytest.mark.parametrize(("before", "state"), [(3, JobState.ACTIVE), (4, JobState.DISABLED)])
def test_failures_in_a_row_switch_a_job_off(before: int, state: JobState) -> None:
    made = update(a_job(failures=before), FAILED, JobPolicy(auto_disable_after=5))
    assert made.state is state
    assert made.next_run_at is not None, "it counts if somebody resumes it meanwhile"


def test_a_job_of_a_model_is_switched_off_after_five() -> None:
    assert update(a_job(maker=Maker.MODEL, failures=4), FAILED).state is JobState.DISABLED
    assert update(a_job(failures=4), FAILED).state is JobState.ACTIVE


def test_a_skipped_run_switches_nothing_off() -> None:
    assert update(a_job(failures=9), SKIPPED, JobPolicy(auto_disable_after=1)).state is (
        JobState.ACTIVE
    )


# ---------------------------------------------------------------------- the end of a job


@pytest.mark.parametrize(("status", "state"), [
    (OccurrenceStatus.OK, JobState.COMPLETED),
    (OccurrenceStatus.CANCELLED, JobState.COMPLETED),
    (OccurrenceStatus.FAILED, JobState.FAILED),
    (OccurrenceStatus.TIMED_OUT, JobState.FAILED),
    (OccurrenceStatus.LOST, JobState.FAILED),
    (OccurrenceStatus.SKIPPED, JobState.FAILED),
    (OccurrenceStatus.INTERRUPTED, JobState.FAILED),
])  # fmt: skip
@pytest.mark.parametrize("base", [
    JobPolicy(),
    JobPolicy(auto_disable_after=1),
    JobPolicy(error_retry_s=1800, backoff_s=(30,)),
])  # fmt: skip
def test_what_runs_once_is_over_however_it_ended(
    base: JobPolicy, status: OccurrenceStatus, state: JobState
) -> None:
    made = update(a_job(ONCE), Finish(status), base)
    assert (made.state, made.next_run_at) == (state, None)
    assert made.delete is (status is OccurrenceStatus.OK)


def test_what_failed_once_is_kept_as_failed_whatever_else_ends_it() -> None:
    assert update(a_job(ONCE, max_runs=1), FAILED).state is JobState.FAILED


def test_what_runs_once_and_was_put_off_is_not_over() -> None:
    end = Finish(OccurrenceStatus.SKIPPED, Why.BUSY, after_s(3600))
    made = update(a_job(ONCE), end)
    assert (made.state, made.next_run_at, made.delete) == (JobState.ACTIVE, after_s(3600), False)


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


def test_a_job_that_comes_again_and_again_is_never_deleted_after_a_run() -> None:
    assert not update(a_job(), OK).delete
    assert not update(a_job(max_runs=1), OK).delete


@pytest.mark.parametrize(("runs", "end", "state"), [
    (1, OK, JobState.ACTIVE),
    (2, OK, JobState.COMPLETED),
    (2, FAILED, JobState.COMPLETED),
    (2, SKIPPED, JobState.ACTIVE),
    (2, Finish(OccurrenceStatus.LOST), JobState.ACTIVE),
])  # fmt: skip
def test_a_job_is_completed_after_so_many_runs(runs: int, end: Finish, state: JobState) -> None:
    """SPEC CRON-20; what did not run does not count."""
    made = update(a_job(max_runs=3, runs=runs), end)
    assert made.state is state
    assert made.next_run_at is not None, "it counts if somebody lifts the limit meanwhile"


@pytest.mark.parametrize(("end", "base"), [
    (OK, PLAIN),
    (FAILED, JobPolicy(backoff_s=(3000,))),
    (Finish(OccurrenceStatus.SKIPPED, Why.BUSY, after_s(3600)), PLAIN),
])  # fmt: skip
def test_a_job_is_completed_when_nothing_lies_before_its_last_moment(
    end: Finish, base: JobPolicy
) -> None:
    job = a_job(Every(timedelta(minutes=30)), not_after=after_s(1859))
    made = update(job, end, base)
    assert (made.state, made.next_run_at) == (JobState.COMPLETED, None)
    made = update(replace(job, spec=replace(job.spec, not_after=after_s(9999))), end, base)
    assert made.state is JobState.ACTIVE


def test_a_delayed_run_coalesces_nothing() -> None:
    """SPEC CRON-10: it is the same run, later."""
    end = Finish(OccurrenceStatus.SKIPPED, Why.BUSY, after_s(3600))
    made = update(a_job(), end, JobPolicy(anchor=Anchor.GRID), took_s=3 * 3600)
    assert made.coalesced == 0


def test_what_came_due_during_a_long_outage_is_counted_up_to_a_limit() -> None:
    """SPEC CRON-10: a gateway that comes back has more to do than to count."""
    week = 7 * 86_400.0
    assert update(a_job(Cron("* * * * *")), OK, took_s=week).coalesced == MOST_COUNTED
    grid = update(a_job(Every(timedelta(seconds=1), NOON)), OK, GRID, took_s=week)
    assert grid.coalesced == week


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
