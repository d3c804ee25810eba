"""Two gateways on one database, also on machines whose clocks are off (SPEC NODE-1)."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from goclaw_py.chat.access import access_texts
from tests.botapi.control import Control
from tests.support.process import ROOT, Home, Program, home, telegram, wait_for
from tests.tools.debian_tools import path_of

ANN = 1001
BOB = 1002
BOT = "telegram/default"


def test_what_one_gateway_works_on_is_stopped_and_drained_from_the_other(
    tmp_path: Path, api: Control, postgres_url: str
) -> None:
    """SPEC NODE-1, NODE-3: whichever of them an operator asks."""
    settings = telegram(
        api, GOCLAW_CHANNELS__TELEGRAM__DIRECT="open", GOCLAW_DATABASE_URL=postgres_url
    )
    with home(tmp_path / "one", **settings) as one, home(tmp_path / "two", **settings) as two:
        first = one.start()
        second = two.start(GOCLAW_LANE_MAIN="5")
        (node,) = wait_for(lambda: receivers(two), "who receives for the bot")
        assert node["pid"] == first.pid
        wait_for(lambda: "has other settings here: [lanes]" in two.goclaw("status")[1], "a warning")

        api.say(ANN, "slow 60")
        (run,) = wait_for(lambda: one.rows("runs", "list", "--active"), "a run")
        status = json.loads(two.goclaw("status", "--json")[1])
        assert [peer["pid"] for peer in status["peers"]] == [first.pid]
        assert [lane["name"] for lane in status["lanes"] if lane["shared"]] == ["cron"]
        code, said = two.goclaw("stop", run["session"])
        assert (code, said) == (0, f"stopped {run['id']}\n")
        wait_for(lambda: one.rows("runs", "list")[0]["outcome"] == "cancelled", "its end")

        code, said = two.goclaw("nodes", "drain", node["id"], "--yes")
        assert (code, f"(pid {first.pid})" in said) == (0, True), said
        assert first.wait() == 0
        api.say(BOB, "echo anybody?")
        wait_for(lambda: "anybody?" in api.texts(BOB), "the answer of the second one")
        (node,) = wait_for(lambda: receivers(two), "the second one as who receives")
        assert node["pid"] == second.pid


def test_a_stranger_is_let_in_once_whoever_decides_at_which_gateway(
    tmp_path: Path, api: Control, postgres_url: str
) -> None:
    """SPEC CHAN-5: an owner by a button and the operator at another gateway, at the same moment."""
    settings = telegram(api, GOCLAW_DATABASE_URL=postgres_url)
    with home(tmp_path / "one", **settings) as one, home(tmp_path / "two", **settings) as two:
        one.start()
        two.start()
        api.say(ANN, "echo I am Ann")
        assert two.goclaw("people", "approve", code_of(api, ANN))[0] == 0
        wait_for(lambda: "I am Ann" in api.texts(ANN), "an answer to what she wrote")

        api.say(BOB, "echo I am Bob", name="Bob")
        code = code_of(api, BOB)
        (asks,) = wait_for(lambda: [seen for seen in api.view(ANN) if seen.buttons], "a question")
        api.press(ANN, asks.message_id, asks.buttons[0][0].data)
        exit_code, _ = two.goclaw("people", "approve", code, "--yes")
        wait_for(lambda: "I am Bob" in api.texts(BOB), "an answer to what he wrote")
        wait_for(lambda: not [seen for seen in api.view(ANN) if seen.buttons], "no more buttons")
        wait_for(lambda: api.presses()[0].text, "a toast")
        by, toast = "the operator", access_texts.DECIDED
        if exit_code:  # the button was quicker
            by, toast = "Ann", "✅ Bob can talk to me now, as a guest."
        assert api.presses()[0].text == toast
        wait_for(lambda: any(f" by {by}" in text for text in api.texts(ANN)), "who has decided")
        assert api.texts(BOB)[1:] == [access_texts.WELCOME, "I am Bob"]


def code_of(api: Control, user: int) -> str:
    """The pairing code that somebody was shown."""
    (greeting,) = wait_for(lambda: api.texts(user), "a pairing code")
    found = re.search(r"\b[A-Z2-9]{8}\b", greeting)
    assert found is not None
    return found.group()


def receivers(gateway: Home) -> list[dict[str, Any]]:
    """The nodes that receive for the bot, as of their last report, which is made every 2 s."""
    code, output = gateway.goclaw("nodes", "list", "--json")
    assert code == 0, output
    return [node for node in json.loads(output)["nodes"] if BOT in node["state"]["places"]]


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
            line = rf"he clock of this machine is 5 min {where} the database's, whose clock"
            assert re.search(f"T{line} is used", " ".join(command(place, "status").split()))
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
    done = subprocess.run(
        line, cwd=ROOT, env=place.env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
