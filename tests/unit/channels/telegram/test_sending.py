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
from goclaw_py.core.chat_commands import stop_data
from goclaw_py.core.errors import NotSent, Undeliverable
from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import Button, FileKind, OutboundMessage, OutFile, Target
from goclaw_py.core.text import utf16_len
from tests.unit.channels.telegram.scripted import ScriptedClient, Sent

ANN = Target("telegram", "default", "7")
FORUM = Target("telegram", "default", "-1007", "55")
RUN = RunId("0190d2a4-7a2b-7c3d-8e4f-123456789abc")
HERE = ChatPlace(7)
STOP = ((("⏹ Stop", stop_data(RUN)),),)
REFUSED = MarkupRefused("can't parse entities")
GONE = MessageGone("message to edit not found")
BUTTONS = ((Button("Done", "d:1"), Button("Later", "s:1")), (Button("Again", "a:1"),))
SHOWN_BUTTONS = ((("Done", "d:1"), ("Later", "s:1")), (("Again", "a:1"),))


@pytest.fixture
def client() -> ScriptedClient:
    return ScriptedClient()


@pytest.fixture
def sending(client: ScriptedClient) -> MessageSender:
    async def opened() -> BotClient:
        return client

    return MessageSender(opened)


@pytest.mark.parametrize(
    ("message", "sent"),
    [
        (OutboundMessage(ANN, "x", reply_to="12"), Sent(101, HERE, "x", reply_to=12)),
        (OutboundMessage(FORUM, "x"), Sent(101, ChatPlace(-1007, 55), "x")),
        (OutboundMessage(replace(FORUM, thread="1"), "x"), Sent(101, ChatPlace(-1007), "x")),
        (OutboundMessage(replace(ANN, thread="88"), "x"), Sent(101, ChatPlace(7, 88), "x")),
        (OutboundMessage(ANN, "<b>x</b>", rich=True), Sent(101, HERE, "<b>x</b>", html=True)),
        (OutboundMessage(ANN, "<b>x</b>"), Sent(101, HERE, "<b>x</b>")),
        (OutboundMessage(ANN, "a\ud83db"), Sent(101, HERE, "a\ufffdb")),
        (OutboundMessage(ANN, "x", buttons=BUTTONS), Sent(101, HERE, "x", buttons=SHOWN_BUTTONS)),
        (OutboundMessage(ANN, "x", reply_to="line-5"), Sent(101, HERE, "x")),
        (OutboundMessage(ANN, "x", draft="draft-1"), Sent(101, HERE, "x")),
    ],
    ids=[
        "reply", "topic", "general topic", "private topic", "rich", "plain", "lone surrogate",
        "buttons", "reply to no message", "draft of no message",
    ],
)  # fmt: skip
async def test_a_message_goes_as_it_is_to_its_place(
    client: ScriptedClient, sending: MessageSender, message: OutboundMessage, sent: Sent
) -> None:
    """SPEC CHAN-3, CHAN-6."""
    assert await sending.send(message) == "101"
    assert client.sent == [sent]
    assert client.calls == ["send_message"]


@pytest.mark.parametrize(
    "chat", ["", "-", "ann", "@ann", "7x", "٣", "1.5", "+7", " 7", "7\n", "9" * 5000]
)
async def test_a_chat_that_is_no_number_is_undeliverable(
    client: ScriptedClient, sending: MessageSender, chat: str
) -> None:
    nowhere = Target("telegram", "default", chat)
    for message in (OutboundMessage(nowhere, "x"), OutboundMessage(nowhere, "x", draft="5")):
        for send in (sending.send, sending.post_draft):
            with pytest.raises(Undeliverable):
                await send(message)
    assert place_of(nowhere) is None
    assert client.calls == []


def test_ids_are_whole_numbers() -> None:
    numbers = {"7": 7, "-1001": -1001, "": None, None: None, "x": None, "²": None}
    assert {text: number_of(text) for text in numbers} == numbers


async def test_markup_that_is_refused_is_sent_as_the_text_that_people_would_see(
    client: ScriptedClient, sending: MessageSender
) -> None:
    """SPEC CHAN-3."""
    client.fail("send_message", REFUSED)
    text = '<b>A</b> &lt; <a href="https://x.example/">B</a>'
    message = OutboundMessage(ANN, text, reply_to="12", rich=True, buttons=BUTTONS)
    number = await sending.send(message)
    (sent,) = client.sent
    assert number == str(sent.id)
    assert sent.text.startswith("A < B")
    assert "https://x.example/" in sent.text
    assert (sent.html, sent.reply_to, sent.buttons) == (False, 12, SHOWN_BUTTONS)


async def test_a_refusal_of_what_has_no_markup_is_final(
    client: ScriptedClient, sending: MessageSender
) -> None:
    client.fail("send_message", REFUSED)
    client.fail("edit_message", REFUSED)
    for message in (OutboundMessage(ANN, "&lt;b"), OutboundMessage(ANN, "x", draft="5")):
        with pytest.raises(MarkupRefused):
            await sending.send(message)
    assert client.calls == ["send_message", "edit_message"]


async def test_a_plain_version_that_would_be_too_long_is_cut(
    client: ScriptedClient, sending: MessageSender
) -> None:
    client.fail("send_message", REFUSED)
    (part,) = render("[word](https://x.example/abc) " * 500)[:1]
    await sending.send(OutboundMessage(ANN, part, rich=True))
    assert utf16_len(client.sent[0].text) <= TEXT_LIMIT


async def test_a_draft_is_posted_edited_and_finished_as_one_message(
    client: ScriptedClient, sending: MessageSender
) -> None:
    """SPEC CHAN-4, IO-5: and its end can be repeated."""
    growing = OutboundMessage(ANN, "The *answer", reply_to="12", run_id=RUN)
    draft = await sending.post_draft(growing)
    assert client.sent == [Sent(101, HERE, "The *answer …", True, 12, STOP)]
    await sending.edit_draft(replace(growing, text="The *answer* is", draft=draft))
    assert client.messages[101] == Sent(101, HERE, "The <i>answer</i> is …", True, None, STOP)
    final = OutboundMessage(ANN, "The <i>answer</i> is 5.", draft=draft, run_id=RUN, rich=True)
    for _ in range(2):
        assert await sending.send(final) == draft
        assert client.messages == {101: Sent(101, HERE, "The <i>answer</i> is 5.", True)}


async def test_an_edit_that_changes_nothing_is_not_sent(
    client: ScriptedClient, sending: MessageSender
) -> None:
    """SPEC CHAN-4: also of a reply that has grown beyond one message."""
    message = OutboundMessage(ANN, "word " * 1000, run_id=RUN)
    draft = await sending.post_draft(message)
    for more in ("", "a", "b"):
        await sending.edit_draft(replace(message, text=message.text + more, draft=draft))
    assert client.edits == []
    client.fail("edit_message", NotSent("reset"))
    other = replace(message, text="other", draft=draft)
    with pytest.raises(NotSent):
        await sending.edit_draft(other)
    await sending.edit_draft(other)
    await sending.edit_draft(other)
    assert [sent.text for _, sent in client.edits] == ["other …"]


async def test_a_draft_of_no_run_has_no_stop_button(
    client: ScriptedClient, sending: MessageSender
) -> None:
    await sending.post_draft(OutboundMessage(ANN, "x"))
    assert client.sent[0].buttons == ()
    assert len(stop_data(RUN).encode()) <= 64, "that of a run fits"


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


async def test_a_draft_that_was_deleted_is_sent_as_a_new_message(
    client: ScriptedClient, sending: MessageSender
) -> None:
    client.fail("edit_message", GONE, GONE)
    final = OutboundMessage(ANN, "done", reply_to="12", draft="55")
    assert await sending.send(final) == "101"
    assert client.sent == [Sent(101, HERE, "done", reply_to=12)]
    with pytest.raises(MessageGone):
        await sending.edit_draft(final)


async def test_an_edit_of_no_draft_does_nothing(
    client: ScriptedClient, sending: MessageSender
) -> None:
    await sending.edit_draft(OutboundMessage(ANN, "more"))
    assert client.calls == []


async def test_markup_of_a_draft_that_is_refused_is_shown_plain(
    client: ScriptedClient, sending: MessageSender
) -> None:
    client.fail("send_message", REFUSED)
    client.fail("edit_message", REFUSED)
    draft = await sending.post_draft(OutboundMessage(ANN, "**a**", run_id=RUN))
    assert client.sent[0] == Sent(101, HERE, "a …", buttons=STOP)
    await sending.edit_draft(OutboundMessage(ANN, "**a** b", run_id=RUN, draft=draft))
    assert client.messages[101] == Sent(101, HERE, "a b …", buttons=STOP)


@pytest.mark.parametrize(
    ("shown", "mark", "left"),
    [
        (
            "The *answer* so",
            "⏹ Stopped.",
            Sent(101, HERE, "The <i>answer</i> so\n\n⏹ Stopped.", True),
        ),
        ("", "cut off", Sent(101, HERE, "cut off")),
    ],
    ids=["known", "forgotten"],
)
async def test_a_closed_draft_keeps_what_it_shows_with_a_mark_and_without_a_button(
    client: ScriptedClient, sending: MessageSender, shown: str, mark: str, left: Sent
) -> None:
    """SPEC CMD-3."""
    await sending.close_draft(ANN, "101", shown, mark)
    assert client.messages == {101: left}


async def test_a_long_draft_keeps_what_it_shows_when_it_is_closed(
    client: ScriptedClient, sending: MessageSender
) -> None:
    """SPEC CMD-3: a draft shows the first part of a long answer."""
    await sending.close_draft(ANN, "101", "word " * 3000, "⏹ Stopped.")
    text = client.messages[101].text
    assert text.startswith("word word")
    assert text.endswith("word\n\n⏹ Stopped.")
    assert 3900 < utf16_len(text) <= TEXT_LIMIT


async def test_closing_a_draft_that_is_gone_is_no_error_and_one_about_nothing_is_removed(
    client: ScriptedClient, sending: MessageSender
) -> None:
    client.fail("edit_message", GONE)
    await sending.close_draft(ANN, "101", "x", "cut off")
    await sending.close_draft(ANN, "draft-1", "x", "cut off")
    assert client.messages == {}
    await sending.delete_draft(ANN, await sending.post_draft(OutboundMessage(ANN, "")))
    assert client.messages == {}


async def test_a_file_is_sent_with_its_name_and_a_caption(
    client: ScriptedClient, sending: MessageSender, tmp_path: Path
) -> None:
    file = OutFile(FileKind.PHOTO, str(tmp_path / "plot"), "plot.png", "image/png")
    message = OutboundMessage(FORUM, "see\ud83d", reply_to="12", file=file)
    assert await sending.send(message) == "101"
    upload = Upload(FileKind.PHOTO, tmp_path / "plot", "plot.png", "image/png")
    assert client.files == [(ChatPlace(-1007, 55), upload, Text("see\ufffd"), 12)]


async def test_a_long_caption_is_cut_and_an_empty_one_is_none(
    client: ScriptedClient, sending: MessageSender
) -> None:
    file = OutFile(FileKind.DOCUMENT, "/x", "x")
    for text in ("😀" * 2000, "", "  "):
        await sending.send(OutboundMessage(ANN, text, file=file))
    captions = [caption for _, _, caption, _ in client.files]
    assert captions[0] is not None
    assert utf16_len(captions[0].text) <= CAPTION_LIMIT
    assert captions[1:] == [None, None]
