"""The agent of the cluster, for ``python:tests.chaos.cluster.agent:run``: it keeps a journal.

Each run appends a line when it begins and one when it ends, whoever cut it; what has no end died
with its process. Times are those of the machine's steady clock, which all processes share.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
import zlib
from pathlib import Path
from typing import Final

from goclaw_py.core.outcomes import Trigger
from goclaw_py.runs.agent_loop import Emit, RunRequest
from tests.chaos import agent as chat

JOURNAL: Final = "CHAOS_JOURNAL"
"""The environment variable with the file."""
STANDING: Final = "The sky over {agent} is falling"
"""What is told again and again, and is to be heard once."""
_WORK: Final = re.compile(r"work (\d+) ms")


async def run(request: RunRequest, emit: Emit) -> str:
    """Do what is asked, and note it."""
    begun = time.monotonic()
    note(
        "begin",
        run=request.run_id,
        session=request.session,
        trigger=request.trigger.value,
        prompt=request.prompt,
        pid=os.getpid(),
        at=begun,
    )
    try:
        return await _work(request, emit)
    finally:
        note("end", run=request.run_id, at=time.monotonic())


def note(event: str, **what: object) -> None:
    """Append one line; a line is whole, or is not there."""
    line = json.dumps({"event": event, **what}) + "\n"
    place = os.open(Path(os.environ[JOURNAL]), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(place, line.encode())
    finally:
        os.close(place)


async def _work(request: RunRequest, emit: Emit) -> str:
    if request.trigger is Trigger.HEARTBEAT:
        await asyncio.sleep(0.2)
        return heartbeat_run(request.agent, request.run_id)
    if request.trigger is Trigger.CRON:
        found = _WORK.search(request.prompt)
        await asyncio.sleep(int(found[1]) / 1000 if found else 0)
        return f"worked {request.run_id}"
    return await chat.run(request, emit)


def heartbeat_run(agent: str, run: str) -> str:
    """What a heart says: one thing in three that is new, one that was told before, or nothing."""
    match zlib.crc32(run.encode()) % 3:
        case 0:
            return f"alarm {agent} {run}"
        case 1:
            return STANDING.format(agent=agent)
        case _:
            return "HEARTBEAT_OK"
