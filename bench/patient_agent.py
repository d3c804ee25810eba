"""An agent for ``python:bench.patient_agent:run``: works until it is cancelled and notes when.

Writes ``time.monotonic()`` of each cancellation as a line into the file ``BENCH_CANCELLED``.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from goclaw_py.core.run_events import TextDelta
from goclaw_py.runs.agent_loop import Emit, RunRequest


def note(at: float) -> None:
    """Write down a cancellation."""
    with Path(os.environ["BENCH_CANCELLED"]).open("a") as file:
        file.write(f"{at}\n")


async def run(request: RunRequest, emit: Emit) -> str:
    """Answer ``quick …`` at once, anything else never."""
    if request.prompt.startswith("quick"):
        emit(TextDelta("quick"))
        return f"quick {time.monotonic()}"
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        note(time.monotonic())
        raise
    return ""
