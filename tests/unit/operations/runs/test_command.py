"""``goclaw runs``: which runs there are, and what one has done (SPEC OPS-4, OPS-8)."""

from __future__ import annotations

import sys
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta

import pytest

from goclaw_py.cli.context import STORED_ONLY
from goclaw_py.core.ids import RunId
from goclaw_py.records import NEWEST_RUNS, RunFilter, RunQuery
from tests.support.run_filters import EVERY_FILTER, values
from tests.unit.cli.conftest import Shell, ThreadGateway
from tests.unit.web import fakes
from tests.unit.web.fakes import FakeControl

NO_OPTION = ("sender",)
"""Filters that the API and the page have, and the command does not."""
ONLY = RunFilter(
    **{
        one.name: getattr(EVERY_FILTER, one.name)
        for one in fields(RunFilter)
        if one.name not in NO_OPTION
    }
)


def test_options_select_runs_by_every_field_of_a_filter(
    goclaw: Shell, database: FakeControl
) -> None:
    given = {name.replace("_", "-"): text for name, text in values(ONLY).items()}
    options = [word for name, text in given.items() for word in (f"--{name}", text)]
    assert goclaw("runs", "list", *options, "--limit", "7").code == 0
    assert database.calls == [("runs", RunQuery(only=ONLY, limit=7))]


def test_without_options_the_newest_runs_are_listed(goclaw: Shell, database: FakeControl) -> None:
    assert goclaw("runs", "list").code == 0
    assert goclaw("runs", "list", "--active").code == 0
    assert database.calls == [("runs", NEWEST_RUNS), ("runs", RunQuery(active=True))]
    assert goclaw("runs", "list", "--session", "console").code == 0
    assert database.calls[-1] == ("runs", RunQuery(session=fakes.SESSION))
    assert goclaw("runs", "list", "--days", "2").code == 0
    since = database.calls[-1][1].since
    assert since is not None
    assert timedelta(days=2) <= datetime.now(UTC) - since < timedelta(days=2, minutes=10)
    got = goclaw("runs", "list", "--active", "--outcome", "lost")
    assert (got.code, "runs in progress have no outcome" in got.err) == (2, True)


def test_no_run_of_a_kind_is_told_from_no_run_at_all(
    goclaw: Shell, database: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def none(_query: RunQuery) -> list[object]:
        return []

    monkeypatch.setattr(database.stored_runs, "runs", none)
    assert goclaw("runs", "list").out == "no runs yet\n"
    assert "goclaw runs list" in goclaw("runs", "list", "--agent", "helper").out


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
    assert [(step["number"], step["kind"]) for step in found["steps"]] == [
        (1, "response"), (2, "call"), (3, "result")
    ]  # fmt: skip


def test_a_run_is_shown_step_by_step(goclaw: Shell, gateway: ThreadGateway) -> None:
    """OPS-8."""
    lines = goclaw("runs", "show", "0190-a").out.splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith("STEP"))
    assert [" ".join(line.split()) for line in lines[start + 1 : start + 4]] == [
        "1 response 10 in, 5 out calls pay [2J",
        '2 call pay {"to": "ann"}',
        "3 result pay failed: no money",
    ]


def test_active_runs_are_those_of_the_gateway(goclaw: Shell, gateway: ThreadGateway) -> None:
    got = goclaw("runs", "--active")
    assert (got.code, got.err) == (0, "")
    _, running, waiting = got.out.splitlines()
    assert fakes.RUN_ID in running
    assert "running" in running
    assert "0190-cccc" in waiting
    assert waiting.endswith(f"lane main: no slot is free  {fakes.BARE_KEY}")
    assert gateway.control.calls == [("active",)]
    found = goclaw.data("runs", "--active")
    assert found["live"] is True
    assert [run["state"] for run in found["runs"]] == ["running", "ready"]


@pytest.mark.parametrize("words", [["--active", "list"], ["--json", "show", "0190-a"], ["--json"]])
def test_runs_takes_one_thing(goclaw: Shell, gateway: ThreadGateway, words: list[str]) -> None:
    assert goclaw("runs", *words).code == 2
    assert gateway.control.calls == []


def test_without_a_gateway_the_runs_in_progress_are_those_of_the_database(
    goclaw: Shell, database: FakeControl
) -> None:
    got = goclaw("runs", "--active")
    assert got.code == 0
    assert fakes.ACTIVE.id in got.out
    assert got.err == f"{STORED_ONLY}\n"
    assert goclaw.data("runs", "--active")["live"] is False


def test_it_is_said_that_nothing_is_running(
    goclaw: Shell, database: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.gateway = True
    monkeypatch.setattr(database, "_unfinished", tuple)
    assert goclaw("runs", "--active").out == "no run is in progress or queued\n"
