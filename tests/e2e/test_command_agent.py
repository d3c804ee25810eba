"""A program as the agent of a real gateway (SPEC AGENT-2b, CMD-4)."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.botapi.control import Control
from tests.support.process import Home, home, telegram, wait_for

ANN = 1001
PROGRAM = """
import os, sys, time
prompt = sys.stdin.read()
if prompt == "work":
    print("pid", os.getpid(), flush=True)
    time.sleep(600)
print(prompt.upper())
"""
# The prompt is its last argument, beside what it is told and the id of the conversation.
TALKER = """
import json, sys
kind, system, session, prompt = sys.argv[1:]
text = f"{kind} {session} {system!r} {prompt.upper()}"
print(json.dumps({"type": "message", "text": text}))
print(json.dumps({"type": "result", "usage": {"in": 1200, "out": 34}, "usd": 0.25, "turns": 2}))
"""


@contextmanager
def gateway(folder: Path, api: Control, program: str, *more: str) -> Iterator[Home]:
    """One that runs a program; ``more`` are lines of its settings."""
    with home(folder, **telegram(api, GOCLAW_CHANNELS__TELEGRAM__DIRECT="open")) as place:
        run = json.dumps([sys.executable, "-c", program])
        settings = ["[agents.main]", 'model = "command"', "[agents.main.command]", f"run = {run}"]
        (folder / "goclaw.toml").write_text("\n".join([*settings, *more]))
        yield place


def test_a_program_answers_and_ends_with_a_stop(tmp_path: Path, api: Control) -> None:
    with gateway(tmp_path / "home", api, PROGRAM) as place:
        place.start()
        api.say(ANN, "hello")
        wait_for(lambda: api.texts(ANN) == ["HELLO"], "the answer of the program")
        api.say(ANN, "work")
        shown = wait_for(lambda: [t for t in api.texts(ANN) if "pid" in t], "what it shows")
        pid = int(shown[0].split()[1])
        api.say(ANN, "/stop")
        wait_for(lambda: not Path(f"/proc/{pid}").exists(), "the end of the program")
        wait_for(lambda: any("Stopped" in text for text in api.texts(ANN)), "the answer")


def test_a_conversation_with_a_program_goes_on_until_it_begins_anew(
    tmp_path: Path, api: Control
) -> None:
    """AGENT-5, CMD-5: what it tells that it has used is what ``/usage`` shows."""
    settings = (
        'first = ["new", "{system}", "{session}", "{prompt}"]',
        'later = ["on", "{system}", "{session}", "{prompt}"]',
        'output = "jsonl"',
        'text = ["type=message text"]',
        'usage = { input = "usage.in", output = "usage.out", cost = "usd", turns = "turns" }',
    )

    def say(text: str, words: str) -> str:
        api.say(ANN, text)
        return wait_for(lambda: [t for t in api.texts(ANN) if words in t], f"{words} of {text}")[-1]

    with gateway(tmp_path / "home", api, TALKER, *settings) as place:
        (tmp_path / "home" / "workspace").mkdir()
        (tmp_path / "home" / "workspace" / "AGENTS.md").write_text("Be kind.")
        running = place.start()
        kind, session, *told = say("hello", "HELLO").split(" ", 3)
        assert (kind, told) == ("new", ["'Be", "kind.' HELLO"])
        assert say("more", "MORE").split()[:2] == ["on", session]
        assert "4 model requests, 2,468 tokens, $0.50" in say("/usage", "Agent main")
        api.say(ANN, "/new")
        anew = say("again", "AGAIN").split()
        assert anew[0] == "new"
        assert anew[1] != session
        assert "Traceback" not in running.output
