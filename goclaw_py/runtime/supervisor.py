"""Keeps the channels receiving: a channel that breaks is started again, others go on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import replace

from goclaw_py.core.errors import ChannelRefused, StoreUnavailable
from goclaw_py.core.ids import NodeId
from goclaw_py.core.status import ChannelView
from goclaw_py.ports.channel import Channel, Intake
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.store import NodeStore
from goclaw_py.runtime.wake import Wake

log = logging.getLogger(__name__)

LEASE_POLL_S = 2.0
RESTART_S = 5.0
_GIVE_BACK_S = 2.0
"""How long giving a lease back may take; without it the end of the node gives it back."""


class Supervisor:
    """Runs ``receive`` of every channel, each in a task of its own."""

    def __init__(
        self,
        store: NodeStore,
        clock: Clock,
        channels: Iterable[Channel],
        node: Callable[[], NodeId],
    ) -> None:
        self._node = node
        self._store = store
        self._clock = clock
        self._channels = list(channels)
        self._views = {
            id(c): ChannelView(c.name, c.account, "starting", "") for c in self._channels
        }
        self._stopped = asyncio.Event()
        self._waiting: set[Wake] = set()

    def look(self) -> None:
        """A lease may have become free."""
        for wake in self._waiting:
            wake.call()

    def views(self) -> tuple[ChannelView, ...]:
        """How each channel is, by its own word where it works."""
        return tuple(
            replace(view, detail=channel.trouble)
            if (view := self._views[id(channel)]).state == "working"
            else view
            for channel in self._channels
        )

    async def run(self, intake: Intake) -> None:
        """Receive from all channels until cancelled."""
        async with asyncio.TaskGroup() as group:
            for channel in self._channels:
                group.create_task(self._keep(channel, intake), name=f"channel {channel.name}")

    async def until_none_works(self) -> None:
        """Return when every channel that serves people from outside has stopped for good."""
        while True:
            self._stopped.clear()
            outside = [self._views[id(c)] for c in self._channels if not c.trusted]
            if outside and all(view.state == "stopped" for view in outside):
                return
            await self._stopped.wait()

    async def _keep(self, channel: Channel, intake: Intake) -> None:
        while True:
            if not await self._receive(channel, intake):
                return
            await asyncio.sleep(RESTART_S)

    async def _receive(self, channel: Channel, intake: Intake) -> bool:
        """Receive until it ends. False: never again."""
        facts = {"channel": channel.name, "account": channel.account}
        try:
            await self._lease(channel)
            self._show(channel, "working")
            await channel.receive(intake)
        except ChannelRefused as error:
            log.error("channel stopped: %s", error, extra=facts)  # noqa: TRY400 - it says all
            self._show(channel, "stopped", str(error))
            self._stopped.set()
            return False
        except Exception as error:
            log.exception("channel broke; starting it again", extra=facts)
            self._show(channel, "starting", f"broke: {error}")
        finally:
            await self._give_back(channel)
        return True

    async def _give_back(self, channel: Channel) -> None:
        """Let another gateway receive for the account: it may have a token that works."""
        if channel.lease is None:
            return
        facts = {"channel": channel.name, "account": channel.account}
        try:
            async with asyncio.timeout(_GIVE_BACK_S):
                await self._store.drop_lease(channel.lease, self._node())
        except (StoreUnavailable, TimeoutError):
            log.info("the channel's lease was not given back", extra=facts)
        except Exception:
            # One channel's trouble must not end the receiving of the others.
            log.exception("the channel's lease was not given back", extra=facts)

    async def _lease(self, channel: Channel) -> None:
        """Wait until this process may receive for the account."""
        if channel.lease is None:
            return
        free = Wake()
        self._waiting.add(free)
        try:
            while not await self._take(channel, channel.lease):
                await free.wait(LEASE_POLL_S)
                free.clear()
        finally:
            self._waiting.discard(free)

    async def _take(self, channel: Channel, lease: str) -> bool:
        try:
            if await self._store.take_lease(lease, self._node(), now=self._clock.now()):
                return True
            self._show(channel, "waiting", "another gateway receives for this account")
        except StoreUnavailable:
            self._show(channel, "waiting", "the database cannot be reached")
        return False

    def _show(self, channel: Channel, state: str, detail: str = "") -> None:
        before = self._views[id(channel)]
        self._views[id(channel)] = ChannelView(channel.name, channel.account, state, detail)
        if state == "waiting" and before.state != "waiting":
            log.info(
                "channel waits: %s",
                detail,
                extra={"channel": channel.name, "account": channel.account},
            )
