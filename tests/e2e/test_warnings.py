"""Commands that warnings and explanations show are run as they are written (SPEC OPS-4)."""

from __future__ import annotations

import json
import shlex
from typing import Any

from tests.botapi.control import Control
from tests.support.process import Home, wait_for

ANN, BOB = 1001, 1002


def seen(place: Home, *command: str) -> Any:
    code, output = place.goclaw(*command, "--json")
    assert code == 0, output
    return json.loads(output)


def test_each_command_of_a_warning_works_when_it_is_copied(bot: Home, api: Control) -> None:
    bot.env |= {"GOCLAW_LANE_MAIN": "1", "GOCLAW_QUEUE__DEBOUNCE_MS": "0"}
    bot.env |= {"GOCLAW_SHUTDOWN__WAIT": "0s"}
    bot.start()
    api.say(ANN, "fail")
    wait_for(lambda: seen(bot, "inbox", "list"), "a message without an answer")
    api.say(ANN, "count to 1000")
    wait_for(lambda: seen(bot, "runs", "list", "--active"), "the first run")
    api.say(BOB, "echo hello")

    def warned() -> list[dict[str, str]]:
        found: list[dict[str, str]] = seen(bot, "status")["warnings"]
        return found if len(found) == 2 else []

    warnings = wait_for(warned, "two warnings")
    assert {one["code"] for one in warnings} == {"gateway.unanswered", "gateway.lane_full"}
    cures = [
        *seen(bot, "why")["cures"],
        *seen(bot, "why", f"telegram:{BOB}")["cures"],
        *seen(bot, "why", f"telegram:{ANN}")["cures"],
    ]
    commands = {one["command"] for one in (*warnings, *cures) if one["command"]}
    assert len(commands) > 4
    for command in sorted(commands):
        name, *words = shlex.split(command)
        assert name == "goclaw"
        # These go on until they are ended.
        if words[:2] == ["runs", "follow"] or words == ["run"]:
            continue
        code, output = bot.goclaw(*words)
        assert code == 0, f"{command}\n{output}"
