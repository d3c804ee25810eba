"""The benchmark of heartbeats and the search for leaks; nothing here is timed."""

from __future__ import annotations

import pytest

from bench.heartbeat import __main__ as heartbeat
from bench.heartbeat import leaks as bench
from bench.heartbeat import measure, process
from bench.heartbeat.leaks import count, leaks, replies
from bench.heartbeat.measure import Cost, HeartbeatTimes
from bench.heartbeat.process import Load, Stretch
from goclaw_py.schedule.heartbeat.models import Skip
from tests.support.postgres import Server
from tests.unit.bench.reports import no_server, wanted

pytestmark = pytest.mark.real_time


TINY = heartbeat.Sizes(1, 2, 2, 5.0, Stretch(1.0, 0.1, 0.1), 50)
COST = Cost(cpu_ms=1.0, rows=1.0)


@pytest.mark.parametrize("cause", measure.CAUSES)
def test_a_heartbeat_run_is_skipped_for_the_cause_that_is_measured(
    cause: str, postgres_server: Server
) -> None:
    """SPEC HB-9: and leaves one row."""
    cost = measure.skips(postgres_server.address, cause, HeartbeatTimes(3, 2, 5.0))
    assert cost.rows == 1
    assert cost.cpu_ms > 0
    assert cost.late_ms >= 0
    assert 0 < cost.p50_ms <= cost.p99_ms
    assert cost.asked_ms == 0


def test_heartbeat_runs_that_ask_their_agents_are_measured(postgres_server: Server) -> None:
    cost = measure.asked(postgres_server.address, HeartbeatTimes(3, 3))
    assert cost.rows == 1
    assert cost.asked_ms > 0


def test_the_bare_loop_leaves_one_row_for_each_heartbeat_run(postgres_server: Server) -> None:
    for apart_ms in (0.0, 1.0):
        assert measure.bare(postgres_server.address, HeartbeatTimes(3, 3, apart_ms)).rows == 1


def test_all_causes_but_one_are_measured() -> None:
    """A heartbeat that is off is not due."""
    assert {*measure.CAUSES} == {*Skip} - {Skip.DISABLED}


def test_each_cause_has_a_bound_and_a_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "server", no_server)
    monkeypatch.setattr(heartbeat, "in_child", lambda measured, *arguments: COST)
    report = heartbeat.skips(TINY)
    labels = {line.label for line in report.lines}
    assert {f"at once, {cause} / bare" for cause in measure.CAUSES} < labels
    assert {f"singly, {cause}" for cause in heartbeat.SINGLY} < labels
    assert {(name, bound) for (_, name), bound in wanted(report).items()} == {
        ("CPU", "< 2"),
        ("rows", "≤ 1"),
        ("latest", "≤ 1,000"),
    }


def test_a_half_hour_is_mostly_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    load = Load(busy=0.07, idle=0.01, heartbeat_ms=1.0, late_s=0.5, began_s=0.6)
    monkeypatch.setattr(heartbeat, "server", no_server)
    monkeypatch.setattr(process, "measure", lambda *_, **__: load)
    report = heartbeat.processes(TINY)
    assert [line.label for line in report.lines] == ["all skipped", "all ask their agents"]
    for line in report.lines:
        assert line.figures[0].median == pytest.approx(2.0)
        assert wanted(report)[line.label, "CPU over the half-hour"] == "< 1"
        assert wanted(report)[line.label, "latest"] == "≤ 1"


@pytest.mark.parametrize("asks", [False, True])
def test_a_gateway_process_heartbeat_runs(postgres_server: Server, *, asks: bool) -> None:
    # So many that some of their offsets are within these seconds.
    load = process.measure(postgres_server.address, 1_000, Stretch(3.0, 0.2, 0.2), asks=asks)
    assert load.busy > 0
    assert load.late_s >= 0
    assert (load.began_s > 0) is asks


def test_no_token_is_found_and_all_replies_are_counted() -> None:
    report = heartbeat.token(TINY)
    (line,) = report.lines
    ok, cleaned, leaked = (figure.median for figure in line.figures)
    assert leaked == 0
    assert 0 < ok + cleaned <= TINY.replies
    assert wanted(report) == {(line.label, "leaks"): "≤ 0"}


def test_nothing_leaks_of_a_few_hundred_replies() -> None:
    """SPEC HB-6."""
    done = count(300, seed=1)
    assert done.leaked == []
    assert done.replies == 300 == done.ok + done.cleaned + done.untouched
    assert min(done.ok, done.cleaned, done.untouched) > 0


def test_the_replies_of_a_seed_are_the_same_each_time() -> None:
    assert list(replies(20, seed=3)) == list(replies(20, seed=3))
    assert list(replies(20, seed=3)) != list(replies(20, seed=4))


def test_most_replies_would_leak_if_nothing_were_done() -> None:
    assert sum(map(leaks, replies(200, seed=2))) > 100


@pytest.mark.parametrize(
    "text",
    [
        "HEARTBEAT_OK",
        "so: **HEARTBEAT_OK**.",
        "HEART<b>BEAT</b>_OK",
        "HEARTBEAT&#95;OK",
        "[HEART](x)BEAT_OK",
        r"HEARTBEAT\_OK",
        "HEART\u200bBEAT_OK",
        "_HEARTBEAT_OK_",
        "HEART**BEAT**_OK",
    ],
)
def test_the_detector_sees_the_token(text: str) -> None:
    assert leaks(text)


def test_the_detector_sees_nothing_else() -> None:
    for text in ("", "HEARTBEAT_OKAY", "NOT_HEARTBEAT_OK", "HEARTBEAT OK"):
        assert not leaks(text), text


def test_a_leak_is_shown_and_fails_the_search(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["leaks", "--count", "50"])
    assert bench.main() == 0
    assert "50 replies" in capsys.readouterr().out
    monkeypatch.setattr(bench, "without_token", lambda text: text)
    assert bench.main() == 1
    assert "->" in capsys.readouterr().out
