"""Sending and typing through Telegram's real library against a strict Bot API emulator."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from channels.telegram import factory
from channels.telegram.client import Place, PollConflict
from channels.telegram.settings import Settings
from channels.telegram.via_ptb import PtbClient
from goclaw_py.core.errors import (
    ChannelRefused,
    MaybeSent,
    NotSent,
    RateLimited,
    Undeliverable,
)
from goclaw_py.core.events import RunEnded, RunStarted
from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.core.outcomes import Outcome
from goclaw_py.ports.channel import Channel
from tests.botapi import BotApi, Fault, FaultKind
from tests.botapi.server import TOKEN

pytestmark = pytest.mark.real_time

ANN = 7
CHAT = Target("telegram", "default", str(ANN))


def channel_of(api: BotApi, **options: object) -> Channel:
    return factory.build("default", {"token": api.token, "base_url": api.url, **options})


@pytest.fixture
async def api() -> AsyncIterator[BotApi]:
    async with BotApi() as api:
        yield api


@pytest.fixture
async def channel(api: BotApi) -> AsyncIterator[Channel]:
    channel = channel_of(api, send_timeout_s=1, connect_timeout_s=1)
    yield channel
    await channel.close()


def reply(text: str = "hi", *, to: str | None = None) -> OutboundMessage:
    return OutboundMessage(CHAT, text, reply_to=to)


async def test_a_reply_arrives_as_it_is(api: BotApi, channel: Channel) -> None:
    api.say(ANN, "hello")
    number = await channel.send(reply("a <b> & *c* ü 😀", to="1"))
    assert api.texts(ANN) == ["a <b> & *c* ü 😀"]
    assert number == "2"
    message = api.world.chats[ANN].messages[2]
    assert isinstance(message["reply_to_message"], dict)


async def test_a_message_to_reply_to_that_is_gone_is_no_error(
    api: BotApi, channel: Channel
) -> None:
    api.say(ANN, "hello")
    await channel.send(reply(to="99"))
    assert api.texts(ANN) == ["hi"]


async def test_a_long_reply_arrives_in_parts(api: BotApi, channel: Channel) -> None:
    """SPEC CHAN-3."""
    api.say(ANN, "hello")
    for part in channel.parts("😀" * 3000 + "\n\n" + "word " * 2000):
        await channel.send(reply(part))
    texts = api.texts(ANN)
    assert "".join(texts).count("😀") == 3000
    assert sum(text.count("word") for text in texts) == 2000


@pytest.mark.parametrize("text", ["", "  ", "x" * 4097])
async def test_a_text_that_telegram_never_takes_is_undeliverable(
    api: BotApi, channel: Channel, text: str
) -> None:
    api.say(ANN, "hello")
    with pytest.raises(Undeliverable):
        await channel.send(reply(text))


async def test_an_unknown_chat_is_undeliverable(channel: Channel) -> None:
    with pytest.raises(Undeliverable, match="chat not found"):
        await channel.send(reply())


async def test_who_blocked_the_bot_is_undeliverable_until_they_write_again(
    api: BotApi, channel: Channel
) -> None:
    """SPEC CHAN-7."""
    api.say(ANN, "hello")
    api.block(ANN)
    with pytest.raises(Undeliverable, match="blocked"):
        await channel.send(reply())
    api.say(ANN, "sorry")
    await channel.send(reply())


async def test_a_flooded_chat_says_how_long_to_wait(api: BotApi, channel: Channel) -> None:
    """SPEC IO-3."""
    api.say(ANN, "hello")
    api.fault(Fault("sendMessage", FaultKind.FLOOD, seconds=7))
    with pytest.raises(RateLimited) as caught:
        await channel.send(reply())
    assert caught.value.retry_after_s == 7
    api.limit(1)
    await channel.send(reply("one"))
    with pytest.raises(RateLimited):
        await channel.send(reply("two"))
    assert api.texts(ANN) == ["one"]


async def test_sending_with_a_revoked_token_is_refused(api: BotApi, channel: Channel) -> None:
    api.say(ANN, "hello")
    api.revoke()
    with pytest.raises(ChannelRefused):
        await channel.send(reply())


@pytest.mark.parametrize(
    ("fault", "arrived"),
    [
        (Fault("sendMessage", FaultKind.RESET), 0),
        (Fault("sendMessage", FaultKind.PAGE, status=502), 0),
        (Fault("sendMessage", FaultKind.PAGE, status=404), 0),
        (Fault("sendMessage", FaultKind.HANG), 0),
        (Fault("sendMessage", FaultKind.RESET_AFTER), 1),
        (Fault("sendMessage", FaultKind.GARBAGE_AFTER), 1),
        (Fault("sendMessage", FaultKind.BROKEN_AFTER), 1),
        (Fault("sendMessage", FaultKind.HANG_AFTER), 1),
    ],
    ids=lambda value: value.kind.value if isinstance(value, Fault) else "",
)
async def test_without_an_answer_nobody_knows_whether_it_was_sent(
    api: BotApi, channel: Channel, fault: Fault, arrived: int
) -> None:
    """SPEC IO-5."""
    api.say(ANN, "hello")
    api.fault(fault)
    with pytest.raises(MaybeSent):
        await channel.send(reply())
    assert len(api.texts(ANN)) == arrived
    await channel.send(reply("again"))
    assert len(api.texts(ANN)) == arrived + 1


async def test_a_refused_connection_certainly_sent_nothing() -> None:
    """SPEC IO-5."""
    async with BotApi() as gone:
        pass
    channel = channel_of(gone)
    with pytest.raises(NotSent):
        await channel.send(reply())
    await channel.close()


async def test_many_hanging_sends_delay_neither_typing_nor_the_end(
    api: BotApi, channel: Channel
) -> None:
    api.say(ANN, "hello")
    api.fault(Fault("sendMessage", FaultKind.HANG, count=80))
    sends = [asyncio.create_task(channel.send(reply(str(n)))) for n in range(80)]
    await api.wait_calls("sendMessage", 64)
    channel.signal(RunStarted(RunId("a"), CHAT))
    await api.wait_calls("sendChatAction", ok=True, timeout_s=1)
    for send in sends:
        send.cancel()
    await asyncio.wait(sends)
    api.clear_faults()
    await channel.send(reply("through"))
    assert api.texts(ANN) == ["through"]


async def test_waiting_for_a_connection_too_long_means_not_sent(api: BotApi) -> None:
    channel = channel_of(api, connect_timeout_s=1, send_timeout_s=5)
    api.say(ANN, "hello")
    api.fault(Fault("sendMessage", FaultKind.HANG, count=64))
    sends = [asyncio.create_task(channel.send(reply(str(n)))) for n in range(64)]
    await api.wait_calls("sendMessage", 64)
    with pytest.raises(NotSent):
        await channel.send(reply("one too many"))
    for send in sends:
        send.cancel()
    await asyncio.wait(sends)
    await channel.close()


# ---------------------------------------------------------------------------- typing


async def test_typing_begins_at_once_repeats_and_ends(api: BotApi, channel: Channel) -> None:
    """SPEC CHAN-4."""
    api.say(ANN, "hello")
    channel.signal(RunStarted(RunId("a"), CHAT))
    calls = await api.wait_calls("sendChatAction", 2, ok=True, timeout_s=8)
    assert 4 <= calls[1].at - calls[0].at <= 5
    assert calls[0].parameters == {"chat_id": ANN, "action": "typing"}
    channel.signal(RunEnded(RunId("a"), CHAT, Outcome.COMPLETED))
    await channel.send(reply())
    assert len(api.transcript("sendChatAction")) == 2


async def test_typing_that_hangs_delays_no_answer(api: BotApi, channel: Channel) -> None:
    api.say(ANN, "hello")
    api.fault(Fault("sendChatAction", FaultKind.HANG, count=20))
    for run in range(20):
        channel.signal(RunStarted(RunId(str(run)), Target("telegram", "default", str(ANN + run))))
    await api.wait_calls("sendChatAction", 8)
    async with asyncio.timeout(0.5):
        await channel.send(reply())
    began = time.monotonic()
    await channel.close()
    assert time.monotonic() - began < 0.5


# ---------------------------------------------------------------------------- the client itself


@pytest.fixture
async def client(api: BotApi) -> AsyncIterator[PtbClient]:
    client = await PtbClient.open(Settings(api.token, api.url, send_timeout_s=1))
    yield client
    await client.close()


async def test_a_conflict_is_an_error_of_its_own(api: BotApi, client: PtbClient) -> None:
    api.set_webhook("https://old.example/hook")
    with pytest.raises(PollConflict):
        await client.get_updates(offset=None, wait_s=0, kinds=["message"])
    assert await client.webhook() == "https://old.example/hook"
    await client.delete_webhook()
    assert await client.webhook() == ""


@pytest.mark.parametrize("result", [None, {}, [], "x", {"id": 5}])
async def test_an_answer_that_makes_no_sense_is_no_answer(result: object) -> None:
    """A server that says ok and then something else may have done what it was asked."""

    async def answer(_request: web.Request) -> web.Response:
        return web.json_response({"ok": True, "result": result})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    client = await PtbClient.open(Settings(TOKEN, url))
    with pytest.raises(MaybeSent, match="not understood") as caught:
        await client.send_message(Place(ANN), "x", reply_to=None)
    assert TOKEN not in str(caught.value)
    if not isinstance(result, list):
        with pytest.raises(MaybeSent, match="no list of updates"):
            await client.get_updates(offset=None, wait_s=0, kinds=["message"])
    await client.close()
    await runner.cleanup()


async def test_a_closed_client_sends_nothing(api: BotApi, client: PtbClient) -> None:
    await client.close()
    with pytest.raises(NotSent):
        await client.get_me()
