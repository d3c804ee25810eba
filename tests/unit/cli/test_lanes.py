"""``goclaw lanes``: what it prints, and what it refuses (SPEC LANE-7, LANE-9)."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from goclaw_py.cli.output import clock
from tests.unit.cli.conftest import Shell, ThreadGateway
from tests.unit.web import fakes
from tests.unit.web.fakes import FakeControl

WATCH = [sys.executable, "-m", "goclaw_py", "lanes", "--watch"]
PATIENCE_S = 20


# ---------------------------------------------------------------------------- one look


def test_lanes_are_shown_with_their_numbers_and_times(
    goclaw: Shell, gateway: ThreadGateway
) -> None:
    got = goclaw("lanes")
    assert got.code == 0
    head, main, cron = got.out.splitlines()[:3]
    assert head.split()[:7] == [
        *("LANE", "ACTIVE", "WAITING", "STARTED", "FINISHED", "CANCELLED", "FAILED")
    ]
    assert main.split() == [
        *("main", "1/1", "1", "5", "3", "1", "0"),
        *("≤", "5ms", "≤", "10s", ">", "1h", ">", "1h"),
    ]
    assert cron.split() == ["cron", "0/1", "closed", *["0"] * 5, *["-"] * 4]


def test_below_a_lane_stand_those_in_it_and_its_line(goclaw: Shell, gateway: ThreadGateway) -> None:
    out = goclaw("lanes").out
    _, _, people = out.partition("lane main, 1 of 1 taken, 1 waiting\n")
    _, inside, waiting = people.splitlines()
    since = clock(fakes.NOW - timedelta(seconds=1.5))
    assert inside.split() == [
        *("running", fakes.RUN_ID, fakes.SESSION, "main", "running"),
        *since.split(),
        "1.5s",
    ]
    assert waiting.split()[:2] == ["1.", "0190-cccc"]
    assert waiting.split()[-1] == "3.2s"
    assert "waiting" in waiting
    assert "lane cron" not in out


def test_lanes_are_json_for_programs(goclaw: Shell, gateway: ThreadGateway) -> None:
    found = json.loads(goclaw("lanes", "--json").out)
    (main, _) = found["lanes"]
    assert main["lane"]["name"] == "main"
    assert main["waiting"][0]["waits_for"] == "lane"
    assert len(main["lane"]["wait_times"]["bounds_s"]) + 1 == len(
        main["lane"]["wait_times"]["counts"]
    )


def test_without_a_gateway_there_are_no_lanes(goclaw: Shell, database: FakeControl) -> None:
    for command in (["lanes"], ["lanes", "--json"], ["lanes", "set", "main", "2"]):
        got = goclaw(*command)
        assert (got.code, got.out) == (3, "")
        assert got.err.startswith("goclaw: no gateway ")


def test_options_before_the_last_word_are_refused(goclaw: Shell, gateway: ThreadGateway) -> None:
    for option in ("--json", "--watch"):
        got = goclaw("lanes", option, "set", "main", "2")
        assert got.code == 2
        assert "put options after" in got.err
    assert gateway.control.calls == []


# ---------------------------------------------------------------------------- set


def test_a_new_size_is_told_with_the_old_one_and_how_long_it_holds(
    goclaw: Shell, gateway: ThreadGateway
) -> None:
    got = goclaw("lanes", "set", "main", "4")
    assert got.code == 0
    first, second = got.out.splitlines()
    assert first == "lane main: 1 → 4"
    assert "until the gateway restarts" in second
    assert "main = 4 under [lanes]" in second
    assert gateway.control.calls[-1] == ("resize_lane", "main", 4)


def test_a_lane_that_is_smaller_than_what_is_in_it_says_so(
    goclaw: Shell, gateway: ThreadGateway
) -> None:
    goclaw("lanes", "set", "main", "4")
    out = goclaw("lanes", "set", "main", "1").out
    assert "lane main: 4 → 1" in out
    assert "2 runs in the lane continue" in out


@pytest.mark.parametrize(
    ("name", "shared", "setting"),
    [
        ("main", False, "main = 4 under"),
        ("main", True, 'main = { size = 4, scope = "cluster" } under'),
        ("cron", False, 'cron = { size = 4, scope = "node" } under'),
        ("cron", True, "cron = 4 under"),
    ],
)
def test_what_is_to_be_written_leaves_whose_runs_count_as_it_is(
    goclaw: Shell,
    gateway: ThreadGateway,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    setting: str,
    *,
    shared: bool,
) -> None:
    """SPEC NODE-2: a shared lane is resized at each gateway."""
    lanes = [replace(use, lane=replace(use.lane, shared=shared)) for use in fakes.LANES.lanes]
    monkeypatch.setattr(fakes, "LANES", replace(fakes.LANES, lanes=tuple(lanes)))
    out = goclaw("lanes", "set", name, "4").out
    assert setting in out
    assert (
        "but only this gateway was changed: run the same command on each of them" in out
    ) is shared


def test_the_same_size_again_is_no_change(goclaw: Shell, gateway: ThreadGateway) -> None:
    assert goclaw("lanes", "set", "main", "1").out.startswith("lane main already has size 1\n")


def test_a_new_size_is_json_for_programs(goclaw: Shell, gateway: ThreadGateway) -> None:
    done = json.loads(goclaw("lanes", "set", "main", "4", "--json").out)
    assert (done["before"], done["lane"]["concurrency"]) == (1, 4)


@pytest.mark.parametrize(
    "size", ["0", "-1", "1.5", "100001", "9" * 400, "two", "", " ", "1_0", "+1", "٣", "true"]
)
def test_a_wrong_size_is_wrong_usage_and_changes_nothing(
    goclaw: Shell, gateway: ThreadGateway, size: str
) -> None:
    got = goclaw("lanes", "set", "main", size)
    assert got.code == 2
    assert "whole number from 1 to 100000" in got.err
    assert gateway.control.calls == []


def test_an_unknown_lane_is_wrong_usage_and_the_lanes_are_named(
    goclaw: Shell, gateway: ThreadGateway
) -> None:
    got = goclaw("lanes", "set", "mian", "2")
    assert got.code == 2
    assert "no lane 'mian'; lanes: main, cron" in got.err
    assert gateway.control.calls == [("lanes",)]


@pytest.mark.parametrize("words", [["main"], ["main", "2", "3"], [" ", "2"], []])
def test_set_takes_a_name_and_a_size(
    goclaw: Shell, gateway: ThreadGateway, words: list[str]
) -> None:
    assert goclaw("lanes", "set", *words).code == 2


# ---------------------------------------------------------------------------- watch


class Watcher:
    """``goclaw lanes --watch`` in a terminal of its own."""

    def __init__(self) -> None:
        self.screen, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))
        self.process = subprocess.Popen(
            WATCH, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)

    def sees(self, text: str) -> None:
        seen, deadline = "", time.monotonic() + PATIENCE_S
        while text not in seen:
            ready, _, _ = select.select([self.screen], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"{text!r} does not come after {seen!r}"
            seen += os.read(self.screen, 65536).decode()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.screen)


@pytest.fixture
def watcher(home: Path) -> Iterator[Watcher]:
    made = Watcher()
    try:
        yield made
    finally:
        made.close()


def test_a_watcher_sees_the_gateway_come_go_and_come_back_and_ends_with_ctrl_c(
    watcher: Watcher, home: Path
) -> None:
    watcher.sees("waiting for a gateway")
    for _ in range(2):
        gateway = ThreadGateway(home)
        with gateway.running():
            watcher.sees("lane main, 1 of 1 taken, 1 waiting")
            watcher.sees("\x1b[J\x1b[H")
            watcher.sees("lane main, 1 of 1 taken, 1 waiting")
        watcher.sees("waiting for a gateway")
    watcher.process.send_signal(signal.SIGINT)
    assert watcher.process.wait(PATIENCE_S) == 0


def test_a_watcher_that_writes_to_a_pipe_writes_whole_looks_and_ends_in_peace(
    gateway: ThreadGateway,
) -> None:
    with subprocess.Popen(
        [*WATCH, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for _ in range(2):
            assert len(json.loads(process.stdout.readline())["lanes"]) == 2
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
        assert process.stderr.read() == ""
