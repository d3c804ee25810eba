"""What lists without rows say: nothing is stored, or nothing matches (SPEC OPS-1)."""

from __future__ import annotations

import pytest

from goclaw_py.cli.exits import ExitCode
from tests.unit.cli.conftest import Shell
from tests.unit.cli.job_control import JobControl
from tests.unit.web.fakes import FakeSessions

_LISTS = {
    "sessions list": ("sessions", "--search=zzzz --channel=foo --state=waiting --agent=main"),
    "runs list": ("runs", "--search=zzzz --outcome=failed --trigger=cron --agent=helper"),
    "jobs list": ("jobs", "--name=zzzz --owner=zzzz --state=paused --agent=main"),
    "jobs runs": ("runs", "--outcome=failed"),
    "deliveries list": ("messages", "--channel=foo --search=zzzz --chat=foo --state=dropped"),
    "deliveries incoming list": ("messages", "--channel=foo --search=zzzz"),
    "audit": ("entries", "--who=zzzz --action=job --subject=zzzz --days=3"),
    "heartbeat runs": ("heartbeat runs", "--outcome=skipped:empty"),
}


@pytest.fixture
def empty(cron: JobControl, monkeypatch: pytest.MonkeyPatch) -> JobControl:
    """A database without rows. Its agents are main and helper."""

    async def none(*_: object, **__: object) -> list[object]:
        return []

    monkeypatch.setattr(FakeSessions, "list", none)
    monkeypatch.setattr(cron.stored_runs, "runs", none)
    monkeypatch.setattr(cron.deliveries, "outbox", none)
    monkeypatch.setattr(cron.deliveries, "dead_letters", none)
    monkeypatch.setattr(cron.audit, "list", none)
    cron.hearts.heartbeat_runs = []
    return cron


@pytest.mark.usefixtures("empty")
@pytest.mark.parametrize("command", _LISTS)
def test_a_list_without_rows_says_if_a_filter_left_them_out(goclaw: Shell, command: str) -> None:
    things, filters = _LISTS[command]
    assert "matching" not in goclaw(*command.split(), "--limit", "9").out
    for option in filters.split():
        got = goclaw(*command.split(), option)
        assert got.out.startswith(f"no matching {things}; to list all: goclaw {command}"), option


@pytest.mark.usefixtures("empty")
@pytest.mark.parametrize("noun", ["sessions", "runs", "jobs"])
def test_a_list_of_an_agent_that_nothing_names_is_an_error(goclaw: Shell, noun: str) -> None:
    got = goclaw(noun, "list", "--agent", "nope")
    assert got.code == ExitCode.USAGE
    assert got.err.startswith("goclaw: there is no agent 'nope'; there are: main, helper")


@pytest.mark.usefixtures("cron")
def test_what_a_former_agent_has_left_is_listed(goclaw: Shell) -> None:
    got = goclaw("runs", "list", "--agent", "former")
    assert got.code == 0
    assert "0190-aaaa" in got.out
