"""The Telegram channel with its real library against a strict Bot API emulator."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from channels.telegram import factory
from channels.telegram.settings import Settings
from channels.telegram.via_ptb import PtbClient
from goclaw_py.core.errors import (
    ChannelError,
    ChannelRefused,
    StoreUnavailable,
)
from goclaw_py.core.messages import InboundMessage, OutboundMessage, Target
from goclaw_py.ports.channel import Channel
from tests.botapi import BotApi, Fault, FaultKind

pytestmark = pytest.mark.real_time

ANN = 7
CHAT = Target("telegram", "default", str(ANN))
GROUP = -1001


class Inbox:
    """An intake that keeps what it accepts and refuses while ``down``."""

    def __init__(self) -> None:
        self.down = False
        self.offered: list[str] = []
        self.accepted: list[InboundMessage] = []
        self._changed = asyncio.Event()

    async def accept(self, batch: Sequence[InboundMessage]) -> None:
        self.offered.extend(message.text for message in batch)
        self._changed.set()
        if self.down:
            raise StoreUnavailable("the database does not answer")
        self.accepted.extend(batch)

    async def until(self, *texts: str) -> None:
        """Wait until all these texts were offered."""
        async with asyncio.timeout(5):
            while not set(texts) <= set(self.offered):
                self._changed.clear()
                await self._changed.wait()

    @property
    def texts(self) -> list[str]:
        return [message.text for message in self.accepted]


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


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


@asynccontextmanager
async def receiving(channel: Channel, inbox: Inbox) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(channel.receive(inbox))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})


def reply(text: str = "hi", *, to: str | None = None) -> OutboundMessage:
    return OutboundMessage(CHAT, text, reply_to=to)


async def test_messages_come_in_and_are_confirmed(
    api: BotApi, channel: Channel, inbox: Inbox
) -> None:
    """SPEC IO-1."""
    api.say(ANN, "before the start")
    async with receiving(channel, inbox):
        await inbox.until("before the start")
        api.say(ANN, "/stop@goclawtestbot now", username="ann")
        await inbox.until("/stop@goclawtestbot now")
        await api.wait_confirmed()
    assert [m.redelivered for m in inbox.accepted] == [True, False]
    assert [m.external_id for m in inbox.accepted] == ["7:1", "7:2"]
    assert channel.handle == "GoclawTestBot"
    assert {str(c["command"]) for c in api.world.commands} >= {"stop", "stopall", "status"}


async def test_what_is_not_committed_is_not_confirmed(
    api: BotApi, channel: Channel, inbox: Inbox
) -> None:
    """SPEC IO-1, DB-4."""
    inbox.down = True
    async with receiving(channel, inbox):
        api.say(ANN, "one")
        await inbox.until("one")
        api.say(ANN, "/stop")
        await inbox.until("/stop")
        assert api.pending() == 2
        inbox.down = False
        await api.wait_confirmed()
    assert inbox.texts == ["one", "/stop"]


async def test_a_process_that_dies_before_the_commit_loses_nothing(
    api: BotApi, inbox: Inbox
) -> None:
    """SPEC IO-2."""
    inbox.down = True
    api.say(ANN, "one")
    for _ in range(2):
        channel = channel_of(api)
        async with receiving(channel, inbox):
            await inbox.until("one")
            inbox.offered.clear()
        await channel.close()
    assert api.pending() == 1
    inbox.down = False
    channel = channel_of(api)
    async with receiving(channel, inbox):
        await api.wait_confirmed()
    await channel.close()
    assert [(m.text, m.redelivered) for m in inbox.accepted] == [("one", True)]


async def test_an_answer_that_was_lost_comes_again(
    api: BotApi, channel: Channel, inbox: Inbox
) -> None:
    async with receiving(channel, inbox):
        await api.wait_calls("getUpdates", 2)
        api.fault(Fault("getUpdates", FaultKind.RESET_AFTER))
        api.say(ANN, "one")
        await inbox.until("one")
        api.say(ANN, "two")
        await inbox.until("two")
        await api.wait_confirmed()
    assert inbox.texts == ["one", "two"]


async def test_poison_does_not_stop_the_updates_around_it(
    api: BotApi, channel: Channel, inbox: Inbox
) -> None:
    api.say(ANN, "one")
    api.push({"message": {"message_id": "poison", "chat": {"id": 7, "type": "private"}}})
    api.push({"message": 5})
    api.push({"callback_query": {"id": "1", "from": {"id": "x"}}})
    api.say(ANN, "lone \ud83d surrogate")
    async with receiving(channel, inbox):
        await api.wait_confirmed()
    assert inbox.texts == ["one", "lone \ufffd surrogate"]


async def test_a_long_text_comes_in_pieces_that_are_marked(
    api: BotApi, channel: Channel, inbox: Inbox
) -> None:
    """SPEC QUEUE-6."""
    api.say(ANN, "x" * 9000)
    async with receiving(channel, inbox):
        await api.wait_confirmed()
    assert [(len(m.text), m.cut) for m in inbox.accepted] == [
        (4096, True),
        (4096, True),
        (808, False),
    ]


async def test_a_topic_of_a_group_is_a_thread(api: BotApi, channel: Channel, inbox: Inbox) -> None:
    """SPEC CHAN-6."""
    api.add_group(GROUP, "Team", topics=[55])
    api.say(ANN, "in the topic", chat_id=GROUP, thread=55)
    async with receiving(channel, inbox):
        await inbox.until("in the topic")
    target = inbox.accepted[0].target
    assert target == Target("telegram", "default", str(GROUP), "55")
    await channel.send(OutboundMessage(target, "back", reply_to="1"))
    general = Target("telegram", "default", str(GROUP), "1")
    await channel.send(OutboundMessage(general, "general"))
    sent = [call.parameters for call in api.transcript("sendMessage", ok=True)]
    assert [call.get("message_thread_id") for call in sent] == [55, None]


async def test_of_two_pollers_the_older_one_steps_back(
    api: BotApi, channel: Channel, inbox: Inbox, caplog: pytest.LogCaptureFixture
) -> None:
    """SPEC CHAN-8."""
    async with receiving(channel, inbox) as task:
        await api.wait_calls("getUpdates", 2)
        other = await PtbClient.open(Settings(api.token, api.url))
        assert await other.get_updates(offset=None, wait_s=0, kinds=["message"]) == []
        await api.wait_calls("getUpdates", 3)
        await asyncio.wait({task}, timeout=0.2)
        assert not task.done()
        assert len(api.transcript("getUpdates")) == 3, "it must not fight for the updates"
        await other.close()
    assert caplog.text.count("another program takes this bot's updates") == 1


async def test_a_webhook_is_removed(api: BotApi, channel: Channel, inbox: Inbox) -> None:
    api.set_webhook("https://old.example/hook")
    api.say(ANN, "one")
    async with receiving(channel, inbox):
        await inbox.until("one")
    assert api.world.webhook == ""


async def test_a_revoked_token_ends_the_polling_with_one_clear_line(
    api: BotApi, channel: Channel, inbox: Inbox
) -> None:
    """SPEC CHAN-8."""
    async with receiving(channel, inbox) as task:
        await api.wait_calls("getUpdates", 2)
        api.revoke()
        await asyncio.wait({task}, timeout=5)
        with pytest.raises(ChannelRefused, match="does not accept this bot token: Unauthorized"):
            task.result()
    assert not channel.reaches(CHAT.chat)


@pytest.mark.parametrize("token", ["4242:AAanother-token-than-the-right-one", "1:" + "A" * 35])
async def test_a_wrong_token_is_refused_at_once(api: BotApi, inbox: Inbox, token: str) -> None:
    channel = factory.build("default", {"token": token, "base_url": api.url})
    with pytest.raises(ChannelRefused) as caught:
        async with asyncio.timeout(5):
            await channel.receive(inbox)
    assert token not in str(caught.value)
    await channel.close()


@pytest.mark.parametrize("status", [404, 401, 500, 502])
async def test_a_proxys_page_is_no_word_of_telegram(
    api: BotApi, channel: Channel, inbox: Inbox, status: int
) -> None:
    """SPEC CHAN-8: a 404 page looks like a wrong token to the library."""
    api.fault(Fault("getMe", FaultKind.PAGE, status=status))
    api.fault(Fault("getUpdates", FaultKind.PAGE, status=status))
    api.say(ANN, "one")
    async with receiving(channel, inbox):
        await inbox.until("one")


async def test_a_poller_whose_connection_is_dead_polls_again(
    api: BotApi, channel: Channel, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPEC CHAN-8: a watchdog for a deaf poller."""
    monkeypatch.setattr("channels.telegram.via_ptb._POLL_MARGIN_S", 0.5)
    api.fault(Fault("getUpdates", FaultKind.HANG))
    api.say(ANN, "one")
    async with receiving(channel, inbox):
        await inbox.until("one")


async def test_flooded_polls_wait_as_long_as_the_server_says(
    api: BotApi, channel: Channel, inbox: Inbox
) -> None:
    api.fault(Fault("getUpdates", FaultKind.FLOOD, seconds=2))
    api.say(ANN, "one")
    async with receiving(channel, inbox):
        await inbox.until("one")
    first, second = (call.at for call in api.transcript("getUpdates")[:2])
    assert second - first >= 2


async def test_a_long_poll_is_cancelled_quickly(
    api: BotApi, channel: Channel, inbox: Inbox
) -> None:
    async with receiving(channel, inbox) as task:
        await api.wait_calls("getUpdates", 2)
        began = time.monotonic()
        task.cancel()
        await asyncio.wait({task})
        assert time.monotonic() - began < 0.5
    assert task.cancelled()


async def test_the_token_is_in_no_log_and_no_error(
    api: BotApi, channel: Channel, inbox: Inbox, caplog: pytest.LogCaptureFixture
) -> None:
    """SPEC CHAN-8."""
    caplog.set_level(logging.DEBUG)
    errors: list[str] = []
    api.say(ANN, "hello")
    for kind in FaultKind:
        if kind is not FaultKind.DELAY:
            api.fault(Fault("sendMessage", kind))
    api.fault(Fault("getMe", FaultKind.PAGE))
    api.fault(Fault("getUpdates", FaultKind.RESET_AFTER))
    async with receiving(channel, inbox):
        for _ in FaultKind:
            try:
                await channel.send(reply())
            except ChannelError as error:
                errors.append(f"{error!r} {error.__cause__!r} {error.__context__!r}")
        await inbox.until("hello")
    api.revoke()
    with pytest.raises(ChannelRefused) as refused:
        await channel.receive(inbox)
    errors.append(repr(refused.value))
    secret = api.token.partition(":")[2]
    assert len(errors) == len(FaultKind)
    assert secret not in caplog.text
    assert secret not in str([vars(record) for record in caplog.records])
    assert secret not in str(errors)
