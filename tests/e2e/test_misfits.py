"""Machines whose clocks are off (SPEC NODE-1)."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.botapi.control import Control
from tests.support.process import ROOT, Home, Program, home, telegram, wait_for
from tests.tools.debian_tools import path_of

ANN = 1001


def test_machines_whose_clocks_are_off_work_by_the_time_of_the_database(
    tmp_path: Path, api: Control, postgres_url: str
) -> None:
    """NODE-1: five minutes ahead and five behind, neither declares the other dead."""
    settings = telegram(
        api, GOCLAW_CHANNELS__TELEGRAM__DIRECT="open", GOCLAW_DATABASE_URL=postgres_url
    )
    with home(tmp_path / "one", **settings) as one, home(tmp_path / "two", **settings) as two:
        gateways = [start_off(one, "+300"), start_off(two, "-300")]
        for place, gateway, where in zip((one, two), gateways, ("ahead of", "behind"), strict=True):
            # Whoever measures on a busy machine is a little late.
            line = rf"the clock of this machine is (29|30)\d s {where} the database's, whose clock"
            assert re.search(f"warning: {line} is used", command(place, "status"))
            assert len(re.findall(line, gateway.output)) == 1
        nodes = json.loads(command(one, "nodes", "list", "--json"))["nodes"]
        skews = [round(node["state"]["skew_s"] / 100) for node in nodes]
        assert skews == [3, -3]
        api.say(ANN, "remind me in 3 seconds to breathe")
        wait_for(lambda: "breathe" in "".join(api.texts(ANN)[1:]), "the reminder")
        for gateway in gateways:
            assert gateway.alive()
            assert "lease_lost" not in gateway.output
            assert "expired_nodes_recovered" not in gateway.output
        assert len(json.loads(command(two, "nodes", "list", "--json"))["nodes"]) == 2


def start_off(place: Home, offset: str) -> Program:
    """A gateway, and commands, on a machine whose clock is off by so many seconds."""
    place.env |= {
        "LD_PRELOAD": str(path_of("libfaketime.so.1")),
        "FAKETIME": f"{offset}s",
        # Nobody can set the steady clock.
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_DISABLE_SHM": "1",
    }
    return place.start()


def command(place: Home, *arguments: str) -> str:
    """What a command prints in a process of its own, which has the clock of that machine."""
    line = [sys.executable, "-m", "goclaw_py", *arguments]
    return subprocess.run(
        line, cwd=ROOT, env=place.env, capture_output=True, text=True, check=True
    ).stdout
