"""Measures how soon a gateway answers while a model sends far too much: ``make bench-responses``.

A real gateway with an emulated Telegram. While one chat's run reads a response of 1 to 100 MB in 1
to 1,000,000 chunks, another chat says ``/stop`` and somebody asks ``/healthz``, again and again.
Goal: no answer takes more than 200 ms on a quiet machine.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path

import httpx

from goclaw_py.web.sockets import short_path, socket_path
from tests.botapi.control import Control
from tests.support.process import emulator, home, telegram, wait_for

GOAL_S = 0.2
SIZES = (1, 10, 100)
CHUNKS = (1, 100, 10_000, 1_000_000)
_CALM_S = 0.5
_PAUSE_S = 0.02
_LIMIT_S = 900.0


@contextmanager
def model_server() -> Iterator[int]:
    """Run the model server. Yields its port."""
    command = [sys.executable, "-m", "bench.responses.server"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        yield int(program.stdout.readline())
        assert program.stdin is not None
        program.stdin.close()


class Probes:
    """Asks for ``/healthz`` and says ``/stop`` until it ends, and keeps the slowest answers."""

    def __init__(self, client: httpx.Client, api: Control, chat: int) -> None:
        self.slowest_s: dict[str, float] = {}
        self.count = 0
        self._client = client
        self._api, self._chat = api, chat
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._repeat, args=work)
            for work in (("healthz", self._healthz), ("stop", self._stop))
        ]

    def __enter__(self) -> Probes:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _repeat(self, name: str, ask: Callable[[], object]) -> None:
        while not self._ended.wait(_PAUSE_S):
            begun = time.perf_counter()
            ask()
            self.slowest_s[name] = max(self.slowest_s.get(name, 0), time.perf_counter() - begun)
            self.count += 1

    def _healthz(self) -> None:
        assert self._client.get("healthz").status_code == HTTPStatus.OK

    def _stop(self) -> None:
        texts = len(self._api.texts(self._chat))
        self._api.say(self._chat, "/stop")
        wait_for(lambda: len(self._api.texts(self._chat)) > texts, "an answer", limit_s=_LIMIT_S)


def measure(client: httpx.Client, api: Control, chat: int, size: int, chunks: int) -> str:
    """Return a line of the table: a response, and the slowest answers meanwhile."""
    with Probes(client, api, chat=1) as probes:
        time.sleep(_CALM_S)
        begun = time.perf_counter()
        api.say(chat, f"flood {size * 10**6} {chunks}")
        wait_for(lambda: _end(client, chat), f"the run of chat {chat}", limit_s=_LIMIT_S)
        took = time.perf_counter() - begun
        time.sleep(_CALM_S)
    slowest = {name: round(seconds * 1000) for name, seconds in probes.slowest_s.items()}
    return (
        f"{size:>5} MB {chunks:>10,} {took:>8.1f} s {slowest['healthz']:>8} ms "
        f"{slowest['stop']:>8} ms   {probes.count:>5}   {_end(client, chat)}"
    )


def _end(client: httpx.Client, chat: int) -> str:
    """Return how the run of a chat has ended, "" before that; its reply may come later."""
    runs = client.get("api/runs", params={"limit": 3}).json()
    ends = [run["outcome"] for run in runs if run["session"].endswith(f":{chat}")]
    return str(ends[0] or "") if ends else ""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="make bench-responses")
    parser.add_argument("--quick", action="store_true", help="up to 10 MB in 10,000 chunks")
    is_quick = parser.parse_args().quick
    with (
        tempfile.TemporaryDirectory() as folder,
        model_server() as port,
        emulator() as api,
        home(Path(folder), **telegram(api, GOCLAW_CHANNELS__TELEGRAM__DIRECT="open")) as place,
    ):
        (place.folder / "goclaw.toml").write_text(
            f"[agents.main]\nmodel = 'openai:flood'\nbase_url = 'http://127.0.0.1:{port}/v1'\n"
            "api_key = 'none'\n"
        )
        place.start()
        with (
            short_path(socket_path(place.state)) as name,
            httpx.Client(
                transport=httpx.HTTPTransport(uds=name), base_url="http://goclaw/", timeout=60
            ) as client,
        ):
            print(f"{'size':>8} {'chunks':>10} {'run':>10} {'/healthz':>11} {'/stop':>11}   asked")
            api.say(1, "hello")  # which loads the library of models
            api.wait_texts(1)
            measure(client, api, 2, 0, 1)
            chat = 100
            print(measure(client, api, chat, 0, 1), flush=True)
            for size in SIZES[: 2 if is_quick else None]:
                for chunks in CHUNKS[: 3 if is_quick else None]:
                    chat += 1
                    print(measure(client, api, chat, size, chunks), flush=True)
    print(f"goal: no answer takes more than {GOAL_S * 1000:g} ms on a quiet machine")


if __name__ == "__main__":
    main()
