"""``goclaw lanes``: what it prints, and what it refuses (SPEC LANE-7, LANE-9)."""

from __future__ import annotations

import signal
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from goclaw_py.cli.output import clock
from tests.unit.cli.conftest import Shell, ThreadGateway
from tests.unit.cli.processes import person_at
from tests.unit.web import fakes
from tests.unit.web.fakes import FakeControl


def test_lanes_are_shown_with_their_runs(goclaw: Shell, gateway: ThreadGateway) -> None:
    got = goclaw("lanes")
    assert got.code == 0
    head, main, cron = got.out.splitlines()[:3]
    assert head.split()[:7] == [
        *("LANE", "ACTIVE", "WAITING", "STARTED", "FINISHED", "CANCELLED", "FAILED")
    ]
    assert main.split() == [
        *("main", "1/1", "1", "5", "3", "1", "0"),
        *("≤", "5", "ms", "≤", "10", "s", ">", "1", "h", ">", "1", "h"),
    ]
    assert cron.split() == ["cron", "0/1", "closed", *["0"] * 5, *["-"] * 4]
    _, inside, waiting = got.out.partition("lane main, 1 of 1 taken, 1 waiting\n")[2].splitlines()
    since = clock(fakes.NOW - timedelta(seconds=1.5)).split()
    run = ["running", fakes.RUN_ID, "console", "local", "main", "running"]
    assert inside.split() == [*run, *since, "1.5", "s", fakes.SESSION]
    assert waiting.split()[:2] == ["1.", "0190-cccc"]
    assert f"3.2 s  {fakes.BARE_KEY}" in waiting
    assert "waiting" in waiting
    assert "lane cron" not in got.out
    (lane, _) = goclaw.data("lanes")["lanes"]
    assert lane["lane"]["name"] == "main"
    assert lane["waiting"][0]["waits_for"] == "lane"
    times = lane["lane"]["wait_times"]
    assert len(times["bounds_s"]) + 1 == len(times["counts"])


def test_without_a_gateway_there_are_no_lanes(goclaw: Shell, database: FakeControl) -> None:
    for command in (["lanes"], ["lanes", "--json"], ["lanes", "set", "main", "2"]):
        got = goclaw(*command)
        assert (got.code, got.out) == (3, "")
        assert got.err.startswith("goclaw: no gateway ")


def test_wrong_words_are_told(goclaw: Shell, gateway: ThreadGateway) -> None:
    for option in ("--json", "--watch"):
        got = goclaw("lanes", option, "set", "main", "2")
        assert got.code == 2
        assert "put options after" in got.err
    assert gateway.control.calls == []
    got = goclaw("lanes", "set", "mian", "2")
    assert got.code == 2
    assert "no lane 'mian'; lanes: main, cron" in got.err
    assert gateway.control.calls == [("lanes",)]


def test_a_new_size_is_told_with_the_old_one(goclaw: Shell, gateway: ThreadGateway) -> None:
    assert goclaw("lanes", "set", "main", "1").out.startswith("lane main already has size 1\n")
    got = goclaw("lanes", "set", "main", "4")
    assert got.code == 0
    first, second = got.out.splitlines()
    assert first == "lane main: 1 → 4"
    assert "until the gateway restarts" in second
    assert second.endswith("goclaw config set lanes.main.size 4")
    assert gateway.control.calls[-1] == ("resize_lane", "main", 4)
    # It may be smaller than what is in it.
    out = goclaw("lanes", "set", "main", "1").out
    assert "lane main: 4 → 1" in out
    assert "2 runs in the lane continue" in out
    done = goclaw.data("lanes", "set", "main", "4")
    assert (done["before"], done["lane"]["concurrency"]) == (1, 4)


@pytest.mark.parametrize("shared", [False, True])
def test_a_shared_lane_is_resized_at_each_gateway(
    goclaw: Shell, gateway: ThreadGateway, monkeypatch: pytest.MonkeyPatch, *, shared: bool
) -> None:
    """SPEC NODE-2."""
    lanes = [replace(use, lane=replace(use.lane, shared=shared)) for use in fakes.LANES.lanes]
    monkeypatch.setattr(fakes, "LANES", replace(fakes.LANES, lanes=tuple(lanes)))
    out = goclaw("lanes", "set", "main", "4").out
    assert (
        "but only this gateway was changed: run the same command on each of them" in out
    ) is shared


@pytest.mark.parametrize(
    "size", ["0", "-1", "1.5", "100001", "9" * 400, "two", "", " ", "1_0", "+1", "٣", "true"]
)
def test_a_wrong_size_changes_nothing(goclaw: Shell, gateway: ThreadGateway, size: str) -> None:
    got = goclaw("lanes", "set", "main", size)
    assert got.code == 2
    assert "whole number from 1 to 100000" in got.err
    assert gateway.control.calls == []


@pytest.mark.parametrize("words", [["main"], ["main", "2", "3"], [" ", "2"], []])
def test_wrong_words_of_set(goclaw: Shell, gateway: ThreadGateway, words: list[str]) -> None:
    assert goclaw("lanes", "set", *words).code == 2


@pytest.mark.slow
def test_a_watcher_sees_the_gateway_come_go_and_come_back_and_ends_with_ctrl_c(home: Path) -> None:
    with person_at("lanes", "--watch") as watcher:
        watcher.sees("waiting for a gateway")
        for _ in range(2):
            with ThreadGateway(home).running():
                watcher.sees("lane main, 1 of 1 taken, 1 waiting")
                watcher.sees("\x1b[J\x1b[H")
                watcher.sees("lane main, 1 of 1 taken, 1 waiting")
            watcher.sees("waiting for a gateway")
        watcher.presses(signal.SIGINT)
        assert watcher.sees_it_end()[0] == 0
