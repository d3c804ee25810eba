"""``goclaw runs list``: which runs, and under which name."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from goclaw_py.model.ids import AgentName, RunId
from goclaw_py.model.outcomes import Outcome, Trigger
from goclaw_py.ports.store import ALL_RUNS, RunFilter
from tests.unit.cli.conftest import Shell, ThreadGateway
from tests.unit.web import fakes
from tests.unit.web.fakes import FakeControl


@pytest.mark.parametrize(("words", "only"), [
    ("", ALL_RUNS),
    ("--agent main", RunFilter(agent=AgentName("main"))),
    ("--trigger cron", RunFilter(trigger=Trigger.CRON)),
    ("--outcome timed_out", RunFilter(outcome=Outcome.TIMED_OUT)),
    ("--trigger api --agent x", RunFilter(trigger=Trigger.API, agent=AgentName("x"))),
])  # fmt: skip
def test_runs_are_picked(
    goclaw: Shell, gateway: ThreadGateway, words: str, only: RunFilter
) -> None:
    assert goclaw("runs", "list", *words.split()).code == 0
    name, _, *picked = gateway.control.calls[-1]
    assert (name, picked) == ("runs", [None, False, only])


def test_no_run_of_a_kind_is_told_from_no_run_at_all(
    goclaw: Shell, database: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def none(**_how: object) -> list[object]:
        return []

    monkeypatch.setattr(database, "runs", none)
    assert goclaw("runs", "list").out == "no runs yet\n"
    assert "goclaw runs list" in goclaw("runs", "list", "--agent", "nobody").out


def test_a_terminal_gets_as_much_of_an_id_as_names_the_run(
    goclaw: Shell, database: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = RunId("01a20492-c3f7-7c11-9172-d769006fc43e")
    monkeypatch.setattr(fakes, "RUN_ID", long)
    monkeypatch.setattr(fakes, "ENDED", replace(fakes.ENDED, id=long))
    assert long in goclaw("runs", "list").out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    out = goclaw("runs", "list").out
    assert "01a20492-c3f7-7c11" in out
    assert long not in out


def test_the_document_of_a_run_is_its_record(goclaw: Shell, gateway: ThreadGateway) -> None:
    found = goclaw.data("runs", "show", "0190-a")
    assert found["run"]["id"] == fakes.RUN_ID
    assert [each["entry"]["text"] for each in found["entries"]] == ["Grüße \x1b[2J", "yes"]
    assert found["said"][0]["error"] == "chat not found"
