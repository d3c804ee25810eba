"""Texts and files of the bot: sent, edited, deleted, drafted, fetched."""

from __future__ import annotations

import pytest

from tests.botapi import BotApi, FileKind, png
from tests.botapi.caller import ANN, TEAM, Wire
from tests.botapi.rules import Json


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


async def test_previews_can_be_left_out(chat: Wire) -> None:
    off = {"link_preview_options": {"is_disabled": True}}
    await chat.result("sendMessage", chat_id=ANN, text="https://x.example", **off)
    await chat.result("sendMessage", chat_id=ANN, text="https://x.example")
    assert [seen.preview for seen in chat.api.view(ANN)[-2:]] == [False, True]


async def test_an_edit_that_changes_nothing_that_is_seen_is_refused(chat: Wire) -> None:
    await chat.result("sendMessage", chat_id=ANN, text="<b>x</b>", parse_mode="HTML")
    edit = {"chat_id": ANN, "message_id": 2, "parse_mode": "HTML"}
    for source in ("<strong>x</strong>", "<b>x</b>\n"):
        assert "not modified" in await chat.refusal("editMessageText", **edit, text=source)
    await chat.result("editMessageText", **edit, text="<i>x</i>")
    await chat.result("editMessageText", chat_id=ANN, message_id=2, text="x")


async def test_a_caption_is_edited_below_its_file_and_removed(chat: Wire) -> None:
    caption = {"caption": "<b>see</b>", "parse_mode": "HTML"}
    await chat.upload("sendPhoto", {"photo": ("a.png", png())}, chat_id=ANN, **caption)
    edit = {"chat_id": ANN, "message_id": 2}
    assert "not modified" in await chat.refusal("editMessageCaption", **edit, **caption)
    await chat.result("editMessageCaption", **edit, caption="<i>see</i>", parse_mode="HTML")
    assert chat.api.view(ANN)[-1].html == "<i>see</i>"
    long = {"caption": f"<i>{'x' * 1024}</i>", "parse_mode": "HTML"}
    await chat.result("editMessageCaption", **edit, **long)
    await chat.result("editMessageCaption", **edit)
    seen = chat.api.view(ANN)[-1]
    assert (seen.text, seen.html, seen.file is None) == ("", None, False)
    assert "not modified" in await chat.refusal("editMessageCaption", **edit, caption="")
    assert "no text in the message" in await chat.refusal("editMessageText", **edit, text="x")


async def test_a_reply_to_what_is_gone_may_be_sent_without(chat: Wire) -> None:
    for number, reply_to in ((1, 1), (99, None)):
        reply = {"message_id": number, "allow_sending_without_reply": True}
        await chat.result("sendMessage", chat_id=ANN, text="x", reply_parameters=reply)
        assert chat.api.view(ANN)[-1].reply_to == reply_to


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


async def test_reactions_are_seen_but_not_told_in_messages(api: BotApi, wire: Wire) -> None:
    api.add_group(TEAM, "Team")
    api.say(ANN, "x", chat_id=TEAM)
    place = {"chat_id": TEAM, "message_id": 1}
    await wire.result("setMessageReaction", **place, reaction=[{"type": "emoji", "emoji": "👀"}])
    assert api.view(TEAM)[0].reactions == ["👀"]
    reply = {"reply_parameters": {"message_id": 1}}
    sent = await wire.result("sendMessage", chat_id=TEAM, text="y", **reply)
    assert "reactions" not in str(sent)
    await wire.result("setMessageReaction", **place)
    assert api.view(TEAM)[0].reactions == []


async def test_every_text_that_ever_stood_there_is_known(chat: Wire) -> None:
    edit = {"chat_id": ANN, "message_id": 2}
    await chat.result("sendMessage", chat_id=ANN, text="one")
    await chat.result("editMessageText", **edit, text="two")
    await chat.result("sendMessage", chat_id=ANN, text="one")
    await chat.result("deleteMessage", chat_id=ANN, message_id=2)
    seen = [(s.message_id, s.text, s.until is None) for s in chat.api.sightings(ANN)]
    assert seen == [(2, "one", False), (2, "two", False), (3, "one", True)]
    assert chat.api.shown_twice(ANN) == ["one"]


@pytest.mark.parametrize(
    ("method", "field", "content", "kind"),
    [
        ("sendPhoto", "photo", png(), FileKind.PHOTO),
        ("sendDocument", "document", b"abc", FileKind.DOCUMENT),
        ("sendVoice", "voice", b"OggS...", FileKind.VOICE),
        ("sendVoice", "voice", b"RIFF...", FileKind.DOCUMENT),
    ],
)
async def test_an_upload_is_sent_and_can_be_sent_again_by_its_id(
    chat: Wire, method: str, field: str, content: bytes, kind: FileKind
) -> None:
    caption = {"caption": "<b>see</b>", "parse_mode": "HTML"}
    answer = await chat.upload(method, {field: ("a.bin", content)}, chat_id=ANN, **caption)
    assert answer["ok"] is True, answer
    seen = chat.api.view(ANN)[-1]
    assert seen.file is not None
    assert (seen.file.kind, seen.file.size, seen.text) == (kind, len(content), "see")
    assert seen.html == "<b>see</b>"
    assert chat.api.file(seen.file.file_id) == content
    told = {"name": "a.bin", "mime": "application/octet-stream", "size": len(content)}
    assert chat.api.transcript(method)[0].parameters[field] == told
    again = f"send{kind.value.capitalize()}"
    await chat.result(again, chat_id=ANN, **{kind.value: seen.file.file_id})


async def test_only_files_that_were_asked_for_can_be_downloaded(api: BotApi, wire: Wire) -> None:
    api.send(ANN, FileKind.DOCUMENT)
    base = f"{api.url}/file/bot{api.token}"
    async with wire.session.get(f"{base}/documents/file0001.bin") as answer:
        assert answer.status == 404
    await wire.result("getFile", file_id="file0001")
    async with wire.session.get(f"{base}/documents/file0001.bin") as answer:
        assert answer.status == 200
    async with wire.session.get(f"{api.url}/file/bot4242:AAwrong-token/x") as answer:
        assert answer.status == 401
