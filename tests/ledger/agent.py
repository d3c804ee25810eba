"""The agent of the measured gateway, ``python:tests.ledger.agent:run``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

from goclaw_py.runs import agent_loop as ports

GROWS = "grow"
HANGS = "hang"
LOOKS_UP = "look up"
STEP = "forecast"
NOTHING = "HEARTBEAT_OK"
ALERT = "The backup of 09:00 has failed; the disk is full."

checklist_reply = NOTHING
"""What it answers in heartbeat runs."""


async def nothing() -> None:
    """Do nothing more."""


before_answer: Callable[[], Awaitable[None]] = nothing
"""What a planted fault does in each run."""


async def run(request: ports.RunRequest, emit: ports.Emit) -> str:
    """Answer at once; or in eight pieces during four seconds; or never; or after a stored step."""
    await before_answer()
    if str(request.trigger) == "heartbeat":
        return checklist_reply
    if request.prompt.startswith(HANGS):
        await asyncio.Event().wait()
    if request.prompt.startswith(LOOKS_UP):
        return f"It is **{await request.step(STEP, _look_up)}** now."
    if not request.prompt.startswith(GROWS):
        return f"{request.prompt}: **sunny**, 21 °C. No umbrella needed."
    pieces = [
        f"Sentence {number} of an answer that grows while it is read. " for number in range(8)
    ]
    for piece in pieces:
        emit(_delta(piece))
        await asyncio.sleep(0.5)
    return "".join(pieces)


async def _look_up() -> str:
    raise RuntimeError("a step that is stored was done again")


def _delta(text: str) -> Any:
    for module in ("goclaw_py.core.run_events", "goclaw_py.core.events"):
        with suppress(ModuleNotFoundError):
            return import_module(module).TextDelta(text)
    raise RuntimeError("the release has another event for a piece of text")
