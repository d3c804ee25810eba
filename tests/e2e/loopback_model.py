"""The loopback model server as a process of its own, for gateways that are processes too."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.process import ROOT, Home


class Model:
    """The model server as a process of its own."""

    def __init__(self, url: str) -> None:
        self.url = url

    def seen(self) -> list[dict[str, Any]]:
        with urllib.request.urlopen(f"{self.url.removesuffix('/v1')}/seen") as answer:
            seen: list[dict[str, Any]] = json.load(answer)
        return seen


@contextmanager
def model_server() -> Iterator[Model]:
    """Runs while it is entered."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.model_server", "--port", "0"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield Model(process.stdout.readline().strip())
    finally:
        process.terminate()
        process.wait(10)
        process.stdin.close()
        process.stdout.close()


def use(bot: Home, model: Model) -> None:
    bot.env |= {
        "GOCLAW_AGENTS__MAIN__MODEL": "openai:a-model",
        "GOCLAW_AGENTS__MAIN__BASE_URL": model.url,
        "GOCLAW_AGENTS__MAIN__API_KEY": "sk-loopback",
        "GOCLAW_QUEUE__DEBOUNCE_MS": "50",
    }
