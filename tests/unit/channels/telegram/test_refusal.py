"""A token that Telegram refuses, for a moment or for good (SPEC CHAN-8), in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest

from channels.telegram.adapter import TelegramChannel
from channels.telegram.client import BotClient, PollConflict, WebhookState
from channels.telegram.settings import TelegramSettings
from channels.telegram.webhook import SECRET_HEADER, secret_of
from goclaw_py.chat.channel import WebRequest
from goclaw_py.core.errors import ChannelError, ChannelRefused, NotSent, SettingError
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.scheduler.views import HEALTHY, ChannelState
from tests.unit.channels.telegram.scripted import (
    SETTINGS,
    Answer,
    Notebook,
    ScriptedClient,
    logged,
    meanwhile,
    over,
    run_for,
    update,
)

REFUSED = ChannelRefused("Telegram does not accept this bot token (Unauthorized)")
HOOKED = replace(SETTINGS, webhook_url="https://bot.example.org/telegram")
BOTH = pytest.mark.parametrize("settings", [SETTINGS, HOOKED], ids=["polling", "webhook"])
NEW_TOKEN = "4242:AAanother-token_for-tests-only-12345"
MINUTE = 60.0


@dataclass(slots=True)
class TokenFile:
    """Settings whose token can be replaced, and the clients that were made with each token."""

    settings: TelegramSettings
    clients: dict[str, ScriptedClient]
    unreadable: bool = False
    connected: list[str] = field(default_factory=list)

    def read(self) -> TelegramSettings:
        if self.unreadable:
            raise SettingError("token_file", "token", "cannot be read")
        return self.settings

    async def connect(self, settings: TelegramSettings) -> BotClient:
        self.connected.append(settings.token)
        return self.clients[settings.token]

    @asynccontextmanager
    async def channel(self) -> AsyncIterator[TelegramChannel]:
        channel = TelegramChannel("default", self.settings, self.connect, self.read)
        try:
            yield channel
        finally:
            await channel.close()


def refusing(*methods: str) -> ScriptedClient:
    client = ScriptedClient(hook=WebhookState(HOOKED.webhook_url))
    for method in methods:
        client.fail(method, *[REFUSED] * 1000)
    return client


@pytest.mark.parametrize(
    ("settings", "method"),
    [
        (SETTINGS, "get_me"),
        (SETTINGS, "get_updates"),
        (HOOKED, "get_me"),
        (HOOKED, "set_webhook"),
        (HOOKED, "webhook"),
    ],
)
async def test_one_refusal_is_survived_and_loses_nothing(
    settings: TelegramSettings, method: str
) -> None:
    client = ScriptedClient([[update(5)]], hook=WebhookState(HOOKED.webhook_url))
    client.fail(method, REFUSED)
    notebook = Notebook()
    async with over(client, settings) as channel, meanwhile(channel.receive(notebook)) as task:
        await asyncio.sleep(2 * MINUTE)
        assert not task.done()
        assert channel.health == HEALTHY
        assert channel.reaches("7")
        assert client.calls.count("get_me") == 2
    assert notebook.texts == ([["hello"]] if settings is SETTINGS else [])


@BOTH
async def test_a_token_that_stays_refused_stops_the_channel_after_minutes(
    settings: TelegramSettings, caplog: pytest.LogCaptureFixture
) -> None:
    client = ScriptedClient(hook=WebhookState(HOOKED.webhook_url))
    async with over(client, settings) as channel:
        with logged(caplog) as lines:
            task = asyncio.create_task(channel.receive(Notebook()))
            await asyncio.sleep(MINUTE / 2)
            for method in ("get_me", "get_updates", "webhook"):
                client.fail(method, *[REFUSED] * 1000)
            await asyncio.sleep(3 * MINUTE)
            assert channel.health.state is ChannelState.UNAUTHORIZED
            assert channel.health.detail.endswith("does not accept this bot token (Unauthorized)")
            assert not channel.reaches("7")
            await asyncio.sleep(4 * MINUTE)
    assert lines == ["WARNING channel_outage_started requests are refused"]
    with pytest.raises(ChannelRefused, match=r"Unauthorized\); get a token from @BotFather"):
        task.result()
    assert client.calls.count("get_me") < 20


async def test_a_request_that_is_refused_although_the_token_is_accepted_is_tried_with_pauses() -> (
    None
):
    """A proxy can refuse ``getUpdates`` alone."""
    answers: list[Answer] = [REFUSED] * 40
    client = ScriptedClient([*answers, [update(5)]])
    notebook = Notebook()
    async with over(client) as channel, meanwhile(channel.receive(notebook)):
        await asyncio.sleep(10 * MINUTE)
        assert channel.health.state is ChannelState.RECONNECTING
        assert channel.reaches("7"), "the token is accepted"
        assert len(client.polls) < 30
        await asyncio.sleep(20 * MINUTE)
        assert channel.health == HEALTHY
    assert notebook.texts == [["hello"]]
    assert {poll.offset for poll in client.polls[:41]} == {None}


@pytest.mark.parametrize("error", [NotSent("no route"), PollConflict("Conflict")])
async def test_other_trouble_meanwhile_is_no_refusal(error: ChannelError) -> None:
    client = ScriptedClient([REFUSED])
    client.fail("get_me", *[REFUSED] * 3, *[error] * 40, REFUSED)
    async with over(client) as channel:
        await run_for(channel.receive(Notebook()), 4 * MINUTE)


@BOTH
@pytest.mark.parametrize("stopped", [False, True])
async def test_a_new_token_is_taken_without_a_restart(
    settings: TelegramSettings, stopped: bool
) -> None:
    old = refusing("get_me", "get_updates", "webhook", "set_webhook")
    new = ScriptedClient([[update(5)]], hook=WebhookState(HOOKED.webhook_url))
    file = TokenFile(settings, {settings.token: old, NEW_TOKEN: new})
    notebook = Notebook()
    async with file.channel() as channel:
        receiving = asyncio.create_task(channel.receive(notebook))
        await asyncio.sleep(10 * MINUTE if stopped else MINUTE)
        assert receiving.done() is stopped
        if stopped:
            assert isinstance(receiving.exception(), ChannelRefused)
            receiving = asyncio.create_task(channel.until_retry())
        file.unreadable = True  # it is being written
        await asyncio.sleep(MINUTE / 2)
        assert not receiving.done()
        file.unreadable, file.settings = False, replace(settings, token=NEW_TOKEN)
        await asyncio.wait_for(receiving, MINUTE / 2)
        assert old.closed
        async with meanwhile(channel.receive(notebook)):
            await asyncio.sleep(1)
            assert channel.health == HEALTHY
            await channel.send(OutboundMessage(Target("telegram", "default", "7"), "x"))
            if settings is HOOKED:
                assert [made.secret for made in new.hooks] == [secret_of(NEW_TOKEN)]
                assert channel.hook is not None
                request = WebRequest("POST", {SECRET_HEADER: secret_of(NEW_TOKEN)}, b"{}")
                assert (await channel.hook.handle(request)).status == 200
    assert file.connected == [settings.token, NEW_TOKEN]
    assert [sent.text for sent in new.sent] == ["x"]


async def test_the_token_of_another_bot_needs_another_lease() -> None:
    """SPEC NODE-1."""
    other = "4343:AAanother-bot_for-tests-only-1234567"
    file = TokenFile(SETTINGS, {SETTINGS.token: refusing("get_me"), other: ScriptedClient()})
    async with file.channel() as channel:
        assert channel.lease == "telegram:4242"
        file.settings = replace(SETTINGS, token=other)
        await asyncio.wait_for(channel.receive(Notebook()), MINUTE)
        assert channel.lease == "telegram:4343"


async def test_nothing_is_sent_by_another_bot_before_the_channel_receives_with_it() -> None:
    """SPEC CHAN-8: it may be the bot of another account, which nobody knows before."""
    other = "4343:AAanother-bot_for-tests-only-1234567"
    bot = ScriptedClient()
    file = TokenFile(SETTINGS, {SETTINGS.token: refusing("get_me"), other: bot})
    async with file.channel() as channel:
        file.settings = replace(SETTINGS, token=other)
        await asyncio.wait_for(channel.receive(Notebook()), MINUTE)
        await asyncio.wait_for(channel.until_retry(), 2 * MINUTE)
        assert not channel.reaches("7")
        with pytest.raises(NotSent):
            await channel.post_draft(OutboundMessage(Target("telegram", "default", "7"), "x"))
        assert bot.sent == []
        async with meanwhile(channel.receive(Notebook())):
            await asyncio.sleep(1)
            assert channel.reaches("7")


async def test_a_stopped_channel_asks_the_server_about_its_token_every_minute() -> None:
    client = refusing("get_me")
    async with over(client) as channel:
        waiting = asyncio.create_task(channel.until_retry())
        await asyncio.sleep(10 * MINUTE + 1)
        assert client.calls == ["get_me"] * 10
        client.forgive()
        await asyncio.wait_for(waiting, MINUTE + 1)
