"""The emulator refuses what the real server refuses, keeps what is not confirmed, and can fail."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from tests.botapi import BotApi, Fault, FaultKind
from tests.botapi.caller import Wire
from tests.botapi.rules import Json

pytestmark = pytest.mark.real_time

ANN = 7


# ---------------------------------------------------------------------------- updates


async def test_updates_stay_until_they_are_confirmed(api: BotApi, wire: Wire) -> None:
    api.say(ANN, "one")
    api.say(ANN, "two")
    first = await wire.updates()
    assert await wire.updates() == first
    assert await wire.updates(limit=1) == first[:1]
    last = int(str(first[1]["update_id"]))
    assert await wire.updates(offset=last) == first[1:]
    assert await wire.updates(offset=last + 1) == []
    assert api.pending() == 0


async def test_a_negative_offset_forgets_all_but_the_last(api: BotApi, wire: Wire) -> None:
    for text in "abc":
        api.say(ANN, text)
    assert len(await wire.updates(offset=-1)) == 1
    assert api.pending() == 1


async def test_a_long_poll_ends_with_the_first_update(api: BotApi, wire: Wire) -> None:
    poll = asyncio.create_task(wire.updates(timeout=10))
    await api.wait_calls("getUpdates")
    api.say(ANN, "one")
    async with asyncio.timeout(1):
        assert len(await poll) == 1


async def test_a_long_poll_without_updates_ends_empty(wire: Wire) -> None:
    assert await wire.updates(timeout=1) == []


async def test_the_older_of_two_pollers_is_refused(api: BotApi, wire: Wire) -> None:
    older = asyncio.create_task(wire.refusal("getUpdates", timeout=10))
    await api.wait_calls("getUpdates")
    newer = asyncio.create_task(wire.updates(timeout=10))
    assert "terminated by other getUpdates request" in await older
    api.say(ANN, "one")
    assert len(await newer) == 1


async def test_a_webhook_refuses_pollers_until_it_is_deleted(api: BotApi, wire: Wire) -> None:
    older = asyncio.create_task(wire.refusal("getUpdates", timeout=10))
    await api.wait_calls("getUpdates")
    api.set_webhook("https://x.example")
    assert "terminated by setWebhook request" in await older
    assert "webhook is active" in await wire.refusal("getUpdates")
    info = (await wire.call("getWebhookInfo"))["result"]
    assert isinstance(info, dict)
    assert info["url"] == "https://x.example"
    api.say(ANN, "one")
    await wire.call("deleteWebhook", drop_pending_updates=True)
    assert await wire.updates() == []


async def test_the_wanted_kinds_are_kept_between_polls(api: BotApi, wire: Wire) -> None:
    await wire.updates(allowed_updates=["callback_query"])
    await wire.updates()
    api.say(ANN, "one")
    assert api.pending() == 0
    await wire.updates(allowed_updates=[])
    api.say(ANN, "two")
    assert api.pending() == 1


async def test_update_ids_can_start_anew(api: BotApi, wire: Wire) -> None:
    api.renumber(5)
    api.say(ANN, "one")
    assert [u["update_id"] for u in await wire.updates()] == [6]


async def test_commands_are_marked_in_utf16_units(api: BotApi, wire: Wire) -> None:
    messages = api.say(ANN, "😀 /stop@Bot me/too")
    assert messages[0]["entities"] == [{"type": "bot_command", "offset": 3, "length": 9}]


async def test_only_known_groups_can_be_written_in(api: BotApi) -> None:
    with pytest.raises(ValueError, match="no chat"):
        api.say(ANN, "x", chat_id=-5)


# ---------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("method", "parameters", "words"),
    [
        ("sendMessage", {"text": "x"}, "chat_id is empty"),
        ("sendMessage", {"chat_id": 8, "text": "x"}, "chat not found"),
        ("sendMessage", {"chat_id": "@ann", "text": "x"}, "chat not found"),
        ("sendMessage", {"chat_id": 7}, "message text is empty"),
        ("sendMessage", {"chat_id": 7, "text": " \n"}, "message text is empty"),
        ("sendMessage", {"chat_id": 7, "text": "x" * 4097}, "message is too long"),
        ("sendMessage", {"chat_id": 7, "text": "a\ud83d"}, "encoded in UTF-8"),
        ("sendMessage", {"chat_id": 7, "text": 5}, "must be a string"),
        ("sendMessage", {"chat_id": 7, "text": "x", "parse_mode": "X"}, "unsupported parse_mode"),
        ("sendMessage", {"chat_id": 7, "text": "x", "message_thread_id": 1}, "thread not found"),
        ("sendMessage", {"chat_id": 7, "text": "x", "message_thread_id": "a"}, "as an integer"),
        ("sendMessage", {"chat_id": 7, "text": "x", "reply_parameters": "{"}, "JSON object"),
        ("sendMessage", {"chat_id": 7, "text": "x", "reply_parameters": []}, "expected an Object"),
        (
            "sendMessage",
            {"chat_id": 7, "text": "x", "reply_parameters": {"message_id": 99}},
            "message to be replied not found",
        ),
        ("editMessageText", {"chat_id": 7, "message_id": 99, "text": "x"}, "to edit not found"),
        ("editMessageText", {"chat_id": 7, "message_id": 1, "text": "x"}, "can't be edited"),
        ("sendChatAction", {"chat_id": 7, "action": "dance"}, "wrong parameter action"),
        (
            "sendChatAction",
            {"chat_id": 7, "action": "typing", "message_thread_id": 5},
            "thread not found",
        ),
        ("setMyCommands", {"commands": [{"command": "Stop", "description": "x"}]}, "INVALID"),
        ("setMyCommands", {"commands": [{"command": "stop"}]}, "DESCRIPTION_INVALID"),
        ("setMyCommands", {"commands": ["stop"]}, "expected an Object"),
        ("setMyCommands", {"commands": {}}, "expected an Array"),
        (
            "setMyCommands",
            {"commands": [{"command": "stop", "description": "x"}] * 101},
            "TOO_MUCH",
        ),
        ("setMessageReaction", {"chat_id": 7, "message_id": 99}, "react not found"),
        (
            "setMessageReaction",
            {"chat_id": 7, "message_id": 1, "reaction": [{"emoji": "x"}]},
            "REACTION_INVALID",
        ),
        (
            "setMessageReaction",
            {"chat_id": 7, "message_id": 1, "reaction": [{"emoji": "👍"}] * 2},
            "REACTIONS_TOO_MANY",
        ),
        ("answerCallbackQuery", {"callback_query_id": "x"}, "query is too old"),
        ("sendTelepathy", {}, "Not Found"),
    ],
)
async def test_a_wrong_call_is_refused_in_the_servers_words(
    chat: Wire, method: str, parameters: Json, words: str
) -> None:
    assert words in await chat.refusal(method, **parameters)
    assert chat.api.texts(ANN) == []


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("<b>a</b> &lt;&amp;&gt; &#x41;&#66;", "a <&> AB"),
        ('<a href="https://x.example">a <i>b</i></a>', "a b"),
        ('<span class="tg-spoiler">a</span>', "a"),
        ("<pre><code class='language-python'>x &nbsp; & y</code></pre>", "x &nbsp; & y"),
        ("<B>a</b>", "a"),
        ("a &#0; &#xD800; &#x110000;", "a &#0; &#xD800; &#x110000;"),
    ],
)
async def test_html_is_read_as_the_server_reads_it(chat: Wire, source: str, seen: str) -> None:
    await chat.call("sendMessage", chat_id=7, text=source, parse_mode="HTML")
    assert chat.api.texts(ANN) == [seen]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("<b>a", "Can't find end tag corresponding to start tag"),
        ("a</b>", "Unexpected end tag at byte offset 1"),
        ("<b>ü<i>a</b></i>", 'byte offset 9, expected "</i>", found "</b>"'),
        ("<div>a</div>", 'Unsupported start tag "div" at byte offset 0'),
        ("1 < 2", 'Unsupported start tag "" at byte offset 2'),
        ("<b", "Unclosed start tag"),
        ("<b>a</b", "Unclosed end tag"),
        ("<span>a</span>", "must have class"),
        ("<b> </b>", "message text is empty"),
    ],
)
async def test_bad_html_is_refused(chat: Wire, source: str, words: str) -> None:
    assert words in await chat.refusal("sendMessage", chat_id=7, text=source, parse_mode="HTML")


async def test_the_limit_counts_what_is_seen(chat: Wire) -> None:
    await chat.call("sendMessage", chat_id=7, text="<b>" + "x" * 4096 + "</b>", parse_mode="HTML")
    assert len(chat.api.texts(ANN)[0]) == 4096


async def test_an_edit_changes_the_message_once(chat: Wire) -> None:
    button: Json = {"inline_keyboard": [[{"text": "x", "callback_data": "x"}]]}
    await chat.call("sendMessage", chat_id=7, text="draft", reply_markup=button)
    edit: Json = {"chat_id": 7, "message_id": 2, "text": "final"}
    await chat.call("editMessageText", **edit)
    assert "message is not modified" in await chat.refusal("editMessageText", **edit)
    await chat.call("editMessageText", **edit, reply_markup=button)
    assert chat.api.texts(ANN) == ["final"]


async def test_the_general_topic_takes_typing_but_no_thread_id(api: BotApi, wire: Wire) -> None:
    api.add_group(-5, "Team", topics=[55])
    words = await wire.refusal("sendMessage", chat_id=-5, text="x", message_thread_id=1)
    assert "thread not found" in words
    await wire.call("sendChatAction", chat_id=-5, action="typing", message_thread_id=1)
    await wire.call("sendMessage", chat_id=-5, text="x", message_thread_id=55)
    assert api.texts(-5) == ["x"]


async def test_a_press_is_answered_once(chat: Wire) -> None:
    await chat.call("sendMessage", chat_id=7, text="choose")
    press = chat.api.press(ANN, 2, "yes")
    assert (await chat.updates())[-1]["callback_query"]
    await chat.call("answerCallbackQuery", callback_query_id=press)
    assert "too old" in await chat.refusal("answerCallbackQuery", callback_query_id=press)


async def test_reactions_and_commands_are_kept(chat: Wire) -> None:
    await chat.call("setMessageReaction", chat_id=7, message_id=1, reaction=[{"emoji": "👀"}])
    await chat.call("setMyCommands", commands=[{"command": "stop", "description": "Stop"}])
    assert chat.api.world.chats[ANN].messages[1]["reactions"] == [{"emoji": "👀"}]
    assert len(chat.api.world.commands) == 1


async def test_a_blocked_bot_is_refused_until_the_user_writes(chat: Wire) -> None:
    chat.api.block(ANN)
    words = await chat.refusal("sendMessage", chat_id=7, text="x")
    assert words == "Forbidden: bot was blocked by the user"
    chat.api.say(ANN, "back")
    await chat.call("sendMessage", chat_id=7, text="x")


async def test_too_many_messages_a_second_are_refused_with_a_wait(chat: Wire) -> None:
    chat.api.limit(2)
    answers = [await chat.call("sendMessage", chat_id=7, text=str(n)) for n in range(3)]
    assert [answer["ok"] for answer in answers] == [True, True, False]
    assert answers[2]["parameters"] == {"retry_after": 1}
    chat.api.limit(None)
    await chat.call("sendMessage", chat_id=7, text="x")


@pytest.mark.parametrize(
    ("token", "code"), [("nonsense", 404), ("4242:AAanother-one-than-ours", 401)]
)
async def test_a_wrong_token_is_refused(api: BotApi, token: str, code: int) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{api.url}/bot{token}/getMe") as answer,
    ):
        assert answer.status == code
        assert (await answer.json())["error_code"] == code


async def test_parameters_come_in_query_form_or_json_and_methods_in_any_case(chat: Wire) -> None:
    base = f"{chat.api.url}/bot{chat.api.token}/SENDMESSAGE"
    async with aiohttp.ClientSession() as session:
        await session.get(base, params={"chat_id": "7", "text": "query"})
        await session.post(base, data={"chat_id": "7", "text": "form"})
        await session.post(base, json={"chat_id": 7, "text": "json"})
    assert chat.api.texts(ANN) == ["query", "form", "json"]
    assert [call.method for call in chat.api.calls] == ["sendMessage"] * 3


# ---------------------------------------------------------------------------- faults


@pytest.mark.parametrize(
    ("kind", "effect"),
    [
        (FaultKind.RESET, 0),
        (FaultKind.RESET_AFTER, 1),
        (FaultKind.HANG, 0),
        (FaultKind.HANG_AFTER, 1),
        (FaultKind.BROKEN_AFTER, 1),
    ],
)
async def test_a_lost_answer_leaves_the_effect_that_it_says(
    chat: Wire, kind: FaultKind, effect: int
) -> None:
    chat.api.fault(Fault("sendMessage", kind))
    with pytest.raises((aiohttp.ClientError, TimeoutError)):
        async with asyncio.timeout(0.3):
            await chat.call("sendMessage", chat_id=7, text="x")
    assert len(chat.api.texts(ANN)) == effect
    call = (await chat.api.wait_calls("sendMessage"))[0]
    assert call.fault is kind
    await chat.call("sendMessage", chat_id=7, text="x")


async def test_a_page_is_no_json(chat: Wire) -> None:
    for kind, status in ((FaultKind.PAGE, 502), (FaultKind.GARBAGE_AFTER, 200)):
        chat.api.fault(Fault("*", kind, status=status))
        url = f"{chat.api.url}/bot{chat.api.token}/getMe"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            assert (answer.status, answer.content_type) == (status, "text/html")


async def test_faults_happen_as_often_as_said(chat: Wire) -> None:
    chat.api.fault(Fault("getMe", FaultKind.FLOOD, count=2, seconds=9))
    answers = [await chat.call("getMe") for _ in range(3)]
    assert [answer.get("parameters") for answer in answers] == [{"retry_after": 9}] * 2 + [None]


async def test_a_delayed_call_is_handled_late(chat: Wire) -> None:
    chat.api.fault(Fault("getMe", FaultKind.DELAY, seconds=0.2))
    began = asyncio.get_running_loop().time()
    await chat.call("getMe")
    assert asyncio.get_running_loop().time() - began >= 0.2
