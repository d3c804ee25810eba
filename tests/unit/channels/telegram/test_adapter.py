"""``channels.telegram.adapter`` and ``activity`` in virtual time, against a scripted client."""

from __future__ import annotations

import asyncio

import pytest

from channels.telegram.adapter import TelegramChannel
from channels.telegram.client import BotClient, Place
from channels.telegram.settings import Settings
from goclaw_py.core.errors import ChannelRefused, MaybeSent, NotSent, RateLimited, Undeliverable
from goclaw_py.core.events import RunEnded, RunStarted, RunText
from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.core.outcomes import Outcome
from tests.unit.channels.telegram.scripted import SETTINGS, Notebook, ScriptedClient, update

ANN = Target("telegram", "default", "7")


def channel_over(client: ScriptedClient, *, connects: list[int] | None = None) -> TelegramChannel:
    async def connect(_settings: Settings) -> BotClient:
        if connects is not None:
            connects.append(1)
        await asyncio.sleep(0.2)
        return client

    return TelegramChannel("default", SETTINGS, connect)


def started(run: str, target: Target = ANN) -> RunStarted:
    return RunStarted(RunId(run), target)


def ended(run: str, target: Target = ANN) -> RunEnded:
    return RunEnded(RunId(run), target, Outcome.COMPLETED)


async def test_a_reply_goes_to_its_chat_topic_and_message() -> None:
    client = ScriptedClient()
    channel = channel_over(client)
    forum = Target("telegram", "default", "-1007", "55")
    assert await channel.send(OutboundMessage(ANN, "one", reply_to="12")) == "101"
    assert await channel.send(OutboundMessage(forum, "two")) == "102"
    assert client.sent == [(Place(7), "one", 12), (Place(-1007, 55), "two", None)]
    await channel.close()


async def test_the_general_topic_is_written_to_without_a_thread() -> None:
    client = ScriptedClient()
    channel = channel_over(client)
    await channel.send(OutboundMessage(Target("telegram", "default", "-1007", "1"), "x"))
    assert client.sent[0][0] == Place(-1007)
    await channel.close()


async def test_a_lone_surrogate_is_replaced_before_it_is_sent() -> None:
    client = ScriptedClient()
    channel = channel_over(client)
    await channel.send(OutboundMessage(ANN, "a\ud83db"))
    assert client.sent[0][1] == "a\ufffdb"
    await channel.close()


@pytest.mark.parametrize("chat", ["", "-", "ann", "@ann", "7x", "٣", "1.5"])
async def test_a_chat_that_is_no_number_is_undeliverable(chat: str) -> None:
    channel = channel_over(ScriptedClient())
    with pytest.raises(Undeliverable):
        await channel.send(OutboundMessage(Target("telegram", "default", chat), "x"))
    channel.signal(started("a", Target("telegram", "default", chat)))
    await channel.close()


async def test_a_reply_to_something_that_is_no_message_is_sent_as_no_reply() -> None:
    client = ScriptedClient()
    channel = channel_over(client)
    await channel.send(OutboundMessage(ANN, "x", reply_to="line-5"))
    assert client.sent == [(Place(7), "x", None)]
    await channel.close()


async def test_concurrent_sends_connect_once() -> None:
    connects: list[int] = []
    client = ScriptedClient()
    channel = channel_over(client, connects=connects)
    await asyncio.gather(*(channel.send(OutboundMessage(ANN, str(n))) for n in range(5)))
    assert (len(connects), len(client.sent)) == (1, 5)
    await channel.close()
    assert client.closed


async def test_a_refused_token_stops_sending_until_it_is_accepted_again() -> None:
    """SPEC CHAN-8."""
    client = ScriptedClient(sends=[ChannelRefused("Unauthorized")])
    channel = channel_over(client)
    with pytest.raises(ChannelRefused):
        await channel.send(OutboundMessage(ANN, "x"))
    assert not channel.reaches("7")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(5):
            await channel.receive(Notebook())
    assert channel.reaches("7")
    await channel.close()


async def test_receive_ends_with_a_refused_token() -> None:
    channel = channel_over(ScriptedClient(me=[ChannelRefused("Unauthorized")]))
    with pytest.raises(ChannelRefused):
        await channel.receive(Notebook())
    assert not channel.reaches("7")
    await channel.close()


async def test_receiving_tells_the_bots_name_and_publishes_the_menu() -> None:
    client = ScriptedClient([[update(5)]])
    channel = channel_over(client)
    notebook = Notebook()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(5):
            await channel.receive(notebook)
    assert channel.handle == "GoclawTestBot"
    assert notebook.texts == [["hello"]]
    assert "stop" in client.menu
    await channel.close()


async def test_receiving_again_begins_without_an_offset() -> None:
    """Another process may have polled in between."""
    client = ScriptedClient([[update(5)]])
    channel = channel_over(client)
    for _ in range(2):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await channel.receive(Notebook())
    assert [poll.offset for poll in client.polls] == [None, 6, None, None]
    await channel.close()


async def test_a_closed_channel_sends_nothing() -> None:
    client = ScriptedClient()
    channel = channel_over(client)
    await channel.close()
    assert not channel.reaches("7")
    with pytest.raises(NotSent):
        await channel.send(OutboundMessage(ANN, "x"))
    channel.signal(started("a"))
    await asyncio.sleep(10)
    assert client.typed == []


def test_a_reply_is_cut_at_telegrams_limit() -> None:
    """SPEC CHAN-3."""
    channel = channel_over(ScriptedClient())
    assert channel.parts(" \n") == []
    assert [len(part) for part in channel.parts("x" * 5000)] == [4096, 904]
    assert [len(part) for part in channel.parts("😀" * 2049)] == [2048, 1]
    assert channel.parts("a\ud83d") == ["a\ufffd"]


async def test_typing_is_shown_at_once_and_every_four_and_a_half_seconds() -> None:
    """SPEC CHAN-4."""
    client = ScriptedClient(action_takes_s=0.3)
    channel = channel_over(client)
    channel.signal(started("a"))
    await asyncio.sleep(10)
    channel.signal(RunText(RunId("a"), ANN, "so far"))
    channel.signal(ended("a"))
    await asyncio.sleep(60)
    # The first one waited 0.2 s for the connection.
    assert [round(at, 3) for at, _ in client.typed] == [0.2, 4.5, 9.0]
    await channel.close()


async def test_typing_goes_on_until_the_last_run_of_a_place_has_ended() -> None:
    client = ScriptedClient()
    channel = channel_over(client)
    for run in ("a", "b", "b"):
        channel.signal(started(run))
    channel.signal(started("c", Target("telegram", "default", "-1007", "55")))
    await asyncio.sleep(1)
    channel.signal(ended("a"))
    await asyncio.sleep(5)
    channel.signal(ended("b"))
    channel.signal(ended("b"))
    await asyncio.sleep(20)
    assert [place for _, place in client.typed].count(Place(7)) == 2
    assert [place for _, place in client.typed].count(Place(-1007, 55)) == 6
    await channel.close()
    await asyncio.sleep(20)
    assert len(client.typed) == 8


async def test_typing_that_fails_slows_down_and_goes_on() -> None:
    client = ScriptedClient(actions=[MaybeSent("reset"), RateLimited("slow", 30.0)])
    channel = channel_over(client)
    channel.signal(started("a"))
    await asyncio.sleep(48)
    assert [round(at) for at, _ in client.typed] == [0, 9, 39, 44]
    await channel.close()


async def test_typing_gives_up_where_it_is_refused() -> None:
    client = ScriptedClient(actions=[Undeliverable("blocked")])
    channel = channel_over(client)
    channel.signal(started("a"))
    await asyncio.sleep(60)
    assert len(client.typed) == 1
    channel.signal(ended("a"))
    channel.signal(started("b"))
    await asyncio.sleep(1)
    assert len(client.typed) == 2
    await channel.close()


async def test_typing_ends_even_if_nobody_tells_the_end_of_the_run() -> None:
    client = ScriptedClient()
    channel = channel_over(client)
    channel.signal(started("a"))
    await asyncio.sleep(24 * 60 * 60)
    assert client.typed[-1][0] < 2 * 60 * 60 + 1
    await channel.close()


async def test_the_number_of_places_with_typing_is_bounded() -> None:
    client = ScriptedClient()
    channel = channel_over(client)
    for chat in range(1, 301):
        channel.signal(started("a", Target("telegram", "default", str(chat))))
    await asyncio.sleep(1)
    assert len(client.typed) == 200
    await channel.close()
