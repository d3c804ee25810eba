"""The engines of an agent: for its own model, and for models that runs name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from goclaw_py.agents.models.catalog import Provider
from goclaw_py.agents.models.connection import ModelConnection
from goclaw_py.agents.spec import AgentSpec
from goclaw_py.core.concurrency import in_import_thread

if TYPE_CHECKING:
    from goclaw_py.agents.models.engine import Engine
    from goclaw_py.agents.models.mcp import Servers

MOST_OTHERS: Final = 4
"""The number of unused engines of other models that are kept."""

T = TypeVar("T")

ModelName = tuple[Provider, str]


@dataclass(slots=True)
class _SharedEngine:
    """An engine, or the task that creates it, with the number of runs that use it."""

    making: asyncio.Task[Engine]
    users: int = 0


class Engines:
    """Creates engines when they are first used, in the import thread, and closes unused ones.

    All of them use the same MCP servers. ``own`` is the agent's own model, which is kept.
    """

    def __init__(self, spec: AgentSpec, own: ModelName) -> None:
        self._spec = spec
        self._own = own
        self._kept: dict[ModelName, _SharedEngine] = {}
        """The engine that was used last is at the end."""
        self._servers: asyncio.Task[Servers] | None = None
        self._closing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def use(
        self, name: ModelName, connection: Callable[[], ModelConnection]
    ) -> AsyncIterator[Engine]:
        """Provide the engine of a model, which stays open while it is used.

        ``connection`` is called in a thread if it must be created; its errors are raised.
        """
        kept = self._kept.pop(name, None)
        # One task for all who wait: a cancelled run must not cancel the import for the others.
        if kept is None or _failed(kept.making):
            kept = _SharedEngine(asyncio.create_task(self._make(connection)))
        self._kept[name] = kept
        kept.users += 1
        try:
            yield await asyncio.shield(kept.making)
        finally:
            kept.users -= 1
            self._let_go()

    async def close(self) -> None:
        """Close all of them. One that is used later is created again."""
        kept, self._kept = self._kept, {}
        for one in kept.values():
            self._close_later(one)
        if self._closing:
            await asyncio.wait(self._closing)
        servers, self._servers = self._servers, None
        if servers is not None:
            await asyncio.wait([servers])
            if not _failed(servers):
                await servers.result().close()

    async def _make(self, connection: Callable[[], ModelConnection]) -> Engine:
        servers = await self._shared_servers()

        def connect() -> Engine:
            from goclaw_py.agents.models.engine import Engine  # noqa: PLC0415 - costs 1 s

            return Engine(connection(), self._spec, servers)

        return await in_import_thread(connect)

    async def _shared_servers(self) -> Servers | None:
        if not self._spec.mcp:
            return None

        def make() -> Servers:
            from goclaw_py.agents.models.mcp import Servers  # noqa: PLC0415 - 40 MB

            return Servers(self._spec.mcp)

        if self._servers is None or _failed(self._servers):
            self._servers = asyncio.create_task(in_import_thread(make))
        return await asyncio.shield(self._servers)

    def _let_go(self) -> None:
        """Close the least recently used engines, if there are too many."""
        others = [name for name in self._kept if name != self._own]
        idle = [name for name in others if not self._kept[name].users]
        for name in idle[: max(len(others) - MOST_OTHERS, 0)]:
            self._close_later(self._kept.pop(name))

    def _close_later(self, shared: _SharedEngine) -> None:
        closing = asyncio.create_task(_close(shared.making))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)


async def _close(making: asyncio.Task[Engine]) -> None:
    # A thread cannot be stopped in mid-import; what it makes still has to be closed.
    await asyncio.wait([making])
    if not _failed(making):
        await making.result().close()


def _failed(task: asyncio.Task[T]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
