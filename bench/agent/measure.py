"""CPU of one process for each turn."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bench.agent.contenders import CONTENDERS
from bench.scheduler.child import loops, run_on
from goclaw_py.app.loop import collect_less_often

_TOLD_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True)
class Case:
    """Whose turns, whether a tool is called in each, and how many turns are in the history."""

    contender: str
    model: str
    history: int


@contextmanager
def model_server() -> Iterator[str]:
    """A server in a process of its own; its address."""
    command = [sys.executable, "-m", "bench.agent.server"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as one:
        assert one.stdin is not None
        assert one.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(one.stdout.readline())}/v1"
        finally:
            one.stdin.close()
            one.wait(_TOLD_WITHIN_S)


def measure(case: Case, url: str, turns: int, warm_up: int) -> float:
    """CPU in ms a turn, on the loop that a gateway uses, with its garbage collector's settings."""
    collect_less_often()
    return run_on(loops()[-1], _measure(case, url, turns, warm_up))


async def _measure(case: Case, url: str, turns: int, warm_up: int) -> float:
    async with CONTENDERS[case.contender](url, case.model, case.history) as turn:
        for number in range(warm_up):
            await turn(f"question {number}")
        began = time.process_time()
        for number in range(turns):
            said = await turn(f"question {number}")
            if not said.startswith("word0"):
                raise RuntimeError(f"{case.contender} answered {said!r}")
        return 1000 * (time.process_time() - began) / turns
