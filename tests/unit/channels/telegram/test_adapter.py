"""``channels.telegram.adapter`` and ``activity`` in virtual time, against a scripted client."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from channels.telegram.adapter import TelegramChannel
from channels.telegram.client import BotClient
from channels.telegram.client import WebhookState as SetWebhook
from channels.telegram.settings import Streaming, TelegramSettings
from goclaw_py.chat.channel import Channel
from goclaw_py.chat.outbound.rate_limit import RateLimit
from goclaw_py.core.chat_commands import GUEST_MENU, MENU
from goclaw_py.core.errors import ChannelRefused, NotSent, RateLimited, Undeliverable
from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import (
    Attachment,
    FileKind,
    InboundMessage,
    OutboundMessage,
    PeerKind,
    Target,
)
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.run_events import RoleChanged, RunEnded, RunStarted
from goclaw_py.scheduler.views import ChannelHealth, ChannelState
from tests.unit.channels.telegram.scripted import (
    SETTINGS,
    Answer,
    Notebook,
    ScriptedClient,
    channel_over,
    logged,
    meanwhile,
    outage,
    over,
    run_for,
    update,
)

ANN = Target("telegram", "default", "7")
TEAM = Target("telegram", "default", "-1007", "55")
RUN = RunId("a")
REFUSED = ChannelRefused("Unauthorized")
HOOKED = replace(SETTINGS, webhook_url="https://bot.example.org/telegram")
NATIVE = replace(SETTINGS, streaming=Streaming.NATIVE)


def started(run: str, target: Target = ANN, *messages: str) -> RunStarted:
    return RunStarted(RunId(run), target, messages)


def ended(
    run: str, target: Target = ANN, outcome: Outcome = Outcome.COMPLETED, *messages: str
) -> RunEnded:
    return RunEnded(RunId(run), target, outcome, messages)


def test_it_is_a_channel() -> None:
    """SPEC CHAN-1."""
    channel: Channel = channel_over(ScriptedClient())
    assert (channel.name, channel.account, channel.trusted) == ("telegram", "default", False)
    assert (channel.handle, channel.health.detail, channel.reaches("7")) == (None, "", True)
    ids = {"7": True, "-1001": True, "@ann": False, "ann": False, "": False, "7 ": False}
    assert {one: channel.chat_problem(one) == "" for one in ids} == ids


def test_a_poller_needs_a_lease_and_a_webhook_does_not() -> None:
    """SPEC NODE-1."""
    polling, hooked = channel_over(ScriptedClient()), channel_over(ScriptedClient(), HOOKED)
    assert (polling.lease, polling.hook) == ("telegram:4242", None)
    assert hooked.lease is None
    assert hooked.identity == polling.identity == "telegram:4242"
    assert hooked.hook is not None
    assert hooked.hook.path == "/telegram"


def test_a_reply_is_cut_at_telegrams_limit() -> None:
    """SPEC CHAN-3."""
    channel = channel_over(ScriptedClient())
    assert channel.parts(" \n") == []
    assert [len(part) for part in channel.parts("x" * 5000)] == [4032, 968]
    assert [len(part) for part in channel.parts("😀" * 2049)] == [2016, 33]
    assert channel.parts("a\ud83d") == ["a\ufffd"]
    assert channel.parts("a **b** < c") == ["a <b>b</b> &lt; c"]


def test_each_kind_of_chat_has_its_pace() -> None:
    """SPEC IO-4."""
    channel = channel_over(ScriptedClient())
    assert channel.pace("7") == RateLimit(gap_s=1.0, per_minute=None, account_per_s=30)
    assert channel.pace("-5") == channel.pace("-1007") == RateLimit(1.0, 20, 30)
    free = replace(SETTINGS, chat_gap_s=0, group_per_minute=0, account_per_second=0)
    unlimited = channel_over(ScriptedClient(), free)
    assert unlimited.pace("-5") == unlimited.pace("7") == RateLimit()


@pytest.mark.parametrize(
    ("streaming", "direct", "group"),
    [
        (Streaming.EDIT, True, True),
        (Streaming.NATIVE, False, True),
        (Streaming.OFF, False, False),
    ],
)
def test_drafts_are_edited_where_telegrams_own_are_not_used(
    streaming: Streaming, direct: bool, group: bool
) -> None:
    """SPEC CHAN-4."""
    channel = channel_over(ScriptedClient(), replace(SETTINGS, streaming=streaming))
    assert channel.drafts(ANN, PeerKind.DIRECT) is direct
    assert channel.drafts(TEAM, PeerKind.GROUP) is group
    assert not channel.drafts(replace(ANN, chat="ann"), PeerKind.DIRECT)


async def test_concurrent_sends_connect_once() -> None:
    connected: list[TelegramSettings] = []
    client = ScriptedClient()

    async def connect(settings: TelegramSettings) -> BotClient:
        connected.append(settings)
        await asyncio.sleep(0.2)
        return client

    channel = TelegramChannel("default", SETTINGS, connect)
    await asyncio.gather(*(channel.send(OutboundMessage(ANN, str(n))) for n in range(5)))
    assert (connected, len(client.sent)) == ([SETTINGS], 5)
    await channel.close()
    assert client.closed


async def test_a_file_is_fetched_up_to_the_limit_of_the_settings() -> None:
    """SPEC CHAN-6."""
    client = ScriptedClient()
    async with over(client, replace(SETTINGS, download_mb=3)) as channel:
        await channel.fetch(Attachment(FileKind.PHOTO, "ref-1"), Path("/nowhere/x"))
    assert client.fetched == [("ref-1", Path("/nowhere/x"), 3 << 20)]


@pytest.mark.parametrize(
    ("settings", "found", "facts"),
    [
        (SETTINGS, SetWebhook(), []),
        (HOOKED, SetWebhook(HOOKED.webhook_url), []),
        (HOOKED, SetWebhook(), ["webhook now: none; the gateway changes that"]),
        (SETTINGS, SetWebhook("https://old.example/hook", 3, "Connection refused"),
         ["webhook now: https://old.example/hook; the gateway changes that", "3 updates wait",
         "Telegram says: Connection refused"]),
        (SETTINGS, SetWebhook("", 3), ["3 updates wait"]),
        (HOOKED, SetWebhook(HOOKED.webhook_url, 0, "it was long ago"), []),
    ],
)  # fmt: skip
async def test_a_probe_tells_who_we_are_and_what_is_odd(
    settings: TelegramSettings, found: SetWebhook, facts: list[str]
) -> None:
    """SPEC OPS-4."""
    client = ScriptedClient(hook=found)
    async with over(client, settings) as channel:
        said = await channel.probe()
    assert said == "; ".join(["@GoclawTestBot (python-telegram-bot)", *facts])
    assert (client.hooks, client.hook_deleted, client.polls) == ([], 0, [])


async def test_a_probe_raises_what_is_wrong() -> None:
    client = ScriptedClient()
    client.fail("get_me", REFUSED)
    async with over(client) as channel:
        with pytest.raises(ChannelRefused):
            await channel.probe()


async def test_receiving_tells_the_bots_name_and_publishes_the_menu() -> None:
    """SPEC CMD-5."""
    client = ScriptedClient([[update(5)]])
    notebook = Notebook()
    async with over(client) as channel:
        await run_for(channel.receive(notebook), 5)
        assert channel.handle == "GoclawTestBot"
    assert notebook.texts == [["hello"]]
    assert list(client.menus[None]) == ["start", *(name for name, _ in GUEST_MENU)]


async def test_an_owner_has_the_menu_of_owners_while_being_one() -> None:
    """SPEC CMD-5: with one call for each change."""
    client, ann = ScriptedClient(), Target("telegram", "default", "7")
    async with over(client) as channel:
        channel.signal(RoleChanged(ann, is_owner=True))
        channel.signal(RoleChanged(replace(ann, chat="no number"), is_owner=True))
        async with meanwhile(channel.receive(Notebook())):
            await asyncio.sleep(10)
            assert client.menus[7] == {"start": "Begin", **dict(MENU)}
            assert "approve" not in client.menus[None]
            assert client.calls.count("set_commands") == 2
            client.fail("set_commands", NotSent("reset"))
            channel.signal(RoleChanged(ann, is_owner=False))
            await asyncio.sleep(60)
    assert client.menus[7] == client.menus[None]
    assert set(client.menus) == {None, 7}


async def test_an_owner_whose_chat_is_unknown_delays_no_other_menu() -> None:
    client = ScriptedClient()
    async with over(client) as channel, meanwhile(channel.receive(Notebook())):
        await asyncio.sleep(10)
        client.fail("set_commands", Undeliverable("chat not found"))
        for chat in ("8", "7"):
            channel.signal(RoleChanged(Target("telegram", "default", chat), is_owner=True))
        await asyncio.sleep(60)
    assert client.calls.count("set_commands") == 3
    assert len(client.menus) == 2


@pytest.mark.parametrize("settings", [SETTINGS, HOOKED], ids=["polling", "webhook"])
async def test_it_starts_until_the_server_can_be_reached_and_never_again(
    settings: TelegramSettings,
) -> None:
    """SPEC CHAN-1: a gateway that has worked stays ready through an outage of Telegram."""
    client, seen = ScriptedClient(), list[ChannelHealth]()
    async with over(client, settings) as channel:
        for _ in range(2):
            client.fail("get_me", *[NotSent("no route")] * 4)
            async with meanwhile(channel.receive(Notebook())):
                for wait_s in (2, 60):
                    await asyncio.sleep(wait_s)
                    seen.append(channel.health)
    states = [health.state for health in seen]
    assert states[0] is ChannelState.STARTING
    assert "no route" in seen[0].detail
    assert ChannelState.STARTING not in states[1:]
    assert states[2] is ChannelState.RECONNECTING


async def test_it_is_connected_once_the_server_has_answered() -> None:
    """SPEC CHAN-8: not while the library is imported, nor while the server is silent."""
    client, states = ScriptedClient(), list[ChannelState]()
    client.takes_s["get_me"] = 10.0
    channel = channel_over(client, connect_s=20.0)
    assert channel.health.state is ChannelState.STARTING
    async with meanwhile(channel.receive(Notebook())):
        for wait_s in (1, 18, 10, 2):
            await asyncio.sleep(wait_s)
            states.append(channel.health.state)
    assert states == [ChannelState.STARTING] * 3 + [ChannelState.CONNECTED]
    await channel.close()


async def test_a_new_name_of_the_bot_is_known_within_minutes() -> None:
    """SPEC CHAN-5: also if the server does not answer once."""
    client, notebook = ScriptedClient(), Notebook()
    group = {"chat": {"id": -7, "type": "supergroup", "title": "Team"}}
    async with over(client) as channel, meanwhile(channel.receive(notebook)):
        await asyncio.sleep(1)
        client.bot = replace(client.bot, username="NewBot")
        client.fail("get_me", NotSent("timeout"))
        await asyncio.sleep(600)
        assert channel.handle == "NewBot"
        client.answers.append([update(5, "@NewBot hello", **group)])
        await asyncio.sleep(40)
    (found,) = notebook.taken
    assert isinstance(found, InboundMessage)
    assert (found.text, found.addressed) == ("hello", True)


async def test_the_menu_is_published_again_when_that_failed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """SPEC CMD-5."""
    client = ScriptedClient()
    client.fail("set_commands", NotSent("reset"), RateLimited("slow", 60.0))
    async with over(client) as channel:
        with logged(caplog) as lines:
            await run_for(channel.receive(Notebook()), 70)
    assert "INFO command_menu_not_published" in lines
    assert "stop" in client.menus[None]


async def test_a_menu_that_is_refused_is_not_published_again() -> None:
    client = ScriptedClient()
    client.fail("set_commands", Undeliverable("too long"))
    async with over(client) as channel:
        await run_for(channel.receive(Notebook()), 3600)
    assert client.calls.count("set_commands") == 1


async def test_a_menu_that_hangs_delays_no_message_and_no_end() -> None:
    client = ScriptedClient([[update(5)]])
    client.takes_s["set_commands"] = 1000.0
    notebook = Notebook()
    async with over(client) as channel:
        await run_for(channel.receive(notebook), 5)
    assert notebook.texts == [["hello"]]
    assert asyncio.get_running_loop().time() == 5


async def test_the_bot_is_asked_for_until_the_network_is_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """SPEC CHAN-8."""
    client = ScriptedClient([[update(5)]])
    client.fail("get_me", *[NotSent("no route")] * 100, RateLimited("slow", 50.0))
    notebook = Notebook()
    async with over(client) as channel:
        with logged(caplog) as lines:
            async with meanwhile(channel.receive(notebook)):
                await asyncio.sleep(600)
                assert (
                    channel.health.detail == "Telegram cannot be reached, for 10 min now: no route"
                )
                await asyncio.sleep(3000)
                assert channel.health.detail == ""
    assert notebook.texts == [["hello"]]
    assert lines == outage("Telegram cannot be reached")


async def test_who_does_not_receive_any_more_tells_no_trouble() -> None:
    """SPEC OPS-4: another gateway may receive by now."""
    client = ScriptedClient()
    client.fail("get_me", *[NotSent("no route")] * 100)
    async with over(client) as channel:
        await run_for(channel.receive(Notebook()), 60)
        assert channel.health.detail == ""


@pytest.mark.parametrize("settings", [SETTINGS, HOOKED], ids=["polling", "webhook"])
async def test_trouble_with_receiving_is_told_while_it_lasts(settings: TelegramSettings) -> None:
    answers: list[Answer] = [[], *([NotSent("no route")] * 20)]
    client = ScriptedClient(answers)
    client.fail("set_webhook", *[NotSent("no route")] * 20)
    async with over(client, settings) as channel, meanwhile(channel.receive(Notebook())):
        await asyncio.sleep(60)
        assert channel.health.detail == "Telegram cannot be reached, for 1 min now: no route"
        await asyncio.sleep(600)
        assert channel.health.detail == ""


@pytest.mark.parametrize("settings", [SETTINGS, HOOKED], ids=["polling", "webhook"])
async def test_a_token_that_is_refused_once_stops_sending_until_it_is_accepted_again(
    settings: TelegramSettings,
) -> None:
    """SPEC CHAN-8: the server's own trouble must not silence the bot for ever."""
    client = ScriptedClient(hook=SetWebhook(HOOKED.webhook_url))
    async with over(client, settings) as channel, meanwhile(channel.receive(Notebook())):
        await asyncio.sleep(5)
        for method, call in (
            ("send_message", channel.send(OutboundMessage(ANN, "x"))),
            ("send_message", channel.post_draft(OutboundMessage(ANN, "x"))),
            ("edit_message", channel.edit_draft(OutboundMessage(ANN, "x", draft="5"))),
        ):
            client.fail(method, REFUSED)
            with pytest.raises(ChannelRefused):
                await call
            assert not channel.reaches("7")
            await asyncio.sleep(61)
            assert channel.reaches("7")
