"""Texts: sent, edited, deleted, drafted, with buttons and entities."""

from __future__ import annotations

import pytest

from tests.botapi import BotApi, Button
from tests.botapi.caller import Wire, number
from tests.botapi.rules import Json

ANN, TEAM = 7, -1005


def buttons(data: str = "x", text: str = "ok") -> Json:
    return {"inline_keyboard": [[{"text": text, "callback_data": data}]]}


@pytest.mark.parametrize(
    ("source", "text", "entities"),
    [
        ("<b>ü <i>😀</i></b> x", "ü 😀 x", [("bold", 0, 4), ("italic", 2, 2)]),
        ('<a href="https://x.example?a=1&amp;b=2">a</a>', "a", [("text_link", 0, 1)]),
        ('<a href="tg://user?id=5">Bob</a>', "Bob", [("text_mention", 0, 3)]),
        ('<a href="javascript:x">a</a>', "a", []),
        ('<pre><code class="language-py">/x @Bob1</code></pre>', "/x @Bob1", [("pre", 0, 8)]),
        ("<code>@Bob_1</code> @Bob_1", "@Bob_1 @Bob_1", [("code", 0, 6), ("mention", 7, 6)]),
        (" \n<b> a </b>\n", "a", [("bold", 0, 1)]),
        ("<u></u>a<s> </s>", "a", []),
        ("<blockquote expandable>a</blockquote>", "a", [("expandable_blockquote", 0, 1)]),
        ('<tg-emoji emoji-id="5">👍</tg-emoji>', "👍", [("custom_emoji", 0, 2)]),
    ],
)
async def test_html_becomes_entities(
    chat: Wire, source: str, text: str, entities: list[tuple[str, int, int]]
) -> None:
    message = await chat.result("sendMessage", chat_id=ANN, text=source, parse_mode="HTML")
    found = message.get("entities", [])
    assert isinstance(found, list)
    assert message["text"] == text
    assert [(e["type"], e["offset"], e["length"]) for e in found] == entities


async def test_a_code_block_keeps_its_language(chat: Wire) -> None:
    source = '<pre><code class="language-py">x</code></pre>'
    await chat.result("sendMessage", chat_id=ANN, text=source, parse_mode="HTML")
    seen = chat.api.view(ANN)[-1]
    assert (seen.html, seen.entities[0]["language"]) == (source, "py")


async def test_only_the_first_hundred_entities_are_kept(chat: Wire) -> None:
    source = "<b>x</b> " * 101
    await chat.result("sendMessage", chat_id=ANN, text=source, parse_mode="HTML")
    assert len(chat.api.view(ANN)[-1].entities) == 100


async def test_too_much_markup_is_refused(chat: Wire) -> None:
    source = f'<a href="https://x.example/{"a" * 190}">x</a> ' * 50
    words = await chat.refusal("sendMessage", chat_id=ANN, text=source, parse_mode="HTML")
    assert words == "Bad Request: ENTITIES_TOO_LONG"


async def test_entities_can_be_given_beside_the_text(chat: Wire) -> None:
    bold = {"type": "bold", "offset": 0, "length": 1}
    await chat.result("sendMessage", chat_id=ANN, text="a", entities=[bold])
    assert chat.api.view(ANN)[-1].entities == [bold]
    words = await chat.refusal("sendMessage", chat_id=ANN, text="a", entities=["bold"])
    assert "can't parse MessageEntity" in words


@pytest.mark.parametrize(
    "off", [{"link_preview_options": {"is_disabled": True}}, {"disable_web_page_preview": True}]
)
async def test_previews_can_be_left_out(chat: Wire, off: Json) -> None:
    await chat.result("sendMessage", chat_id=ANN, text="https://x.example", **off)
    await chat.result("sendMessage", chat_id=ANN, text="https://x.example")
    assert [seen.preview for seen in chat.api.view(ANN)[-2:]] == [False, True]


@pytest.mark.parametrize(
    ("markup", "words"),
    [
        (buttons(""), "BUTTON_DATA_INVALID"),
        (buttons("ü" * 33), "BUTTON_DATA_INVALID"),
        (buttons(text=" "), "BUTTON_TEXT_INVALID"),
        ({"inline_keyboard": [[{"text": "x"}]]}, "Text buttons are unallowed"),
        ({"inline_keyboard": [[{"callback_data": "x"}]]}, 'Can\'t find field "text"'),
        ({"inline_keyboard": [[{"text": 5}]]}, "must be of type String"),
        ({"inline_keyboard": [[{"text": "x", "callback_data": 5}]]}, "must be of type String"),
        ({"inline_keyboard": [["x"]]}, "must be an Object"),
        ({"inline_keyboard": ["x"]}, "an Array of Arrays"),
        ({"inline_keyboard": "x"}, "must be an Array"),
        ([], "object expected as reply markup"),
    ],
)
async def test_a_wrong_keyboard_is_refused(chat: Wire, markup: object, words: str) -> None:
    said = await chat.refusal("sendMessage", chat_id=ANN, text="x", reply_markup=markup)
    assert words in said


async def test_a_keyboard_is_changed_and_taken_away(chat: Wire) -> None:
    await chat.result("sendMessage", chat_id=ANN, text="x", reply_markup=buttons("ü" * 32))
    edit = {"chat_id": ANN, "message_id": 2}
    await chat.result("editMessageReplyMarkup", **edit, reply_markup=buttons("b", "B"))
    assert chat.api.view(ANN)[-1].buttons == [[Button("B", "b")]]
    words = await chat.refusal("editMessageReplyMarkup", **edit, reply_markup=buttons("b", "B"))
    assert "message is not modified" in words
    await chat.result("editMessageReplyMarkup", **edit)
    seen = chat.api.view(ANN)[-1]
    assert (seen.buttons, seen.text, seen.edited) == ([], "x", True)


async def test_an_edit_that_changes_nothing_that_is_seen_is_refused(chat: Wire) -> None:
    await chat.result("sendMessage", chat_id=ANN, text="<b>x</b>", parse_mode="HTML")
    edit = {"chat_id": ANN, "message_id": 2, "parse_mode": "HTML"}
    for source in ("<strong>x</strong>", "<b>x</b>\n"):
        assert "not modified" in await chat.refusal("editMessageText", **edit, text=source)
    await chat.result("editMessageText", **edit, text="<i>x</i>")
    await chat.result("editMessageText", chat_id=ANN, message_id=2, text="x")


async def test_what_cannot_be_edited_is_refused_in_the_servers_words(chat: Wire) -> None:
    await chat.result("sendMessage", chat_id=ANN, text="x")
    too_long = await chat.refusal("editMessageText", chat_id=ANN, message_id=2, text="x" * 4097)
    assert too_long == "Bad Request: MESSAGE_TOO_LONG"
    nameless = await chat.refusal("editMessageText", chat_id=ANN, text="y")
    assert nameless == "Bad Request: message identifier is not specified"
    caption = await chat.refusal("editMessageCaption", chat_id=ANN, message_id=2)
    assert "there is no caption" in caption


async def test_messages_are_deleted(chat: Wire) -> None:
    for _ in range(3):
        await chat.result("sendMessage", chat_id=ANN, text="x")
    await chat.result("deleteMessage", chat_id=ANN, message_id=1)
    again = await chat.refusal("deleteMessage", chat_id=ANN, message_id=1)
    assert again == "Bad Request: message to delete not found"
    await chat.result("deleteMessages", chat_id=ANN, message_ids=[1, 2, 3])
    assert [seen.message_id for seen in chat.api.view(ANN)] == [4]
    nothing = await chat.refusal("deleteMessages", chat_id=ANN)
    assert nothing == "Bad Request: message identifiers are not specified"
    many = await chat.refusal("deleteMessages", chat_id=ANN, message_ids=list(range(101)))
    assert many == "Bad Request: too many message identifiers specified"
    assert "not specified" in await chat.refusal("deleteMessage", chat_id=ANN)


async def test_others_messages_in_a_group_cannot_be_deleted(api: BotApi, wire: Wire) -> None:
    api.add_group(TEAM, "Team")
    api.say(ANN, "x", chat_id=TEAM)
    words = await wire.refusal("deleteMessage", chat_id=TEAM, message_id=1)
    assert words == "Bad Request: message can't be deleted"
    await wire.result("deleteMessages", chat_id=TEAM, message_ids=[1])
    assert len(api.view(TEAM)) == 1


async def test_a_reply_may_quote_a_part(chat: Wire) -> None:
    reply = {"message_id": 1, "quote": "ell"}
    message = await chat.result("sendMessage", chat_id=ANN, text="x", reply_parameters=reply)
    assert message["quote"] == {"text": "ell", "position": 1, "is_manual": True}
    assert chat.api.view(ANN)[-1].reply_to == 1
    reply = {"message_id": 1, "quote": "bye"}
    words = await chat.refusal("sendMessage", chat_id=ANN, text="x", reply_parameters=reply)
    assert words == "Bad Request: QUOTE_TEXT_INVALID"
    gone = {"message_id": 99, "allow_sending_without_reply": True}
    await chat.result("sendMessage", chat_id=ANN, text="x", reply_parameters=gone)
    assert chat.api.view(ANN)[-1].reply_to is None


async def test_a_draft_lives_for_thirty_seconds(chat: Wire) -> None:
    draft = {"chat_id": ANN, "draft_id": 5}
    await chat.result("sendMessageDraft", **draft, text="")
    await chat.result("sendMessageDraft", **draft, text="<b>a</b>", parse_mode="HTML")
    assert [(d.id, d.text, d.can_stop) for d in chat.api.drafts(ANN)] == [(5, "a", False)]
    chat.api.skip(30)
    assert chat.api.drafts(ANN) == []


async def test_a_message_ends_the_draft_of_its_thread(chat: Wire) -> None:
    chat.api.open_topic(ANN, 9)
    await chat.result("sendMessageDraft", chat_id=ANN, draft_id=5, text="a")
    await chat.result("sendMessageDraft", chat_id=ANN, draft_id=6, text="b", message_thread_id=9)
    await chat.result("sendMessage", chat_id=ANN, text="done")
    assert [draft.id for draft in chat.api.drafts(ANN)] == [6]


async def test_a_draft_can_be_stopped_if_it_says_so(chat: Wire) -> None:
    with pytest.raises(ValueError, match="no draft"):
        chat.api.stop_draft(ANN)
    chat.api.open_topic(ANN, 9)
    await chat.new("message")
    place = {"chat_id": ANN, "message_thread_id": 9}
    await chat.result("sendMessageDraft", **place, draft_id=5, text="a", can_stop=True)
    assert chat.api.stop_draft(ANN, thread=9) == 5
    stopped = (await chat.new("stopped_message_generation"))[0]
    assert (stopped["draft_id"], stopped["message_thread_id"]) == (5, 9)
    assert chat.api.drafts(ANN) == []
    more = {"draft_id": 6, "text": "a", "can_stop": True, "keep_on_stop": True}
    await chat.result("sendMessageDraft", chat_id=ANN, **more)
    chat.api.stop_draft(ANN)
    assert [draft.id for draft in chat.api.drafts(ANN)] == [6]


async def test_a_wrong_draft_is_refused(api: BotApi, wire: Wire) -> None:
    api.say(ANN, "x")
    api.add_group(TEAM, "Team")
    words = await wire.refusal("sendMessageDraft", chat_id=TEAM, draft_id=5, text="x")
    assert words == "Bad Request: TEXTDRAFT_PEER_INVALID"
    assert "non-zero" in await wire.refusal("sendMessageDraft", chat_id=ANN, text="x")
    place = {"chat_id": ANN, "draft_id": 5}
    long = await wire.refusal("sendMessageDraft", **place, text="x" * 4097)
    assert long == "Bad Request: message is too long"
    lost = await wire.refusal("sendMessageDraft", **place, text="x", message_thread_id=9)
    assert lost == "Bad Request: message thread not found"


async def test_reactions_are_seen_but_not_told_in_messages(api: BotApi, wire: Wire) -> None:
    api.add_group(TEAM, "Team")
    api.say(ANN, "x", chat_id=TEAM)
    await wire.result(
        "setMessageReaction",
        chat_id=TEAM,
        message_id=1,
        reaction=[{"type": "emoji", "emoji": "👀"}],
    )
    assert api.view(TEAM)[0].reactions == ["👀"]
    sent = await wire.result(
        "sendMessage", chat_id=TEAM, text="y", reply_parameters={"message_id": 1}
    )
    assert "reactions" not in str(sent)
    await wire.result("setMessageReaction", chat_id=TEAM, message_id=1)
    assert api.view(TEAM)[0].reactions == []


async def test_every_text_that_ever_stood_there_is_known(chat: Wire) -> None:
    draft = await chat.result("sendMessage", chat_id=ANN, text="one")
    await chat.result(
        "editMessageText", chat_id=ANN, message_id=number(draft, "message_id"), text="two"
    )
    await chat.result("sendMessage", chat_id=ANN, text="one")
    await chat.result("deleteMessage", chat_id=ANN, message_id=2)
    seen = [(s.message_id, s.text, s.until is None) for s in chat.api.sightings(ANN)]
    assert seen == [(2, "one", False), (2, "two", False), (3, "one", True)]
    assert chat.api.shown_twice(ANN) == ["one"]


async def test_menus_are_kept_by_scope_and_language(chat: Wire) -> None:
    stop = [{"command": "stop", "description": "Stop"}]
    place = {"scope": {"type": "chat", "chat_id": 7}, "language_code": "de"}
    await chat.result("setMyCommands", commands=stop, **place)
    assert (chat.api.menu("chat:7|de"), chat.api.menu()) == (stop, [])
    assert (await chat.call("getMyCommands", **place))["result"] == stop
    await chat.result("deleteMyCommands", **place)
    assert (await chat.call("getMyCommands", **place))["result"] == []
    for scope in ({"type": "moon"}, {"type": "chat"}):
        words = await chat.refusal("setMyCommands", commands=stop, scope=scope)
        assert "can't parse BotCommandScope" in words


async def test_an_answer_to_a_press_has_at_most_200_characters(chat: Wire) -> None:
    press = chat.api.press(ANN, 1, "x")
    words = await chat.refusal("answerCallbackQuery", callback_query_id=press, text="x" * 201)
    assert words == "Bad Request: MESSAGE_TOO_LONG"
