"""``goclaw run`` that forgets after minutes, and notes what it holds.

``python -m bench.soak.gateway FILE KEPT_S TIDY_S`` writes a line of JSON into the file every few
seconds. Counting what it holds stops the gateway for some milliseconds, so that is done less often.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from bench.soak.retention import shortened
from bench.soak.structures import caches, sizes

EVERY_S: Final = 5.0
_TICK_S: Final = 0.1
_COUNT_EACH: Final = 6
"""What it holds is counted in each so many-th line."""


@dataclass(frozen=True, slots=True)
class Note:
    """A line.

    Args:
        at_s: The system's monotonic clock.
        lag_ms: The latest that the event loop came back since the last line.
        tasks: How many tasks of asyncio there are.
        held: What it holds, by class and attribute; empty where it was not counted.
        limits: How much of it there can be, where that is limited.
    """

    at_s: float
    lag_ms: float
    tasks: int
    held: dict[str, int] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)


def read(file: Path) -> Iterator[Note]:
    """What a gateway has noted by now, none if it has not begun."""
    for line in file.read_text().splitlines() if file.exists() else ():
        yield Note(**json.loads(line))


async def note_all(container: object, file: Path) -> None:
    """Write lines until cancelled."""
    number = 0
    with file.open("a", buffering=1) as lines:
        while True:
            late_s = await _latest()
            held: dict[str, Any] = {}
            if number % _COUNT_EACH == 0:
                found, cached = sizes(container), caches()
                held = {
                    "held": dict(found.items | cached.items),
                    "limits": found.limits | cached.limits,
                }
            tasks = len(asyncio.all_tasks())
            note = Note(time.monotonic(), 1000 * late_s, tasks, **held)
            print(json.dumps(asdict(note)), file=lines)
            number += 1


async def _latest() -> float:
    """How late the loop was at the latest, within the time of a line."""
    end = time.monotonic() + EVERY_S
    late_s = 0.0
    while (begin := time.monotonic()) < end:
        await asyncio.sleep(_TICK_S)
        late_s = max(late_s, time.monotonic() - begin - _TICK_S)
    return late_s


def main() -> None:
    """Run a gateway that is watched."""
    from goclaw_py.app import service
    from goclaw_py.cli.entry import run
    from goclaw_py.gateway.container import Container

    file, kept_s, tidy_s = Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])

    class Watched(Container):
        """Notes from its making on."""

        def __init__(self, *parts: Any) -> None:
            super().__init__(*parts)
            self._noting = asyncio.get_running_loop().create_task(note_all(self, file))

    setattr(service, "Container", Watched)  # noqa: B010  (a class is not assigned to)
    with shortened(timedelta(seconds=kept_s), tidy_s):
        code = run(["run"])
    sys.exit(code)


if __name__ == "__main__":
    main()
