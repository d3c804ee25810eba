"""What happens in the gateway whose outputs are recorded: a bit of everything, in a fixed order.

Only public ways are used (the Bot API, the command line, files), so any commit can play it. Each
step waits for what it causes; otherwise two recordings of one commit would differ.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from bench.telegram.gateways import Tree
from tests.botapi.control import Control
from tests.support.process import Home, wait_for

ANN: Final = 1001
BOB: Final = 1002

SETTINGS: Final[Mapping[str, str]] = {
    "GOCLAW_AGENTS__MAIN__APPROVAL__ASK": '["write_file"]',
    "GOCLAW_HEARTBEAT__INTERVAL": "24h",
    "GOCLAW_QUEUE__DEBOUNCE_MS": "0",
    "GOCLAW_WEB__API": "true",
    "TZ": "UTC",
    "COLUMNS": "100",
}

_CHECKLIST: Final = "# Checks\n\n- [ ] The disk is nearly full\n- [x] done already\n"

_COMMANDS: Final = (
    ("cron", "add", "news", "--every", "6h", "--", "echo", "the", "news"),
    ("cron", "add", "weekly", "--cron", "0 9 * * 1", "--tz", "Europe/Berlin", "--message", "Hello"),
    ("cron", "add", "failing", "--every", "12h", "--", "fail"),
    ("cron", "add", "paused", "--every", "1d", "--paused", "--", "echo", "later"),
    ("cron", "run", "news"),
    ("cron", "run", "failing"),
    ("heartbeat", "run"),
    ("event", "The backup failed"),
    ("lanes", "set", "main", "5"),
    ("config", "set", "queue.debounce_ms", "10"),
)
"""What the operator does."""

_TALK: Final = (
    "/help", "/status", "/commands", "/model", "/agent", "/usage", "/budget", "/queue", "/debounce",
    "/verbose", "/jobs", "/heartbeat", "/activation", "/compact", "/whoami", "/why", "/context",
    "echo **bold** `code` https://example.com/_v1_", "count to 3", "remember the milk", "facts",
    "ask subagent echo within", "fail", "tools", "nonsense", "remind me in 2 hours to stretch",
    "schedules", "/title A chat", "/retry", "/bogus", "/new", "/stop", "/stopall",
)  # fmt: skip
"""What the owner writes, one after the other; each is answered."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A gateway of a tree with its Telegram."""

    place: Home
    api: Control
    tree: Tree

    def goclaw(self, *arguments: str) -> str:
        """Run a command of the tree; return what it prints, and how it ends."""
        done = subprocess.run(
            [str(self.tree.python), "-m", "goclaw_py", *arguments],
            cwd=self.tree.folder,
            env=self.place.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        return f"{done.stdout}{done.stderr}exit {done.returncode}\n"

    def rows(self, *arguments: str) -> list[dict[str, Any]]:
        """Return what a list of the tree has."""
        found: list[dict[str, Any]] = json.loads(
            self.goclaw(*arguments, "--json").rpartition("exit")[0]
        )
        return found


def play(stage: Stage) -> str:
    """Let everything happen; return what the commands printed. The gateway runs already."""
    api = stage.api
    api.say(ANN, "echo I am Ann", name="Ann")
    code = re.findall(r"\b[A-Z2-9]{8}\b", _answer(api, ANN, 0))[0]
    printed = [stage.goclaw("pairing", "approve", code)]
    wait_for(lambda: "I am Ann" in api.texts(ANN), "the first answer")
    for text in _TALK:
        said = len(api.texts(ANN))
        api.say(ANN, text, name="Ann")
        _answer(api, ANN, said)
        _settle(stage)
    (stage.place.folder / "workspace" / "HEARTBEAT.md").write_text(_CHECKLIST)
    for command in _COMMANDS:
        printed.append(f"$ goclaw {' '.join(command)}\n{stage.goclaw(*command)}")
        _settle(stage)
    said = len(api.texts(ANN))
    api.say(ANN, "write notes.txt secret", name="Ann")
    _answer(api, ANN, said)
    api.say(BOB, "echo I am Bob", name="Bob")
    _answer(api, BOB, 0)
    _settle(stage)
    return "\n".join(printed)


def _answer(api: Control, chat: int, before: int) -> str:
    return wait_for(lambda: api.texts(chat)[before:], f"an answer in {chat}")[0]


def _settle(stage: Stage) -> None:
    """Wait until no run is left but one that waits for a person."""
    wait_for(lambda: not stage.rows("runs", "list", "--active"), "the end of all runs")
