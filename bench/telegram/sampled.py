"""A gateway that notes what it works on while it uses the processor.

``python -m bench.telegram.sampled FILE`` is ``goclaw run`` with a timer that, between SIGUSR1 and
SIGUSR2, interrupts it after each millisecond of CPU time. The file then says how often each stack
was found. This costs a few percent, so its rates do not count.
"""

from __future__ import annotations

import signal
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import CodeType, FrameType

import orjson

EVERY_S = 0.001
"""Between two samples; the system's own clock may be coarser."""
BEGIN, END = signal.SIGUSR1, signal.SIGUSR2

OTHER = "other"
_PACKAGES = (
    ("goclaw_py/app/log", "logs"),
    ("goclaw_py/core/redaction.py", "logs"),
    ("goclaw_py/runs/run_log.py", "logs"),
    *(
        (f"goclaw_py/{feature}/", feature)
        for feature in (
            "scheduler",
            "chat/access",
            "chat/commands",
            "chat/inbound",
            "chat/outbound",
            "chat/stop",
            "runs",
            "schedule",
            "store",
            "web",
        )
    ),
    ("goclaw_py/", "goclaw_py, rest"),
    ("channels/telegram/http.py", "our HTTP"),
    ("channels/telegram/library_client.py", "our client"),
    ("channels/telegram/via_", "our client"),
    ("channels/telegram/", "channel"),
    ("bench/", "agent"),
    ("/site-packages/telegram/", "library"),
    ("/site-packages/aiogram/", "library"),
    ("/site-packages/pydantic/", "library"),
    ("/site-packages/aiohttp/", "aiohttp"),
    ("/site-packages/asyncpg/", "asyncpg"),
    ("/site-packages/uvicorn/", "uvicorn"),
    ("/site-packages/markdown_it/", "markdown_it"),
    ("/site-packages/tenacity/", "tenacity"),
    ("/logging/", "logs"),
    ("/asyncio/runners.py", OTHER),
    ("/asyncio/base_events.py", OTHER),
    ("/asyncio/", "asyncio"),
)
"""Parts of paths, the first that fits counts; what fits none belongs to whoever called it."""

CALLING = ("library", "aiohttp", "our client", "our HTTP")
"""What makes the calls of the Bot API: the library, its transport, and ours around them."""

Stack = tuple[tuple[str, str], ...]
"""File and function, the outermost first."""


class Sampler:
    """Counts stacks from ``begin`` to ``end``. Only one at a time, in the main thread."""

    def __init__(self) -> None:
        self._found: Counter[tuple[CodeType, ...]] = Counter()

    def begin(self) -> None:
        """Take samples from now on."""
        signal.signal(signal.SIGPROF, self._take)
        signal.setitimer(signal.ITIMER_PROF, EVERY_S, EVERY_S)

    def end(self) -> Counter[Stack]:
        """Take no more; what was found."""
        signal.setitimer(signal.ITIMER_PROF, 0)
        named: Counter[Stack] = Counter()
        for codes, count in self._found.items():
            stack = tuple((code.co_filename, code.co_qualname) for code in reversed(codes))
            named[stack] += count
        return named

    def _take(self, _number: int, frame: FrameType | None) -> None:
        codes: list[CodeType] = []
        while frame is not None:
            codes.append(frame.f_code)
            frame = frame.f_back
        self._found[tuple(codes)] += 1


def shares(stacks: Mapping[Stack, int]) -> dict[str, float]:
    """Which package was at work, as shares of 1; other people's code counts for its caller."""
    found: Counter[str] = Counter()
    for stack, count in stacks.items():
        found[next(filter(None, map(_package, reversed(stack))), OTHER)] += count
    total = found.total()
    return {name: count / total for name, count in found.most_common()}


def _package(place: tuple[str, str]) -> str | None:
    file = place[0].replace("\\", "/")
    return next((name for part, name in _PACKAGES if part in file), None)


def write(file: Path, stacks: Mapping[Stack, int]) -> None:
    """Store what was found; the file appears when it is whole."""
    unfinished = file.with_suffix(".part")
    unfinished.write_bytes(orjson.dumps(list(stacks.items())))
    unfinished.replace(file)


def read(file: Path) -> Counter[Stack]:
    """What was found."""
    return Counter(dict(_rows(orjson.loads(file.read_bytes()))))


def _rows(rows: Iterable[tuple[list[list[str]], int]]) -> Iterator[tuple[Stack, int]]:
    for stack, count in rows:
        yield tuple((file, function) for file, function in stack), count


def main() -> None:
    """Run a gateway with a sampler."""
    from goclaw_py.cli.entry import run

    sampler, file = Sampler(), Path(sys.argv[1])
    signal.signal(BEGIN, lambda _number, _frame: sampler.begin())
    signal.signal(END, lambda _number, _frame: write(file, sampler.end()))
    sys.exit(run(["run"]))


if __name__ == "__main__":
    main()
