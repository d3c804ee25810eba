"""``goclaw why`` as people read it (SPEC OPS-4); what it answers is tested in a gateway."""

from __future__ import annotations

import pytest

from goclaw_py.cli.doctor.checks import DoctorReport
from goclaw_py.cli.doctor.finding import Level
from tests.unit.cli.conftest import Done, Shell, ThreadGateway
from tests.unit.web import fakes
from tests.unit.web.fakes import FakeControl


def test_the_answer_comes_before_way_and_cures(goclaw: Shell, gateway: ThreadGateway) -> None:
    got = goclaw("why", "0190-aaaa")
    assert got.code == 0
    lines = got.out.splitlines()
    assert lines[0] == fakes.WHY.answer
    assert lines[2] == "What happened:"
    assert lines[3].startswith("  1. 20")
    assert lines[4] == f"  2. {'now':<19}  the next try is due"
    assert lines[6:] == [
        "What to do:",
        "  - Retry the message:",
        "      goclaw inbox retry 7",
        "  - Send it again",
    ]
    assert gateway.control.calls[-1] == ("why", "0190-aaaa")
    assert "\x1b" not in got.out  # SPEC SEC-1
    found = goclaw.data("why", "0190-aaaa")
    assert found["code"] == "ended.failed"
    assert found["subject"] == {"kind": "run", "id": "0190-aaaa", "name": "run 0190-aaaa"}
    assert [step["code"] for step in found["chain"]] == ["received", "next_try"]
    assert found["cures"][0]["command"] == "goclaw inbox retry 7"


def test_it_asks_the_database_where_no_gateway_runs(goclaw: Shell, database: FakeControl) -> None:
    assert goclaw("why", "-1001").out.startswith(fakes.WHY.answer)
    assert database.calls[-1] == ("why", "-1001")


def test_what_nobody_knows_is_an_error(goclaw: Shell, gateway: ThreadGateway) -> None:
    assert goclaw("why", "nobody") == Done(1, "", "goclaw: nothing is called 'nobody'\n")
    assert goclaw("why", " ").code == 2


def test_without_a_name_the_checks_of_the_doctor_come_first(
    goclaw: Shell, gateway: ThreadGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = ("agent main", "no key for anthropic", "set an API key")
    wrong = DoctorReport("models", Level.WRONG, *problem)
    fine = DoctorReport("disk", Level.OK, "disk", "10 GB free", "")
    monkeypatch.setattr("goclaw_py.cli.doctor.checks.examine", lambda _: [fine, wrong])
    got = goclaw("why")
    assert got.out.startswith("Agent main: no key for anthropic.\n")
    assert "  - agent main: set an API key" in got.out
    assert "goclaw inbox retry 7" in got.out
    assert goclaw.data("why")["code"] == "check.models"
