"""A program as the agent of a real gateway (SPEC AGENT-2b, CMD-4)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.botapi.control import Control
from tests.support.process import Home, wait_for

ANN = 1001
PROGRAM = """
import os, sys, time
prompt = sys.stdin.read()
if prompt == "work":
    print("pid", os.getpid(), flush=True)
    time.sleep(600)
print(prompt.upper())
"""


def test_a_program_answers_and_ends_with_a_stop(bot: Home, api: Control) -> None:
    run = json.dumps([sys.executable, "-c", PROGRAM])
    settings = f'[agents.main]\nmodel = "command"\n[agents.main.command]\nrun = {run}\n'
    (bot.folder / "goclaw.toml").write_text(settings)
    bot.start()
    api.say(ANN, "hello")
    wait_for(lambda: api.texts(ANN) == ["HELLO"], "the answer of the program")
    api.say(ANN, "work")
    shown = wait_for(lambda: [t for t in api.texts(ANN) if "pid" in t], "what it shows")
    pid = int(shown[0].split()[1])
    api.say(ANN, "/stop")
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), "the end of the program")
    wait_for(lambda: any("Stopped" in text for text in api.texts(ANN)), "the answer")
