"""``goclaw simulate``: what jobs and heartbeats will do (SPEC OPS-6).

As a table, a plot, a page and for programs. It is a Friday, 12:00 UTC.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from goclaw_py.cli.exits import ExitCode
from goclaw_py.cli.simulate import known as command
from goclaw_py.core.ids import MAIN_AGENT
from goclaw_py.operations.jobs.models import JobDraft
from goclaw_py.schedule import forecast
from goclaw_py.schedule.jobs.models import FixedMessage, Prompt
from goclaw_py.schedule.jobs.schedule import Cron, Every
from tests.unit.cli.conftest import Shell, ThreadGateway, give, lines
from tests.unit.cli.heartbeat_control import HeartbeatControl
from tests.unit.cli.job_control import JobControl

STANDUP = JobDraft(Cron("0 9 * * 1-5"), Prompt("news?"), slug="standup", zone="Europe/Berlin")
POLL = JobDraft(Every(timedelta(hours=6)), Prompt("poll"), slug="poll")
GREETING = JobDraft(Cron("0 8 * * *"), FixedMessage("Hello!"), slug="greeting")
EVIL = '<script src="https://evil.example/x.js">alert(1)</script> & "co"'


@pytest.fixture(autouse=True)
def _no_heartbeat_runs(home: Path) -> None:
    (home / "goclaw.toml").write_text("[heartbeat]\nenabled = false\n", "utf-8")


@pytest.fixture
def jobs(cron: JobControl) -> JobControl:
    for draft in (STANDUP, POLL, GREETING, replace(POLL, slug="paused", paused=True)):
        cron.make(draft)
    return cron


def test_what_comes_is_shown_in_a_table_and_a_plot(goclaw: Shell, jobs: JobControl) -> None:
    """SPEC OPS-6. It is a Friday, 12:00 UTC; a week has five more working days."""
    got = goclaw("simulate", "--days", "7", "--seconds", "60", "--usd", "0.10")
    assert (got.code, got.err) == (0, "")
    head, *rows = lines(got.out)
    assert head == "JOB STATE RUNS COALESCED SKIPPED MODEL REQUESTS USD LONGEST DELAY"
    assert rows[:4] == [
        # Each six hours and a minute, but the last one would end a moment too late.
        "poll active 27 0 27 2.70 +0 s",
        "greeting active 7 0 0 +0 s",
        "standup active 5 0 5 0.5000 +0 s",
        "paused paused 0 0 0",
    ]
    assert rows[5:7] == ["AGENT HEARTBEAT RUNS MODEL REQUESTS SKIPPED USD", "main off 0"]
    assert rows[8].endswith(": 32 model requests, about $3.20 where costs are known")
    plot = got.out.splitlines()[11:]
    assert [line.split()[0] for line in plot] == ["poll", "greeting", "standup", "one"]
    bars = [line.partition("  ")[2].strip() for line in plot[:3]]
    assert {len(line) for line in bars} == {60}
    assert [sum(sign != "·" for sign in line) for line in bars] == [27, 7, 5]
    assert plot[3] == "one character = 2 h 48 min; highest bar = 1 run"


def test_of_many_jobs_the_busiest_are_shown(goclaw: Shell, jobs: JobControl) -> None:
    rows = lines(goclaw("simulate", "--days", "7", "--limit", "2").out)
    assert [row.split()[0] for row in rows[1:4]] == ["poll", "greeting", "…"]
    assert rows[3] == "… and 2 jobs that run more seldom; to show them: --limit"
    assert not [row for row in rows if row.startswith("standup")]
    assert [row for row in rows if ": 32 model requests" in row], "the sum is that of all jobs"


def test_runs_take_and_cost_what_they_did_so_far(goclaw: Shell, jobs: JobControl) -> None:
    """A run of the past took 90 seconds and cost a quarter of a dollar."""
    jobs.ran("poll")
    found = {one["slug"]: one for one in goclaw.data("simulate", "--days", "1")["jobs"]}
    poll, standup = found["poll"], found["standup"]
    assert (poll["runs"], poll["worked_s"], poll["usd"]) == (3, 270.0, "0.750000")
    assert (standup["runs"], standup["usd"]) == (0, None)


def test_for_programs_there_is_json_and_nothing_is_changed(goclaw: Shell, jobs: JobControl) -> None:
    before = jobs.stored()
    told = goclaw.data("simulate", "--days", "2")
    assert jobs.stored() == before
    assert (told["since"], told["until"], told["cut"]) == (
        "2026-01-02T12:00:00+00:00",
        "2026-01-04T12:00:00+00:00",
        False,
    )
    assert told["jobs"][1] == {
        "id": jobs.all()["greeting"].id,
        "slug": "greeting",
        "state": "active",
        "runs": 2,
        "coalesced": 0,
        "skipped": {},
        "model_calls": 0,
        "usd": None,
        "worked_s": 0.0,
        "waited_s": 0.0,
    }


def test_where_nothing_comes_it_says_so(goclaw: Shell, cron: JobControl, tmp_path: Path) -> None:
    got = goclaw("simulate")
    assert (got.code, got.err) == (0, "")
    assert got.out.startswith("no jobs\n\nAGENT")
    assert got.out.endswith(": 0 model requests\n")
    assert goclaw("simulate", "--html", str(tmp_path / "page.html")).code == 0
    assert "No runs." in (tmp_path / "page.html").read_text("utf-8")
    got = goclaw("simulate", "--html", str(tmp_path / "page.html"))
    assert (got.code, got.out) == (1, "")
    assert "page.html: the file already exists" in got.err
    cron.make(replace(POLL, paused=True))
    got = goclaw("simulate")
    assert (got.code, len(got.out.splitlines())) == (0, 7)  # without a plot
    assert got.out.endswith(": 0 model requests\n")


def test_that_it_ended_early_is_said(
    goclaw: Shell, jobs: JobControl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecast, "MOST_RUNS", 3)
    page = tmp_path / "page.html"
    said = "topped at the limit of the simulation, after 3 job runs"
    assert goclaw("simulate", "--html", str(page)).err.startswith(f"s{said}\n")
    assert f"S{said}." in page.read_text("utf-8")


def test_too_many_jobs(goclaw: Shell, jobs: JobControl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "_MOST_JOBS", 2)
    assert goclaw("simulate", "--days", "1").err == "simulating only 2 of 4 jobs\n"


def test_odd_jobs_are_simulated(goclaw: Shell, jobs: JobControl) -> None:
    jobs.rules = replace(jobs.rules, enabled=False)
    got = goclaw("simulate", "--days", "1")
    assert got.err == "jobs are turned off (scheduler.enabled = false); simulating as if enabled\n"
    assert lines(got.out)[1].startswith("poll active 3 ")
    jobs.rules = replace(jobs.rules, enabled=True)
    for number in range(5):
        jobs.make(replace(POLL, slug=f"crowd-{number}"))
    got = goclaw("simulate", "--days", "1")
    assert (got.code, got.err, "+1 min 40 s" in got.out) == (0, "", True)
    jobs.distort("standup", zone="Mars/Base")
    got = goclaw("simulate", "--days", "7")
    assert (got.code, "greeting" in got.out) == (0, True)


@pytest.mark.parametrize("options", [
    *("--days 0", "--days 3661", "--days many", "--seconds -1", "--seconds nan"),
    *("--seconds 1e9", "--usd -0.1", "--usd inf", "--usd nan", "--html /", "standup"),
])  # fmt: skip
def test_wrong_options_are_refused(goclaw: Shell, jobs: JobControl, options: str) -> None:
    got = goclaw("simulate", *options.split())
    assert (got.code, got.out) == (ExitCode.USAGE, "")
    assert got.err.startswith("goclaw: ")


def test_a_page_that_cannot_be_written_is_named(goclaw: Shell, jobs: JobControl) -> None:
    got = goclaw("simulate", "--days", "1", "--html", "/no/such/folder/page.html")
    assert (got.code, got.out) == (ExitCode.FAILED, "")
    assert "/no/such/folder/page.html" in got.err
    assert "Traceback" not in got.err


@pytest.fixture
def there(home: Path) -> Iterator[JobControl]:
    made = ThreadGateway(home)
    made.control = control = JobControl()
    control.gateway = True
    with made.running():
        yield control


def test_with_a_gateway_its_jobs_and_its_clock_are_used(goclaw: Shell, there: JobControl) -> None:
    there.make(STANDUP)
    there.make(POLL)
    there.ran("poll")
    got = goclaw("simulate", "--days", "7", "--json")
    assert (got.code, got.err) == (0, "")
    told = json.loads(got.out)
    assert told["since"] == "2026-01-02T12:00:00+00:00"
    assert [(one["slug"], one["runs"]) for one in told["jobs"]] == [("poll", 27), ("standup", 5)]
    assert told["jobs"][0]["usd"] == "6.750000"


def page_of(goclaw: Shell, folder: Path, *options: str) -> str:
    path = folder / "page.html"
    got = goclaw("simulate", "--html", str(path), *options)
    assert (got.code, got.err) == (0, f"wrote {path}\n")
    return path.read_text("utf-8")


def test_the_page_is_well_formed(goclaw: Shell, jobs: JobControl, tmp_path: Path) -> None:
    jobs.make(replace(POLL, slug="evil", name=EVIL))
    page = page_of(goclaw, tmp_path, "--days", "7")
    assert page.startswith('<!doctype html>\n<html lang="en">')
    root = ET.fromstring(page.partition("\n")[2])
    assert {element.tag for element in root.iter()} == {
        *("html", "head", "meta", "title", "style", "body", "h1", "p", "div", "svg", "line"),
        *("text", "rect", "table", "tr", "th", "td"),
    }
    names = {name for element in root.iter() for name in element.attrib}
    assert not [name for name in names if name.startswith("on") or name in ("href", "src")]
    outside = EVIL.replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
    rest = page.replace("https://evil.example", "", 1)
    assert "evil.example" in page
    assert not re.search(r"https?:|//|@import|url\(", rest)
    assert outside.split(" ", maxsplit=1)[0] in page
    cells = [cell.text for cell in root.iter("td")]
    assert EVIL in cells


def test_the_page_marks_each_run(goclaw: Shell, cron: JobControl, tmp_path: Path) -> None:
    policy = {"max_per_agent": 1, "on_busy": "skip"}
    for slug in ("first", "second"):
        cron.make(replace(GREETING, payload=Prompt("x"), slug=slug, policy=policy))
    root = ET.fromstring(page_of(goclaw, tmp_path, "--days", "7").partition("\n")[2])
    marks = [(mark.get("class"), mark.get("y")) for mark in root.iter("rect")]
    assert sorted(marks) == [("bad", "31")] * 7 + [("ok", "5")] * 7
    assert {text.text for text in root.iter("text")} >= {"first", "second"}
    # It is noon; eight in the morning of the next day is 20 of 168 hours later.
    assert next(root.iter("rect")).get("x") == str(190 + round(780 * 20 / 168))


def test_the_page_of_many_runs_is_small(goclaw: Shell, cron: JobControl, tmp_path: Path) -> None:
    cron.make(replace(POLL, schedule=Every(timedelta(minutes=1))))
    page = page_of(goclaw, tmp_path, "--days", "2", "--seconds", "1")
    assert page.count("<rect") == 1
    assert len(page) < 5000


ITEM = "- Look at the calendar.\n"


@pytest.fixture
def hearts(home: Path, monkeypatch: pytest.MonkeyPatch) -> HeartbeatControl:
    """No gateway, and a database with jobs and heartbeats."""
    monkeypatch.setenv("TZ", "UTC")
    (home / "goclaw.toml").unlink()  # here they are on
    control = HeartbeatControl(home)
    give(monkeypatch, control)
    return control


def of_main(goclaw: Shell, *options: str) -> dict[str, object]:
    """The forecast for the agent main."""
    got = goclaw("simulate", "--json", *options)
    assert (got.code, got.err) == (0, "")
    found: dict[str, object] = json.loads(got.out)["heartbeats"][0]
    return found


def test_a_fresh_install_calls_no_model(goclaw: Shell, hearts: HeartbeatControl) -> None:
    """SPEC HB-3: thirty days, the settings as they are, the shipped checklist."""
    hearts.checklist((Path(__file__).parents[3] / "HEARTBEAT.md.example").read_text("utf-8"))
    got = goclaw("simulate")
    assert (got.code, got.err) == (0, "")
    told = lines(got.out)
    assert told[:4] == [
        "no jobs",
        "",
        "AGENT HEARTBEAT RUNS MODEL REQUESTS SKIPPED USD",
        "main 1440 0 1440 empty",
    ]
    assert told[5].endswith(": 0 model requests")
    assert len(told) == 6


def test_heartbeat_runs_are_shown_beside_jobs(goclaw: Shell, hearts: HeartbeatControl) -> None:
    hearts.configure(
        "[agents.main]\n[agents.ann.heartbeat]\nenabled = false\n"
        '[heartbeat]\nactive_hours = { start = "08:00", end = "22:00" }\n'
    )
    hearts.checklist(ITEM)
    hearts.make(POLL)
    got = goclaw("simulate", "--days", "2", "--seconds", "60", "--usd", "0.01")
    assert (got.code, got.err) == (0, "")
    told = lines(got.out)
    assert told[1].startswith("poll active 7 0 7 0.07")
    assert told[3:6] == [
        "AGENT HEARTBEAT RUNS MODEL REQUESTS SKIPPED USD",
        "main 96 56 40 quiet hours 0.5600",
        "ann off 0",
    ]
    assert told[7].endswith(": 63 model requests, about $0.6300 where costs are known")
    plot = got.out.splitlines()[9:]
    assert [line.rpartition("  ")[0].strip() for line in plot] == ["poll", "heartbeat main", ""]
    # From noon to ten there are heartbeat runs, none in the night, and so on.
    bars = plot[1].rpartition("  ")[2]
    assert "".join("·" if sign == "·" else "x" for sign in bars) == (
        "x" * 10 + "·" * 10 + "x" * 14 + "·" * 10 + "x" * 4
    )


def test_heartbeats_take_and_cost_what_they_did_so_far(
    goclaw: Shell, hearts: HeartbeatControl
) -> None:
    """Two have taken 50 and 70 seconds, for 1 and 3 cents."""
    hearts.checklist(ITEM)
    hearts.heartbeat_run(50, "0.01")
    hearts.heartbeat_run(70, "0.03")
    found = of_main(goclaw, "--days", "1", "--seconds", "5", "--usd", "9")
    # 4 of the 100 cents of the first day are spent; 24 heartbeat runs of that day cost 48.
    assert (found["model_calls"], found["usd"]) == (48, "0.960000")
    assert found["worked_s"] == 48 * 60
    hearts.clock.at += timedelta(days=31)  # that counts no more
    found = of_main(goclaw, "--days", "1", "--seconds", "5")
    assert (found["worked_s"], found["usd"]) == (found["model_calls"] * 5, None)  # type: ignore[operator]


def test_for_programs_there_is_json(goclaw: Shell, hearts: HeartbeatControl) -> None:
    assert of_main(goclaw, "--days", "2") == {
        "agent": "main",
        "on": True,
        "heartbeat_runs": 96,
        "skipped": {"no_file": 96},
        "failed": 0,
        "model_calls": 0,
        "usd": None,
        "worked_s": 0.0,
        "waited_s": 0.0,
    }


def test_what_people_have_chosen_holds(goclaw: Shell, hearts: HeartbeatControl) -> None:
    hearts.checklist(ITEM)
    hearts.mute(timedelta(hours=6))
    found = of_main(goclaw, "--days", "1")
    assert (found["model_calls"], found["skipped"]) == (36, {"muted": 12})
    hearts.switch(on=False)
    found = of_main(goclaw, "--days", "1")
    assert (found["on"], found["heartbeat_runs"]) == (False, 0)


def test_events_that_wait_are_told_first(goclaw: Shell, hearts: HeartbeatControl) -> None:
    hearts.tell("The build is red.")
    before = hearts.heartbeat_rows()
    found = of_main(goclaw, "--days", "1")
    assert (found["model_calls"], found["skipped"]) == (1, {"no_file": 47})
    hearts.checklist(ITEM)
    assert goclaw("simulate", "--days", "2").code == 0
    assert hearts.heartbeat_rows() == before


def test_that_heartbeats_ended_early_is_said(
    goclaw: Shell, hearts: HeartbeatControl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecast, "MOST_RUNS", 21)
    hearts.make(POLL)
    page = tmp_path / "page.html"
    said = "topped at the limit of the simulation, after 1 job runs and 20 heartbeat runs"
    assert goclaw("simulate", "--html", str(page)).err.startswith(f"s{said}\n")
    assert f"S{said}." in page.read_text()


def test_a_gateway_need_not_know_each_agent(goclaw: Shell, home: Path) -> None:
    made = ThreadGateway(home)
    made.control = control = HeartbeatControl(home)
    control.gateway = True
    control.agents = (MAIN_AGENT,)
    control.configure("[agents.main]\n[agents.new]\n")
    control.heartbeat_run(50, "0.01")
    with made.running():
        got = goclaw("simulate", "--days", "1", "--json")
    assert (got.code, got.err) == (0, "")
    told = json.loads(got.out)["heartbeats"]
    assert [(one["agent"], one["heartbeat_runs"]) for one in told] == [("main", 48), ("new", 48)]


def test_the_page_marks_each_call(goclaw: Shell, hearts: HeartbeatControl, tmp_path: Path) -> None:
    hearts.checklist("- every 12h: Look at the calendar.\n")
    root = ET.fromstring(page_of(goclaw, tmp_path, "--days", "7").partition("\n")[2])
    assert {text.text for text in root.iter("text")} >= {"heartbeat main"}
    marks = [mark.get("class") for mark in root.iter("rect")]
    assert marks.count("ok") == 14
    assert "bad" not in marks
    idle = [mark for mark in root.iter("rect") if mark.get("class") == "idle"]
    assert {mark.get("height") for mark in idle} == {"3"}
    assert len(idle) < 7 * 48
    cells = [cell.text for cell in root.iter("td")]
    assert cells == ["main", "336", "14", "322 nothing due", None]


def test_a_heartbeat_that_fails_is_red(
    goclaw: Shell, hearts: HeartbeatControl, tmp_path: Path
) -> None:
    hearts.configure('[runs]\ntimeout = "5m"\n[heartbeat]\ninterval = "6h"\n')
    hearts.checklist(ITEM)
    path = tmp_path / "page.html"
    got = goclaw("simulate", "--days", "2", "--seconds", "600", "--html", str(path))
    assert "main 8 (8 failed) 8" in lines(got.out)
    root = ET.fromstring(path.read_text("utf-8").partition("\n")[2])
    assert [mark.get("class") for mark in root.iter("rect")] == ["bad"] * 8


def test_a_page_of_nothing_is_small(
    goclaw: Shell, hearts: HeartbeatControl, tmp_path: Path
) -> None:
    page = page_of(goclaw, tmp_path, "--days", "40")
    assert page.count("<rect") == 1
    assert len(page) < 5000
