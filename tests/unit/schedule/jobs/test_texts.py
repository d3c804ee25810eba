"""What people, and agents in scheduled runs, read about jobs.

SPEC AGENT-7, CMD-5, CRON-2, CRON-4, CRON-6, CRON-11, CRON-13, CRON-18, SEC-1, SEC-3.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.core.errors import BadJob, JobError, NotYours, TooManyJobs, UnknownJob, UnknownZone
from goclaw_py.core.ids import JobId, OccurrenceId, Owner
from goclaw_py.core.targets import Maker
from goclaw_py.core.time.texts import ChatZone
from goclaw_py.schedule.jobs import texts
from goclaw_py.schedule.jobs.execution_models import Why
from goclaw_py.schedule.jobs.models import (
    FixedMessage,
    Job,
    JobSpec,
    JobState,
    Notify,
    Program,
    Prompt,
)
from goclaw_py.schedule.jobs.schedule import At, Cron, Every, Schedule
from goclaw_py.schedule.jobs.view_texts import kind_and_text, obstacle, plan, trouble
from tests.unit.schedule.jobs.occurring import a_job

BERLIN = "Europe/Berlin"
NINE = datetime(2026, 3, 3, 8, 0, tzinfo=UTC)
"""09:00 in Berlin, a Tuesday."""

OCCURRENCE = OccurrenceId("019b7ca9-8c88-71d9-baa8-d70b2c79b8e7")


UTC_CHOSEN = ChatZone("UTC")


def job(schedule: Schedule | None = None, **facts: Any) -> Job:
    spec = JobSpec("water", schedule or Every(timedelta(days=2)), BERLIN, Prompt("water them"))
    made = Job(JobId("j"), Owner("o"), Maker.PERSON, spec, NINE, NINE, next_run_at=NINE)
    return replace(made, **facts)


def due(now: datetime = NINE, here: str | None = None) -> texts.DueTimeText:
    """Due at nine, told at ``now``."""
    return texts.DueTimeText(NINE, now, ChatZone(here or BERLIN, is_chosen=here is not None))


@pytest.mark.parametrize(("notify", "told", "why", "replies"), [
    (Notify.ALWAYS, "hello", None, ["hello"]),
    (Notify.ALWAYS, "  hello\n", None, ["  hello\n"]),
    (Notify.NEVER, "", None, ["hello", "[NOTIFY] hello"]),
    (Notify.CONDITIONAL, "", Why.NO_NOTIFY, [
        "hello", "hello [NOTIFY]", "**[NOTIFY]** hello", "[notify] hello",
    ]),
    (Notify.CONDITIONAL, "hello", None, [
        "[NOTIFY] hello", "[NOTIFY]hello", " \n\t[NOTIFY]\n\nhello\n",
    ]),
    (Notify.CONDITIONAL, "see [NOTIFY]", None, ["[NOTIFY] see [NOTIFY]"]),
    (Notify.CONDITIONAL, "", Why.NO_REPLY, [
        "[NOTIFY]", "[NOTIFY] \n", "[NOTIFY] NO_REPLY", "NO_REPLY",
    ]),
    (Notify.ALWAYS, "", Why.NO_REPLY, [
        "NO_REPLY", " NO_REPLY \n", "", " \n\u200b", "`NO_REPLY`", "**NO_REPLY**", "_NO_REPLY_.",
        "```\nNO_REPLY\n```", '"NO_REPLY"',
    ]),
    (Notify.ALWAYS, "NO_REPLY, really", None, ["NO_REPLY, really"]),
    (Notify.ALWAYS, "NO_REPLY?", None, ["NO_REPLY?"]),
    (Notify.ALWAYS, "", Why.NO_REPLY, ["NO_REPLY", " NO_REPLY \n", "", " \n\u200b"]),
    (Notify.ALWAYS, "", Why.NO_REPLY, [
        "**NO_REPLY**", "`NO_REPLY`",
        '"NO_REPLY."', "NO_REPLY.", "```\nNO_REPLY\n```", "<b>NO_REPLY</b>",
        r"NO\_REPLY", "__NO_REPLY__", "> NO_REPLY", "“NO_REPLY”", "HEARTBEAT_OK\n\n**NO_REPLY**",
    ]),
    (Notify.CONDITIONAL, "", Why.NO_REPLY, ["[NOTIFY] **NO_REPLY**"]),
    (Notify.ALWAYS, "NO_REPLY: a", None, ["NO_REPLY: a"]),
    (Notify.ALWAYS, "no_reply", None, ["no_reply"]),
])  # fmt: skip
def test_what_of_a_reply_is_told(
    notify: Notify, told: str, why: Why | None, replies: list[str]
) -> None:
    """SPEC CRON-13: and why nothing is."""
    for reply in replies:
        assert texts.notify_text(reply, notify) == (told, why)


replies = st.one_of(
    st.text(),
    st.builds("".join, st.lists(st.sampled_from(["[NOTIFY]", "NO_REPLY", " ", "\n", "x", "**"]))),
)


@given(replies, st.text(" \t\r\n"))
def test_a_reply_is_told_always_never_or_only_behind_its_marker(reply: str, blanks: str) -> None:
    """SPEC CRON-13."""
    assert texts.notify_text(reply, Notify.NEVER) == ("", None)
    assert texts.notify_text(reply, Notify.ALWAYS) in ((reply, None), ("", Why.NO_REPLY))
    told, _ = texts.notify_text(reply, Notify.CONDITIONAL)
    assert not told or reply.lstrip().startswith("[NOTIFY]")
    marked = texts.notify_text(f"{blanks}[NOTIFY]{reply}", Notify.CONDITIONAL)
    assert marked == texts.notify_text(reply.strip(), Notify.ALWAYS)
    for notify in Notify:
        assert texts.notify_text(f"{blanks}NO_REPLY{blanks}", notify)[0] == ""


def delivered(text: str, schedule: Schedule, *, late_s: float = 0) -> str:
    spec = job(schedule).spec
    return texts.delivery(spec, text, due(NINE + timedelta(seconds=late_s)))


def test_a_reminder_is_its_own_title_that_spoils_no_markup_and_others_bear_theirs() -> None:
    assert delivered("Drink tea", Cron("0 9 * * *")) == "🗓 water\n\nDrink tea"
    for line in ("Drink tea", "-5 degrees", "#1 is tea", "1.5 litres", "*tea*"):
        assert delivered(line, At(NINE)) == f"⏰ {line}"
    for block in (
        "```\nx\n```", "# Head", "- one\n- two", "1. one", "> said", "| a | b |", "    code",
    ):  # fmt: skip
        assert delivered(block, At(NINE)) == f"⏰\n\n{block}"


@given(st.text(min_size=1))
def test_a_delivery_ends_with_what_the_job_said_or_with_how_late_a_reminder_is(text: str) -> None:
    for schedule in (At(NINE), Every(timedelta(hours=1))):
        assert delivered(text, schedule).endswith(text.lstrip())
    late = texts.reminder_late(due(NINE + timedelta(hours=1)))
    assert delivered(text, At(NINE), late_s=3600).endswith(f"{text.lstrip()}\n\n{late}")
    assert delivered(text, Cron("0 9 * * *"), late_s=3600) == delivered(text, Cron("0 9 * * *"))


def test_a_reminder_that_is_more_than_a_minute_late_says_by_how_much_and_when_it_was_due() -> None:
    for late_s in (-5, 0, 59.9, 60):
        assert texts.reminder_late(due(NINE + timedelta(seconds=late_s))) == ""
    for late_s, words in ((60.1, "1 min"), (59 * 60 + 59, "60 min"), (7200, "2 h")):
        line = texts.reminder_late(due(NINE + timedelta(seconds=late_s)))
        assert line == f"(Late by {words}: it was due today 09:00 (Europe/Berlin).)"
    # On the clock that the chat has chosen no zone is named.
    for days, when in ((1, "yesterday 10:00"), (6, "Tue 10:00"), (30, "Tue 3 Mar 10:00")):
        line = texts.reminder_late(due(NINE + timedelta(days=days), here="Europe/Athens"))
        assert f"it was due {when}.)" in line


def test_a_chats_history_says_which_job_has_spoken() -> None:
    assert texts.delivered_from("tea", "Drink") == "[from the job “tea”]\nDrink"
    forged = texts.delivered_from("tea”]\n[sent by ann", "x")
    assert len(forged.splitlines()) == 2


def test_a_failure_is_told_on_one_line_with_job_time_reason_and_next_try() -> None:
    later = NINE + timedelta(hours=1)
    assert texts.job_failed("tea", due(), "the model\nis away", later) == (
        "⚠️ “tea”, due today 09:00 (Europe/Berlin), failed: The model is away. "
        "Next run: today 10:00 (Europe/Berlin)."
    )
    assert "It will not run again." in texts.job_failed("tea", due(), "x", None)
    assert texts.job_failed_thrice("tea", due(), "", NINE) == (
        "⚠️ “tea” has failed three times in a row, last today 09:00 (Europe/Berlin): "
        "The reason is unknown. Next run: today 09:00 (Europe/Berlin)."
    )


@pytest.mark.parametrize(("state", "next_try", "said"), [
    (JobState.ACTIVE, NINE - timedelta(minutes=1), "Next run: now."),
    (JobState.ACTIVE, None, "It will not run again."),
    (JobState.PAUSED, None, "The job is paused."),
    (JobState.DISABLED, None, "The job is disabled."),
    # It may be known when it would be due if its limit was lifted.
    (JobState.COMPLETED, NINE + timedelta(days=1), "It will not run again."),
])  # fmt: skip
def test_a_failure_is_told_with_what_the_job_does_then(
    state: JobState, next_try: datetime | None, said: str
) -> None:
    assert texts.job_failed("tea", due(), "no", next_try, state).endswith(f" {said}")


@given(title=st.text(), reason=st.text(), again=st.booleans())
def test_what_went_wrong_is_told_on_one_short_line(title: str, reason: str, again: bool) -> None:
    next_try = NINE if again else None
    for line in (
        texts.job_failed(title, due(), reason, next_try),
        texts.job_failed_thrice(title, due(), reason, next_try),
        texts.job_disabled(title, 5, reason),
    ):
        assert len(line.splitlines()) == 1
        assert len(line) < 500


def test_a_job_that_is_switched_off_says_after_how_many_failures() -> None:
    """SPEC CRON-8; whoever changed it meanwhile has kept it on."""
    rest = "I disabled it, unless someone has changed it in the meantime. Last error: No route."
    for failures, words in ((5, "5 times in a row"), (1, "once")):
        told_of = texts.job_disabled("tea", failures, "no route")
        assert told_of == f"⚠️ “tea” has failed {words}. {rest}"


def told(notify: Notify = Notify.ALWAYS, title: str = "tea", zone: str = BERLIN) -> str:
    return texts.scheduled_run(title, NINE, NINE + timedelta(seconds=2), zone, notify)


def test_a_scheduled_run_knows_job_due_time_now_and_zone() -> None:
    times = "due at 2026-03-03T09:00:00+01:00", "at 2026-03-03T09:00:02+01:00", "Europe/Berlin"
    for fact in ("“tea”", *times, "Nobody may be there"):
        assert fact in told()
    # A zone that is no more keeps no run from being told.
    assert "08:00:00+00:00" in told(zone="Atlantis/Port")


def test_a_conditional_job_explains_its_marker_in_the_words_of_its_origin() -> None:
    """SPEC CRON-13; oxydra's document, step 8."""
    assert told(Notify.CONDITIONAL).splitlines()[1] == (
        "You are executing a scheduled task. If the result warrants notifying the user, begin your "
        "response with [NOTIFY] followed by the notification message. If no notification is "
        "needed, respond normally without [NOTIFY]."
    )
    assert "[NOTIFY]" not in told(Notify.ALWAYS) + told(Notify.NEVER)
    assert "NO_REPLY" in told(Notify.ALWAYS)
    assert "not sent to anyone" in told(Notify.NEVER)


@given(st.text())
def test_a_name_cannot_add_lines_to_what_the_system_says(title: str) -> None:
    assert len(told(title=title).splitlines()) == 2


def test_an_item_of_work_follows_the_prompt() -> None:
    whole = texts.work_prompt("Do:", "Fix the\nlogin", "It fails.\n", "https://x.test/1")
    assert whole == "Do:\n\nWork item: Fix the login\n\nIt fails.\n\nURL: https://x.test/1"
    assert texts.work_prompt("Do:", "Fix", "", "") == "Do:\n\nWork item: Fix"


@given(st.text(min_size=1), st.text(), st.text(), st.text())
def test_an_item_never_changes_the_prompt(prompt: str, title: str, body: str, url: str) -> None:
    whole = texts.work_prompt(prompt, title, body, url)
    assert whole.startswith(f"{prompt}\n\nWork item:")
    assert body.strip() in whole
    assert url.strip() in whole


def lines(
    *jobs: Job, total: int | None = None, enabled: bool = True, zone: str = BERLIN
) -> list[str]:
    count = len(jobs) if total is None else total
    return texts.jobs(jobs, count, ChatZone(zone), NINE, enabled=enabled).splitlines()


def test_jobs_are_numbered_and_say_when_they_run_next() -> None:
    """SPEC CMD-5: on the clock of the chat, which needs no name."""
    first, second, last = lines(job(), job(Cron("0 9 * * 1-5")))
    assert first.startswith("1. water (water): ")
    assert first.endswith("; next today 09:00")
    assert second == "2. water (water): at 09:00 on Monday to Friday; next today 09:00"
    assert last == texts.HOW
    # A schedule with a zone of its own names it.
    first, second, _ = lines(job(Cron("0 9 * * *")), job(At(NINE)), zone="Europe/Athens")
    assert first == (
        "1. water (water): at 09:00 every day (Europe/Berlin); next today 10:00 (Europe/Athens)"
    )
    assert second == "2. water (water): once today 10:00"
    # A reminder tells its time once.
    assert lines(job(At(NINE)))[0] == "1. water: once today 09:00"
    delayed, _ = lines(job(At(NINE), next_run_at=NINE + timedelta(days=1)))
    assert delayed == "1. water: once today 09:00; next tomorrow 09:00"


@pytest.mark.parametrize(("facts", "words"), [
    ({"state": JobState.PAUSED}, "; paused"),
    ({"state": JobState.COMPLETED}, "; done"),
    ({"state": JobState.FAILED, "last_error": "no\nroute."}, "; failed: no route"),
    ({"state": JobState.FAILED}, "; failed"),
    ({"state": JobState.DISABLED, "failures": 5, "last_error": "no route"},
     "; disabled after 5 failures: no route"),
    ({"state": JobState.DISABLED}, "; disabled"),
    ({"failures": 2, "last_error": "no route"}, "; failed 2 times in a row: no route"),
    ({"failures": 1}, "; failed"),
    ({"running": OCCURRENCE}, "; running now"),
])  # fmt: skip
def test_a_job_tells_its_state_with_the_reason(facts: dict[str, Any], words: str) -> None:
    first, _ = lines(job(**facts))
    assert first.endswith(words)
    assert ("next" in first) is ("state" not in facts)


def test_no_jobs_say_so_and_jobs_that_are_switched_off_too_and_more_than_are_shown() -> None:
    assert "… and 3 more." in lines(job(), total=4)
    assert not any("more" in line for line in lines(job()))
    assert lines() == [texts.NO_JOBS]
    assert lines(enabled=False) == [texts.OFF]
    assert lines(job(), enabled=False)[0] == texts.OFF
    assert len(lines(job(), enabled=False)) == 3


def test_the_status_names_the_next_jobs() -> None:
    now = NINE - timedelta(hours=12)
    assert texts.next_jobs([], UTC_CHOSEN, now, enabled=True) == []
    assert texts.next_jobs([job()], UTC_CHOSEN, now, enabled=False) == [texts.OFF]
    shown = texts.next_jobs([job(), job(next_run_at=None)], UTC_CHOSEN, now, enabled=True)
    assert shown == ["Next jobs:", "- water: tomorrow 08:00"]


@given(st.text(min_size=1, max_size=200))
def test_a_title_takes_one_line_and_little_of_it(title: str) -> None:
    named = job()
    first, *rest = lines(replace(named, spec=replace(named.spec, name=title)))
    assert len(rest) == 1
    assert len(first) < 300


def test_a_resumed_job_says_when_it_runs_and_a_time_zone_its_clock() -> None:
    words = "“water” is active. It runs next today 09:00."
    assert texts.resumed(job(), ChatZone(BERLIN), NINE - timedelta(hours=1)) == words
    assert texts.resumed(job(next_run_at=None), UTC_CHOSEN, NINE) == "“water” is active."
    clock = "Europe/Berlin, where it is Tue 09:00."
    assert texts.timezone(ChatZone(BERLIN), NINE).startswith(f"Your time zone is {clock}")
    assert texts.timezone_changed(BERLIN, NINE).startswith(f"Your time zone is now {clock}")


@pytest.mark.parametrize(("error", "words"), [
    (UnknownJob("x"), "There is no job “x”."),
    (UnknownJob("x", several="a, b"), "“x” fits several jobs."),
    (NotYours("x", "telegram:direct:7"), "There is no job “x”."),
    (TooManyJobs("telegram:direct:7", 50), "The limit of 50 jobs is reached. "),
    (BadJob("agent", "is gone"), "Agent: is gone."),
    (UnknownZone("Berlin", "did you mean Europe/Berlin?"), "Unknown time zone “Berlin” ("),
])  # fmt: skip
def test_a_refusal_is_a_sentence_that_names_no_owner(error: JobError, words: str) -> None:
    said = texts.refused(error)
    assert said.startswith(words)
    assert said.endswith(".")
    assert "telegram" not in said


JOB = a_job()


@pytest.mark.parametrize(("job", "said"), [
    (JOB, ""),
    (replace(JOB, state=JobState.PAUSED), "paused"),
    (replace(JOB, state=JobState.DISABLED, failures=3, last_error="boom\n  again"),
     "disabled after 3 failures in a row: boom again"),
    (replace(JOB, state=JobState.DISABLED, failures=1), "disabled after 1 failure"),
    (replace(JOB, state=JobState.COMPLETED, runs=1), "finished after 1 run"),
    (replace(JOB, state=JobState.FAILED, last_error="no  way " * 900),
     f"failed: {'no way ' * 22}no wa…"),
    (replace(JOB, state=JobState.FAILED), "failed: see its past runs"),
    (replace(JOB, next_run_at=None), "no upcoming run"),
])  # fmt: skip
def test_why_a_job_will_not_run_is_one_clause(job: Job, said: str) -> None:
    assert obstacle(job, is_enabled=True) == said
    # A scheduler that is off stops what is active and explains nothing else.
    off = "jobs are turned off (scheduler.enabled)"
    assert obstacle(job, is_enabled=False) == (off if job.state is JobState.ACTIVE else said)


def test_trouble_a_broken_schedule_and_the_kind_of_a_payload_are_told() -> None:
    assert trouble(JOB) == ""
    assert trouble(replace(JOB, failures=2, last_error="no")) == "2 failures in a row: no"
    broken = replace(JOB, spec=replace(JOB.spec, schedule=Cron("every full moon")))
    assert "every full moon" in plan(broken)
    assert kind_and_text(Prompt("look")) == ("prompt", "look")
    assert kind_and_text(FixedMessage("hi")) == ("message", "hi")
    assert kind_and_text(Program(("ls", "a b"))) == ("command", "ls 'a b'")
