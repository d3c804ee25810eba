"""Every statement that the store runs in this process, with how long it took."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import goclaw_py.store as store_package
from goclaw_py.store.postgres import Address, connection
from goclaw_py.store.postgres.pool import Connection
from goclaw_py.store.sql import queries

_FOLDER: Final = Path(store_package.__file__).parent / "queries"


def names() -> dict[str, list[str]]:
    """What each statement is called: ``file.name``. The same text may have several names."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for file in sorted(_FOLDER.glob("*.sql")):
        for name, text in queries(file.stem).items():
            found[text].append(f"{file.stem}.{name}")
    return dict(found)


@dataclass(slots=True)
class Statement:
    """One of them: how long each call took, in ms, and with what the slowest one was asked."""

    name: str
    text: str
    ms: list[float] = field(default_factory=list)
    slowest: Sequence[object] = ()

    def note(self, ms: float, arguments: Sequence[object]) -> None:
        """One call more."""
        if not self.ms or ms > max(self.ms):
            self.slowest = arguments
        self.ms.append(ms)


class Watch:
    """What was seen, by name."""

    def __init__(self) -> None:
        self._names = {text: " = ".join(called) for text, called in names().items()}
        self.seen: dict[str, Statement] = {}

    def note(self, text: str, ms: float, arguments: Sequence[object]) -> None:
        """A statement has been run. Those that are none of the store's files count for nothing."""
        name = self._names.get(text)
        if name is not None:
            self.seen.setdefault(name, Statement(name, text)).note(ms, arguments)

    def take(self) -> list[Statement]:
        """What was seen since the last call, by name."""
        seen, self.seen = self.seen, {}
        return sorted(seen.values(), key=lambda statement: statement.name)

    def unseen(self, seen: Sequence[str]) -> list[str]:
        """Those of the store's files that are not among these."""
        return sorted(set(self._names.values()) - set(seen))


@contextmanager
def watched() -> Iterator[Watch]:
    """Watch all connections of this process until the end of the block.

    Times are those that a caller waits: the way to the server and back, and the reading of rows.
    """
    watch = Watch()
    before = Connection.fetch, Connection.row
    Connection.fetch = _timed(watch, before[0])  # type: ignore[method-assign,assignment]
    Connection.row = _timed(watch, before[1])  # type: ignore[method-assign,assignment]
    try:
        yield watch
    finally:
        Connection.fetch, Connection.row = before  # type: ignore[method-assign]


def _timed(watch: Watch, ask: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def asked(connection: Connection, query: str, *arguments: object) -> Any:
        begin = time.perf_counter()
        found = await ask(connection, query, *arguments)
        watch.note(query, 1000 * (time.perf_counter() - begin), arguments)
        return found

    return asked


async def explained(address: Address, statement: Statement) -> str:
    """How the server runs it, with what the slowest call was asked; changes nothing."""
    lines: list[str] = []
    async with connection(address) as one:
        await one.script("begin")
        try:
            rows = await one.fetch(
                f"explain (analyze, buffers, timing) {statement.text}", *statement.slowest
            )
            lines = [row["QUERY PLAN"] for row in rows]
        finally:
            await one.script("rollback")
    return "\n".join(lines)
