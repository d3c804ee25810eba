"""From a stored message to the request at the model server, in chats that are idle."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from bench.telegram.crowd import FIRST
from goclaw_py.scheduler.models import Debounce
from tests.botapi.control import Control
from tests.support.process import ROOT, emulator, home, telegram, wait_for

_WARM_UP = 5
"""The first requests import libraries and connect."""


def measure(debounce: Debounce, messages: int) -> list[float]:
    """Milliseconds for each message; each chat writes one."""
    with (
        tempfile.TemporaryDirectory(prefix="goclaw-bench-") as folder,
        emulator() as api,
        model_server() as url,
        home(Path(folder), **_settings(api, url, debounce)) as place,
    ):
        place.start()
        for number in range(_WARM_UP + messages):
            api.say(FIRST + number, f"say {number}")
            wait_for(partial(api.texts, FIRST + number), "the answer")
        arrived = _arrivals(url)
        runs = place.rows("runs", "list", "--limit", str(_WARM_UP + messages))
    stored = {run["session"].rsplit(":", 1)[1]: run["submitted_at"] for run in runs}
    return [
        1000 * (arrived[number] - _seconds(stored[str(FIRST + number)]))
        for number in range(_WARM_UP, _WARM_UP + messages)
    ]


def _settings(api: Control, url: str, debounce: Debounce) -> dict[str, str]:
    return telegram(
        api,
        GOCLAW_CHANNELS__TELEGRAM__DIRECT="open",
        GOCLAW_AGENTS__MAIN__MODEL="openai:gpt-4o",
        GOCLAW_AGENTS__MAIN__BASE_URL=url,
        GOCLAW_QUEUE__DEBOUNCE=debounce.value,
        OPENAI_API_KEY="none",
    )


@contextmanager
def model_server() -> Iterator[str]:
    """A model server in a process of its own; its address."""
    command = [sys.executable, "-m", "tests.support.model_server", "--port", "0"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.stdin.close()


def _arrivals(url: str) -> dict[int, float]:
    """When the request for each message arrived, by the system's clock."""
    offset = time.time() - time.monotonic()
    with urllib.request.urlopen(f"{url.removesuffix('/v1')}/seen") as answer:
        seen: list[dict[str, Any]] = json.load(answer)
    return {int(one["order"].split()[1]): one["at"] + offset for one in seen}


def _seconds(instant: str) -> float:
    return datetime.fromisoformat(instant).timestamp()
