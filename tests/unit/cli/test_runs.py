"""``goclaw queue`` and ``why``: who waits for what, and why not (SPEC OPS-4).

What ``why`` answers is tested in a gateway.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from goclaw_py.cli.context import STORED_ONLY
from goclaw_py.cli.doctor.checks import DoctorReport
from goclaw_py.cli.doctor.finding import Level
from tests.unit.cli.conftest import Done, Shell, ThreadGateway
from tests.unit.web import fakes
from tests.unit.web.fakes import FakeControl


def test_a_queue_says_what_waits_and_for_what(goclaw: Shell, gateway: ThreadGateway) -> None:
    got = goclaw("queue", "console")
    assert got.code == 0
    for words in (
        f"session  console local ({fakes.SESSION})",
        "mode queue, 1 at once, at most 10 waiting, then the oldest is dropped",
        "lane main: no slot is free",
        "count to 30",
        "and then?",
    ):
        assert words in got.out
    lines = got.out.splitlines()
    (running,) = [line for line in lines if line.startswith(fakes.RUN_ID)]
    assert running.split()[1:4] == ["main", "main", "running"]
    (waiting,) = [line for line in lines if line.startswith("1.")]
    assert "0190-cccc" in waiting
    assert " 2 " in waiting  # messages that it answers
    assert "gateway" not in got.out
    assert "\x1b" not in got.out  # SPEC SEC-1
    # SPEC QUEUE-5: which messages got no answer, and why.
    _, dropped, failed = got.out.partition("UNANSWERED")[2].splitlines()
    assert "dropped: the queue was full, so the oldest message was dropped" in dropped
    assert "too much" in dropped
    assert f"its run failed; see: goclaw runs show {fakes.RUN_ID}" in failed
    found = goclaw.data("queue", "console")
    assert found["policy"]["capacity"] == 10
    assert [row["reason"] for row in found["unanswered"]] == ["queue_dropped", None]
    assert found["waiting"][0]["waits_for"] == "lane"


def test_the_queue_of_a_group_says_when_it_was_heard_last_without_a_mention(
    goclaw: Shell, database: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = replace(fakes.QUEUE, unmentioned_at=fakes.QUEUE.at - timedelta(minutes=3))
    monkeypatch.setattr(fakes, "QUEUE", heard)
    assert "last message without a mention: 3 min ago" in goclaw("queue", "console").out


def test_where_nothing_runs_or_waits_that_is_said(
    goclaw: Shell, database: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = replace(fakes.QUEUE, running=(), waiting=(), policy=None)
    queue = replace(queue, live=True, messages=(), unanswered=())

    monkeypatch.setattr(database, "gateway", True)
    monkeypatch.setattr(fakes, "QUEUE", queue)
    got = goclaw("queue", "console")
    assert (
        got.out
        == f"session  console local ({fakes.SESSION})\n\nnothing is running\n\nno run is queued\n"
    )


@pytest.mark.parametrize("where", ["gateway", "database"])
@pytest.mark.parametrize("command", [
    "runs list", "runs --active", "queue console", "sessions list",
    "approvals list", "heartbeat status",
])  # fmt: skip
def test_what_runs_or_waits_is_said_to_be_stored_only(
    goclaw: Shell, request: pytest.FixtureRequest, command: str, where: str
) -> None:
    """OPS-1: after a crash of the gateway a list says ``running`` of what has ended with it."""
    request.getfixturevalue(where)
    assert (STORED_ONLY in goclaw(*command.split()).err) == (where == "database")
    assert STORED_ONLY not in goclaw(*command.split(), "--json").err


def test_without_a_gateway_the_database_answers(goclaw: Shell, database: FakeControl) -> None:
    got = goclaw("queue", "console")
    assert got.code == 0
    assert "queued runs are known only to a gateway" in got.out
    assert "too much" in got.out
    assert goclaw("why", "-1001").out.startswith(fakes.WHY.answer)
    assert database.calls[-1] == ("why", "-1001")


@pytest.mark.parametrize(
    ("words", "code"), [(["nobody"], 1), ([" "], 2), ([], 2), (["console", "more"], 2)]
)
def test_unclear_words(goclaw: Shell, gateway: ThreadGateway, words: list[str], code: int) -> None:
    got = goclaw("queue", *words)
    assert (got.code, got.out) == (code, "")
    assert got.err


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
        "      goclaw deliveries incoming retry 7",
        "  - Send it again",
    ]
    assert gateway.control.calls[-1] == ("why", "0190-aaaa")
    assert "\x1b" not in got.out  # SPEC SEC-1
    found = goclaw.data("why", "0190-aaaa")
    assert found["code"] == "ended.failed"
    assert found["subject"] == {"kind": "run", "id": "0190-aaaa", "name": "run 0190-aaaa"}
    assert [step["code"] for step in found["chain"]] == ["received", "next_try"]
    assert found["cures"][0]["command"] == "goclaw deliveries incoming retry 7"


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
    assert "goclaw deliveries incoming retry 7" in got.out
    assert goclaw.data("why")["code"] == "check.models"
