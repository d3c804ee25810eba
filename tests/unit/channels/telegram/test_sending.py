"""``channels.telegram.sending`` against a scripted client."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from channels.telegram.client import (
    CAPTION_LIMIT,
    TEXT_LIMIT,
    BotClient,
    ChatPlace,
    MarkupRefused,
    MessageGone,
    Text,
    Upload,
)
from channels.telegram.format import render
from channels.telegram.sending import MessageSender, draft_text, number_of, place_of
from goclaw_py.common.text import utf16_len
from goclaw_py.model.chat_commands import stop_data
from goclaw_py.model.errors import ChatMoved, NotSent, Undeliverable
from goclaw_py.model.ids import RunId
from goclaw_py.model.messages import Button, FileKind, OutboundMessage, OutFile, Target
from tests.unit.channels.telegram.scripted import ScriptedClient, Sent

ANN = Target("telegram", "default", "7")
FORUM = Target("telegram", "default", "-1007", "55")
RUN = RunId("0190d2a4-7a2b-7c3d-8e4f-123456789abc")
HERE = ChatPlace(7)
STOP = ((("⏹ Stop", stop_data(RUN)),),)
REFUSED = MarkupRefused("can't parse entities")


def over(client: ScriptedClient) -> MessageSender:
    async def opened() -> BotClient:
        return client

    return MessageSender(opened)


# ---------------------------------------------------------------------------- messages


async def test_a_reply_goes_to_its_chat_topic_and_message() -> None:
    """SPEC CHAN-6."""
    client = ScriptedClient()
    sending = over(client)
    assert await sending.send(OutboundMessage(ANN, "one", reply_to="12")) == "101"
    assert await sending.send(OutboundMessage(FORUM, "two")) == "102"
    assert client.sent == [
        Sent(101, HERE, "one", reply_to=12),
        Sent(102, ChatPlace(-1007, 55), "two"),
    ]


async def test_the_general_topic_is_written_to_without_a_thread() -> None:
    client = ScriptedClient()
    await over(client).send(OutboundMessage(replace(FORUM, thread="1"), "x"))
    assert client.sent[0].place == ChatPlace(-1007)


async def test_a_private_topic_keeps_its_thread() -> None:
    """SPEC CHAN-6."""
    client = ScriptedClient()
    await over(client).send(OutboundMessage(replace(ANN, thread="88"), "x"))
    assert client.sent[0].place == ChatPlace(7, 88)


async def test_rich_text_is_html_and_other_text_stands_as_it_is() -> None:
    """SPEC CHAN-3."""
    client = ScriptedClient()
    await over(client).send(OutboundMessage(ANN, "<b>x</b>", rich=True))
    await over(client).send(OutboundMessage(ANN, "<b>x</b>"))
    assert [(one.text, one.html) for one in client.sent] == [
        ("<b>x</b>", True),
        ("<b>x</b>", False),
    ]


async def test_a_lone_surrogate_is_replaced_before_it_is_sent() -> None:
    client = ScriptedClient()
    await over(client).send(OutboundMessage(ANN, "a\ud83db"))
    assert client.sent[0].text == "a\ufffdb"


async def test_buttons_are_shown_below() -> None:
    client = ScriptedClient()
    buttons = ((Button("Done", "d:1"), Button("Later", "s:1")), (Button("Again", "a:1"),))
    await over(client).send(OutboundMessage(ANN, "x", buttons=buttons))
    assert client.sent[0].buttons == (
        (("Done", "d:1"), ("Later", "s:1")),
        (("Again", "a:1"),),
    )


@pytest.mark.parametrize(
    "chat", ["", "-", "ann", "@ann", "7x", "٣", "1.5", "+7", " 7", "7\n", "9" * 5000]
)
async def test_a_chat_that_is_no_number_is_undeliverable(chat: str) -> None:
    client = ScriptedClient()
    nowhere = Target("telegram", "default", chat)
    for message in (OutboundMessage(nowhere, "x"), OutboundMessage(nowhere, "x", draft="5")):
        with pytest.raises(Undeliverable):
            await over(client).send(message)
        with pytest.raises(Undeliverable):
            await over(client).post_draft(message)
    assert place_of(nowhere) is None
    assert client.calls == []


async def test_a_reply_to_something_that_is_no_message_is_sent_as_no_reply() -> None:
    client = ScriptedClient()
    await over(client).send(OutboundMessage(ANN, "x", reply_to="line-5"))
    assert client.sent[0].reply_to is None


def test_ids_are_whole_numbers() -> None:
    assert [number_of(text) for text in ("7", "-1001", "", None, "x", "²")] == [
        7, -1001, None, None, None, None,
    ]  # fmt: skip


async def test_markup_that_is_refused_is_sent_as_the_text_that_people_would_see() -> None:
    """SPEC CHAN-3."""
    client = ScriptedClient()
    client.fail("send_message", REFUSED)
    text = '<b>A</b> &lt; <a href="https://x.example/">B</a>'
    buttons = ((Button("Done", "d:1"),),)
    number = await over(client).send(
        OutboundMessage(ANN, text, reply_to="12", rich=True, buttons=buttons)
    )
    (sent,) = client.sent
    assert number == str(sent.id)
    assert sent.text.startswith("A < B")
    assert "https://x.example/" in sent.text
    assert (sent.html, sent.reply_to, sent.buttons) == (False, 12, ((("Done", "d:1"),),))


async def test_a_refusal_of_what_has_no_markup_is_final() -> None:
    client = ScriptedClient()
    client.fail("send_message", REFUSED)
    client.fail("edit_message", REFUSED)
    for message in (OutboundMessage(ANN, "&lt;b"), OutboundMessage(ANN, "x", draft="5")):
        with pytest.raises(MarkupRefused):
            await over(client).send(message)
    assert client.calls == ["send_message", "edit_message"]


async def test_a_plain_version_that_would_be_too_long_is_cut() -> None:
    client = ScriptedClient()
    client.fail("send_message", REFUSED)
    (part,) = render("[word](https://x.example/abc) " * 500)[:1]
    await over(client).send(OutboundMessage(ANN, part, rich=True))
    assert utf16_len(client.sent[0].text) <= TEXT_LIMIT


@pytest.mark.parametrize("error", [ChatMoved("upgraded", "-1008"), NotSent("reset")])
async def test_other_errors_are_for_the_caller(error: ChatMoved | NotSent) -> None:
    """SPEC CHAN-7."""
    client = ScriptedClient()
    client.fail("send_message", error)
    with pytest.raises(type(error)):
        await over(client).send(OutboundMessage(ANN, "x"))


# ---------------------------------------------------------------------------- drafts


async def test_a_draft_is_posted_edited_and_finished_as_one_message() -> None:
    """SPEC CHAN-4, IO-5."""
    client = ScriptedClient()
    sending = over(client)
    growing = OutboundMessage(ANN, "The *answer", reply_to="12", run_id=RUN)
    draft = await sending.post_draft(growing)
    assert client.sent == [Sent(101, HERE, "The *answer …", True, 12, STOP)]
    more = replace(growing, text="The *answer* is", draft=draft)
    await sending.edit_draft(more)
    assert client.messages[101] == Sent(101, HERE, "The <i>answer</i> is …", True, None, STOP)
    final = OutboundMessage(ANN, "The <i>answer</i> is 5.", draft=draft, run_id=RUN, rich=True)
    assert await sending.send(final) == draft
    assert client.messages == {101: Sent(101, HERE, "The <i>answer</i> is 5.", True)}


async def test_an_edit_that_changes_nothing_is_not_sent() -> None:
    """SPEC CHAN-4: also of a reply that has grown beyond one message."""
    client = ScriptedClient()
    sending = over(client)
    message = OutboundMessage(ANN, "word " * 1000, run_id=RUN)
    draft = await sending.post_draft(message)
    for more in ("", "a", "b"):
        await sending.edit_draft(replace(message, text=message.text + more, draft=draft))
    assert client.edits == []
    client.fail("edit_message", NotSent("reset"))
    with pytest.raises(NotSent):
        await sending.edit_draft(replace(message, text="other", draft=draft))
    await sending.edit_draft(replace(message, text="other", draft=draft))
    await sending.edit_draft(replace(message, text="other", draft=draft))
    assert [sent.text for _, sent in client.edits] == ["other …"]


async def test_a_draft_of_no_run_has_no_stop_button() -> None:
    client = ScriptedClient()
    await over(client).post_draft(OutboundMessage(ANN, "x"))
    assert client.sent[0].buttons == ()


def test_the_data_of_the_stop_button_fits() -> None:
    assert len(stop_data(RUN).encode()) <= 64


@pytest.mark.parametrize("nothing", ["", " \n", "\x00"])
def test_a_draft_that_says_nothing_yet_still_shows_something(nothing: str) -> None:
    assert draft_text(nothing) == Text("…")


@pytest.mark.parametrize(
    "long", ["word " * 5000, "😀" * 9000, "```py\n" + "x = 1\n" * 3000, "\ud83d"]
)
def test_a_draft_always_fits_into_one_message(long: str) -> None:
    """SPEC CHAN-3."""
    text = draft_text(long)
    shown = text.text.removeprefix('<pre><code class="language-py">').replace("</code></pre>", "")
    assert utf16_len(shown) <= TEXT_LIMIT
    shown.encode()


async def test_a_final_edit_can_be_repeated() -> None:
    """SPEC IO-5."""
    client = ScriptedClient()
    final = OutboundMessage(ANN, "done", draft="101")
    for _ in range(2):
        assert await over(client).send(final) == "101"
    assert client.messages == {101: Sent(101, HERE, "done")}


async def test_a_draft_that_was_deleted_is_sent_as_a_new_message() -> None:
    client = ScriptedClient()
    client.fail("edit_message", MessageGone("message to edit not found"))
    final = OutboundMessage(ANN, "done", reply_to="12", draft="55")
    assert await over(client).send(final) == "101"
    assert client.sent == [Sent(101, HERE, "done", reply_to=12)]


async def test_a_draft_whose_id_is_none_of_telegrams_is_sent_as_a_new_message() -> None:
    client = ScriptedClient()
    assert await over(client).send(OutboundMessage(ANN, "done", draft="draft-1")) == "101"
    assert client.calls == ["send_message"]


async def test_an_edit_of_a_deleted_draft_is_told() -> None:
    client = ScriptedClient()
    client.fail("edit_message", MessageGone("message to edit not found"))
    with pytest.raises(MessageGone):
        await over(client).edit_draft(OutboundMessage(ANN, "more", draft="101"))


async def test_an_edit_of_no_draft_does_nothing() -> None:
    client = ScriptedClient()
    await over(client).edit_draft(OutboundMessage(ANN, "more"))
    assert client.calls == []


async def test_markup_of_a_draft_that_is_refused_is_shown_plain() -> None:
    client = ScriptedClient()
    client.fail("send_message", REFUSED)
    client.fail("edit_message", REFUSED)
    sending = over(client)
    draft = await sending.post_draft(OutboundMessage(ANN, "**a**", run_id=RUN))
    assert client.sent[0] == Sent(101, HERE, "a …", buttons=STOP)
    await sending.edit_draft(OutboundMessage(ANN, "**a** b", run_id=RUN, draft=draft))
    assert client.messages[101] == Sent(101, HERE, "a b …", buttons=STOP)


# ---------------------------------------------------------------------------- closing drafts


async def test_a_closed_draft_keeps_what_it_shows_with_a_mark_and_without_a_button() -> None:
    """SPEC CMD-3."""
    client = ScriptedClient()
    await over(client).close_draft(ANN, "101", "The *answer* so", "⏹ Stopped.")
    expected = Sent(101, HERE, "The <i>answer</i> so\n\n⏹ Stopped.", True)
    assert client.messages == {101: expected}


async def test_a_long_draft_keeps_what_it_shows_when_it_is_closed() -> None:
    """SPEC CMD-3: a draft shows the first part of a long answer."""
    client = ScriptedClient()
    await over(client).close_draft(ANN, "101", "word " * 3000, "⏹ Stopped.")
    text = client.messages[101].text
    assert text.startswith("word word")
    assert text.endswith("word\n\n⏹ Stopped.")
    assert 3900 < utf16_len(text) <= TEXT_LIMIT


async def test_of_a_draft_that_nobody_remembers_only_the_mark_stays() -> None:
    client = ScriptedClient()
    await over(client).close_draft(ANN, "101", "", "cut off")
    assert client.messages == {101: Sent(101, HERE, "cut off")}


async def test_closing_or_deleting_a_draft_that_is_gone_is_no_error() -> None:
    client = ScriptedClient()
    client.fail("edit_message", MessageGone("message to edit not found"))
    await over(client).close_draft(ANN, "101", "x", "cut off")
    await over(client).close_draft(ANN, "draft-1", "x", "cut off")
    assert client.messages == {}


async def test_a_draft_about_nothing_is_removed() -> None:
    client = ScriptedClient()
    sending = over(client)
    draft = await sending.post_draft(OutboundMessage(ANN, ""))
    await sending.delete_draft(ANN, draft)
    assert client.messages == {}


# ---------------------------------------------------------------------------- files


async def test_a_file_is_sent_with_its_name_and_a_caption(tmp_path: Path) -> None:
    client = ScriptedClient()
    file = OutFile(FileKind.PHOTO, str(tmp_path / "plot"), "plot.png", "image/png")
    message = OutboundMessage(FORUM, "see\ud83d", reply_to="12", file=file)
    assert await over(client).send(message) == "501"
    upload = Upload(FileKind.PHOTO, tmp_path / "plot", "plot.png", "image/png")
    assert client.files == [(ChatPlace(-1007, 55), upload, Text("see\ufffd"), 12)]


async def test_a_long_caption_is_cut_and_an_empty_one_is_none() -> None:
    client = ScriptedClient()
    file = OutFile(FileKind.DOCUMENT, "/x", "x")
    for text in ("😀" * 2000, "", "  "):
        await over(client).send(OutboundMessage(ANN, text, file=file))
    captions = [caption for _, _, caption, _ in client.files]
    assert captions[0] is not None
    assert utf16_len(captions[0].text) <= CAPTION_LIMIT
    assert captions[1:] == [None, None]
