"""Both Telegram clients against a strict Bot API emulator: the same calls, the same errors."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import Mapping

import pytest

from channels.telegram.client import (
    Bot,
    BotClient,
    ChatPlace,
    FileTooBig,
    MarkupRefused,
    MessageGone,
    PollConflict,
    Text,
    WebhookState,
)
from channels.telegram.settings import Library
from goclaw_py.core.errors import (
    ChannelError,
    ChannelRefused,
    ChatGone,
    MaybeSent,
    NotSent,
    TopicGone,
    Undeliverable,
)
from tests.botapi import BotApi, Fault, FaultKind
from tests.support.bot_clients import answering, connected

pytestmark = pytest.mark.real_time
pytest_plugins = ["tests.support.telegram_fixtures"]

ANN = 7
HERE = ChatPlace(ANN)
HELLO = Text("hello")
TOPIC = 55
GROUP = -1001


def asked(api: BotApi, method: str) -> Mapping[str, object]:
    """The parameters of the last call of a method."""
    return api.transcript(method)[-1].parameters


# ---------------------------------------------------------------------------- libraries


@pytest.mark.parametrize(
    ("module", "other"),
    [("via_ptb", "aiogram"), ("via_aiogram", "telegram"), ("adapter", "telegram aiogram aiohttp")],
)
@pytest.mark.slow
def test_no_library_loads_another(module: str, other: str) -> None:
    """SPEC CHAN-2: each is imported only when it is used."""
    script = (
        f"import channels.telegram, channels.telegram.{module}, sys;"
        f"loaded = set({other.split()}) & set(sys.modules);"
        "sys.exit(f'loaded: {loaded}' if loaded else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


# ---------------------------------------------------------------------------- texts


async def test_who_the_bot_is_and_what_its_menu_offers(api: BotApi, client: BotClient) -> None:
    """SPEC CMD-5."""
    assert await client.get_me() == Bot(4242, "GoclawTestBot")
    await client.set_commands({"stop": "Stop", "status": "What is going on"})
    assert [tuple(one.values()) for one in api.world.commands] == [
        ("stop", "Stop"),
        ("status", "What is going on"),
    ]
    await client.set_commands({"mute": "Mute"}, chat_id=ANN)
    assert [tuple(one.values()) for one in api.world.chat_commands[ANN]] == [("mute", "Mute")]
    assert len(api.world.commands) == 2


async def test_a_text_arrives_as_it_is(api: BotApi, client: BotClient) -> None:
    number = await client.send_message(HERE, Text("a <b> & *c* ü 😀 http://x.example"), reply_to=1)
    message = api.world.chats[ANN].messages[number]
    assert message["text"] == "a <b> & *c* ü 😀 http://x.example"
    assert isinstance(message["reply_to_message"], dict)
    parameters = asked(api, "sendMessage")
    assert parameters["link_preview_options"] == {"is_disabled": True}
    assert "parse_mode" not in parameters
    assert "message_thread_id" not in parameters


async def test_html_is_read_by_the_server(api: BotApi, client: BotClient) -> None:
    """SPEC CHAN-3."""
    await client.send_message(HERE, Text("a <b>bold</b> &lt;move&gt;", html=True))
    assert api.texts(ANN) == ["a bold <move>"]
    with pytest.raises(MarkupRefused, match="can't parse entities"):
        await client.send_message(HERE, Text("a <b>bold <move>", html=True))
    assert api.texts(ANN) == ["a bold <move>"]


async def test_a_text_goes_into_its_topic(api: BotApi, client: BotClient) -> None:
    """SPEC CHAN-6."""
    api.add_group(GROUP, "Team", topics=[TOPIC])
    number = await client.send_message(ChatPlace(GROUP, TOPIC), HELLO)
    assert api.world.chats[GROUP].messages[number]["message_thread_id"] == TOPIC
    await client.send_action(ChatPlace(GROUP, TOPIC), "typing")
    shown = {"chat_id": GROUP, "message_thread_id": TOPIC, "action": "typing"}
    assert asked(api, "sendChatAction") == shown
    with pytest.raises(Undeliverable, match="thread not found") as caught:
        await client.send_message(ChatPlace(GROUP, 56), HELLO)
    assert not isinstance(caught.value, ChatGone)


async def test_buttons_are_shown_in_rows_and_taken_away(api: BotApi, client: BotClient) -> None:
    rows = [[("Done", "d:1"), ("Snooze", "s:1")], [("Again", "a:1")]]
    number = await client.send_message(HERE, HELLO, buttons=rows)
    shown = [[{"text": words, "callback_data": data} for words, data in row] for row in rows]
    assert api.world.chats[ANN].messages[number]["reply_markup"] == {"inline_keyboard": shown}
    for _ in range(2):  # the second time there are none
        await client.remove_buttons(ANN, number)
        assert "reply_markup" not in asked(api, "editMessageReplyMarkup")
    assert not api.world.chats[ANN].messages[number].get("reply_markup")
    await client.remove_buttons(ANN, 999)  # a message that is gone
    number = await client.send_message(HERE, HELLO, buttons=rows)
    await client.edit_message(ANN, number, Text("done"))
    assert "reply_markup" not in api.world.chats[ANN].messages[number]


async def test_an_edit_and_a_deletion_can_be_repeated(api: BotApi, client: BotClient) -> None:
    """SPEC IO-5."""
    number = await client.send_message(HERE, HELLO)
    for _ in range(2):
        await client.edit_message(ANN, number, Text("<i>bye</i>", html=True))
    assert api.texts(ANN) == ["bye"]
    assert asked(api, "editMessageText")["link_preview_options"] == {"is_disabled": True}
    assert [call.status for call in api.transcript("editMessageText")] == [200, 400]
    with pytest.raises(MarkupRefused):
        await client.edit_message(ANN, number, Text("<b>", html=True))
    for _ in range(2):
        await client.delete_message(ANN, number)
    assert api.texts(ANN) == []
    api.fault(Fault("deleteMessage", FaultKind.ERROR, status=400, words="MESSAGE_ID_INVALID"))
    await client.delete_message(ANN, number)
    for gone in (99, 1):  # not there; not ours
        with pytest.raises(MessageGone):
            await client.edit_message(ANN, gone, Text("bye"))


async def test_a_draft_has_a_stop_button(api: BotApi, client: BotClient) -> None:
    await client.send_draft(HERE, 5, Text("grow<b>ing</b>", html=True))
    await client.send_draft(HERE, 5, Text("growing on"))
    first, second = (call.parameters for call in api.transcript("sendMessageDraft", ok=True))
    always = {"chat_id": ANN, "draft_id": 5, "can_stop": True}
    assert first == always | {"text": "grow<b>ing</b>", "parse_mode": "HTML"}
    assert second == always | {"text": "growing on"}


# ---------------------------------------------------------------------------- signs


async def test_typing_and_reactions_are_shown(api: BotApi, client: BotClient) -> None:
    """SPEC CHAN-4."""
    await client.send_action(HERE, "typing")
    assert asked(api, "sendChatAction") == {"chat_id": ANN, "action": "typing"}
    message = api.world.chats[ANN].messages[1]
    await client.set_reaction(ANN, 1, "👀")
    assert message["reactions"] == [{"type": "emoji", "emoji": "👀"}]
    await client.set_reaction(ANN, 1, "")
    assert message["reactions"] == []


async def test_a_press_is_answered(api: BotApi, client: BotClient) -> None:
    number = await client.send_message(HERE, HELLO, buttons=[[("Done", "d:1")]])
    for text in ("", "noted"):
        press = api.press(ANN, number, "d:1")
        await client.answer_press(press, text)
        assert asked(api, "answerCallbackQuery").get("text", "") == text
        with pytest.raises(Undeliverable, match="too old"):
            await client.answer_press(press)


async def test_buttons_that_are_set_again_change_nothing(api: BotApi, client: BotClient) -> None:
    """SPEC IO-5: so a message is found by its buttons."""
    number = await client.send_message(HERE, HELLO, buttons=[[("Stop", "stop:1")]])
    other = await client.send_message(HERE, HELLO)
    assert not await client.set_buttons(ANN, number, [[("Stop", "stop:1")]])
    assert await client.set_buttons(ANN, other, [[("Stop", "stop:1")]])
    theirs = api.view(ANN)[0].message_id
    for wrong in (theirs, 999):
        with pytest.raises(MessageGone):
            await client.set_buttons(ANN, wrong, [[("Stop", "stop:1")]])
    api.fault(Fault("editMessageReplyMarkup", FaultKind.RESET_AFTER))
    with pytest.raises(MaybeSent):
        await client.set_buttons(ANN, other, [[("Other", "x")]])


# ---------------------------------------------------------------------------- updates


async def test_who_administers_a_group_is_told(api: BotApi, client: BotClient) -> None:
    """CMD-6."""
    api.add_group(GROUP, "Friends")
    api.promote(GROUP, ANN)
    assert await client.administrators(GROUP) == {1, ANN}
    api.demote(GROUP, ANN)
    assert await client.administrators(GROUP) == {1}
    with pytest.raises(Undeliverable):
        await client.administrators(ANN)
    api.kick(GROUP)
    with pytest.raises(ChatGone):
        await client.administrators(GROUP)


async def test_updates_come_as_they_are_and_are_confirmed_by_the_offset(
    api: BotApi, client: BotClient
) -> None:
    """SPEC IO-1."""
    poison = api.push({"message": {"message_id": "poison"}})
    updates = await client.get_updates(offset=None, wait_s=0, kinds=["message"])
    ids = [update["update_id"] for update in updates if isinstance(update, dict)]
    assert ids == [poison - 1, poison]
    assert asked(api, "getUpdates") == {"timeout": 0, "allowed_updates": ["message"]}
    assert await client.get_updates(offset=poison + 1, wait_s=0, kinds=["message"]) == []
    assert asked(api, "getUpdates")["offset"] == poison + 1
    assert api.pending() == 0


async def test_a_poll_that_hears_nothing_is_given_up(
    api: BotApi, client: BotClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPEC CHAN-8: the connection may be dead."""
    monkeypatch.setattr("channels.telegram.library_client._POLL_MARGIN_S", 0.5)
    api.fault(Fault("getUpdates", FaultKind.HANG))
    began = time.monotonic()
    with pytest.raises(NotSent):
        await client.get_updates(offset=None, wait_s=1, kinds=["message"])
    assert 1.4 < time.monotonic() - began < 20


async def test_cancelled_polls_leave_a_connection(api: BotApi, client: BotClient) -> None:
    await client.get_updates(offset=-1, wait_s=0, kinds=["message"])
    for _ in range(20):
        poll = asyncio.create_task(client.get_updates(offset=10**9, wait_s=30, kinds=["message"]))
        await asyncio.sleep(0)
        poll.cancel()
        await asyncio.wait({poll})
    assert await client.get_updates(offset=None, wait_s=0, kinds=["message"]) == []


async def test_a_webhook_is_set_shown_and_removed(api: BotApi, client: BotClient) -> None:
    """SPEC CHAN-2."""
    assert await client.webhook() == WebhookState("", pending=1)
    await client.set_webhook(
        "https://bot.example/hook", secret="s3cret-s3cret", kinds=["message"], connections=20
    )
    assert asked(api, "setWebhook") == {
        "url": "https://bot.example/hook",
        "max_connections": 20,
        "allowed_updates": ["message"],
        "drop_pending_updates": False,
        "secret_token": "s3cret-s3cret",
    }
    assert (await client.webhook()).url == "https://bot.example/hook"
    with pytest.raises(PollConflict):
        await client.get_updates(offset=None, wait_s=0, kinds=["message"])
    await client.delete_webhook()
    await client.delete_webhook()
    assert asked(api, "deleteWebhook") == {"drop_pending_updates": False}
    assert await client.webhook() == WebhookState("", pending=1)


# ---------------------------------------------------------------------------- errors

LOSSES = [
    Fault("*", FaultKind.RESET),
    Fault("*", FaultKind.PAGE, status=502),
    Fault("*", FaultKind.ERROR, status=500, words="Internal Server Error: restart"),
    Fault("*", FaultKind.RESET_AFTER),
    Fault("*", FaultKind.GARBAGE_AFTER),
    Fault("*", FaultKind.BROKEN_AFTER),
    Fault("*", FaultKind.HANG),
    Fault("*", FaultKind.HANG_AFTER),
    Fault("*", FaultKind.CUT),
]


@pytest.mark.parametrize("status", [302, 401, 403, 404, 407, 429])
async def test_a_proxy_that_refuses_a_text_has_not_passed_it_on(
    api: BotApi, client: BotClient, status: int
) -> None:
    """SPEC IO-5: so a retry is not marked as a copy; nor is it a verdict on the bot (CHAN-8)."""
    api.fault(Fault("sendMessage", FaultKind.PAGE, status=status))
    with pytest.raises(NotSent):
        await client.send_message(HERE, HELLO)
    assert api.texts(ANN) == []


@pytest.mark.parametrize("fault", LOSSES, ids=lambda fault: f"{fault.kind}-{fault.status}")
async def test_without_an_answer_nobody_knows_whether_a_text_was_sent(
    api: BotApi, client: BotClient, fault: Fault
) -> None:
    """SPEC IO-5."""
    api.fault(fault)
    with pytest.raises(MaybeSent):
        await client.send_message(HERE, HELLO)
    assert len(api.texts(ANN)) == fault.kind.after
    await client.send_message(HERE, Text("again"))
    assert len(api.texts(ANN)) == fault.kind.after + 1


@pytest.mark.parametrize(
    ("status", "words", "kind"),
    [
        (400, "Bad Request: chat not found", ChatGone),
        (403, "Forbidden: bot was blocked by the user", ChatGone),
        (403, "Forbidden: user is deactivated", ChatGone),
        (400, "Bad Request: TOPIC_CLOSED", TopicGone),
        (400, "Bad Request: not enough rights to send text messages to the chat", Undeliverable),
        (400, "Bad Request: can't parse entities: Unexpected end tag", MarkupRefused),
        (413, "Request Entity Too Large", FileTooBig),
        (401, "Unauthorized", ChannelRefused),
        (404, "Not Found", ChannelRefused),
        (409, "Conflict: terminated by other getUpdates request", PollConflict),
    ],
)
async def test_a_refusal_is_told_apart(
    api: BotApi, client: BotClient, status: int, words: str, kind: type[ChannelError]
) -> None:
    api.fault(Fault("sendMessage", FaultKind.ERROR, status=status, words=words))
    with pytest.raises(ChannelError) as caught:
        await client.send_message(HERE, HELLO)
    assert type(caught.value) is kind
    assert words in str(caught.value)


@pytest.mark.parametrize("result", [None, {}, [], "x", {"id": "five"}, {"message_id": "5"}])
async def test_an_answer_that_makes_no_sense_is_no_answer(library: Library, result: object) -> None:
    """A server that says ok and then something else may have done what it was asked."""
    async with answering(library, {"ok": True, "result": result}) as client:
        with pytest.raises(MaybeSent, match="not understood"):
            await client.send_message(HERE, HELLO)
        for call in (client.get_me, client.webhook):
            with pytest.raises(NotSent, match="not understood"):
                await call()


async def test_a_sent_message_counts_however_it_is_described(library: Library) -> None:
    """SPEC IO-5: a description that the library cannot read must not bring the message twice."""
    odd = {"message_id": 5, "date": 10**30, "chat": 7, "reply_markup": "x", "new_field": {}}
    async with answering(library, {"ok": True, "result": odd}) as client:
        assert await client.send_message(HERE, HELLO) == 5
        await client.edit_message(ANN, 5, Text("bye"))


# ---------------------------------------------------------------------------- connections


async def hang(client: BotClient) -> None:
    """Send a text that is not answered. A connection that comes too late is asked for again."""
    while True:
        with contextlib.suppress(NotSent):
            await client.send_message(HERE, HELLO)


async def test_hanging_texts_delay_neither_signs_nor_polls(api: BotApi, library: Library) -> None:
    """SPEC IO-5: a text that waits too long for a connection was certainly not sent."""
    api.say(ANN, "hello")
    api.fault(Fault("sendMessage", FaultKind.HANG, count=64))
    async with connected(library, api.url, timeout_s=600) as client:
        sends = [asyncio.create_task(hang(client)) for _ in range(64)]
        await api.wait_calls("sendMessage", 64, timeout_s=60)
        # Much less than a text hangs, and much more than a call takes, also on a busy machine.
        async with asyncio.timeout(60):
            await client.send_action(HERE, "typing")
            await client.set_reaction(ANN, 1, "👀")
            await client.get_updates(offset=None, wait_s=0, kinds=["message"])
        with pytest.raises(NotSent, match="no connection"):
            await client.send_message(HERE, Text("one too many"))
        for send in sends:
            send.cancel()
        await asyncio.wait(sends)
        await client.send_message(HERE, Text("through"))
    assert api.texts(ANN) == ["through"]


async def test_hanging_signs_delay_no_text(api: BotApi, client: BotClient) -> None:
    api.fault(Fault("sendChatAction", FaultKind.HANG, count=8))
    signs = [asyncio.create_task(client.send_action(HERE, "typing")) for _ in range(8)]
    await api.wait_calls("sendChatAction", 8)
    async with asyncio.timeout(0.5):
        await client.send_message(HERE, HELLO)
    for sign in signs:
        sign.cancel()
    await asyncio.wait(signs)
