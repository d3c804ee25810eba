"""An agent for ``python:bench.telegram.agent:run`` that takes no time.

A prompt that begins with ``hold`` is answered only when somebody has said ``release``.
"""

from __future__ import annotations

import asyncio

from goclaw_py.runs.agent_loop import Emit, RunRequest

HOLD = "hold"
RELEASE = "release"

_released = asyncio.Event()


def answer_to(prompt: str) -> str:
    """What people see: the answer without its markup."""
    return f"{prompt}: sunny, 21 °C. No umbrella needed."


async def run(request: RunRequest, emit: Emit) -> str:
    """Answer in a sentence, with some markup as models write it."""
    if request.prompt == RELEASE:
        _released.set()
    if request.prompt.startswith(HOLD):
        await _released.wait()
    return f"{request.prompt}: **sunny**, 21 °C. No umbrella needed."
