"""Troubles that last are told to the owners, once each (SPEC CHAN-10)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from goclaw_py.chats.incident_alerts import LASTS_S, LOOK_S, IncidentAlerts
from goclaw_py.model.messages import OutboundMessage, Sender, Target
from goclaw_py.ports.store import NewPairing, PairingRequest
from goclaw_py.scheduler.views import ChannelState, ChannelView
from goclaw_py.testing.channel import RecordingChannel
from tests.support.harness import GatewayProcess, a_process, until

NO_NETWORK = "Telegram cannot be reached"


@dataclass(slots=True)
class Shown:
    """What the channel shows of itself."""

    view: ChannelView = field(init=False)

    def __post_init__(self) -> None:
        self.becomes(ChannelState.CONNECTED)

    def becomes(self, state: ChannelState, detail: str = "") -> None:
        self.view = ChannelView("telegram", "default", state, detail)


@asynccontextmanager
async def watching(process: GatewayProcess, shown: Shown) -> AsyncIterator[None]:
    policies, access = process.container.policies, process.access_control
    alerts = IncidentAlerts(process.store, process.clock, policies, access, lambda: [shown.view])
    task = asyncio.create_task(alerts.watch())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


@asynccontextmanager
async def watched(*owners: str) -> AsyncIterator[tuple[GatewayProcess, Shown]]:
    """A gateway whose channel shows what the test says; owners have spoken in their chats."""
    async with a_process(channels=(RecordingChannel(trusted=False),)) as process:
        for owner in owners:
            await admit(process, owner)
            await process.ask("hello", chat=owner)
        shown = Shown()
        async with watching(process, shown):
            yield process, shown


async def admit(process: GatewayProcess, person: str, *, guest: bool = False) -> None:
    now, place = process.clock.now(), ("telegram", "default")
    later = now.replace(year=2100)
    request = PairingRequest(*place, Sender(person), person, now, later, person, person)
    greeting = OutboundMessage(Target(*place, person), "your code")
    pairings = [NewPairing(request, (greeting,))]
    await process.store.accept([], node=process.node(), now=now, pairings=pairings)
    assert await process.store.approve(person, guest=guest, now=now) is not None
    await process.access_control.refresh()


def told(process: GatewayProcess, chat: str) -> list[str]:
    return [text for text in process.channel.texts(chat) if "has a problem" in text]


async def test_a_trouble_that_lasts_is_told_once() -> None:
    async with watched("ann") as (process, shown):
        shown.becomes(ChannelState.RECONNECTING, NO_NETWORK)
        await asyncio.sleep(LASTS_S - 2 * LOOK_S)
        assert told(process, "ann") == []
        await until(lambda: len(told(process, "ann")) == 1)
        await asyncio.sleep(3600)
        (text,) = told(process, "ann")
        assert NO_NETWORK in text
        assert "goclaw status" in text


async def test_a_trouble_that_passes_is_told_to_nobody() -> None:
    async with watched("ann") as (process, shown):
        for _ in range(5):
            shown.becomes(ChannelState.RECONNECTING, NO_NETWORK)
            await asyncio.sleep(LASTS_S / 2)
            shown.becomes(ChannelState.CONNECTED)
            await asyncio.sleep(LASTS_S / 2)
        assert told(process, "ann") == []


async def test_a_channel_that_stopped_is_told_at_once_to_every_owner_and_no_guest() -> None:
    """SPEC CHAN-8: 401."""
    async with watched("ann", "bob") as (process, shown):
        await admit(process, "gus", guest=True)
        await process.ask("hello", chat="gus")
        shown.becomes(ChannelState.STOPPED, "Telegram does not accept this bot token")
        await until(lambda: len(told(process, "ann")) == 1, within_s=2 * LOOK_S)
        await until(lambda: len(told(process, "bob")) == 1, within_s=LOOK_S)
        assert told(process, "gus") == []


async def test_a_trouble_that_comes_again_is_told_again() -> None:
    async with watched("ann") as (process, shown):
        for _ in range(2):
            shown.becomes(ChannelState.RECONNECTING, NO_NETWORK)
            await asyncio.sleep(LASTS_S + 2 * LOOK_S)
            shown.becomes(ChannelState.CONNECTED)
            await asyncio.sleep(2 * LOOK_S)
        assert len(told(process, "ann")) == 2
        assert await process.store.incidents() == []


async def test_after_a_restart_nobody_is_told_twice() -> None:
    async with watched("ann") as (process, shown):
        shown.becomes(ChannelState.STOPPED, "no token")
        await until(lambda: len(told(process, "ann")) == 1)
        async with watching(process, shown):
            await asyncio.sleep(600)
        assert len(told(process, "ann")) == 1


async def test_while_the_database_is_away_the_telling_waits() -> None:
    async with watched("ann") as (process, shown):
        process.store.broken.add("open_incident")
        shown.becomes(ChannelState.STOPPED, "no token")
        await asyncio.sleep(120)
        assert told(process, "ann") == []
        process.store.broken.clear()
        await until(lambda: len(told(process, "ann")) == 1)
