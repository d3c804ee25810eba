"""What a gateway tells of itself, put together from its parts."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from goclaw_py.app.database import Database
from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.overview import slow_waits
from goclaw_py.core.status import Backlog, ChannelView, Status
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.store import Node, Store
from goclaw_py.runtime.outages import OutageView
from goclaw_py.runtime.works import Works

log = logging.getLogger(__name__)

PATIENCE_S: Final = 1.0
"""How long a quick look waits for a database that was there a moment ago."""

COUNT_EVERY_S: Final = 60.0
"""How often quick looks let groups be counted that nobody has decided about.

All chats are read for that, which takes longer than all the rest; such a group waits for a person.
"""


class Snapshots:
    """Makes a ``Status`` whenever one is asked for.

    Args:
        node: What this process is among the others now.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        works: Works,
        database: Database,
        node: Callable[[], Node],
    ) -> None:
        self._store = store
        self._clock = clock
        self._works = works
        self._database = database
        self._node = node
        self._asking: asyncio.Task[Backlog | None] | None = None
        self._counting: asyncio.Task[None] | None = None
        self._count_at = 0.0
        self._undecided = 0

    async def full(self) -> Status:
        """With all that the database tells; waits for it as long as it takes to give up."""
        try:
            backlog = await self._store.backlog()
            await self._count()
        except StoreUnavailable:
            return self._made(None)
        return self._made(replace(backlog, undecided=self._undecided))

    async def quick(self) -> Status:
        """Without waiting for a database that is away: no backlog is known then.

        However often it is asked, the database has one such question at a time. Groups that nobody
        has decided about are as many as there were a while ago.
        """
        if not self._database.reachable:
            return self._made(None)
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask(), name="backlog")
            self._asking.add_done_callback(self._on_answer)
        asking = self._asking
        # Not cancelled when it takes too long: giving a connection back may take longer still.
        await asyncio.wait({asking}, timeout=PATIENCE_S)
        backlog = asking.result() if asking.done() else None
        if backlog is None:
            return self._made(None)
        self._count_later()
        return self._made(replace(backlog, undecided=self._undecided))

    def _on_answer(self, _asked: asyncio.Task[Backlog | None]) -> None:
        self._asking = None

    async def _ask(self) -> Backlog | None:
        try:
            return await self._store.backlog()
        except StoreUnavailable:
            return None

    def _count_later(self) -> None:
        now = asyncio.get_running_loop().time()
        if now >= self._count_at and self._counting is None:
            self._count_at = now + COUNT_EVERY_S
            self._counting = asyncio.create_task(self._try_to_count(), name="groups")

    async def _try_to_count(self) -> None:
        try:
            await self._count()
        except StoreUnavailable as error:
            log.debug("groups wait for the database: %s", error)
        finally:
            self._counting = None

    async def _count(self) -> None:
        self._undecided = self._works.undecided(await self._store.chats())

    def _made(self, backlog: Backlog | None) -> Status:
        works, node = self._works, self._node()
        away = "" if backlog is not None else ", unreachable"
        channels = works.supervisor.views()
        lanes, runs = works.dispatcher.lanes(), works.dispatcher.runs()
        return Status(
            node=node.id,
            release=node.release,
            pid=os.getpid(),
            started_at=node.started_at,
            now=self._clock.now(),
            database=f"{self._database.kind}{away}",
            draining=works.dispatcher.draining,
            lanes=lanes,
            runs=runs,
            channels=channels,
            backlog=backlog,
            warnings=(
                *_warnings(backlog, channels),
                *works.office.warnings(),
                *works.heartbeats.warnings(),
                *(_outage(view) for view in works.outages.views()),
                *slow_waits(lanes, runs),
            ),
        )


def _outage(view: OutageView) -> str:
    kept = f"{view.kept} message{'s' if view.kept != 1 else ''} kept"
    return f"agent {view.agent}: its provider is down for {view.for_s:.0f} s, {kept}: {view.cause}"


def _warnings(backlog: Backlog | None, channels: tuple[ChannelView, ...]) -> tuple[str, ...]:
    warnings = [f"{view.name}/{view.account}: {view.detail}" for view in channels if view.detail]
    if backlog is None:
        warnings.append("the database cannot be reached; nothing is confirmed to the channels")
        return tuple(warnings)
    for count, what, command in (
        (backlog.dead, "messages could not be delivered", "outbox list --state dead"),
        (backlog.unanswered, "messages could not be worked on", "inbox list"),
        (backlog.undecided, "groups wait for your decision", "groups list"),
    ):
        if count:
            warnings.append(f"{count} {what}; see: goclaw {command}")
    return tuple(warnings)
