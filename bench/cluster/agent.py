"""An agent for ``python:bench.cluster.agent:run`` that tells when it works, and where.

A prompt that begins with ``hold`` is worked on for ever the first time, and answered at once when
another process takes it up; ``busy SECONDS`` takes so long; anything else is answered at once.
``BENCH_NOTES`` names a file to which each process adds lines: what happened, ``time.monotonic()``,
its process id, the prompt.
"""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from goclaw_py.runs.agent_loop import Emit, RunRequest

HOLD: Final = "hold"
BUSY: Final = "busy"
FILE: Final = "BENCH_NOTES"

BEGAN: Final = "began"
ENDED: Final = "ended"

_FOR_EVER_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Note:
    """Something that happened. ``at_s`` is on the clock of all processes of a machine."""

    what: str
    at_s: float
    process: int
    prompt: str


def read(file: Path) -> list[Note]:
    """What all processes have noted, in that order; a line that is being written is left out."""
    if not file.exists():
        return []
    whole, _, _ = file.read_text().rpartition("\n")
    return [_note(line) for line in whole.splitlines()]


def _note(line: str) -> Note:
    what, at, process, prompt = line.split(" ", 3)
    return Note(what, float(at), int(process), prompt)


async def run(request: RunRequest, emit: Emit) -> str:
    """Answer, or hold."""
    del emit
    file, prompt = Path(os.environ[FILE]), request.prompt.splitlines()[0]
    known = prompt.startswith(HOLD) and any(note.prompt == prompt for note in read(file))
    _write(file, BEGAN, prompt)
    if prompt.startswith(HOLD) and not known:
        try:
            await asyncio.sleep(_FOR_EVER_S)
        finally:
            _write(file, ENDED, prompt)
    if prompt.startswith(BUSY):
        await asyncio.sleep(float(prompt.split()[1]))
        _write(file, ENDED, prompt)
    return f"{prompt}: done"


def _write(file: Path, what: str, prompt: str) -> None:
    # One write to a file that is opened for appending: lines of two processes do not mix.
    with file.open("ab", buffering=0) as notes:
        notes.write(f"{what} {time.monotonic()} {os.getpid()} {prompt}\n".encode())
