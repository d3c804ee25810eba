"""Keeps channels receiving: a channel that fails is restarted, the others continue."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import replace

from goclaw_py.chat.channel import Channel, InboundHandler
from goclaw_py.core.concurrency import WakeEvent
from goclaw_py.core.errors import ChannelRefused, StoreUnavailable
from goclaw_py.core.time.clock import Clock
from goclaw_py.records.bound import BoundStore
from goclaw_py.scheduler.views import ChannelState, ChannelView

log = logging.getLogger(__name__)

LEASE_POLL_S = 2.0
RESTART_S = 5.0
_GIVE_BACK_S = 2.0
"""The time limit for releasing a lease; otherwise the end of the node releases it."""


class ChannelSupervisor:
    """Runs ``receive`` of every channel, each in its own task."""

    def __init__(
        self,
        store: BoundStore,
        clock: Clock,
        channels: Iterable[Channel],
    ) -> None:
        self._store = store
        self._clock = clock
        self._channels = list(channels)
        self._views = {
            id(c): ChannelView(c.name, c.account, ChannelState.STARTING, "") for c in self._channels
        }
        self._identities = {id(c): c.identity for c in self._channels}
        """Which bot each account has received for, or is to: no other account may become it."""
        self._waiting: set[WakeEvent] = set()

    def check_leases(self) -> None:
        """Check again whether a lease is free."""
        for wake in self._waiting:
            wake.call()

    def views(self) -> tuple[ChannelView, ...]:
        """Return the state of each channel."""
        return tuple(map(self._view, self._channels))

    async def run(self, intake: InboundHandler) -> None:
        """Receive from all channels until cancelled."""
        async with asyncio.TaskGroup() as group:
            for channel in self._channels:
                group.create_task(self._supervise(channel, intake), name=f"channel {channel.name}")

    def _view(self, channel: Channel) -> ChannelView:
        health = channel.health
        view = replace(self._views[id(channel)], proxy=health.proxy)
        if view.state is not ChannelState.CONNECTED:
            return view
        return replace(view, state=health.state, detail=health.detail, warning=health.warning)

    async def _supervise(self, channel: Channel, intake: InboundHandler) -> None:
        while True:
            try:
                await self._receive(channel, intake)
            except Exception as error:
                log.exception("channel_crashed", extra=_facts(channel))
                self._show(channel, ChannelState.FAILED, f"failed: {error}")
            await asyncio.sleep(RESTART_S)

    async def _receive(self, channel: Channel, intake: InboundHandler) -> None:
        """Receive until that ends; after a refusal, wait until a retry makes sense."""
        lease = None
        try:
            if reason := self._duplicates(channel):
                raise ChannelRefused(reason)
            lease = channel.lease
            await self._lease(channel, lease)
            self._show(channel, ChannelState.CONNECTED)
            await channel.receive(intake)
        except ChannelRefused as error:
            self._stop(channel, str(error))
        finally:
            await self._give_back(channel, lease)
        while self._views[id(channel)].state is ChannelState.STOPPED:
            await channel.until_retry()
            # A server accepts the token of another account as well.
            if not (reason := self._duplicates(channel)):
                break
            self._stop(channel, reason)
        self._show(channel, ChannelState.FAILED, "it has ended, and starts again")

    def _duplicates(self, channel: Channel) -> str:
        """Return why an account must not receive; "" unless its bot is that of another one.

        A token that changes at run time can be that of another account. Both would receive each
        other's messages, and the end of one would release the lease of the other.
        """
        identity = channel.identity
        for other in self._channels:
            if other is channel or identity is None:
                continue
            if other.identity == identity == self._identities[id(other)]:
                return f"its token is that of account {other.account}"
        self._identities[id(channel)] = identity
        return ""

    def _stop(self, channel: Channel, reason: str) -> None:
        if self._views[id(channel)].detail != reason:
            log.error("channel_stopped", extra={**_facts(channel), "reason": reason})
        self._show(channel, ChannelState.STOPPED, reason)

    async def _give_back(self, channel: Channel, lease: str | None) -> None:
        """Release a lease, so that another gateway may receive, perhaps with a valid token."""
        if lease is None:
            return
        facts = _facts(channel)
        try:
            async with asyncio.timeout(_GIVE_BACK_S):
                await self._store.drop_lease(lease, self._store.node())
        except (StoreUnavailable, TimeoutError):
            log.info("channel_lease_not_released", extra=facts)
        except Exception:
            # One channel's trouble must not end the receiving of the others.
            log.exception("channel_lease_not_released", extra=facts)

    async def _lease(self, channel: Channel, lease: str | None) -> None:
        """Hold the lease of the account while receiving; wait until it is free."""
        if lease is None:
            return
        free = WakeEvent()
        self._waiting.add(free)
        try:
            while not await self._receive_with_lease(channel, lease):
                await free.wait(LEASE_POLL_S)
                free.clear()
        finally:
            self._waiting.discard(free)

    async def _receive_with_lease(self, channel: Channel, lease: str) -> bool:
        try:
            if await self._store.claim_lease(lease, self._store.node(), now=self._clock.now()):
                return True
            self._show(channel, ChannelState.WAITING, "another gateway receives for this account")
        except StoreUnavailable:
            self._show(channel, ChannelState.RECONNECTING, "the database cannot be reached")
        return False

    def _show(self, channel: Channel, state: ChannelState, detail: str = "") -> None:
        before = self._views[id(channel)]
        self._views[id(channel)] = ChannelView(channel.name, channel.account, state, detail)
        is_new = before.state is not state
        if is_new and state in {ChannelState.WAITING, ChannelState.RECONNECTING}:
            log.info("channel_waiting", extra={**_facts(channel), "reason": detail})


def _facts(channel: Channel) -> dict[str, str]:
    return {"channel": channel.name, "account": channel.account}
