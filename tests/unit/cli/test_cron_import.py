"""``goclaw cron import`` and ``export``: jobs from and to files."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from goclaw_py.cli.cron import files as cron_files
from goclaw_py.jobs.creation import JobCreationRules
from goclaw_py.jobs.models import FixedMessage, JobState, Program, Prompt, TargetKind
from goclaw_py.jobs.policy import PROFILES
from goclaw_py.jobs.schedule import At, Cron, Every
from goclaw_py.model.ids import AgentName, Owner
from goclaw_py.model.messages import Target
from goclaw_py.model.owners import Maker
from goclaw_py.ports.jobs import JobDraft
from goclaw_py.store.memory import MemoryStore
from tests.unit.cli.conftest import Done, Shell
from tests.unit.cli.cron_desk import ANN, NOW, OPERATOR, JobControl

CACO = {
    "slug": "daily-standup",
    "prompt": "Generate daily standup summary from git commits",
    "enabled": True,
    "schedule": {"type": "cron", "expression": "0 9 * * 1-5"},
    "sessionConfig": {"model": "claude-sonnet", "persistSession": True},
}
LAST_RUN = {
    "lastRun": "2026-01-02T09:00:15.123Z",
    "lastResult": "success",
    "lastError": None,
    "sessionId": "abc-123",
    "nextRun": "2026-01-06T09:00:00.000Z",
}
HERDCTL = """
name: coder
instances: {max_concurrent: 1}
schedules:
  check-issues:
    type: interval
    interval: 5m
    prompt: Look for issues
    work_source: {type: issues, labels: {ready: ready}}
  Nightly Build:
    type: cron
    expression: "0 2 * * *"
  idle: {type: interval, interval: 1h, enabled: false}
"""


def caco(folder: Path, changes: dict[str, object], last_run: object = None) -> Path:
    """A folder of a schedule of caco."""
    definition = {**CACO, **changes}
    place = folder / str(definition["slug"]).strip("./")
    place.mkdir(parents=True)
    (place / "definition.json").write_text(json.dumps(definition))
    if last_run is not None:
        (place / "last-run.json").write_text(json.dumps(last_run))
    return place


def results(done: Done) -> dict[str, str]:
    """The results of an import by their slugs."""
    return {one["slug"]: one["result"] for one in json.loads(done.out)}


# ---------------------------------------------------------------------------- caco


def test_a_schedule_of_caco_is_a_job(goclaw: Shell, cron: JobControl, tmp_path: Path) -> None:
    caco(tmp_path / "in", {}, LAST_RUN)
    got = goclaw("cron", "import", str(tmp_path / "in"))
    assert (got.code, got.err) == (0, "")
    job = cron.one()
    assert job.spec.slug == "daily-standup"
    assert job.spec.schedule == Cron("0 9 * * 1-5")
    assert (job.spec.zone, job.state) == ("UTC", JobState.ACTIVE)
    assert job.spec.payload == Prompt(str(CACO["prompt"]), "claude-sonnet")
    assert job.spec.policy == {"session": "job"}


@pytest.mark.parametrize(
    ("last_run", "next_run"),
    [
        (LAST_RUN, datetime(2026, 1, 6, 9, tzinfo=UTC)),
        (None, datetime(2026, 1, 5, 9, tzinfo=UTC)),
        ({**LAST_RUN, "nextRun": None}, datetime(2026, 1, 5, 9, tzinfo=UTC)),
        ({**LAST_RUN, "nextRun": "2026-01-01T09:00:00Z"}, NOW),
    ],
)
def test_the_next_run_is_kept_and_one_that_is_overdue_runs_once(
    goclaw: Shell,
    cron: JobControl,
    tmp_path: Path,
    last_run: dict[str, object] | None,
    next_run: datetime,
) -> None:
    """Without ``last-run.json`` the first run is the next regular one."""
    caco(tmp_path / "in", {}, last_run)
    goclaw("cron", "import", str(tmp_path / "in"))
    assert cron.one().next_run_at == next_run


@pytest.mark.parametrize(
    ("schedule", "read"),
    [
        ({"type": "interval", "intervalMinutes": 90}, Every(timedelta(minutes=90))),
        ({"type": "interval", "everyMs": 5_400_000}, Every(timedelta(minutes=90))),
        ({"type": "at", "at": "2026-05-01T09:00:00.000Z"}, At(datetime(2026, 5, 1, 9, tzinfo=UTC))),
    ],
)
def test_all_kinds_of_schedules_of_caco_are_known(
    goclaw: Shell, cron: JobControl, tmp_path: Path, schedule: dict[str, object], read: At | Every
) -> None:
    place = caco(tmp_path, {"schedule": {**schedule, "timezone": "Europe/Berlin"}})
    # The folder of one schedule, and its file, are as good as the folder of all.
    for path in (place, place / "definition.json"):
        assert goclaw("cron", "import", str(path)).code == 0
    assert (cron.one().spec.schedule, cron.one().spec.zone) == (read, "Europe/Berlin")


def test_a_fresh_session_and_a_schedule_that_is_off_stay_so(
    goclaw: Shell, cron: JobControl, tmp_path: Path
) -> None:
    caco(tmp_path / "in", {"enabled": False, "sessionConfig": {"persistSession": False}})
    goclaw("cron", "import", str(tmp_path / "in"))
    job = cron.one()
    assert (job.state, job.next_run_at) == (JobState.PAUSED, None)
    assert job.spec.policy == {"session": "fresh"}


def test_importing_twice_changes_nothing_twice(
    goclaw: Shell, cron: JobControl, tmp_path: Path
) -> None:
    caco(tmp_path / "in", {}, {**LAST_RUN, "nextRun": "2026-01-01T09:00:00Z"})
    (tmp_path / "in" / "coder.yaml").write_text(HERDCTL)
    command = ("cron", "import", str(tmp_path / "in"), "--agent", "main", "--json")
    assert set(results(goclaw(*command)).values()) == {"new"}
    before = cron.all()
    cron.clock.at += timedelta(minutes=1)
    got = goclaw(*command)
    assert (got.code, set(results(got).values())) == (0, {"unchanged"})
    assert cron.all() == before


def test_a_job_that_is_there_is_brought_up_to_its_file(
    goclaw: Shell, cron: JobControl, tmp_path: Path
) -> None:
    place = caco(tmp_path / "in", {})
    goclaw("cron", "import", str(tmp_path / "in"))
    # What the file does not say stays as it is.
    goclaw("cron", "edit", "daily-standup", "--to", "telegram:1", "--policy", "retries=0")
    text = json.dumps({**CACO, "prompt": "Shorter", "enabled": False})
    (place / "definition.json").write_text(text)
    got = goclaw("cron", "import", str(tmp_path / "in"))
    assert "updated: payload, paused" in got.out
    job = cron.one()
    assert (job.spec.payload, job.state) == (Prompt("Shorter", "claude-sonnet"), JobState.PAUSED)
    assert job.spec.target == Target("telegram", "default", "1")
    assert job.spec.policy == {"session": "job", "retries": 0}
    (place / "definition.json").write_text(json.dumps(CACO))
    assert "updated: payload, resumed" in goclaw("cron", "import", str(tmp_path / "in")).out
    assert cron.one().state is JobState.ACTIVE


# ---------------------------------------------------------------------------- herdctl


def test_schedules_of_herdctl_are_jobs(goclaw: Shell, cron: JobControl, tmp_path: Path) -> None:
    file = tmp_path / "coder.yaml"
    file.write_text(HERDCTL)
    assert goclaw("cron", "import", str(file)).code == 0
    jobs = cron.all()
    assert set(jobs) == {"coder-check-issues", "coder-nightly-build", "coder-idle"}
    issues, nightly = jobs["coder-check-issues"], jobs["coder-nightly-build"]
    assert issues.spec.schedule == Every(timedelta(minutes=5))
    assert (issues.spec.payload, issues.spec.source) == (Prompt("Look for issues"), "issues")
    assert (issues.spec.agent, issues.spec.name) == ("coder", "coder/check-issues")
    assert nightly.spec.schedule == Cron("0 2 * * *")
    assert nightly.spec.payload == Prompt("Execute scheduled task")
    assert jobs["coder-idle"].state is JobState.PAUSED


def test_a_fleet_may_have_its_agents_in_one_file(
    goclaw: Shell, cron: JobControl, tmp_path: Path
) -> None:
    schedules = {"poll": {"type": "interval", "interval": "1m"}}
    file = tmp_path / "fleet.yml"
    for agents in (
        [{"name": "a", "schedules": schedules}, {"path": "agents/b.yaml"}, 7],
        {"a": {"schedules": schedules}, "b": {}},
    ):
        file.write_text(json.dumps({"agents": agents}))
        assert goclaw("cron", "import", str(file)).code == 0
    assert set(cron.all()) == {"a-poll"}


def test_one_agent_can_take_all_jobs(goclaw: Shell, cron: JobControl, tmp_path: Path) -> None:
    cron.rules = JobCreationRules(
        cron.rules.profile, agents=(AgentName("main"),), sources=("issues",)
    )
    (tmp_path / "coder.yaml").write_text(HERDCTL)
    got = goclaw("cron", "import", str(tmp_path / "coder.yaml"))
    assert (got.code, cron.all()) == (1, {})
    assert got.err.count("there is no agent 'coder'; there are main") == 3
    assert goclaw("cron", "import", str(tmp_path / "coder.yaml"), "--agent", "main").code == 0


def test_what_no_schedule_of_herdctl_can_be_is_named_and_the_rest_imported(
    goclaw: Shell, cron: JobControl, tmp_path: Path
) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(
        """
name: a
schedules:
  hook: {type: webhook}
  slow: {type: interval, interval: 1.5h}
  bare: {type: interval}
  number: {type: interval, interval: 5}
  words: just words
  prompt: {type: interval, interval: 5m, prompt: [1]}
  source: {type: interval, interval: 5m, work_source: [1]}
  half: {type: interval, interval: 5m, prompt: "\\ud800"}
  good: {type: interval, interval: 5m}
"""
    )
    got = goclaw("cron", "import", str(file))
    assert (got.code, set(cron.all())) == (1, {"a-good"})
    said = got.err.splitlines()
    names = ["half", "hook", "slow", "bare", "number", "words", "prompt", "source"]
    assert [line.split("a/")[-1].split(":")[0] for line in said] == names
    assert said[0].endswith("prompt: must not contain half of a surrogate pair")
    assert said[1].endswith("type: must be interval or cron; other types do not run at times")


# ---------------------------------------------------------------------------- ours


def test_what_is_exported_can_be_imported_elsewhere(
    goclaw: Shell, cron: JobControl, tmp_path: Path
) -> None:
    hour = Every(timedelta(hours=1))
    cron.make(
        JobDraft(
            hour,
            Program(("ls", "-l")),
            slug="ls",
            name="List",
            target=Target("telegram", "work", "-1", "7"),
            policy={"retries": 0, "backoff_s": [30, 60], "usd": "0.25", "session": "key"},
            session="team",
            max_runs=7,
            not_after=datetime(2027, 1, 1, tzinfo=UTC),
            wake_heartbeat=True,
            source="",
        )
    )
    cron.make(JobDraft(hour, FixedMessage("hi"), slug="hi", target=TargetKind.NONE, paused=True))
    cron.make(JobDraft(hour, Prompt("x"), slug="hi"), ANN)
    cron.make(JobDraft(At(NOW + timedelta(hours=1)), Prompt("x"), slug="over"))
    cron.stand("over", JobState.COMPLETED)
    got = goclaw("cron", "export", str(tmp_path / "jobs.json"))
    assert (got.code, got.out) == (0, "")
    assert got.err == "exported 3 jobs; left out 1 finished job\n"

    cron.store = MemoryStore()
    got = goclaw("cron", "import", str(tmp_path / "jobs.json"), "--json")
    assert (got.code, [one["result"] for one in json.loads(got.out)]) == (0, ["new"] * 3)
    again = goclaw("cron", "import", str(tmp_path / "jobs.json"), "--json")
    assert {one["result"] for one in json.loads(again.out)} == {"unchanged"}
    second = goclaw("cron", "export").out
    assert json.loads(second) == json.loads((tmp_path / "jobs.json").read_text())
    by_owner = {(job.owner, job.spec.slug): job for job in cron.stored()}
    assert by_owner[Owner("telegram:direct:5"), "hi"].maker is Maker.MODEL
    assert by_owner[Owner("operator"), "hi"].state is JobState.PAUSED


def test_a_file_of_ours_decides_everything(goclaw: Shell, cron: JobControl, tmp_path: Path) -> None:
    cron.make(JobDraft(Every(timedelta(hours=1)), Prompt("x"), slug="a"))
    file = tmp_path / "jobs.json"
    goclaw("cron", "export", str(file))
    goclaw("cron", "edit", "a", "--max-runs", "3", "--policy", "retries=0", "--to", "none")
    got = goclaw("cron", "import", str(file), "--json")
    (one,) = json.loads(got.out)
    assert (one["result"], set(one["changed"])) == ("updated", {"max_runs", "policy", "target"})
    spec = cron.one().spec
    assert (spec.max_runs, spec.policy, spec.target) == (None, {}, TargetKind.LAST)


def test_the_jobs_of_one_owner_are_exported(goclaw: Shell, cron: JobControl) -> None:
    for by in (ANN, OPERATOR):
        cron.make(JobDraft(Every(timedelta(hours=1)), Prompt("x"), slug="a"), by)
    got = goclaw("cron", "export", "--owner", "operator")
    assert [one["owner"] for one in json.loads(got.out)] == ["operator"]
    assert got.err == "exported 1 job\n"


def test_where_the_grid_of_an_interval_begins_is_no_change(
    goclaw: Shell, cron: JobControl, tmp_path: Path
) -> None:
    """It is decided when the job is made, and no other file knows it."""
    cron.rules = JobCreationRules(PROFILES["halo"])
    schedule = {"type": "interval", "intervalMinutes": 60}
    caco(tmp_path / "in", {"schedule": schedule})
    goclaw("cron", "import", str(tmp_path / "in"))
    cron.clock.at += timedelta(minutes=7)
    assert "unchanged" in goclaw("cron", "import", str(tmp_path / "in")).out


# ---------------------------------------------------------------------------- dry runs


def test_a_dry_run_says_what_would_be_made_and_makes_nothing(
    goclaw: Shell, cron: JobControl, tmp_path: Path
) -> None:
    caco(tmp_path / "in", {})
    caco(tmp_path / "in", {"slug": "bad", "schedule": {"type": "cron", "expression": "x"}})
    got = goclaw("cron", "import", "--dry-run", str(tmp_path / "in"))
    assert (got.code, cron.all()) == (1, {})
    head, row = (" ".join(line.split()) for line in got.out.splitlines())
    assert head == "JOB RESULT (DRY RUN) NEXT RUN FROM"
    assert row.startswith("daily-standup new Mon 2026-01-05 09:00:00 ")
    assert got.err.count("\n") == 1
    assert "invalid cron expression 'x'" in got.err

    goclaw("cron", "import", str(tmp_path / "in"))
    before = cron.one()
    changed = {**CACO, "prompt": "other"}
    (tmp_path / "in" / "daily-standup" / "definition.json").write_text(json.dumps(changed))
    got = goclaw("cron", "import", "--dry-run", str(tmp_path / "in"))
    assert "updated: payload" in got.out
    assert cron.one() == before


# ---------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"slug": "../../etc"}, "slug: must be 1 to 64 of"),
        ({"slug": 7}, "slug: must be a string"),
        ({"prompt": ""}, "prompt: must not be empty"),
        ({"prompt": None}, "prompt: is required"),
        ({"prompt": "a\0b"}, "prompt: must not contain NUL characters"),
        ({"prompt": "x" * 1_000_000}, "prompt: may have at most 100,000 characters"),
        ({"schedule": None}, "schedule: must be an object"),
        (
            {"schedule": {"type": "webhook"}},
            "must have a type, and an expression, intervalMinutes or at",
        ),
        (
            {"schedule": {"type": "cron"}},
            "must have a type, and an expression, intervalMinutes or at",
        ),
        ({"schedule": {"type": "interval"}}, "an interval must be a number"),
        ({"schedule": {"type": "interval", "intervalMinutes": True}}, "must be a number"),
        ({"schedule": {"type": "interval", "intervalMinutes": 0}}, "interval"),
        ({"schedule": {"type": "interval", "intervalMinutes": -5}}, "interval"),
        ({"schedule": {"type": "interval", "intervalMinutes": 1e30}}, "too long"),
        ({"schedule": {"type": "at", "at": "2020-01-01T00:00:00Z"}}, "2020"),
        ({"schedule": {"type": "at", "at": "soon"}}, "soon"),
        (
            {"schedule": {"type": "at"}},
            "must have a type, and an expression, intervalMinutes or at",
        ),
        (
            {"schedule": {"type": "cron", "expression": "0 9 * * *", "timezone": "Mars"}},
            "unknown time zone 'Mars'",
        ),
        ({"sessionConfig": []}, ""),
        ({"sessionConfig": "x"}, "sessionConfig: must be an object"),
        ({"sessionConfig": {"model": 7}}, "model: must be a string"),
    ],
)
def test_a_wrong_definition_is_named_in_one_line_and_the_rest_imported(
    goclaw: Shell, cron: JobControl, tmp_path: Path, changes: dict[str, object], words: str
) -> None:
    caco(tmp_path / "in", {"slug": "bad", **changes})
    caco(tmp_path / "in", {"slug": "good"})
    got = goclaw("cron", "import", str(tmp_path / "in"))
    if not words:
        assert (got.code, set(cron.all())) == (0, {"bad", "good"})
        return
    assert (got.code, set(cron.all())) == (1, {"good"})
    assert got.err.startswith(f"goclaw: {tmp_path / 'in'}")
    assert got.err.count("\n") == 1
    assert words in got.err


@pytest.mark.parametrize("next_run", [7, "soon", "2026-01-02T09:00:00", {}])
def test_a_last_run_that_cannot_be_read_is_not_passed_over(
    goclaw: Shell, cron: JobControl, tmp_path: Path, next_run: object
) -> None:
    """Else a run that is overdue would be lost without a word."""
    caco(tmp_path / "in", {}, {"nextRun": next_run})
    got = goclaw("cron", "import", str(tmp_path / "in"))
    assert (got.code, cron.all()) == (1, {})
    assert "last-run.json" in got.err


@pytest.mark.parametrize(
    ("name", "raw", "words"),
    [
        ("a.json", b"{", "the file is not valid JSON"),
        ("crontab", b"# m h\nSHELL=/bin/sh\n0 9 * * mon-fri /usr/bin/true\n", "this is a crontab"),
        ("crontab", b"@daily backup\n", "goclaw cron add NAME"),
        ("a.json", b"7", "file: must be an object"),
        ("a.json", b"{}", "prompt: is required"),
        ("a.json", b"[7]", "job 1: job: must be an object"),
        ("a.json", b'[{"payload": 1}]', "slug: is required"),
        ("a.json", b'{"payload": {}, "owner": ""}', "owner: must be a string"),
        ("a.json", b'{"payload": {}, "maker": "god"}', "maker: must be one of operator"),
        ("a.json", b"[" * 100_000, "the file is not valid JSON"),
        ("a.yaml", b"\xff", "the file is not valid UTF-8"),
        ("a.yaml", b"", "the file contains no schedules"),
        ("a.yaml", b"agents: 7", "the file contains no schedules"),
        ("a.yaml", b"a: [", "the file is not valid YAML"),
        ("a.yaml", b"a: \x01", "the file is not valid YAML"),
        ("a.yaml", b"a: !!python/object/apply:os.system [id]", "the file is not valid YAML"),
        ("a.yaml", b"a: !!int " + b"9" * 5000, "the file is not valid YAML"),
        ("a.yaml", b"a: 2026-13-45", "the file is not valid YAML"),
        ("a.yaml", b"[" * 10_000, "the file is nested too deeply"),
        ("a.yaml", b"? [1]\n: 2", "the file is not valid YAML"),
        ("a.yaml", b"schedules: 7", "schedules: must map names to schedules"),
    ],
)
def test_a_file_that_is_none_of_these_is_one_line(
    goclaw: Shell, cron: JobControl, tmp_path: Path, name: str, raw: bytes, words: str
) -> None:
    (tmp_path / name).write_bytes(raw)
    got = goclaw("cron", "import", str(tmp_path / name))
    assert (got.code, cron.all()) == (1, {})
    assert got.err.startswith(f"goclaw: {tmp_path / name}")
    assert words in got.err
    assert got.err.count("\n") == 1


def test_aliases_that_stand_for_aliases_are_refused(
    goclaw: Shell, cron: JobControl, tmp_path: Path
) -> None:
    """A few hundred bytes may stand for more than any memory holds."""
    levels = ["a0: &a0 {x: 1}"]
    levels += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 12)]
    (tmp_path / "bomb.yaml").write_text("\n".join(levels))
    got = goclaw("cron", "import", str(tmp_path / "bomb.yaml"))
    assert (got.code, "too many aliases" in got.err) == (1, True)


def test_a_few_aliases_are_read() -> None:
    assert cron_files.read_yaml("a: &a {x: 1}\nb: *a") == {"a": {"x": 1}, "b": {"x": 1}}


def test_a_file_without_bounds_is_not_read(
    goclaw: Shell, cron: JobControl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cron_files, "MAX_JSON_BYTES", 2048)
    monkeypatch.setattr(cron_files, "MAX_YAML_BYTES", 2048)
    for name in ("a.json", "a.yaml"):
        (tmp_path / name).write_bytes(b" " * 2049)
        got = goclaw("cron", "import", str(tmp_path / name))
        assert (got.code, "the file is larger than 2 KiB" in got.err) == (1, True)


def test_what_is_not_there_is_one_line_each(
    goclaw: Shell, cron: JobControl, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    paths = [str(tmp_path / name) for name in ("nothing.json", "nothing.yaml", "empty")]
    got = goclaw("cron", "import", *paths)
    assert got.code == 1
    assert [line.rpartition(": ")[2] for line in got.err.splitlines()] == [
        "No such file or directory",
        "No such file or directory",
        "the folder contains no job definitions",
    ]


def test_state_and_hidden_folders_are_no_jobs(
    goclaw: Shell, cron: JobControl, tmp_path: Path
) -> None:
    hidden = tmp_path / "in" / ".herdctl"
    hidden.mkdir(parents=True)
    (hidden / "state.yaml").write_text(HERDCTL)
    (tmp_path / "in" / "compose.yaml").write_text("services: {}")
    caco(tmp_path / "in", {}, LAST_RUN)
    assert goclaw("cron", "import", str(tmp_path / "in")).code == 0
    assert set(cron.all()) == {"daily-standup"}


def test_two_of_one_name_are_not_made_one(goclaw: Shell, cron: JobControl, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        caco(tmp_path / folder, {"prompt": folder})
    got = goclaw("cron", "import", str(tmp_path / "one"), str(tmp_path / "two"))
    assert got.code == 1
    assert "daily-standup appears twice in this import" in got.err
    assert cron.one().spec.payload == Prompt("one", "claude-sonnet")


def test_an_import_never_touches_the_jobs_of_others(
    goclaw: Shell, cron: JobControl, tmp_path: Path
) -> None:
    """SPEC SEC-3."""
    hers = cron.make(JobDraft(Every(timedelta(hours=1)), Prompt("x"), slug="daily-standup"), ANN)
    caco(tmp_path / "in", {})
    assert results(goclaw("cron", "import", str(tmp_path / "in"), "--json")) == {
        "daily-standup": "new"
    }
    assert hers in cron.stored()


def test_an_export_that_cannot_be_written_is_one_line(
    goclaw: Shell, cron: JobControl, tmp_path: Path
) -> None:
    got = goclaw("cron", "export", str(tmp_path / "no" / "jobs.json"))
    assert (got.code, got.err.count("\n")) == (1, 1)
