"""``goclaw jobs add`` and ``edit``: jobs from the command line (SPEC CRON-1, CRON-2, OPS-1).

SPEC CRON-11.
"""

from __future__ import annotations

import asyncio
import io
import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from goclaw_py.cli.context import STORED_ONLY
from goclaw_py.cli.output import clock
from goclaw_py.core.messages import PeerKind, Target
from goclaw_py.schedule.jobs.creation import JobCreationRules
from goclaw_py.schedule.jobs.models import (
    FixedMessage,
    JobState,
    Notify,
    Program,
    Prompt,
    TargetKind,
)
from goclaw_py.schedule.jobs.schedule import At, Cron, Every
from tests.unit.cli.conftest import Done, Shell
from tests.unit.cli.job_control import NOW, OPERATOR, JobControl
from tests.unit.web import fake_names

EVERY = ("--every", "10m")
WEEKDAYS = ("--cron", "0 9 * * 1-5", "--tz", "Europe/Berlin")
TEAM = "agent:main:console:direct:local"
"""A session that exists."""


# ---------------------------------------------------------------------------- add


def test_a_new_job_is_told_with_its_next_three_times(goclaw: Shell, cron: JobControl) -> None:
    """SPEC CRON-2. They are in the zone of this machine, and then in that of the job."""
    got = goclaw("jobs", "add", "standup", *WEEKDAYS, "--", "What", "is new?")
    assert (got.code, got.err) == (0, f"{STORED_ONLY}\n")
    first, *times = got.out.splitlines()
    assert first.startswith("standup: ")
    assert "09:00" in first
    assert "Europe/Berlin" in first
    assert [line.removeprefix("next").strip() for line in times] == [
        "Mon 2026-01-05 08:00:00 (in 3 d; Mon 09:00 in Europe/Berlin)",
        "Tue 2026-01-06 08:00:00 (in 4 d; Tue 09:00 in Europe/Berlin)",
        "Wed 2026-01-07 08:00:00 (in 5 d; Wed 09:00 in Europe/Berlin)",
    ]
    job = cron.one()
    assert job.spec.schedule == Cron("0 9 * * 1-5")
    assert job.spec.payload == Prompt("What is new?")
    assert job.owner == "operator"
    assert job.next_run_at == datetime(2026, 1, 5, 8, tzinfo=UTC)
    made = json.loads(goclaw("jobs", "add", "a", *EVERY, "--json", "--", "x").out)
    assert (made["id"], made["spec"]["slug"]) == (cron.all()["a"].id, "a")
    assert made["upcoming"][0] == "2026-01-02T12:10:00+00:00"
    assert len(made["upcoming"]) == 3


@pytest.mark.parametrize(("text", "at"), [
    ("2026-05-01T09:00+02:00", datetime(2026, 5, 1, 7, tzinfo=UTC)),
    ("2026-05-01T09:00", datetime(2026, 5, 1, 7, tzinfo=UTC)),
    ("in 20m", NOW + timedelta(minutes=20)),
    ("tomorrow 9:00", datetime(2026, 1, 3, 8, tzinfo=UTC)),
    ("14:30", datetime(2026, 1, 2, 13, 30, tzinfo=UTC)),
])  # fmt: skip
def test_a_time_is_in_the_zone(goclaw: Shell, cron: JobControl, text: str, at: datetime) -> None:
    got = goclaw("jobs", "add", "tea", "--at", text, "--tz", "Europe/Berlin", "--", "tea")
    assert (got.code, got.err) == (0, f"{STORED_ONLY}\n")
    assert cron.one().spec.schedule == At(at)
    # First as it was asked for, then in the zone of this machine, as that of the next run.
    assert re.match(rf"tea: once at .*Berlin\)?; here {clock(at)}\n", got.out)
    assert f"; here {clock(at)} " in goclaw("jobs", "list").out


def test_the_zone_of_the_operator_is_that_of_new_jobs(goclaw: Shell, cron: JobControl) -> None:
    asyncio.run(cron.jobs.choose_zone("Asia/Kolkata", OPERATOR))
    goclaw("jobs", "add", "a", "--at", "2026-05-01T09:00", "--", "x")
    assert cron.one().spec.schedule == At(datetime(2026, 5, 1, 3, 30, tzinfo=UTC))
    assert cron.one().spec.zone == "Asia/Kolkata"


def test_everything_about_a_job_can_be_said(goclaw: Shell, cron: JobControl) -> None:
    got = goclaw(
        *("cron", "add", "a", *EVERY, "--name", "Tea  time", "--agent", "main"),
        *("--to", "telegram.work:-1001:7", "--notify", "conditional", "--session", TEAM),
        *("--model", "opus", "--max-runs", "3", "--until", "2026-02-01T00:00Z"),
        *("--policy", "retries=0", "--policy", "run_timeout=10m", "--policy", "backoff=30s,1m"),
        *("--policy", "stagger=true", "--policy", "turns=none", "--policy", "usd=0.25"),
        *("--source", "issues", "--wake-heartbeat", "--paused", "--", "Do it"),
    )
    assert (got.code, got.err) == (0, "")  # paused: nothing is due
    job = cron.one()
    spec, policy = job.spec, job.policy(cron.rules.base)
    assert (spec.slug, spec.name, spec.session) == ("a", "Tea time", TEAM)
    assert (spec.notify, spec.target) == (
        Notify.CONDITIONAL,
        Target("telegram", "work", "-1001", "7"),
    )
    assert spec.payload == Prompt("Do it", "opus")
    assert (spec.max_runs, spec.not_after) == (3, datetime(2026, 2, 1, tzinfo=UTC))
    assert (spec.source, spec.wake_heartbeat, job.state) == ("issues", True, JobState.PAUSED)
    assert (policy.retries, policy.run_timeout, policy.backoff) == (0, 600, (30, 60))
    assert (policy.stagger, policy.turns, str(policy.usd)) == (True, None, "0.25")
    assert policy.session == "key"


def test_a_paused_job_has_no_next_runs(goclaw: Shell, cron: JobControl) -> None:
    out = goclaw("jobs", "add", "a", *WEEKDAYS, "--paused", "--", "x").out
    assert out.endswith("the job is paused; to resume it: goclaw jobs resume a\n")
    assert "next" not in out + goclaw("jobs", "pause", "a").out
    assert "next runs" not in goclaw("jobs", "show", "a").out
    assert goclaw("jobs", "next", "--job", "a").out == "no upcoming runs\n"
    # SPEC CRON-4: jobs can be made all the same while the scheduler is off.
    cron.rules = JobCreationRules(cron.rules.profile, enabled=False)
    got = goclaw("jobs", "add", "b", *EVERY, "--", "x")
    assert got.code == 0
    assert "no upcoming run: jobs are turned off (scheduler.enabled)" in got.out


def test_a_job_that_would_tell_nobody_is_told_at_once(goclaw: Shell, cron: JobControl) -> None:
    """SPEC CRON-13: it is made all the same."""
    cron.knows_chats = True
    nobody = "no owner has spoken to this agent where it could answer"
    got = goclaw("jobs", "add", "a", *EVERY, "--agent", "ops", "--", "x")
    assert got.code == 0
    assert f"results cannot be delivered now: {nobody}" in got.err
    assert f"cannot deliver there now: {nobody}" in goclaw("jobs", "show", "a").out
    got = goclaw("jobs", "add", "b", *EVERY, "--to", "telegram:99", "--", "x")
    assert "this channel is not set up" in got.err
    cron.rules = replace(cron.rules, places=(("telegram", "default"),))
    got = goclaw("jobs", "edit", "b", "--name", "B")
    assert "no message has come from this chat yet" in got.err


def test_a_name_may_be_anything_and_a_slug_not(goclaw: Shell, cron: JobControl) -> None:
    """SPEC SEC-1: a slug is no path."""
    for name in ("Morning report", "Morning report", "../../x"):
        goclaw("jobs", "add", name, *EVERY, "--", "x")
    names = {slug: job.spec.name for slug, job in cron.all().items()}
    report = "Morning report"
    assert names == {"morning-report": report, "morning-report-2": report, "x": "../../x"}
    for verb in ("show", "delete", "run", "pause"):
        got = goclaw("jobs", verb, "../x")
        assert (got.code, got.out) == (1, "")
        assert got.err.startswith("goclaw: no job '../x'; ")


def test_a_chat_that_is_a_group_is_known_as_one(goclaw: Shell, cron: JobControl) -> None:
    for chat in (fake_names.FAMILY, fake_names.DIRECT):
        goclaw("jobs", "add", f"to{chat.chat}", *EVERY, "--to", f"telegram:{chat.chat}", "--", "x")
    found = {job.spec.peer for job in cron.all().values()}
    assert found == {PeerKind.GROUP, PeerKind.DIRECT}


@pytest.mark.parametrize(("words", "key", "value"), [
    *((["--to", kind.value, "--", "x"], "target", kind) for kind in TargetKind),
    (["--message", "Tea!"], "payload", FixedMessage("Tea!")),
    (
        ["--command", "--", "tar", "-c", "a b", "--json"],
        "payload",
        Program(("tar", "-c", "a b", "--json")),  # its arguments as they are
    ),
    (["--", "-"], "payload", Prompt("first\nsecond\n")),  # from a pipe
])  # fmt: skip
def test_where_to_and_what_can_be_said_in_many_ways(
    goclaw: Shell,
    cron: JobControl,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    key: str,
    value: object,
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("first\nsecond\n"))
    assert goclaw("jobs", "add", "a", *EVERY, *words).code == 0
    assert getattr(cron.one().spec, key) == value


# ---------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(("arguments", "words"), [
    (["--", "x"], "give a schedule: --at, --every or --cron"),
    ([*EVERY, "--at", "in 5m", "--", "x"], "give one of --at, --every and --cron, not 2"),
    ([*EVERY, "--cron", "* * * * *", "--at", "9:00", "--", "x"], "not 3"),
    ([*EVERY, "--message", "a", "--", "x"], "a prompt, --message and --command"),
    ([*EVERY, "--command"], "the program is missing"),
    ([*EVERY, "--message", "a", "--model", "b"], "--model is only for jobs with a prompt"),
    ([*EVERY, "--notify", "sometimes", "--", "x"], "must be one of always, conditional, never"),
    ([*EVERY, "--to", "nobody", "--", "x"], "--to must be last, none, or channel"),
    ([*EVERY, "--max-runs", "0", "--", "x"], "from 1 to 1000000000"),
    ([*EVERY, "--policy", "retries", "--", "x"], "KEY=VALUE"),
    ([*EVERY, "--policy", "retry=1", "--", "x"], "; did you mean retry_on?"),
    ([*EVERY, "--policy", "retries=99", "--", "x"], "retries: must be a whole number"),
    ([*EVERY, "--policy", "run_timeout=1y", "--", "x"], "run_timeout: must be a time such as"),
    ([*EVERY, "--source", "jira", "--", "x"], "no work source 'jira'; there is only issues"),
    ([*EVERY, "--session", "main", "--", "x"], "needs a chat as target"),
    ([*EVERY, "--tz", "Europe/Berlln", "--", "x"], "did you mean Europe/Berlin"),
    ([*EVERY, "--tz", "../etc/passwd", "--", "x"], "unknown time zone"),
    ([*EVERY, "--slug", "../x", "--", "x"], "slug: must be 1 to 64 characters of a-z"),
    ([*EVERY, "--", ""], "prompt: must not be empty"),
    ([*EVERY], "the prompt is missing; write it at the end, after --"),
    ([*EVERY, "--model", "m"], "the prompt is missing; write it at the end, after --"),
    ([*EVERY, "-buy milk"], "write -- before a text that begins with a dash"),
    ([*EVERY, "--", "x" * 1_000_000], "prompt: may have at most 100,000 characters"),
    ([*EVERY, "--", "\udcff"], "is not text in the encoding of this terminal"),
    (["--every", "0s", "--", "x"], "0s"),
    (["--every", "-5m", "--", "x"], "-5m"),
    (["--every", "1.5h", "--", "x"], "1.5h"),
    (["--every", f"{10**30}s", "--", "x"], "interval"),
    (["--cron", "0 9 * *", "--", "x"], "invalid cron expression '0 9 * *'"),
    (["--at", "yesterday", "--", "x"], "yesterday"),
    (["--at", "", "--", "x"], ""),
    ([*EVERY, "--until", "2020-01-01T00:00Z", "--", "x"], "2020-01-01"),
])  # fmt: skip
def test_a_wrong_job(goclaw: Shell, cron: JobControl, arguments: list[str], words: str) -> None:
    got = goclaw("jobs", "add", "a", *arguments)
    assert (got.code, got.out) == (2, "")
    assert words in " ".join(got.err.split())
    assert "Traceback" not in got.err
    assert cron.all() == {}


def test_a_session_that_does_not_exist_yet_is_a_warning(goclaw: Shell, cron: JobControl) -> None:
    """A misspelt key would begin a history that nobody looks for."""
    got = goclaw("jobs", "add", "a", *EVERY, "--session", "bogus", "--", "x")
    assert (got.code, cron.one().spec.session) == (0, "bogus")
    warning = "warning: there is no session 'bogus', so the first run begins it\n"
    assert got.err == f"{warning}{STORED_ONLY}\n"
    got = goclaw("jobs", "edit", "a", "--session", TEAM[:-1])
    assert f"so the first run begins it; did you mean {TEAM}?\n" in got.err
    assert goclaw("jobs", "edit", "a", "--session", TEAM).err == f"{STORED_ONLY}\n"
    assert goclaw("jobs", "edit", "a", "--name", "A").err == f"{STORED_ONLY}\n"


def test_a_time_that_is_over_and_a_name_that_is_taken(goclaw: Shell, cron: JobControl) -> None:
    got = goclaw("jobs", "add", "a", "--at", "2026-01-02T11:00Z", "--", "x")
    assert (got.code, cron.all()) == (2, {})
    assert got.err.count("\n") == 1
    for said in ("2026-01-02", "11:00", "12:00", "1 h later"):
        assert said in got.err
    goclaw("jobs", "add", "a", *EVERY, "--", "first")
    got = goclaw("jobs", "add", "a", *EVERY, "--", "second")
    assert got == Done(
        1, "", "goclaw: there is a job 'a' already; to change it: goclaw jobs edit a\n"
    )
    assert cron.one().spec.payload == Prompt("first")


# ---------------------------------------------------------------------------- edit


@pytest.fixture
def job(goclaw: Shell, cron: JobControl) -> JobControl:
    goclaw("jobs", "add", "a", *WEEKDAYS, "--model", "opus", "--policy", "retries=1", "--", "x")
    return cron


@pytest.mark.parametrize(("arguments", "key", "value"), [
    (["--every", "2h"], "schedule", Every(timedelta(hours=2))),
    (["--at", "14:30"], "schedule", At(datetime(2026, 1, 2, 13, 30, tzinfo=UTC))),
    (["--tz", "UTC"], "zone", "UTC"),
    (["--slug", "b"], "slug", "b"),
    (["--name", "Tea"], "name", "Tea"),
    (["--agent", "ops"], "agent", "ops"),
    (["--to", "none"], "target", TargetKind.NONE),
    (["--notify", "never"], "notify", Notify.NEVER),
    (["--message", "hi"], "payload", FixedMessage("hi")),
    (["--", "y"], "payload", Prompt("y", "opus")),
    (["--model", "haiku"], "payload", Prompt("x", "haiku")),
    (["--model", ""], "payload", Prompt("x")),
    (["--command", "--", "ls"], "payload", Program(("ls",))),
    (["--max-runs", "4"], "max_runs", 4),
    (["--until", "2027-01-01T00:00Z"], "not_after", datetime(2027, 1, 1, tzinfo=UTC)),
    (["--policy", "retries=2"], "policy", {"retries": 2}),
    (["--policy", "retries="], "policy", {}),
    (["--session", "fresh"], "policy", {"retries": 1, "session": "fresh"}),
    (["--session", TEAM], "session", TEAM),
    (["--source", "issues"], "source", "issues"),
    (["--wake-heartbeat"], "wake_heartbeat", True),
])  # fmt: skip
def test_an_edit_changes_what_is_given_and_nothing_else(
    goclaw: Shell, job: JobControl, arguments: list[str], key: str, value: object
) -> None:
    before = job.one()
    got = goclaw("jobs", "edit", "a", *arguments)
    assert (got.code, got.err) == (0, f"{STORED_ONLY}\n")
    after = job.one()
    assert getattr(after.spec, key) == value
    more = {"policy": after.spec.policy}  # another payload or session may need another one
    assert replace(before.spec, **{key: value, **more}) == after.spec  # type: ignore[arg-type]
    assert after.revision == before.revision + 1


def test_limits_can_be_taken_away_again(goclaw: Shell, job: JobControl) -> None:
    goclaw("jobs", "edit", "a", "--max-runs", "4", "--until", "2027-01-01T00:00Z")
    goclaw("jobs", "edit", "a", "--source", "issues", "--session", "team")
    assert job.one().spec.max_runs == 4
    goclaw("jobs", "edit", "a", "--max-runs", "none", "--until", "none")
    goclaw("jobs", "edit", "a", "--source", "none", "--session", "job")
    spec = job.one().spec
    assert (spec.max_runs, spec.not_after, spec.source, spec.session) == (None, None, "", "")


def test_edits_one_after_the_other(goclaw: Shell, job: JobControl) -> None:
    out = goclaw("jobs", "edit", "a", "--cron", "30 8 * * *").out
    assert "next  Sat 2026-01-03 07:30:00 (in 20 h; Sat 08:30 in Europe/Berlin)" in out
    assert out.count("07:30:00") == 3
    assert goclaw("jobs", "edit", "a", "--revision", "2", "--", "mine").code == 0
    got = goclaw("jobs", "edit", "a", "--revision", "2", "--", "theirs")
    assert (got.code, got.out) == (1, "")
    assert "the job was changed by someone else" in got.err
    assert job.one().spec.payload == Prompt("mine", "opus")
    whole = job.one().id
    for asked in (whole, whole[:13]):  # a job is meant by its id or the beginning of it
        assert goclaw("jobs", "edit", asked, "--name", asked).code == 0
        assert job.one().spec.name == asked


def test_a_reminder_that_is_over_needs_a_new_time(goclaw: Shell, cron: JobControl) -> None:
    goclaw("jobs", "add", "tea", "--at", "in 5m", "--", "tea")
    cron.clock.at += timedelta(hours=1)
    cron.stand("tea", JobState.COMPLETED)
    got = goclaw("jobs", "resume", "tea")
    assert got.code == 2
    assert got.err.count("\n") == 1
    assert goclaw("jobs", "edit", "tea", "--at", "in 5m").code == 0
    job = cron.one()
    assert (job.state, job.next_run_at) == (JobState.ACTIVE, NOW + timedelta(hours=1, minutes=5))


@pytest.mark.parametrize(("arguments", "code", "words"), [
    (["a"], 2, "nothing to change: give at least one option or a prompt"),
    (["c", "--", "y"], 1, "no job 'c'"),
    (["a", "--every", "1h", "--cron", "* * * * *"], 2, "not 2"),
    (["a", "--policy", "turns=none"], 2, "give a large number"),
    (["a", "--policy", "nothing="], 2, "no such key"),
    (["a", "--revision", "0", "--", "y"], 2, "revision"),
    (["a", "--at", "2020-01-01T00:00Z"], 2, "2020"),
    (["a", "--slug", "A/B"], 2, "slug"),
    (["a", "--", " "], 2, "prompt: must not be empty"),
    (["b", "--model", "opus"], 2, "model"),  # only a prompt has one
])  # fmt: skip
def test_a_wrong_edit_changes_nothing(
    goclaw: Shell, job: JobControl, arguments: list[str], code: int, words: str
) -> None:
    goclaw("jobs", "add", "b", *EVERY, "--message", "hi")
    before = job.all()
    got = goclaw("jobs", "edit", *arguments)
    assert (got.code, got.out) == (code, "")
    assert words in " ".join(got.err.split())
    assert job.all() == before


def test_coming_runs_are_said_to_need_a_gateway(goclaw: Shell, cron: JobControl) -> None:
    """OPS-1: nothing runs them while no gateway does."""
    assert goclaw("jobs", "next").err == ""
    goclaw("jobs", "add", "a", *EVERY, "--", "x")
    for command in ("next", "show a", "edit a --every 3h", "resume a"):
        assert goclaw("jobs", *command.split()).err == f"{STORED_ONLY}\n", command
    assert STORED_ONLY not in goclaw("jobs", "pause", "a").err
