"""Channels are kept receiving (SPEC CHAN-8, NODE-1, DB-4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime

import pytest

from goclaw_py.chat.channel import InboundHandler
from goclaw_py.chat.inbound.channel_supervisor import ChannelSupervisor
from goclaw_py.core.errors import ChannelRefused
from goclaw_py.core.ids import NodeId
from goclaw_py.core.messages import Inbound, InboundMessage
from goclaw_py.records import Node
from goclaw_py.records.bound import bind
from goclaw_py.testing.channel import RecordingChannel
from goclaw_py.testing.clock import START, LoopClock
from tests.support.flaky_store import FlakyStore
from tests.support.harness import message, until

ME, OTHER = NodeId("me"), NodeId("other")
REFUSED = ChannelRefused("wrong token")
STOPPED, CONNECTED = ("stopped", "wrong token"), ("connected", "")
WAITING = ("waiting", "another gateway receives for this account")


class Notebook:
    """An intake that keeps the texts."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def accept(self, batch: Sequence[Inbound]) -> None:
        self.texts += [arrived.text for arrived in batch if isinstance(arrived, InboundMessage)]


@asynccontextmanager
async def supervised(
    *channels: RecordingChannel, store: FlakyStore | None = None
) -> AsyncIterator[tuple[ChannelSupervisor, Notebook]]:
    store = store or FlakyStore()
    await live(store, ME)
    bound, intake = bind(store, lambda: ME), Notebook()
    supervisor = ChannelSupervisor(bound, LoopClock(), channels)
    running = asyncio.create_task(supervisor.run(intake))
    try:
        async with asyncio.timeout(3600):
            yield supervisor, intake
    finally:
        running.cancel()
        await asyncio.wait([running])


async def live(store: FlakyStore, node: NodeId) -> None:
    await store.join(Node(node, "host", 1, "test", START, START.replace(year=2030)))


async def others_lease(store: FlakyStore, name: str = "bot:1") -> bool:
    """Whether another gateway gets the lease when it asks for it."""
    await live(store, OTHER)
    return await store.claim_lease(name, OTHER, now=LoopClock().now())


def looks(supervisor: ChannelSupervisor) -> list[tuple[str, str]]:
    return [(view.state, view.detail) for view in supervisor.views()]


async def test_a_channel_that_breaks_is_started_again(caplog: pytest.LogCaptureFixture) -> None:
    broken, sound = RecordingChannel("a"), RecordingChannel("b")
    async with supervised(broken, sound) as (supervisor, intake):
        broken.break_off(ValueError("a bug"))
        await asyncio.sleep(1)
        assert looks(supervisor) == [("failed", "failed: a bug"), CONNECTED]
        await sound.deliver(message("still here"))
        await broken.deliver(message("here again"))
        assert intake.texts == ["still here", "here again"]
        assert looks(supervisor)[0] == ("connected", "")
        assert "channel_crashed" in caplog.messages


async def test_a_channel_that_is_refused_stops_with_its_reason_and_the_others_go_on() -> None:
    """It gives its lease to others: another gateway may have a token that works."""
    refused, sound = RecordingChannel("a", lease="bot:1"), RecordingChannel("b")
    store = FlakyStore()
    async with supervised(refused, sound, store=store) as (supervisor, intake):
        await asyncio.sleep(1)
        assert not await others_lease(store)
        refused.break_off(REFUSED)
        await asyncio.sleep(600)
        assert looks(supervisor) == [STOPPED, CONNECTED]
        assert refused.receiving == 0
        assert await others_lease(store)
        await sound.deliver(message("still here"))
        assert intake.texts == ["still here"]


async def test_a_channel_that_is_refused_starts_again_when_that_is_worth_a_try() -> None:
    """With another token, whose lease may be another one."""

    class Renewed(RecordingChannel):
        async def until_retry(self) -> None:
            await asyncio.sleep(600)
            self.lease = "bot:2"

    store, refused = FlakyStore(), Renewed(lease="bot:1")
    async with supervised(refused, store=store) as (supervisor, intake):
        refused.break_off(REFUSED)
        await asyncio.sleep(590)
        assert looks(supervisor) == [STOPPED]
        await asyncio.sleep(20)
        assert looks(supervisor) == [CONNECTED]
        assert await others_lease(store)
        assert not await others_lease(store, "bot:2")
        await refused.deliver(message("hello"))
        assert intake.texts == ["hello"]


class NewToken(Exception):
    """Ends ``receive``."""


class Renewable(RecordingChannel):
    """A bot whose token may be replaced, as Telegram's: ``lease`` is that of the present one."""

    async def receive(self, intake: InboundHandler) -> None:
        with suppress(NewToken):
            await super().receive(intake)

    async def until_retry(self) -> None:
        await asyncio.sleep(60)  # its server accepts the token


OF_WORK = ("stopped", "its token is that of account work")


@pytest.mark.parametrize("at", ["receiving", "stopped"])
async def test_a_token_that_becomes_that_of_another_account_stops_only_its_own(
    at: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Two accounts with one bot would answer each other's messages, or some of them twice."""
    store = FlakyStore()
    work, home = Renewable(account="work", lease="bot:1"), Renewable(account="home", lease="bot:2")
    async with supervised(home, work, store=store) as (supervisor, intake):
        await asyncio.sleep(1)
        if at == "stopped":
            home.break_off(REFUSED)
            await asyncio.sleep(1)
        home.lease = "bot:1"
        if at == "receiving":
            home.break_off(NewToken())
        await asyncio.sleep(600)
        assert looks(supervisor) == [OF_WORK, CONNECTED]
        assert home.receiving == 0
        assert not await others_lease(store), "the lease of the other account"
        assert await others_lease(store, "bot:2")
        reasons = [vars(r)["reason"] for r in caplog.records if r.msg == "channel_stopped"]
        assert reasons.count(OF_WORK[1]) == 1, "no log line for each look"
        await work.deliver(message("undisturbed"))
        assert intake.texts == ["undisturbed"]
        home.lease = "bot:3"
        await until(lambda: home.receiving == 1, within_s=70)
        assert looks(supervisor) == [CONNECTED, CONNECTED]


async def test_two_accounts_may_change_their_bots_for_each_others() -> None:
    """At first the one that changes first has the token of the other."""
    work, home = Renewable(account="work", lease="bot:1"), Renewable(account="home", lease="bot:2")
    async with supervised(work, home) as (supervisor, _):
        home.lease = "bot:1"
        home.break_off(NewToken())
        await asyncio.sleep(10)
        assert looks(supervisor) == [CONNECTED, OF_WORK]
        work.lease = "bot:2"
        work.break_off(NewToken())
        await asyncio.sleep(70)
        assert looks(supervisor) == [CONNECTED, CONNECTED]
        assert (work.receiving, home.receiving) == (1, 1)


async def test_a_channel_that_breaks_while_it_is_stopped_does_not_end_the_others() -> None:
    class Broken(RecordingChannel):
        async def until_retry(self) -> None:
            raise ValueError("a bug")

    refused, sound = Broken("a"), RecordingChannel("b")
    async with supervised(refused, sound) as (supervisor, intake):
        refused.break_off(ChannelRefused("wrong token"))
        await asyncio.sleep(1)
        assert looks(supervisor) == [("failed", "failed: a bug"), CONNECTED]
        await sound.deliver(message("still here"))
        assert intake.texts == ["still here"]


async def test_a_channel_waits_for_its_lease(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    store, channel = FlakyStore(), RecordingChannel(lease="bot:1")
    assert await others_lease(store)
    async with supervised(channel, store=store) as (supervisor, _):
        await asyncio.sleep(60)
        assert looks(supervisor) == [WAITING]
        assert channel.receiving == 0
        assert len(caplog.messages) == 1
        await store.drop_lease("bot:1", OTHER)
        await until(lambda: channel.receiving == 1, within_s=3)
        assert looks(supervisor) == [CONNECTED]


async def test_every_channel_hears_that_a_lease_is_free_whatever_others_do_then() -> None:
    """SPEC NODE-3: a gateway that ends gives the leases of all bots back, one after the other."""

    class SlowForTheFirst(FlakyStore):
        async def claim_lease(self, name: str, node: NodeId, *, now: datetime) -> bool:
            taken = await super().claim_lease(name, node, now=now)
            await asyncio.sleep(0.2 if (name, node) == ("bot:1", ME) else 0)
            return taken

    store, names = SlowForTheFirst(), ("bot:1", "bot:2")
    for name in names:
        await others_lease(store, name)
    channels = [RecordingChannel(name, lease=name) for name in names]
    async with supervised(*channels, store=store) as (supervisor, _):
        await asyncio.sleep(1)
        supervisor.check_leases()
        await asyncio.sleep(0.1)
        for name in names:
            await store.drop_lease(name, OTHER)
        supervisor.check_leases()
        await until(lambda: sum(channel.receiving for channel in channels) == 2, within_s=1)


async def test_a_channel_waits_for_the_database_that_holds_its_lease() -> None:
    store, channel = FlakyStore(), RecordingChannel(lease="bot:1")
    store.broken = {"claim_lease"}
    async with supervised(channel, store=store) as (supervisor, _):
        await asyncio.sleep(60)
        assert looks(supervisor) == [("reconnecting", "the database cannot be reached")]
        store.broken = set()
        await until(lambda: channel.receiving == 1, within_s=3)


async def test_a_channel_that_broke_gives_its_lease_to_others_until_it_starts_again() -> None:
    store, broken = FlakyStore(), RecordingChannel(lease="bot:1")
    async with supervised(broken, store=store) as (supervisor, _):
        broken.break_off(ValueError("a bug"))
        await asyncio.sleep(1)
        assert await others_lease(store)
        await asyncio.sleep(10)
        assert looks(supervisor) == [WAITING]
        await store.drop_lease("bot:1", OTHER)
        await until(lambda: broken.receiving == 1, within_s=3)


async def test_receiving_that_is_cancelled_gives_its_lease_to_others() -> None:
    """SPEC NODE-3."""
    store = FlakyStore()
    async with supervised(RecordingChannel(lease="bot:1"), store=store):
        await asyncio.sleep(1)
    assert await others_lease(store)


@pytest.mark.parametrize("trouble", ["away", "slow", "broken"])
async def test_a_lease_that_cannot_be_released_delays_nobody(
    trouble: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    store = FlakyStore()
    channel, sound = RecordingChannel("a", lease="bot:1"), RecordingChannel("b")
    async with supervised(channel, sound, store=store) as (supervisor, intake):
        await asyncio.sleep(1)
        if trouble == "away":
            store.broken.add("drop_lease")
        elif trouble == "slow":
            store.slow_before_s["drop_lease"] = 60.0
        else:
            store.errors["drop_lease"] = ValueError("a bug in the store")
        channel.break_off(ValueError("a bug"))
        await asyncio.sleep(10)
        assert looks(supervisor) == [CONNECTED, CONNECTED]
        assert "channel_lease_not_released" in caplog.messages
        await sound.deliver(message("still here"))
        assert intake.texts == ["still here"]
