"""``goclaw simulate``: what heartbeats will do, as a table, a plot, a page and for programs.

It is a Friday, 12:00 UTC.
"""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from goclaw_py.app.simulation import heartbeats as simulated_heartbeats
from goclaw_py.jobs.models import Prompt
from goclaw_py.jobs.schedule import Every
from goclaw_py.model.ids import MAIN_AGENT
from goclaw_py.ports.jobs import JobDraft
from tests.unit.cli.conftest import Shell, ThreadGateway, give, lines
from tests.unit.cli.heart_control import HeartControl

POLL = JobDraft(Every(timedelta(hours=6)), Prompt("poll"), slug="poll")
ITEM = "- Look at the calendar.\n"


@pytest.fixture
def hearts(home: Path, monkeypatch: pytest.MonkeyPatch) -> HeartControl:
    """No gateway, and a database with jobs and heartbeats."""
    monkeypatch.setenv("TZ", "UTC")
    control = HeartControl(home)
    give(monkeypatch, control)
    return control


def of_main(goclaw: Shell, *options: str) -> dict[str, object]:
    """The forecast for the agent main."""
    got = goclaw("simulate", "--json", *options)
    assert (got.code, got.err) == (0, "")
    found: dict[str, object] = json.loads(got.out)["heartbeats"][0]
    return found


def test_a_fresh_install_calls_no_model(goclaw: Shell, hearts: HeartControl) -> None:
    """SPEC HB-3: thirty days, the settings as they are, the shipped checklist."""
    hearts.checklist((Path(__file__).parents[3] / "HEARTBEAT.md.example").read_text("utf-8"))
    got = goclaw("simulate")
    assert (got.code, got.err) == (0, "")
    told = lines(got.out)
    assert told[:4] == [
        "no jobs",
        "",
        "AGENT HEARTBEAT RUNS MODEL CALLS SKIPPED USD",
        "main 1440 0 1440 empty",
    ]
    assert told[5].endswith(": 0 model calls")
    assert len(told) == 6


def test_heartbeat_runs_are_shown_beside_jobs(goclaw: Shell, hearts: HeartControl) -> None:
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
        "AGENT HEARTBEAT RUNS MODEL CALLS SKIPPED USD",
        "main 96 56 40 quiet_hours 0.56",
        "ann off 0",
    ]
    assert told[7].endswith(": 63 model calls, about 0.63 USD where costs are known")
    plot = got.out.splitlines()[9:]
    assert [line.rpartition("  ")[0].strip() for line in plot] == ["poll", "heartbeat main", ""]
    # From noon to ten there are heartbeat runs, none in the night, and so on.
    bars = plot[1].rpartition("  ")[2]
    assert "".join("·" if sign == "·" else "x" for sign in bars) == (
        "x" * 10 + "·" * 10 + "x" * 14 + "·" * 10 + "x" * 4
    )


def test_heartbeats_take_and_cost_what_they_did_so_far(goclaw: Shell, hearts: HeartControl) -> None:
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


def test_for_programs_there_is_json(goclaw: Shell, hearts: HeartControl) -> None:
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


def test_what_people_have_chosen_holds(goclaw: Shell, hearts: HeartControl) -> None:
    hearts.checklist(ITEM)
    hearts.mute(timedelta(hours=6))
    found = of_main(goclaw, "--days", "1")
    assert (found["model_calls"], found["skipped"]) == (36, {"muted": 12})
    hearts.switch(on=False)
    found = of_main(goclaw, "--days", "1")
    assert (found["on"], found["heartbeat_runs"]) == (False, 0)


def test_events_that_wait_are_told_first(goclaw: Shell, hearts: HeartControl) -> None:
    hearts.tell("The build is red.")
    before = hearts.heart_rows()
    found = of_main(goclaw, "--days", "1")
    assert (found["model_calls"], found["skipped"]) == (1, {"no_file": 47})
    hearts.checklist(ITEM)
    assert goclaw("simulate", "--days", "2").code == 0
    assert hearts.heart_rows() == before


def test_that_it_ended_early_is_said(
    goclaw: Shell, hearts: HeartControl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulated_heartbeats, "MOST_HEARTBEAT_RUNS", 20)
    hearts.make(POLL)
    page = tmp_path / "page.html"
    said = "topped at the limit of the simulation, after 1 job runs and 20 heartbeat runs"
    assert goclaw("simulate", "--html", str(page)).err.startswith(f"s{said}\n")
    assert f"S{said}." in page.read_text()


def test_a_gateway_need_not_know_each_agent(goclaw: Shell, home: Path) -> None:
    made = ThreadGateway(home)
    made.control = control = HeartControl(home)
    control.gateway = True
    control.agents = (MAIN_AGENT,)
    control.configure("[agents.main]\n[agents.new]\n")
    control.heartbeat_run(50, "0.01")
    with made.running():
        got = goclaw("simulate", "--days", "1", "--json")
    assert (got.code, got.err) == (0, "")
    told = json.loads(got.out)["heartbeats"]
    assert [(one["agent"], one["heartbeat_runs"]) for one in told] == [("main", 48), ("new", 48)]


def test_the_page_marks_each_call(goclaw: Shell, hearts: HeartControl, tmp_path: Path) -> None:
    hearts.checklist("- every 12h: Look at the calendar.\n")
    path = tmp_path / "page.html"
    assert goclaw("simulate", "--days", "7", "--html", str(path)).code == 0
    root = ET.fromstring(path.read_text("utf-8").partition("\n")[2])
    assert {text.text for text in root.iter("text")} >= {"heartbeat main"}
    marks = [mark.get("class") for mark in root.iter("rect")]
    assert marks.count("ok") == 14
    assert "bad" not in marks
    idle = [mark for mark in root.iter("rect") if mark.get("class") == "idle"]
    assert {mark.get("height") for mark in idle} == {"3"}
    assert len(idle) < 7 * 48
    cells = [cell.text for cell in root.iter("td")]
    assert cells == ["main", "336", "14", "322 nothing_due", None]


def test_a_heartbeat_that_fails_is_red(goclaw: Shell, hearts: HeartControl, tmp_path: Path) -> None:
    hearts.configure('[runs]\ntimeout = "5m"\n[heartbeat]\ninterval = "6h"\n')
    hearts.checklist(ITEM)
    path = tmp_path / "page.html"
    got = goclaw("simulate", "--days", "2", "--seconds", "600", "--html", str(path))
    assert "main 8 (8 failed) 8" in lines(got.out)
    root = ET.fromstring(path.read_text("utf-8").partition("\n")[2])
    assert [mark.get("class") for mark in root.iter("rect")] == ["bad"] * 8


def test_a_page_of_nothing_is_small(goclaw: Shell, hearts: HeartControl, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    assert goclaw("simulate", "--days", "40", "--html", str(path)).code == 0
    page = path.read_text("utf-8")
    assert page.count("<rect") == 1
    assert len(page) < 5000
