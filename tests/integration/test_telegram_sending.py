"""What goes out through Telegram, over both libraries, against a strict Bot API emulator."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from channels.telegram.http import PICTURE_LIMIT
from channels.telegram.settings import Library
from goclaw_py.chat.channel import Channel
from goclaw_py.core.errors import (
    ChannelError,
    MaybeSent,
    NotSent,
    RateLimited,
    TopicGone,
    Undeliverable,
)
from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import Button, FileKind, LostDraft, OutboundMessage, OutFile, Target
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.run_events import RunEnded, RunStarted, RunText, RunWaits
from tests.botapi import BotApi, Fault, FaultKind
from tests.botapi.files import png
from tests.botapi.views import Seen
from tests.support.telegram import ANN, CHAT, GROUP, TOPIC, connected, eventually

pytestmark = pytest.mark.real_time
pytest_plugins = ["tests.support.telegram_fixtures"]


RUN = RunId("0190d2a4-7a2b-7c3d-8e4f-123456789abc")
FORUM = Target("telegram", "default", str(GROUP), str(TOPIC))


def rich(text: str) -> OutboundMessage:
    return OutboundMessage(CHAT, text, rich=True)


async def test_markdown_is_shown_as_telegram_shows_it(api: BotApi, channel: Channel) -> None:
    """SPEC CHAN-3."""
    markdown = "A **bold** word, `code` and a [link](https://x.example/)\n\n```py\nx < 1\n```"
    for part in channel.parts(markdown):
        await channel.send(rich(part))
    (seen,) = [one for one in api.view(ANN) if one.mine]
    assert "**" not in seen.text
    assert "x < 1" in seen.text
    assert {str(entity["type"]) for entity in seen.entities} == {"bold", "code", "text_link", "pre"}
    assert not seen.preview


@pytest.mark.parametrize("growing", [True, False])
async def test_a_text_that_the_server_finds_too_long_comes_in_smaller_pieces(
    api: BotApi, channel: Channel, *, growing: bool
) -> None:
    """SPEC CHAN-3: nothing of it is lost; the buttons are below the last piece."""
    draft = await channel.post_draft(rich("word")) if growing else None
    words = " ".join(f"w{n}" for n in range(600))
    method = "editMessageText" if growing else "sendMessage"
    too_long = "Bad Request: message is too long"
    api.fault(Fault(method, FaultKind.ERROR, status=400, words=too_long))
    buttons = ((Button("Done", "done"),),)
    await channel.send(replace(rich(f"<b>{words}</b>"), draft=draft, buttons=buttons))
    mine = [one for one in api.view(ANN) if one.mine]
    assert len(mine) == 2
    assert " ".join(one.text for one in mine).split() == words.split()
    assert [bool(one.buttons) for one in mine] == [False, True]


@pytest.mark.parametrize("what", ["closed", "deleted", "never there"])
async def test_a_topic_that_takes_no_messages_is_told_as_gone(
    api: BotApi, channel: Channel, what: str, tmp_path: Path
) -> None:
    """SPEC CHAN-6: and the general topic of its group is still there."""
    api.add_group(GROUP, "Team", topics=[TOPIC])
    if what == "closed":
        api.close_topic(GROUP, TOPIC)
    elif what == "deleted":
        api.delete_topic(GROUP, TOPIC)
    target = FORUM if what != "never there" else replace(FORUM, thread="56")
    path = tmp_path / "a.txt"
    path.write_text("x")
    message = OutboundMessage(target, "x", reply_to="3")
    with_file = replace(message, file=OutFile(FileKind.DOCUMENT, str(path), "a.txt"))
    for send in (
        channel.send(message),
        channel.post_draft(message),
        channel.send(with_file),
        channel.send_album([with_file, with_file]),
    ):
        with pytest.raises(TopicGone) as caught:
            await send
        assert caught.value.closed == (what == "closed")
    assert not [one for one in api.view(GROUP) if one.mine]
    await channel.send(message.in_general)
    (seen,) = [one for one in api.view(GROUP) if one.mine]
    assert (seen.text, seen.thread) == ("x", None)


async def test_typing_and_marks_are_shown_in_their_place(api: BotApi, channel: Channel) -> None:
    """SPEC CHAN-4, CHAN-6."""
    api.add_group(GROUP, "Team", topics=[TOPIC])
    channel.signal(RunWaits(RUN, CHAT, ("1",)))
    await api.wait_calls("setMessageReaction", 1, ok=True)
    assert api.view(ANN)[0].reactions == ["👀"]
    for target in (FORUM, replace(FORUM, thread="1"), CHAT):
        channel.signal(RunStarted(RUN, target, ("1",) if target is CHAT else ()))
    calls = await api.wait_calls("sendChatAction", 3, ok=True)
    threads = Counter(call.parameters.get("message_thread_id") for call in calls)
    assert threads == {TOPIC: 1, None: 2}
    channel.signal(RunEnded(RUN, CHAT, Outcome.COMPLETED, ("1",)))
    await api.wait_calls("setMessageReaction", 2, ok=True)
    assert api.view(ANN)[0].reactions == []


TEAM = Target("telegram", "default", str(GROUP))
STOP = f"stop:{RUN}"


def said(text: str, draft: str | None = None, *, rich: bool = False) -> OutboundMessage:
    return OutboundMessage(CHAT, text, reply_to="1", run_id=RUN, rich=rich, draft=draft)


def ours(api: BotApi) -> Seen:
    """The one message of the bot."""
    (seen,) = [one for one in api.view(ANN) if one.mine]
    return seen


def buttons(seen: Seen) -> list[str]:
    return [button.data for row in seen.buttons for button in row]


async def test_a_reply_grows_in_one_message_with_a_stop_button(
    api: BotApi, channel: Channel
) -> None:
    draft = await channel.post_draft(said(""))
    assert (ours(api).text, buttons(ours(api)), ours(api).reply_to) == ("…", [STOP], 1)
    await channel.edit_draft(said("The **answer", draft))
    assert (ours(api).text, buttons(ours(api))) == ("The **answer …", [STOP])
    await channel.edit_draft(said("The **answer** is", draft))
    assert (ours(api).text, buttons(ours(api))) == ("The answer is …", [STOP])
    (part,) = channel.parts("The **answer** is 5.")
    assert await channel.send(said(part, draft, rich=True)) == draft
    assert (ours(api).text, buttons(ours(api)), ours(api).reply_to) == ("The answer is 5.", [], 1)
    assert api.shown_twice(ANN) == []


async def test_a_draft_that_nobody_finishes_keeps_what_it_shows_and_loses_its_button(
    api: BotApi, channel: Channel
) -> None:
    """SPEC CMD-3."""
    draft = await channel.post_draft(said("The **answer** is"))
    api.fault(Fault("editMessageText", FaultKind.RESET))
    ended = RunEnded(RUN, CHAT, Outcome.CANCELLED, draft=draft, shown="The **answer** is")
    channel.signal(ended)
    await api.wait_visible(ANN, "The answer is\n\n⏹ Stopped.")
    assert buttons(ours(api)) == []


async def lose_a_draft(api: BotApi, channel: Channel, target: Target = CHAT) -> LostDraft:
    """Post a draft whose answer is lost, after the last message that is there."""
    after = str(api.view(int(target.chat))[-1].message_id)
    api.fault(Fault("sendMessage", FaultKind.RESET_AFTER))
    with pytest.raises(MaybeSent):
        await channel.post_draft(replace(said("The answer"), target=target, reply_to=None))
    return LostDraft(RUN, after)


async def test_a_lost_draft_is_found_among_what_others_write(api: BotApi, channel: Channel) -> None:
    """Nothing of theirs is changed, nor what is known to be another message of ours."""
    api.add_group(GROUP, "Team")
    api.say(ANN, "hello", chat_id=GROUP)
    after = str(api.view(GROUP)[-1].message_id)
    reminder = OutboundMessage(TEAM, "a reminder", buttons=((Button("Done", "d:1"),),))
    known = await channel.send(reminder)
    api.say(ANN, "anybody?", chat_id=GROUP)
    lost = replace(await lose_a_draft(api, channel, TEAM), after=after)
    api.say(ANN, "?", chat_id=GROUP)
    before = api.view(GROUP)
    found = await channel.find_draft(TEAM, lost, before=None, known={known})
    assert (found, api.view(GROUP)) == (f"4242:{before[-2].message_id}", before)


@pytest.mark.parametrize("answer_lost", [False, True])
async def test_another_message_of_ours_that_nobody_knew_keeps_its_text_and_gets_no_button(
    api: BotApi, channel: Channel, *, answer_lost: bool
) -> None:
    """It is not taken for the draft later, either."""
    lost = LostDraft(RUN, str(api.view(ANN)[-1].message_id))
    await channel.send(OutboundMessage(CHAT, "Nothing was running."))
    if answer_lost:
        api.fault(Fault("editMessageReplyMarkup", FaultKind.RESET_AFTER))
        with pytest.raises(NotSent):
            await channel.find_draft(CHAT, lost, before=None, known=())
    else:
        assert await channel.find_draft(CHAT, lost, before=None, known=()) is None
    await eventually(lambda: not buttons(ours(api)))
    assert await channel.find_draft(CHAT, lost, before=None, known=()) is None
    await eventually(lambda: not buttons(ours(api)))
    assert ours(api).text == "Nothing was running."


async def test_telegrams_own_draft_grows_and_the_reply_is_a_message(
    api: BotApi, library: Library
) -> None:
    """SPEC CHAN-4."""
    api.say(ANN, "hello")
    async with connected(api, library, streaming="native") as line:
        channel = line.channel
        channel.signal(RunStarted(RUN, CHAT))
        for number, word in enumerate(("The ", "**answer** is 5."), 1):
            channel.signal(RunText(RUN, CHAT, word))
            await api.wait_calls("sendMessageDraft", number, ok=True)
        (draft,) = api.drafts(ANN)
        assert draft.text == "The answer is 5. …"
        channel.signal(RunEnded(RUN, CHAT, Outcome.COMPLETED))
        await channel.send(OutboundMessage(CHAT, "The answer is 5."))
    assert api.texts(ANN) == ["The answer is 5."]
    calls = api.transcript("sendMessageDraft")
    assert {call.parameters["draft_id"] for call in calls} == {1}
    assert api.drafts(ANN) == []


MB = 1 << 20


def album(folder: Path, *kinds: FileKind, target: Target = CHAT) -> list[OutboundMessage]:
    """Files of these kinds; the first one has words, and is a reply."""
    said = []
    for number, kind in enumerate(kinds):
        path = folder / f"{number}.bin"
        path.write_bytes(png(20, 10 + number) if kind is FileKind.PHOTO else bytes(number + 5))
        file = OutFile(kind, str(path), f"{number} ü.bin", "application/pdf")
        text, to = ("" if number else "here", None if number else "1")
        said.append(OutboundMessage(target, text, reply_to=to, file=file))
    return said


PHOTO, VIDEO, AUDIO = FileKind.PHOTO, FileKind.VIDEO, FileKind.AUDIO


@pytest.mark.parametrize(
    "kinds", [(PHOTO, VIDEO), (FileKind.DOCUMENT,) * 3, (AUDIO, AUDIO), (PHOTO,) * 10]
)
async def test_files_arrive_as_one_album_with_words_under_the_first(
    api: BotApi, channel: Channel, tmp_path: Path, kinds: tuple[FileKind, ...]
) -> None:
    """SPEC CHAN-6."""
    said = album(tmp_path, *kinds)
    assert len({channel.album(one.file) for one in said if one.file}) == 1
    numbers = await channel.send_album(said)
    seen = [one for one in api.view(ANN) if one.mine]
    files = [one.file for one in seen if one.file]
    assert [f"4242:{one.message_id}" for one in seen] == numbers
    assert [file.kind.value for file in files] == [kind.value for kind in kinds]
    assert [one.text for one in seen] == ["here", *[""] * (len(kinds) - 1)]
    assert seen[0].reply_to == 1
    assert len({file.album for file in files}) == 1
    assert files[0].album
    for file, one in zip(files, said, strict=True):
        assert one.file is not None
        assert api.file(file.file_id) == Path(one.file.path).read_bytes()
    assert api.counts()["sendMediaGroup"] == 1


def test_what_cannot_be_in_one_album_is_in_none(channel: Channel) -> None:
    kinds = {kind: channel.album(OutFile(kind, "/a", "a")) for kind in FileKind}
    assert kinds[PHOTO] == kinds[VIDEO]
    assert kinds[FileKind.VOICE] == ""
    assert len({kinds[PHOTO], kinds[AUDIO], kinds[FileKind.DOCUMENT]}) == 3


@pytest.mark.parametrize("bad", ["missing", "empty", "no picture", "too large", "all too large"])
async def test_an_album_with_a_file_that_is_refused_is_undeliverable_as_a_whole(
    api: BotApi, channel: Channel, tmp_path: Path, bad: str
) -> None:
    said = album(tmp_path, PHOTO, PHOTO, PHOTO)
    last = tmp_path / "2.bin"
    match bad:
        case "missing":
            last.unlink()
        case "empty" | "no picture":
            last.write_bytes(b"" if bad == "empty" else b"text")
        case "too large":
            with last.open("wb") as file:
                file.truncate(PICTURE_LIMIT + 1)
        case _:
            said = album(tmp_path, AUDIO, AUDIO, AUDIO)
            for number in range(3):
                with (tmp_path / f"{number}.bin").open("wb") as file:
                    file.truncate(20 * MB)
    with pytest.raises(Undeliverable):
        await channel.send_album(said)
    assert api.texts(ANN) == []
    assert "large" not in bad or api.counts().get("sendMediaGroup", 0) == 0, "nothing has left"


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault("sendMediaGroup", FaultKind.RESET_AFTER), MaybeSent),
        (Fault("sendMediaGroup", FaultKind.GARBAGE_AFTER), MaybeSent),
        (Fault("sendMediaGroup", FaultKind.FLOOD, seconds=7), RateLimited),
    ],
)
async def test_an_album_that_fails_says_what_is_known(
    api: BotApi, channel: Channel, tmp_path: Path, fault: Fault, error: type[ChannelError]
) -> None:
    """SPEC IO-5."""
    api.fault(fault)
    with pytest.raises(error):
        await channel.send_album(album(tmp_path, PHOTO, PHOTO))
    assert len(await channel.send_album(album(tmp_path, PHOTO, PHOTO))) == 2
