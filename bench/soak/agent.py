"""An agent for ``python:bench.soak.agent:run``: speaks for half a second, repeats the marks."""

from __future__ import annotations

import asyncio
import re
from typing import Final

from goclaw_py.core.outcomes import Trigger
from goclaw_py.core.run_events import TextDelta
from goclaw_py.runs.agent_loop import Emit, RunRequest

MARK: Final = re.compile(r"#\d+#")
_PIECES: Final = ("It will be **sunny**, ", "with 21 °C, ", "and nobody needs an umbrella.")
_PAUSE_S: Final = 0.15


async def run(request: RunRequest, emit: Emit) -> str:
    """Answer a message with its marks; in a heartbeat run all is well."""
    if request.trigger is Trigger.HEARTBEAT:
        return "HEARTBEAT_OK"
    said = [f"About {' '.join(MARK.findall(request.prompt))}: "]
    for piece in _PIECES:
        emit(TextDelta(said[-1]))
        await asyncio.sleep(_PAUSE_S)
        said.append(piece)
    emit(TextDelta(said[-1]))
    return "".join(said)
