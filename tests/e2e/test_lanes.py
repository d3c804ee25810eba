"""What an operator sees and does while a lane is full (LANE-7, LANE-9, OPS-4)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.botapi.control import Control
from tests.support.process import Home, Program, wait_for

ANN, BOB = 1001, 1002


@pytest.fixture
def narrow(bot: Home) -> Home:
    """Its main lane has room for one; nobody's typing is waited for."""
    bot.env |= {"GOCLAW_LANE_MAIN": "1", "GOCLAW_QUEUE__DEBOUNCE_MS": "0"}
    bot.env |= {"GOCLAW_QUEUE__CAPACITY": "1", "GOCLAW_SHUTDOWN__WAIT": "0s"}
    return bot


def seen(place: Home, *command: str) -> Any:
    code, output = place.goclaw(*command, "--json")
    assert code == 0, output
    return json.loads(output)


def main_lane(place: Home) -> Any:
    return next(use for use in seen(place, "lanes")["lanes"] if use["lane"]["name"] == "main")


def fill(place: Home, api: Control) -> Program:
    """Ann's run is in the lane, Bob's waits for it."""
    gateway = place.start()
    api.say(ANN, "count to 100")
    wait_for(lambda: main_lane(place)["inside"], "the first run")
    api.say(BOB, "count to 100", name="Bob")
    wait_for(lambda: main_lane(place)["waiting"], "the second one")
    return gateway


def test_a_full_lane_is_seen_and_resized_and_nobody_is_cancelled(
    narrow: Home, api: Control
) -> None:
    """LANE-7, LANE-9: who is in it, who waits, and a word about a slow wait."""
    gateway = fill(narrow, api)
    code, output = narrow.goclaw("lanes")
    assert code == 0
    lines = output.splitlines()
    assert any(line.split()[:3] == ["main", "1/1", "1"] for line in lines), output
    (inside,) = [line for line in lines if line.startswith("running ")]
    (first,) = [line for line in lines if line.startswith("1.")]
    assert f"telegram:direct:{ANN}" in inside
    assert f"telegram:direct:{BOB}" in first
    _, ann, bob = narrow.goclaw("runs", "--active")[1].splitlines()
    assert "running" in ann
    assert "  lane main: no slot is free  " in bob

    wait_for(lambda: "lane_wait_slow" in gateway.output, "a word about the slow wait")
    (line,) = [line for line in gateway.output.splitlines() if "lane_wait_slow" in line]
    facts = json.loads(line)
    assert str(BOB) in facts["session"]
    assert str(ANN) in facts["occupants"][0]
    (warning,) = seen(narrow, "status")["warnings"]
    assert warning["text"].endswith("Bob; in it: Ann")

    code, output = narrow.goclaw("lanes", "set", "main", "2")
    assert (code, output.splitlines()[0]) == (0, "lane main: 1 → 2")
    wait_for(lambda: len(main_lane(narrow)["inside"]) == 2, "both runs in the lane")
    assert seen(narrow, "status")["warnings"] == []
    code, output = narrow.goclaw("lanes", "set", "main", "1")
    assert "2 runs in the lane continue" in output
    use = main_lane(narrow)
    assert [run["state"] for run in use["inside"]] == ["running", "running"]
    assert (use["lane"]["concurrency"], use["lane"]["cancelled"]) == (1, 0)
    code, output = narrow.goclaw("lanes", "set", "nine", "1")
    assert code == 2
    assert "main, subagent, delegate, cron" in output
