"""Stores in memory whose database can be away, slow, or lose its answer after the commit."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any

from goclaw_py import MemoryStore as JobMemoryStore
from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.records import Notice
from tests.support.memory_store import MemoryDatabase, MemoryStore

Method = Callable[..., Awaitable[Any]]


class Troubles:
    """Names in the attributes are names of store methods."""

    def __init__(self) -> None:
        self.away = False
        """Every call raises ``StoreUnavailable``."""
        self.broken: set[str] = set()
        """The calls that raise ``StoreUnavailable``."""
        self.lose_answer: Counter[str] = Counter()
        """How many of the next calls are committed and then raise ``StoreUnavailable``."""
        self.slow_before_s: defaultdict[str, float] = defaultdict(float)
        """How long a call takes until it is committed."""
        self.on_its_way_s: defaultdict[str, float] = defaultdict(float)
        """The same, also if who called was cancelled meanwhile."""
        self.slow_after_s: defaultdict[str, float] = defaultdict(float)
        """How long the answer takes after the commit."""
        self.calls: Counter[str] = Counter()
        self.errors: dict[str, Exception] = {}
        """What the next call raises, once."""
        self.cut = False
        """The process is dead: no call returns any more, nothing is written."""


def _with_trouble(name: str, method: Method) -> Method:
    @wraps(method)
    async def call(self: Troubles, *args: object, **options: object) -> object:
        self.calls[name] += 1
        await _trouble_before(self, name)
        doing = method(self, *args, **options)
        if late_s := self.on_its_way_s[name]:
            doing = asyncio.shield(_late(late_s, doing))
        result = await doing
        if self.slow_after_s[name]:
            await asyncio.sleep(self.slow_after_s[name])
        if self.cut:
            await asyncio.Event().wait()
        if self.lose_answer[name]:
            self.lose_answer[name] -= 1
            raise StoreUnavailable(f"{name}: the answer was lost")
        return result

    return call


def _late(delay_s: float, doing: Awaitable[Any]) -> asyncio.Future[Any]:
    async def late() -> Any:
        await asyncio.sleep(delay_s)
        return await doing

    return asyncio.ensure_future(late())


async def _trouble_before(store: Troubles, name: str) -> None:
    if store.slow_before_s[name]:
        await asyncio.sleep(store.slow_before_s[name])
    if store.cut:
        await asyncio.Event().wait()
    if store.away or name in store.broken:
        raise StoreUnavailable(f"{name}: the database is away")
    if name in store.errors:
        raise store.errors.pop(name)


class FlakyStore(Troubles, MemoryStore):
    """A store of gateways. Two of them on one database are two processes."""

    def __init__(self, database: MemoryDatabase | None = None) -> None:
        Troubles.__init__(self)
        MemoryStore.__init__(self, database)


class FlakyJobs(Troubles, JobMemoryStore):
    """A store of ``JobScheduler``: its own way to a ``database`` that others reach by theirs."""

    def __init__(self, database: JobMemoryStore | None = None) -> None:
        super().__init__()
        self.database = database or JobMemoryStore()

    def on_notice(self, hear: Callable[[Notice], None]) -> None:
        self.database.on_notice(hear)


def _elsewhere(name: str) -> Method:
    async def call(self: FlakyJobs, *args: object, **options: object) -> object:
        return await getattr(self.database, name)(*args, **options)

    return call


def _calls(store: type[object]) -> list[str]:
    """The methods that reach the database."""
    names = [name for name in dir(store) if not name.startswith("_") and name != "close"]
    return [name for name in names if iscoroutinefunction(getattr(store, name))]


for _name in _calls(MemoryStore):
    setattr(FlakyStore, _name, _with_trouble(_name, getattr(MemoryStore, _name)))
for _name in _calls(JobMemoryStore):
    setattr(FlakyJobs, _name, _with_trouble(_name, _elsewhere(_name)))
