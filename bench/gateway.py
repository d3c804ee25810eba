"""A whole gateway process: time to ready, memory, reaction to ``/stop``, time to the first token.

The gateway is a real process on the embedded database; Telegram is the tests' emulator, also a
process. Times are the system's monotonic clock, read in both.

    python -m bench.gateway [--rounds 5]
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.memory import resident_mb
from tests.botapi.control import Control
from tests.support.process import Home, emulator, home, telegram, wait_for

ANN = 1001
OPEN = {"GOCLAW_CHANNELS__TELEGRAM__DIRECT": "open"}
PATIENT = {"GOCLAW_AGENTS__MAIN__MODEL": "python:bench.patient_agent:run"}
WAITING = 100
DEBOUNCE_S = 0.8


def time_to_ready(place: Home) -> tuple[float, float]:
    """Seconds from ``exec`` to "ready" on an existing folder; MB after five idle seconds."""
    begin = time.monotonic()
    gateway = place.start()
    ready_s = time.monotonic() - begin
    time.sleep(5)
    memory = resident_mb(gateway.pid)
    gateway.end()
    return ready_s, memory


def stop_reaction(folder: Path) -> float:
    """Seconds from a ``/stop`` to the agent task's cancellation; lanes full, 100 waiting."""
    notes = folder / "cancelled"
    settings = (
        OPEN
        | PATIENT
        | {
            "BENCH_CANCELLED": str(notes),
            "GOCLAW_QUEUE__CAPACITY": "200",
            "GOCLAW_QUEUE__DEBOUNCE_MS": "0",
        }
    )
    with emulator() as api, home(folder, **telegram(api, **settings)) as place:
        place.start()
        for user in range(WAITING // 10 + 2):
            for number in range(10):
                api.say(ANN + user, f"work {number}")
        api.wait_confirmed(timeout_s=20)
        begin = time.monotonic()
        api.say(ANN, "/stop")
        wait_for(notes.exists, "the cancellation")
        return float(notes.read_text().splitlines()[0]) - begin


def _since(api: Control, seen: int) -> list[str]:
    return api.texts(ANN)[seen:]


def first_token(folder: Path) -> list[float]:
    """Seconds from a message to the agent's first token, less the debounce window."""
    settings = OPEN | PATIENT | {"BENCH_CANCELLED": "/dev/null"}
    found: list[float] = []
    with emulator() as api, home(folder, **telegram(api, **settings)) as place:
        place.start()
        time.sleep(1)
        for number in range(10):
            begin = time.monotonic()
            api.say(ANN, "quick")
            texts = wait_for(partial(_since, api, number), "an answer")
            found.append(float(texts[0].split()[1]) - begin - DEBOUNCE_S)
    return found


def report(name: str, unit: str, values: list[float], limit: float) -> None:
    """Print one line for people and one for programs."""
    median = statistics.median(values)
    print(f"{name:24} median {median:8.3f}  max {max(values):8.3f} {unit:3}  wanted < {limit:g}")
    print(json.dumps({"bench": name, "unit": unit, "median": median, "max": max(values)}))


def measure(rounds: int, once: Callable[[Path], float]) -> list[float]:
    """Measure several times, each in a folder of its own."""
    found = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="goclaw-bench-") as folder:
            found.append(once(Path(folder)))
    return found


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(prog="python -m bench.gateway", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with (
        tempfile.TemporaryDirectory(prefix="goclaw-bench-") as folder,
        emulator() as api,
        home(Path(folder), **telegram(api, **OPEN)) as place,
    ):
        place.start().end()
        starts = [time_to_ready(place) for _ in range(rounds)]
        report("ready", "s", [start[0] for start in starts], 2)
        report("memory offline", "MB", [start[1] for start in starts], 90)
        place.env |= {"GOCLAW_AGENTS__MAIN__MODEL": "openai:x", "OPENAI_API_KEY": "sk-none"}
        report("memory openai", "MB", [time_to_ready(place)[1] for _ in range(2)], 130)
    report("stop", "s", measure(rounds, stop_reaction), 0.2)
    with tempfile.TemporaryDirectory(prefix="goclaw-bench-") as folder:
        report("first token", "s", first_token(Path(folder)), 0.1)


if __name__ == "__main__":
    main()
