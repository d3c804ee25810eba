"""``goclaw jobs import`` and ``export``: jobs from and to files (SPEC SEC-3)."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from goclaw_py.cli.exits import ExitCode
from goclaw_py.core.ids import AgentName, Owner
from goclaw_py.core.messages import Target
from goclaw_py.core.targets import Maker
from goclaw_py.operations.jobs.command import files as cron_files
from goclaw_py.operations.jobs.models import JobDraft
from goclaw_py.schedule.jobs.creation import JobCreationRules
from goclaw_py.schedule.jobs.models import FixedMessage, JobState, Program, Prompt, TargetKind
from goclaw_py.schedule.jobs.policy import PROFILES
from goclaw_py.schedule.jobs.schedule import At, Cron, Every
from tests.support.memory_store import MemoryStore
from tests.unit.cli.conftest import Done, Shell, lines
from tests.unit.cli.job_control import ANN, NOW, OPERATOR, JobControl

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


class Files:
    """A folder of files to import."""

    def __init__(self, goclaw: Shell, folder: Path) -> None:
        self._goclaw = goclaw
        self.folder = folder

    def caco(self, last_run: object = None, /, **changes: object) -> Path:
        """Write a schedule of caco into a folder of its own."""
        definition = {**CACO, **changes}
        place = self.folder / str(definition["slug"]).strip("./")
        place.mkdir(parents=True, exist_ok=True)
        (place / "definition.json").write_text(json.dumps(definition))
        if last_run is not None:
            (place / "last-run.json").write_text(json.dumps(last_run))
        return place

    def write(self, name: str, text: str | bytes) -> Path:
        self.folder.mkdir(exist_ok=True)
        path = self.folder / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def load(self, *options: str | Path) -> Done:
        """Import this folder, or what is named."""
        words = [str(option) for option in options]
        paths = [] if words and not words[0].startswith("--") else [str(self.folder)]
        return self._goclaw("cron", "import", *paths, *words)


@pytest.fixture
def files(goclaw: Shell, tmp_path: Path) -> Files:
    return Files(goclaw, tmp_path / "in")


def results(done: Done) -> dict[str, str]:
    """The results of an import by their slugs."""
    return {one["slug"]: one["result"] for one in json.loads(done.out)}


# ---------------------------------------------------------------------------- caco


def test_a_schedule_of_caco_is_a_job(files: Files, cron: JobControl) -> None:
    files.caco(LAST_RUN)
    got = files.load()
    assert (got.code, got.err) == (0, "")
    job = cron.one()
    assert (job.spec.slug, job.spec.schedule) == ("daily-standup", Cron("0 9 * * 1-5"))
    assert (job.spec.zone, job.state) == ("UTC", JobState.ACTIVE)
    assert job.spec.payload == Prompt(str(CACO["prompt"]), "claude-sonnet")
    assert job.spec.policy == {"session": "job"}


@pytest.mark.parametrize(("last_run", "next_run"), [
    (LAST_RUN, datetime(2026, 1, 6, 9, tzinfo=UTC)),
    (None, datetime(2026, 1, 5, 9, tzinfo=UTC)),
    ({**LAST_RUN, "nextRun": None}, datetime(2026, 1, 5, 9, tzinfo=UTC)),
    ({**LAST_RUN, "nextRun": "2026-01-01T09:00:00Z"}, NOW),
])  # fmt: skip
def test_the_next_run_is_kept_and_one_that_is_overdue_runs_once(
    files: Files, cron: JobControl, last_run: dict[str, object] | None, next_run: datetime
) -> None:
    """Without ``last-run.json`` the first run is the next regular one."""
    files.caco(last_run)
    files.load()
    assert cron.one().next_run_at == next_run


@pytest.mark.parametrize(("schedule", "read"), [
    ({"type": "interval", "intervalMinutes": 90}, Every(timedelta(minutes=90))),
    ({"type": "interval", "everyMs": 5_400_000}, Every(timedelta(minutes=90))),
    ({"type": "at", "at": "2026-05-01T09:00:00.000Z"}, At(datetime(2026, 5, 1, 9, tzinfo=UTC))),
])  # fmt: skip
def test_all_kinds_of_schedules_of_caco_are_known(
    files: Files, cron: JobControl, schedule: dict[str, object], read: At | Every
) -> None:
    place = files.caco(schedule={**schedule, "timezone": "Europe/Berlin"})
    # The folder of one schedule, and its file, are as good as the folder of all.
    for path in (place, place / "definition.json"):
        assert files.load(path).code == 0
    assert (cron.one().spec.schedule, cron.one().spec.zone) == (read, "Europe/Berlin")


def test_a_fresh_session_and_a_schedule_that_is_off_stay_so(files: Files, cron: JobControl) -> None:
    files.caco(enabled=False, sessionConfig={"persistSession": False})
    files.load()
    job = cron.one()
    assert (job.state, job.next_run_at) == (JobState.PAUSED, None)
    assert job.spec.policy == {"session": "fresh"}


def test_importing_twice_changes_nothing_twice(files: Files, cron: JobControl) -> None:
    files.caco({**LAST_RUN, "nextRun": "2026-01-01T09:00:00Z"})
    files.write("coder.yaml", HERDCTL)
    assert set(results(files.load("--agent", "main", "--json")).values()) == {"new"}
    before = cron.all()
    cron.clock.at += timedelta(minutes=1)
    got = files.load("--agent", "main", "--json")
    assert (got.code, set(results(got).values())) == (0, {"unchanged"})
    assert cron.all() == before


def test_a_job_follows_its_file(goclaw: Shell, files: Files, cron: JobControl) -> None:
    files.caco()
    files.load()
    # What the file does not say stays as it is.
    goclaw("jobs", "edit", "daily-standup", "--to", "telegram:1", "--policy", "retries=0")
    files.caco(prompt="Shorter", enabled=False)
    assert "updated: payload, paused" in files.load().out
    job = cron.one()
    assert (job.spec.payload, job.state) == (Prompt("Shorter", "claude-sonnet"), JobState.PAUSED)
    assert job.spec.target == Target("telegram", "default", "1")
    assert job.spec.policy == {"session": "job", "retries": 0}
    files.caco()
    assert "updated: payload, resumed" in files.load().out
    assert cron.one().state is JobState.ACTIVE


# ---------------------------------------------------------------------------- herdctl


def test_schedules_of_herdctl_are_jobs(files: Files, cron: JobControl) -> None:
    assert files.load(files.write("coder.yaml", HERDCTL)).code == 0
    jobs = cron.all()
    assert set(jobs) == {"coder-check-issues", "coder-nightly-build", "coder-idle"}
    issues, nightly = jobs["coder-check-issues"], jobs["coder-nightly-build"]
    assert issues.spec.schedule == Every(timedelta(minutes=5))
    assert (issues.spec.payload, issues.spec.source) == (Prompt("Look for issues"), "issues")
    assert (issues.spec.agent, issues.spec.name) == ("coder", "coder/check-issues")
    assert nightly.spec.schedule == Cron("0 2 * * *")
    assert nightly.spec.payload == Prompt("Execute scheduled task")
    assert jobs["coder-idle"].state is JobState.PAUSED


def test_a_fleet_may_have_its_agents_in_one_file(files: Files, cron: JobControl) -> None:
    schedules = {"poll": {"type": "interval", "interval": "1m"}}
    for agents in (
        [{"name": "a", "schedules": schedules}, {"path": "agents/b.yaml"}, 7],
        {"a": {"schedules": schedules}, "b": {}},
    ):
        assert files.load(files.write("fleet.yml", json.dumps({"agents": agents}))).code == 0
    assert set(cron.all()) == {"a-poll"}


@pytest.mark.parametrize(("fleet", "agent", "policy", "problem"), [
    ({}, {"instances": {"max_concurrent": 2}}, {"max_per_agent": 2}, ""),
    ({}, {"instances": {}}, {}, ""),
    ({}, {"instances": None}, {}, ""),
    ({"defaults": {"instances": {"max_concurrent": 3}}}, {}, {"max_per_agent": 3}, ""),
    ({"defaults": {"instances": {"max_concurrent": 3}}}, {"instances": {"max_concurrent": 1}},
     {"max_per_agent": 1}, ""),
    ({}, {"instances": 2}, None, "a: instances: must be a section, such as max_concurrent: 2"),
    ({}, {"instances": {"max_concurrent": "two"}}, None,
     "a: instances.max_concurrent: must be a whole number from 1 to 10000"),
    ({"defaults": {"instances": {"max_concurrent": 0}}}, {}, None,
     "a: defaults.instances.max_concurrent: must be a whole number from 1 to 10000"),
])  # fmt: skip
def test_how_many_jobs_of_an_agent_run_at_once_is_imported(
    files: Files,
    cron: JobControl,
    fleet: dict[str, object],
    agent: dict[str, object],
    policy: dict[str, object] | None,
    problem: str,
) -> None:
    """``instances.max_concurrent`` is the policy ``max_per_agent``."""
    one = {"name": "a", "schedules": {"poll": {"type": "interval", "interval": "1m"}}, **agent}
    for document in ({**fleet, "agents": [one]}, {**fleet, **one}):
        got = files.load(files.write("fleet.yml", json.dumps(document)))
        assert (got.code, problem in got.err) == (0 if policy is not None else 1, True)
        assert [job.spec.policy for job in cron.all().values()] == [policy] * (policy is not None)


def test_one_agent_can_take_all_jobs(files: Files, cron: JobControl) -> None:
    main = (AgentName("main"),)
    cron.rules = JobCreationRules(cron.rules.profile, agents=main, sources=("issues",))
    file = files.write("coder.yaml", HERDCTL)
    got = files.load(file)
    assert (got.code, cron.all()) == (1, {})
    assert got.err.count("there is no agent 'coder'; there is only main") == 3
    assert files.load(file, "--agent", "main").code == 0


BAD_HERDCTL = """
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


def test_wrong_schedules_are_named_and_the_rest_imported(files: Files, cron: JobControl) -> None:
    got = files.load(files.write("a.yaml", BAD_HERDCTL))
    assert (got.code, set(cron.all())) == (1, {"a-good"})
    said = got.err.splitlines()
    names = ["half", "hook", "slow", "bare", "number", "words", "prompt", "source"]
    assert [line.split("a/")[-1].split(":")[0] for line in said] == names
    assert said[0].endswith("prompt: must not contain half of a surrogate pair")
    assert said[1].endswith("type: must be interval or cron; other types do not run at times")


# ---------------------------------------------------------------------------- ours


def test_an_export_can_be_imported(goclaw: Shell, cron: JobControl, tmp_path: Path) -> None:
    hour = Every(timedelta(hours=1))
    cron.make(
        JobDraft(
            hour,
            Program(("ls", "-l")),
            slug="ls",
            name="List",
            target=Target("telegram", "work", "-1", "7"),
            policy={"retries": 0, "backoff": [30, 60], "usd": "0.25", "session": "key"},
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
    file = tmp_path / "jobs.json"
    got = goclaw("jobs", "export", str(file))
    assert got == Done(0, "", f"exported 3 jobs to the file {file}; left out 1 finished job\n")

    cron.store = MemoryStore()
    got = goclaw("jobs", "import", str(tmp_path / "jobs.json"), "--json")
    assert (got.code, [one["result"] for one in json.loads(got.out)]) == (0, ["new"] * 3)
    again = goclaw("jobs", "import", str(tmp_path / "jobs.json"), "--json")
    assert {one["result"] for one in json.loads(again.out)} == {"unchanged"}
    second = goclaw("jobs", "export").out
    assert json.loads(second) == json.loads((tmp_path / "jobs.json").read_text())
    by_owner = {(job.owner, job.spec.slug): job for job in cron.stored()}
    assert by_owner[Owner("telegram:direct:5"), "hi"].maker is Maker.MODEL
    assert by_owner[Owner("operator"), "hi"].state is JobState.PAUSED


def test_an_export_replaces_no_file(
    goclaw: Shell, cron: JobControl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody may mean a job by FILE, and an older export may be the only one."""
    cron.make(JobDraft(Every(timedelta(hours=1)), Prompt("x"), slug="tea"))
    monkeypatch.chdir(tmp_path)
    got = goclaw("jobs", "export", "tea")
    assert "note: tea is a file now; to show the job: goclaw jobs show tea\n" in got.err
    text = Path("tea").read_text("utf-8")
    got = goclaw("jobs", "export", "tea", "--owner", "nobody")
    assert got.code == ExitCode.FAILED
    assert "tea: the file already exists; choose another name, or delete it" in got.err
    assert Path("tea").read_text("utf-8") == text
    # A device is there already, and loses nothing.
    assert goclaw("jobs", "export", "/dev/null").code == 0


def test_a_file_of_ours_decides_everything(goclaw: Shell, cron: JobControl, tmp_path: Path) -> None:
    cron.make(JobDraft(Every(timedelta(hours=1)), Prompt("x"), slug="a"))
    file = tmp_path / "jobs.json"
    goclaw("jobs", "export", str(file))
    goclaw("jobs", "edit", "a", "--max-runs", "3", "--policy", "retries=0", "--to", "none")
    got = goclaw("jobs", "import", str(file), "--json")
    (one,) = json.loads(got.out)
    assert (one["result"], set(one["changed"])) == ("updated", {"max_runs", "policy", "target"})
    spec = cron.one().spec
    assert (spec.max_runs, spec.policy, spec.target) == (None, {}, TargetKind.LAST)


def test_the_jobs_of_one_owner_are_exported(goclaw: Shell, cron: JobControl) -> None:
    for by in (ANN, OPERATOR):
        cron.make(JobDraft(Every(timedelta(hours=1)), Prompt("x"), slug="a"), by)
    got = goclaw("jobs", "export", "--owner", "operator")
    assert [one["owner"] for one in json.loads(got.out)] == ["operator"]
    assert got.err == "exported 1 job\n"


def test_where_the_grid_of_an_interval_begins_is_no_change(files: Files, cron: JobControl) -> None:
    """It is decided when the job is made, and no other file knows it."""
    cron.rules = JobCreationRules(PROFILES["halo"])
    files.caco(schedule={"type": "interval", "intervalMinutes": 60})
    files.load()
    cron.clock.at += timedelta(minutes=7)
    assert "unchanged" in files.load().out


# ---------------------------------------------------------------------------- dry runs


def test_a_dry_run_makes_nothing(files: Files, cron: JobControl) -> None:
    files.caco()
    files.caco(slug="bad", schedule={"type": "cron", "expression": "x"})
    got = files.load("--dry-run")
    assert (got.code, cron.all()) == (1, {})
    head, row = lines(got.out)
    assert head == "JOB RESULT (DRY RUN) NEXT RUN FROM"
    assert row.startswith("daily-standup new Mon 2026-01-05 09:00:00 ")
    assert got.err.count("\n") == 1
    assert "invalid cron expression 'x'" in got.err

    files.load()
    before = cron.one()
    files.caco(prompt="other")
    assert "updated: payload" in files.load("--dry-run").out
    assert cron.one() == before


# ---------------------------------------------------------------------------- bad input

NO_SCHEDULE = "must have a type, and an expression, intervalMinutes or at"


@pytest.mark.parametrize(("changes", "words"), [
    ({"slug": "../../etc"}, "slug: must be 1 to 64 of"),
    ({"slug": 7}, "slug: must be a string"),
    ({"prompt": ""}, "prompt: must not be empty"),
    ({"prompt": None}, "prompt: is required"),
    ({"prompt": "a\0b"}, "prompt: must not contain NUL characters"),
    ({"prompt": "x" * 1_000_000}, "prompt: may have at most 100,000 characters"),
    ({"schedule": None}, "schedule: must be an object"),
    ({"schedule": {"type": "webhook"}}, NO_SCHEDULE),
    ({"schedule": {"type": "cron"}}, NO_SCHEDULE),
    ({"schedule": {"type": "interval"}}, "an interval must be a number"),
    ({"schedule": {"type": "interval", "intervalMinutes": True}}, "must be a number"),
    ({"schedule": {"type": "interval", "intervalMinutes": 0}}, "interval"),
    ({"schedule": {"type": "interval", "intervalMinutes": -5}}, "interval"),
    ({"schedule": {"type": "interval", "intervalMinutes": 1e30}}, "too long"),
    ({"schedule": {"type": "at", "at": "2020-01-01T00:00:00Z"}}, "2020"),
    ({"schedule": {"type": "at", "at": "soon"}}, "soon"),
    ({"schedule": {"type": "at"}}, NO_SCHEDULE),
    (
        {"schedule": {"type": "cron", "expression": "0 9 * * *", "timezone": "Mars"}},
        "unknown time zone 'Mars'",
    ),
    ({"sessionConfig": []}, ""),
    ({"sessionConfig": "x"}, "sessionConfig: must be an object"),
    ({"sessionConfig": {"model": 7}}, "model: must be a string"),
])  # fmt: skip
def test_a_wrong_definition_is_named_in_one_line_and_the_rest_imported(
    files: Files, cron: JobControl, changes: dict[str, object], words: str
) -> None:
    files.caco(**{"slug": "bad", **changes})
    files.caco(slug="good")
    got = files.load()
    if not words:
        assert (got.code, set(cron.all())) == (0, {"bad", "good"})
        return
    assert (got.code, set(cron.all())) == (1, {"good"})
    assert got.err.startswith(f"goclaw: {files.folder}")
    assert got.err.count("\n") == 1
    assert words in got.err


@pytest.mark.parametrize("next_run", [7, "soon", "2026-01-02T09:00:00", {}])
def test_an_unreadable_last_run_is_told(files: Files, cron: JobControl, next_run: object) -> None:
    """Else a run that is overdue would be lost without a word."""
    files.caco({"nextRun": next_run})
    got = files.load()
    assert (got.code, cron.all()) == (1, {})
    assert "last-run.json" in got.err


@pytest.mark.parametrize(("name", "raw", "words"), [
    ("a.json", b"{", "the file is not valid JSON"),
    ("crontab", b"# m h\nSHELL=/bin/sh\n0 9 * * mon-fri /usr/bin/true\n", "this is a crontab"),
    ("crontab", b"@daily backup\n", "goclaw jobs add NAME"),
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
])  # fmt: skip
def test_a_wrong_file(files: Files, cron: JobControl, name: str, raw: bytes, words: str) -> None:
    file = files.write(name, raw)
    got = files.load(file)
    assert (got.code, cron.all()) == (1, {})
    assert got.err.startswith(f"goclaw: {file}")
    assert words in got.err
    assert got.err.count("\n") == 1


def test_too_much_is_not_read(
    files: Files, cron: JobControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few hundred bytes may stand for more than any memory holds."""
    levels = ["a0: &a0 {x: 1}"]
    levels += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 12)]
    got = files.load(files.write("bomb.yaml", "\n".join(levels)))
    assert (got.code, "too many aliases" in got.err) == (1, True)
    assert cron_files.read_yaml("a: &a {x: 1}\nb: *a") == {"a": {"x": 1}, "b": {"x": 1}}
    monkeypatch.setattr(cron_files, "MAX_JSON_BYTES", 2048)
    monkeypatch.setattr(cron_files, "MAX_YAML_BYTES", 2048)
    for name in ("a.json", "a.yaml"):
        got = files.load(files.write(name, b" " * 2049))
        assert (got.code, "the file is larger than 2 KiB" in got.err) == (1, True)


def test_missing_files(goclaw: Shell, files: Files, cron: JobControl, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    got = files.load(*(tmp_path / name for name in ("nothing.json", "nothing.yaml", "empty")))
    assert got.code == 1
    assert [line.rpartition(": ")[2] for line in got.err.splitlines()] == [
        *["No such file or directory"] * 2,
        "the folder contains no job definitions",
    ]
    got = goclaw("jobs", "export", str(tmp_path / "no" / "jobs.json"))
    assert (got.code, got.err.count("\n")) == (1, 1)


def test_state_and_hidden_folders_are_no_jobs(files: Files, cron: JobControl) -> None:
    files.write("compose.yaml", "services: {}")
    (files.folder / ".herdctl").mkdir()
    files.write(".herdctl/state.yaml", HERDCTL)
    files.caco(LAST_RUN)
    assert files.load().code == 0
    assert set(cron.all()) == {"daily-standup"}


def test_two_of_one_name_are_not_made_one(goclaw: Shell, cron: JobControl, tmp_path: Path) -> None:
    both = [Files(goclaw, tmp_path / name) for name in ("one", "two")]
    for each in both:
        each.caco(prompt=each.folder.name)
    got = both[0].load(*(each.folder for each in both))
    assert got.code == 1
    assert "daily-standup appears twice in this import" in got.err
    assert cron.one().spec.payload == Prompt("one", "claude-sonnet")


def test_an_import_never_touches_the_jobs_of_others(files: Files, cron: JobControl) -> None:
    hers = cron.make(JobDraft(Every(timedelta(hours=1)), Prompt("x"), slug="daily-standup"), ANN)
    files.caco()
    assert results(files.load("--json")) == {"daily-standup": "new"}
    assert hers in cron.stored()


def test_an_export_can_come_from_a_pipe(
    goclaw: Shell, cron: JobControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    cron.make(JobDraft(Every(timedelta(hours=1)), Prompt("x"), slug="a"))
    exported = goclaw("jobs", "export").out
    goclaw("jobs", "delete", "a", "--yes")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(exported.encode())))
    assert goclaw("jobs", "import", "-").code == 0
    assert cron.one().spec.slug == "a"
