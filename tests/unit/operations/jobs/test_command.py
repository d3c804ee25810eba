"""``goclaw jobs``: which jobs there are, what became of them, and what is done with them.

SPEC CRON-8, CRON-9, CRON-11, CRON-12, OPS-1, OPS-4.
"""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest

from goclaw_py.cli.context import STORED_ONLY
from goclaw_py.cli.exits import ExitCode
from goclaw_py.core.ids import OccurrenceId, Owner
from goclaw_py.operations.jobs.command import show as cron_list
from goclaw_py.operations.jobs.models import JobDraft, Requester, RunNow, StartedNow
from goclaw_py.schedule.jobs.creation import JobCreationRules
from goclaw_py.schedule.jobs.execution_models import JobUpdate, OccurrenceStatus, Why
from goclaw_py.schedule.jobs.models import FixedMessage, JobState, Prompt
from goclaw_py.schedule.jobs.schedule import At, Cron, Every
from tests.unit.cli.conftest import Confirmations, Done, Shell, lines
from tests.unit.cli.job_control import ANN, NOW, JobControl
from tests.unit.web import fakes

STANDUP = JobDraft(
    Cron("0 9 * * 1-5"), Prompt("What is new?", "opus"), slug="standup", zone="Europe/Berlin"
)
POLL = JobDraft(Every(timedelta(minutes=10)), Prompt("poll"), slug="poll")
HERS = JobDraft(Every(timedelta(hours=1)), Prompt("x"), slug="hers")
TEA = JobDraft(At(NOW + timedelta(hours=3)), FixedMessage("Tea!"), slug="tea", zone="Asia/Kolkata")


@pytest.fixture
def jobs(cron: JobControl) -> JobControl:
    for draft in (STANDUP, POLL, TEA):
        cron.make(draft)
    return cron


def row_of(goclaw: Shell, slug: str, *options: str) -> str:
    """The line of a job in the list."""
    (row,) = [row for row in lines(goclaw("jobs", "list", *options).out) if row.split()[0] == slug]
    return row


# ---------------------------------------------------------------------------- list


def test_jobs_are_listed_by_their_next_runs(goclaw: Shell, jobs: JobControl) -> None:
    got = goclaw("jobs", "list")
    head, *rows = lines(got.out)
    assert (got.code, head) == (0, "JOB STATE SCHEDULE NEXT RUN LAST RUN RESULT NOTE")
    assert [row.split()[0] for row in rows] == ["poll", "tea", "standup"]
    assert rows[0].endswith("Fri 2026-01-02 12:10:00 (in 10 min)")
    assert rows[1].endswith("Fri 2026-01-02 15:00:00 (in 3 h)")
    assert rows[2].endswith("Mon 2026-01-05 08:00:00 (in 3 d)")
    assert got.err == f"{STORED_ONLY}\n"
    jobs.rules = JobCreationRules(jobs.rules.profile, enabled=False)
    assert goclaw("jobs", "list").out.count("jobs are turned off (scheduler.enabled)") == 3


@pytest.mark.parametrize(("state", "error", "words"), [
    (JobState.DISABLED, "no\nkey\x1b[2J", "disabled after 5 failures in a row: no key[2J"),
    (JobState.DISABLED, "", "disabled after 5 failures in a row"),
    (JobState.FAILED, "boom", "failed: boom"),
    (JobState.FAILED, "", "failed: see its past runs"),
    (JobState.COMPLETED, "", "finished after 1 run"),
])  # fmt: skip
def test_why_a_job_will_not_run_is_in_the_list(
    goclaw: Shell, jobs: JobControl, state: JobState, error: str, words: str
) -> None:
    jobs.stand("tea", JobState.ACTIVE, failures=4 if state is JobState.DISABLED else 0)
    end = JobUpdate(None, state=state, failed=True, ran=True)
    status = OccurrenceStatus.FAILED if error else OccurrenceStatus.OK
    jobs.ran("tea", status, update=end, error=error)
    row = row_of(goclaw, "tea", "--all")
    assert row.endswith(words)
    assert "\x1b" not in row


def test_how_an_active_job_stands_is_in_the_list(goclaw: Shell, jobs: JobControl) -> None:
    jobs.stand("tea", JobState.ACTIVE)
    assert row_of(goclaw, "tea").endswith("no upcoming run")
    jobs.stand("tea", JobState.PAUSED)
    assert row_of(goclaw, "tea").startswith("tea paused ")
    failed = JobUpdate(NOW, failed=True, ran=True)
    jobs.ran("poll", OccurrenceStatus.FAILED, update=failed, error="boom")
    assert row_of(goclaw, "poll").endswith("boom")
    jobs.claim("standup")
    row = row_of(goclaw, "standup")
    assert row.startswith("standup active")
    said = lines(goclaw("jobs", "show", "standup").out)
    assert "running not begun yet: waits for its turn" in said
    assert row.endswith("running")


def test_a_job_of_another_release_does_not_hide_the_others(goclaw: Shell, jobs: JobControl) -> None:
    """Its zone or its expression may be known there alone."""
    jobs.distort("tea", zone="Mars/Olympus")
    jobs.distort("standup", schedule=Cron("every morning"))
    for command in (["list"], ["list", "--json"], ["show", "tea"], ["show", "standup"]):
        assert goclaw("jobs", *command).code == 0
    out = goclaw("jobs", "list").out
    assert len(out.splitlines()) == 4
    assert "unknown time zone 'Mars/Olympus'" in out
    assert "Fri 2026-01-02 15:00:00" in out
    assert "invalid cron expression 'every morning'" in out


@pytest.mark.parametrize(("arguments", "slugs"), [
    (["--state", "active"], ["poll"]),
    (["--state", "paused"], ["tea"]),
    (["--state", "completed"], ["standup"]),
    (["--name", "EA"], ["tea"]),
    (["--agent", "helper"], []),
    (["--owner", "telegram:direct:5"], []),
    (["--limit", "1"], ["poll"]),
    ([], ["poll", "tea"]),
    (["--all"], ["poll", "standup", "tea"]),
])  # fmt: skip
def test_jobs_are_picked(
    goclaw: Shell, jobs: JobControl, arguments: list[str], slugs: list[str]
) -> None:
    jobs.stand("tea", JobState.PAUSED)
    jobs.stand("standup", JobState.COMPLETED)
    got = goclaw.data("jobs", "list", *arguments)
    assert sorted(one["spec"]["slug"] for one in got) == slugs


def test_a_list_says_what_it_leaves_out_and_whose_jobs_there_are(
    goclaw: Shell, jobs: JobControl
) -> None:
    said = "showing 1 of 3 jobs; use --limit to see more\n"
    assert said in goclaw("jobs", "list", "--limit", "1").err
    assert "showing" not in goclaw("jobs", "list", "--limit", "3").err
    assert "OWNER" not in goclaw("jobs", "list").out
    jobs.make(HERS, ANN)
    out = goclaw("jobs", "list").out
    assert "OWNER" in out
    assert "telegram:direct:5" in out
    assert "OWNER" not in goclaw("jobs", "list", "--owner", "telegram:direct:5").out
    assert goclaw("jobs", "show", "hers").code == 0


def test_nothing_and_several_jobs_are_told(goclaw: Shell, cron: JobControl) -> None:
    assert goclaw("jobs", "list") == Done(0, "no jobs\n", "")
    assert goclaw("jobs", "runs").out == "no runs yet\n"
    assert goclaw("jobs", "next").out == "no upcoming runs\n"
    # One name of two people needs the id.
    for owner in ("a", "b"):
        cron.make(POLL, Requester(Owner(owner)))
    said = goclaw("jobs", "show", "poll").err
    each = r"poll \(\S{18}, of %s\)"
    assert re.fullmatch(rf"goclaw: job 'poll' is not unique: {each % 'a'}, {each % 'b'}\n", said)


def test_an_unknown_name_gets_similar_ones(goclaw: Shell, jobs: JobControl) -> None:
    for name in ("stand", "stnadup"):
        got = goclaw("jobs", "show", name)
        assert (got.code, got.out) == (1, "")
        assert got.err.startswith(f"goclaw: no job '{name}'; similar: standup; to list jobs: ")


def test_no_job_of_another_owner_is_deleted_in_place_of_ones_own(
    goclaw: Shell, cron: JobControl
) -> None:
    for owner in (None, Owner("a")):
        cron.make(POLL, Requester(owner))
    got = goclaw("jobs", "delete", "poll", "--yes")
    assert (got.code, got.out) == (1, "")
    assert re.search(r"not unique: poll \(\S+, of a\), poll \(\S+, of operator\)", got.err)
    # The id selects one; the name then has one owner again.
    found = goclaw.data("jobs", "list")
    theirs = next(one["id"] for one in found if one["owner"] == "a")
    assert goclaw("jobs", "delete", theirs, "--yes").code == 0
    assert goclaw("jobs", "show", "poll").code == 0


# ---------------------------------------------------------------------------- show


def test_everything_about_a_job_is_shown(goclaw: Shell, jobs: JobControl) -> None:
    goclaw("jobs", "edit", "standup", "--policy", "retries=0", "--max-runs", "9", "--name", "Up")
    jobs.clock.at += timedelta(minutes=1)
    jobs.ran("standup", output="all\nis well")
    jobs.clock.at += timedelta(minutes=1)
    jobs.ran("standup", OccurrenceStatus.SKIPPED, why=Why.NO_WORK)
    got = goclaw("jobs", "show", "standup")
    assert (got.code, got.err) == (0, f"{STORED_ONLY}\n")
    shown = lines(got.out)
    assert set(shown) >= {
        "state active",
        "next runs Mon 2026-01-05 08:00:00 (in 3 d; Mon 09:00 in Europe/Berlin)",
        "Tue 2026-01-06 08:00:00 (in 4 d; Tue 09:00 in Europe/Berlin)",
        "target last, always",
        "model opus",
        "ends after 9 runs, 0 done",
        "policy retries = 0 (settings: 3)",
        "last 30 days 1 run, 100% successful",
        "skipped 1 time",
        "took 1 min 30 s on average, 95th percentile 1 min 30 s",
        "cost $0.5000",
        "What is new?",
    }
    table = shown[shown.index("prompt") + 3 :]
    assert table[0] == "DUE TOOK OUTCOME ATTEMPTS DELIVERY COST RUN OUTPUT"
    assert "skipped (no work)" in table[1]
    assert table[2].startswith("2026-01-02 12:01:00 manual 1 min 30 s completed 1 $0.2500")
    assert table[2].endswith("all is well")


def test_a_job_of_a_model_shows_what_is_stricter_for_it(goclaw: Shell, cron: JobControl) -> None:
    """SPEC CRON-8, CRON-15: the policy that holds, where it differs."""
    cron.make(HERS, ANN)
    out = lines(goclaw("jobs", "show", "hers").out)
    assert "owner telegram 5 (telegram:direct:5), created by a model" in out
    assert "policy min_interval = 1m (settings: 1s)" in out
    assert "auto_disable_after = 5 (settings: 10)" in out


def test_a_job_is_json_for_programs(goclaw: Shell, jobs: JobControl) -> None:
    jobs.ran("poll", output="hi")
    got = goclaw.data("jobs", "show", "poll")
    assert got["spec"]["schedule"]["kind"] == "every"
    assert got["upcoming"][0] == "2026-01-02T12:10:00+00:00"
    assert got["stats"]["runs"] == 1
    assert got["log"][0]["output"] == "hi"


@pytest.mark.parametrize("command", [
    *("show nothing", "pause nothing", "resume nothing", "run nothing", "delete nothing --yes"),
    *("next 3 --job nothing", "runs --job nothing"),
])  # fmt: skip
def test_an_unknown_job_is_exit_code_1(goclaw: Shell, jobs: JobControl, command: str) -> None:
    assert goclaw("jobs", *command.split()) == Done(
        1, "", "goclaw: no job 'nothing'; to list jobs: goclaw jobs list\n"
    )


@pytest.mark.parametrize("arguments", [
    *(["show"], ["show", " "], ["list", "--state", "asleep"]),
    *(["list", "--limit", "0"], ["runs", "--outcome", "lovely"], ["next", "0"], ["next", "x"]),
    ["show", "poll", "--days", "0"],
])  # fmt: skip
def test_wrong_usage_is_exit_code_2(goclaw: Shell, jobs: JobControl, arguments: list[str]) -> None:
    assert goclaw("jobs", *arguments).code == 2


# ---------------------------------------------------------------------------- runs, next


def test_runs_are_listed_in_the_zone_of_this_machine(goclaw: Shell, jobs: JobControl) -> None:
    jobs.ran("tea")
    jobs.clock.at += timedelta(minutes=1)
    jobs.ran("poll", OccurrenceStatus.FAILED, error="boom\nbang")
    head, first, second = lines(goclaw("jobs", "runs").out)
    assert head == "JOB DUE TOOK OUTCOME ATTEMPTS DELIVERY COST RUN OUTPUT"
    assert first.startswith("poll 2026-01-02 12:01:00 manual 1 min 30 s failed 1")
    assert first.endswith("boom bang")
    assert second.startswith("tea 2026-01-02 12:00:00 manual 1 min 30 s completed 1")


@pytest.mark.parametrize(("arguments", "slugs"), [
    (["poll"], ["poll"]),
    (["Poll"], ["poll"]),
    (["--job", "poll"], ["poll"]),  # the former way
    (["--outcome", "completed"], ["tea"]),
    (["--outcome", "ok"], ["tea"]),  # its value
    (["--status", "ok"], ["tea"]),  # its former name
    (["poll", "--outcome", "ok"], []),
    (["--limit", "1"], ["poll"]),
])  # fmt: skip
def test_runs_are_picked(
    goclaw: Shell, jobs: JobControl, arguments: list[str], slugs: list[str]
) -> None:
    jobs.ran("tea")
    jobs.clock.at += timedelta(minutes=1)
    jobs.ran("poll", OccurrenceStatus.FAILED)
    assert [one["slug"] for one in goclaw.data("jobs", "runs", *arguments)] == slugs


def test_next_runs(goclaw: Shell, jobs: JobControl, monkeypatch: pytest.MonkeyPatch) -> None:
    # Pages of one: what runs later than the last one wanted need not be looked at.
    monkeypatch.setattr(cron_list, "PAGE", 1)
    goclaw("jobs", "edit", "poll", "--every", "2h")
    assert goclaw.data("jobs", "next", "3") == [
        {"at": "2026-01-02T14:00:00+00:00", "slug": "poll"},
        {"at": "2026-01-02T15:00:00+00:00", "slug": "tea"},
        {"at": "2026-01-02T16:00:00+00:00", "slug": "poll"},
    ]
    head, _, tea, _ = lines(goclaw("jobs", "next", "3").out)
    assert head == "WHEN JOB PROMPT"
    assert tea == "Fri 2026-01-02 15:00:00 (in 3 h) tea Tea!"
    got = goclaw("jobs", "next", "2", "--job", "standup")
    assert [line.split()[1] for line in lines(got.out)[1:]] == ["2026-01-05", "2026-01-06"]


# ---------------------------------------------------------------------------- pause, resume


def test_jobs_are_resumed(goclaw: Shell, jobs: JobControl) -> None:
    got = goclaw("jobs", "pause", "poll")
    assert (got.code, jobs.all()["poll"].next_run_at) == (0, None)
    assert got.out.endswith("the job is paused; to resume it: goclaw jobs resume poll\n")
    jobs.clock.at += timedelta(hours=1)
    got = goclaw("jobs", "resume", "poll", "--json")
    assert json.loads(got.out)["state"] == "active"
    assert jobs.all()["poll"].next_run_at == NOW + timedelta(hours=1, minutes=10)
    # A disabled one gets a clean record.
    jobs.stand("poll", JobState.DISABLED, failures=5)
    assert goclaw("jobs", "resume", "poll").code == 0
    job = jobs.all()["poll"]
    assert (job.state, job.failures) == (JobState.ACTIVE, 0)


# ---------------------------------------------------------------------------- run


def test_a_run_by_hand_needs_a_gateway(goclaw: Shell, jobs: JobControl) -> None:
    assert goclaw("jobs", "run", "poll") == Done(0, "run-1\n", "")
    assert jobs.runner.asked == ["poll"]
    started = {"status": "started", "run": "run-1", "occurrence": "o-1"}
    assert goclaw.data("jobs", "run", "poll") == started
    jobs.runner.answer = StartedNow(OccurrenceId("o-1"), None)
    assert goclaw("jobs", "run", "tea").out == "ran tea\n"  # a message needs no run
    # Without a gateway there is none.
    jobs.connected = False
    nobody = "goclaw: no gateway is running here; to start one: goclaw run\n"
    assert goclaw("jobs", "run", "poll") == Done(ExitCode.UNREACHABLE, "", nobody)
    jobs.rules = JobCreationRules(jobs.rules.profile, enabled=False)
    got = goclaw("jobs", "run", "poll")
    assert (got.code, got.err) == (1, "goclaw: jobs are turned off (scheduler.enabled = false)\n")


@pytest.mark.parametrize(("answer", "words"), [
    (RunNow.ALREADY_RUNNING, "the job is already running"),
    (RunNow.AT_CAPACITY, "the maximum number of jobs is already running"),
    (RunNow.NO_WORK, "the work source of the job has no work"),
])  # fmt: skip
def test_why_nothing_was_run(goclaw: Shell, jobs: JobControl, answer: RunNow, words: str) -> None:
    jobs.runner.answer = answer
    assert goclaw("jobs", "run", "poll") == Done(1, f"{answer.value}\n", f"goclaw: {words}\n")
    got = goclaw("jobs", "run", "poll", "--json")
    assert (got.code, json.loads(got.out)) == (1, {"status": answer.value})


# ---------------------------------------------------------------------------- delete


def test_a_job_is_deleted(goclaw: Shell, jobs: JobControl) -> None:
    jobs.ran("tea", output="drunk")
    gone = jobs.all()["tea"].id
    assert goclaw("jobs", "delete", "tea", "--yes") == Done(0, "deleted tea\n", "")
    for name in (gone, "tea"):  # its log stays
        assert "drunk" in goclaw("jobs", "runs", name).out
    assert goclaw("jobs", "runs", "coffee").err.startswith("goclaw: no job 'coffee'")
    assert "drunk" in goclaw("jobs", "runs").out
    assert set(jobs.all()) == {"standup", "poll"}
    assert goclaw.data("jobs", "delete", "poll", "--yes")["deleted"] == "poll"


def test_a_person_is_asked(
    goclaw: Shell, jobs: JobControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Confirmations(monkeypatch).asked
    assert goclaw("jobs", "delete", "tea").code == 1
    assert "tea" in jobs.all()
    assert goclaw("jobs", "delete", "tea").code == 0
    assert "tea" not in jobs.all()
    assert goclaw("jobs", "delete", "poll", "--yes").code == 0
    assert asked == ["Delete tea?", "Delete tea?"]


def test_a_lost_database(goclaw: Shell, jobs: JobControl, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise fakes.unavailable()

    monkeypatch.setattr(jobs.store, "find_jobs", fail)
    assert goclaw("jobs", "show", "poll") == Done(3, "", "goclaw: the database does not answer\n")


def test_the_number_of_next_runs_is_a_limit(goclaw: Shell, jobs: JobControl) -> None:
    del jobs
    assert len(goclaw.data("jobs", "next", "--limit", "3")) == 3
    assert goclaw("jobs", "next", "3").out == goclaw("jobs", "next", "--limit", "3").out


def test_a_name_that_is_taken_leads_to_the_edit(goclaw: Shell, jobs: JobControl) -> None:
    del jobs
    got = goclaw("jobs", "add", "tea", "--every", "1h", "--", "drink")
    assert got.code == ExitCode.FAILED
    assert "there is a job 'tea' already; to change it: goclaw jobs edit tea" in got.err
