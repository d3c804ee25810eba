"""The store in memory as a process sees it that has trouble with its database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from typing import Any

from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.records import Notice
from tests.simulation.loop import Process
from tests.simulation.trouble import Trouble, at_once
from tests.support.flaky_store import FlakyStore
from tests.support.memory_store import MemoryDatabase, MemoryStore


class TroubledStore(FlakyStore):
    """Every call has a fate."""

    def __init__(self, database: MemoryDatabase, process: Process, trouble: Trouble) -> None:
        super().__init__(database)
        self.inner = MemoryStore(database)
        self.process = process
        self.trouble = trouble

    def on_notice(self, hear: Callable[[Notice], None]) -> None:
        """Notices get lost."""

        def maybe_hear(notice: Notice) -> None:
            if not self.process.dead and self.trouble.hears():
                loop = asyncio.get_running_loop()
                loop.call_soon(hear, notice, context=self.process.context)

        super().on_notice(maybe_hear)

    async def call(self, name: str, *args: object, **options: object) -> object:
        """One call."""
        if self.process.dead:
            # Only the burial lets anything of it go on.
            if (task := asyncio.current_task()) is not None:
                task.cancel()
            await asyncio.Event().wait()
        method: Callable[..., Awaitable[Any]] = getattr(self.inner, name)

        def effect() -> object:
            return at_once(method(*args, **options))

        return await self.trouble.call(
            self.process, name, effect, lambda why: StoreUnavailable(f"{name}: {why}")
        )


def _troubled(name: str) -> Callable[..., Awaitable[object]]:
    async def call(self: TroubledStore, *args: object, **options: object) -> object:
        return await self.call(name, *args, **options)

    return call


for _name in dir(MemoryStore):
    _is_call = iscoroutinefunction(getattr(MemoryStore, _name)) and not _name.startswith("_")
    if _is_call and _name != "close":
        setattr(TroubledStore, _name, _troubled(_name))
