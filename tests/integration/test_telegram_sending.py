"""What goes out through Telegram, over both libraries, against a strict Bot API emulator."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest

from channels.telegram.client import MessageGone
from channels.telegram.settings import Library
from goclaw_py.model.errors import (
    ChannelRefused,
    ChatGone,
    ChatMoved,
    MaybeSent,
    NotSent,
    RateLimited,
    TopicGone,
    Undeliverable,
)
from goclaw_py.model.ids import RunId
from goclaw_py.model.messages import Button, FileKind, OutboundMessage, OutFile, Target
from goclaw_py.model.outcomes import Outcome
from goclaw_py.model.run_events import RunEnded, RunStarted, RunWaits
from goclaw_py.ports.channel import Channel
from tests.botapi import BotApi, Fault, FaultKind
from tests.support.telegram import (
    ANN,
    CHAT,
    GROUP,
    TOPIC,
    connected,
    eventually,
    reply,
)

pytestmark = pytest.mark.real_time
pytest_plugins = ["tests.support.telegram_fixtures"]

RUN = RunId("0190d2a4-7a2b-7c3d-8e4f-123456789abc")
FORUM = Target("telegram", "default", str(GROUP), str(TOPIC))


def rich(text: str) -> OutboundMessage:
    return OutboundMessage(CHAT, text, rich=True)


# ---------------------------------------------------------------------------- messages


async def test_a_reply_arrives_as_it_is(api: BotApi, channel: Channel) -> None:
    number = await channel.send(reply("a <b> & *c* ü 😀", to="1"))
    (seen,) = [one for one in api.view(ANN) if one.mine]
    assert (seen.text, seen.reply_to, str(seen.message_id)) == ("a <b> & *c* ü 😀", 1, number)


async def test_markdown_is_shown_as_telegram_shows_it(api: BotApi, channel: Channel) -> None:
    """SPEC CHAN-3."""
    markdown = "A **bold** word, `code` and a [link](https://x.example/)\n\n```py\nx < 1\n```"
    for part in channel.parts(markdown):
        await channel.send(rich(part))
    (seen,) = [one for one in api.view(ANN) if one.mine]
    assert "**" not in seen.text
    assert "x < 1" in seen.text
    assert {str(entity["type"]) for entity in seen.entities} == {
        "bold",
        "code",
        "text_link",
        "pre",
    }
    assert not seen.preview


async def test_markup_that_the_server_refuses_is_sent_plain(api: BotApi, channel: Channel) -> None:
    """SPEC CHAN-3."""
    await channel.send(rich("a <b>bold <i>move</b> &lt; b"))
    assert [call.status for call in api.transcript("sendMessage")] == [400, 200]
    assert len(api.texts(ANN)) == 1
    assert "bold move" in api.texts(ANN)[0]


async def test_a_message_to_reply_to_that_is_gone_is_no_error(
    api: BotApi, channel: Channel
) -> None:
    await channel.send(reply(to="99"))
    assert api.texts(ANN) == ["hi"]


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


async def test_a_long_reply_arrives_in_parts(api: BotApi, channel: Channel) -> None:
    """SPEC CHAN-3."""
    for part in channel.parts("😀" * 3000 + "\n\n" + "word " * 2000):
        await channel.send(rich(part))
    texts = api.texts(ANN)
    assert "".join(texts).count("😀") == 3000
    assert sum(text.count("word") for text in texts) == 2000


@pytest.mark.parametrize(
    "bomb",
    ["*" * 20_000, "[" * 5000, "> " * 3000, "| a " * 2000 + "\n" + "|-" * 2000, "x" + "`" * 9999],
    ids=["stars", "brackets", "quotes", "table", "ticks"],
)
async def test_a_markdown_bomb_arrives(api: BotApi, channel: Channel, bomb: str) -> None:
    began = time.monotonic()
    for part in channel.parts(bomb + " the end \ud83d"):
        await channel.send(rich(part))
    assert time.monotonic() - began < 60
    assert "the end" in api.texts(ANN)[-1]
    assert {call.status for call in api.transcript("sendMessage")} == {200}


@pytest.mark.parametrize("text", ["", "  "])
async def test_a_text_that_telegram_never_takes_is_undeliverable(
    channel: Channel, text: str
) -> None:
    with pytest.raises(Undeliverable):
        await channel.send(reply(text))


async def test_buttons_stand_below_and_their_press_is_known(api: BotApi, channel: Channel) -> None:
    """SPEC CHAN-6."""
    buttons = ((Button("Done", "d:1"), Button("Later", "s:1")),)
    await channel.send(OutboundMessage(CHAT, "x", buttons=buttons))
    (seen,) = [one for one in api.view(ANN) if one.mine]
    assert [[(b.text, b.data) for b in row] for row in seen.buttons] == [
        [("Done", "d:1"), ("Later", "s:1")]
    ]


# ---------------------------------------------------------------------------- places


async def test_an_answer_stays_in_its_topic(api: BotApi, channel: Channel) -> None:
    """SPEC CHAN-6."""
    api.add_group(GROUP, "Team", topics=[TOPIC])
    await channel.send(OutboundMessage(FORUM, "in the topic"))
    await channel.send(OutboundMessage(replace(FORUM, thread="1"), "general"))
    await channel.send(OutboundMessage(replace(FORUM, thread=None), "the group"))
    assert {one.text: one.thread for one in api.view(GROUP) if one.mine} == {
        "in the topic": TOPIC,
        "general": None,
        "the group": None,
    }


async def test_a_private_topic_keeps_its_answers(api: BotApi, channel: Channel) -> None:
    """SPEC CHAN-6."""
    api.open_topic(ANN, 88)
    await channel.send(OutboundMessage(replace(CHAT, thread="88"), "in it"))
    (seen,) = [one for one in api.view(ANN) if one.mine]
    assert seen.thread == 88


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


async def test_the_general_topic_may_be_closed_too(api: BotApi, channel: Channel) -> None:
    api.add_group(GROUP, "Team", topics=[TOPIC])
    api.close_topic(GROUP, 1)
    with pytest.raises(TopicGone):
        await channel.send(OutboundMessage(FORUM, "x").in_general)


async def test_an_unknown_chat_is_gone(channel: Channel) -> None:
    with pytest.raises(ChatGone, match="chat not found"):
        await channel.send(reply(target=replace(CHAT, chat="99")))


@pytest.mark.parametrize("how", ["vanish", "kick", "remove"])
async def test_a_group_that_is_gone_is_told_as_gone(
    api: BotApi, channel: Channel, how: str
) -> None:
    """SPEC CHAN-7."""
    api.add_group(GROUP, "Team")
    {"vanish": api.vanish, "kick": api.kick, "remove": api.remove}[how](GROUP)
    with pytest.raises(ChatGone):
        await channel.send(OutboundMessage(replace(FORUM, thread=None), "x"))
    await channel.send(reply("next"))
    assert api.texts(ANN) == ["next"]


async def test_who_blocked_the_bot_is_gone_until_they_write_again(
    api: BotApi, channel: Channel
) -> None:
    """SPEC CHAN-7."""
    api.block(ANN)
    with pytest.raises(ChatGone, match="blocked"):
        await channel.send(reply())
    with pytest.raises(ChatGone, match="blocked"):
        await channel.post_draft(reply())
    api.say(ANN, "sorry")
    await channel.send(reply())
    api.deactivate(ANN)
    with pytest.raises(ChatGone, match="deactivated"):
        await channel.send(reply())


async def test_a_group_that_moved_tells_where_to(api: BotApi, channel: Channel) -> None:
    """SPEC CHAN-7: by the error of a message."""
    api.add_group(-500, "Team", kind="group")
    api.migrate(-500, -1009)
    old = replace(CHAT, chat="-500")
    for call in (channel.send, channel.post_draft):
        with pytest.raises(ChatMoved) as caught:
            await call(reply(target=old))
        assert caught.value.chat == "-1009"
    await channel.send(reply(target=replace(old, chat="-1009")))
    assert api.texts(-1009) == ["hi"]


# ---------------------------------------------------------------------------- errors


async def test_a_flooded_chat_says_how_long_to_wait(api: BotApi, channel: Channel) -> None:
    """SPEC IO-3."""
    api.fault(Fault("sendMessage", FaultKind.FLOOD, seconds=7))
    with pytest.raises(RateLimited) as caught:
        await channel.send(reply())
    assert caught.value.retry_after_s == 7
    api.limit(1)
    await channel.send(reply("one"))
    with pytest.raises(RateLimited):
        await channel.send(reply("two"))
    assert api.texts(ANN) == ["one"]


async def test_sending_with_a_revoked_token_is_refused(api: BotApi, channel: Channel) -> None:
    """SPEC CHAN-8."""
    api.revoke()
    with pytest.raises(ChannelRefused):
        await channel.send(reply())
    assert not channel.reaches(CHAT.chat)


LOST = [
    Fault("*", FaultKind.RESET),
    Fault("*", FaultKind.PAGE, status=502),
    Fault("*", FaultKind.PAGE, status=404),
    Fault("*", FaultKind.HANG),
    Fault("*", FaultKind.RESET_AFTER),
    Fault("*", FaultKind.GARBAGE_AFTER),
    Fault("*", FaultKind.BROKEN_AFTER),
    Fault("*", FaultKind.HANG_AFTER),
    Fault("*", FaultKind.CUT),
]
lost = pytest.mark.parametrize("fault", LOST, ids=lambda fault: f"{fault.kind}-{fault.status}")


@lost
async def test_without_an_answer_nobody_knows_whether_a_message_was_sent(
    api: BotApi, channel: Channel, fault: Fault
) -> None:
    """SPEC IO-5."""
    api.fault(fault)
    with pytest.raises(MaybeSent):
        await channel.send(reply())
    assert len(api.texts(ANN)) == fault.kind.after
    await channel.send(reply("again"))
    assert len(api.texts(ANN)) == fault.kind.after + 1


@lost
async def test_without_an_answer_an_edit_can_be_repeated_freely(
    api: BotApi, channel: Channel, fault: Fault
) -> None:
    """SPEC IO-5."""
    draft = await channel.post_draft(reply("one"))
    for call in (channel.edit_draft, channel.send):
        api.fault(fault)
        message = OutboundMessage(CHAT, "one two", draft=draft)
        with pytest.raises(NotSent):
            await call(message)
        await call(message)
    assert api.texts(ANN) == ["one two"]


async def test_a_refused_connection_certainly_sent_nothing(library: Library) -> None:
    """SPEC IO-5."""
    async with BotApi() as gone:
        pass
    async with connected(gone, library) as line:
        with pytest.raises(NotSent):
            await line.channel.send(reply())


async def test_many_hanging_sends_delay_neither_typing_nor_the_end(
    api: BotApi, channel: Channel
) -> None:
    """SPEC IO-4."""
    api.fault(Fault("sendMessage", FaultKind.HANG, count=80))
    sends = [asyncio.create_task(channel.send(reply(str(n)))) for n in range(80)]
    await api.wait_calls("sendMessage", 64)
    channel.signal(RunStarted(RUN, CHAT))
    await api.wait_calls("sendChatAction", ok=True)
    for send in sends:
        send.cancel()
    await asyncio.wait(sends)
    api.clear_faults()
    await channel.send(reply("through"))
    assert api.texts(ANN) == ["through"]


# ---------------------------------------------------------------------------- typing, marks


async def test_typing_begins_at_once_repeats_and_ends(api: BotApi, channel: Channel) -> None:
    """SPEC CHAN-4."""
    channel.signal(RunStarted(RUN, CHAT))
    calls = await api.wait_calls("sendChatAction", 2, ok=True, timeout_s=8)
    assert 4 <= calls[1].at - calls[0].at <= 5
    assert calls[0].parameters == {"chat_id": ANN, "action": "typing"}
    channel.signal(RunEnded(RUN, CHAT, Outcome.COMPLETED))
    await channel.send(reply())
    assert len(api.transcript("sendChatAction")) == 2


async def test_typing_in_the_general_topic_and_in_others(api: BotApi, channel: Channel) -> None:
    """SPEC CHAN-6."""
    api.add_group(GROUP, "Team", topics=[TOPIC])
    channel.signal(RunStarted(RUN, FORUM))
    channel.signal(RunStarted(RUN, replace(FORUM, thread="1")))
    calls = await api.wait_calls("sendChatAction", 2, ok=True)
    assert [call.parameters.get("message_thread_id") for call in calls] == [TOPIC, None]


async def test_typing_that_hangs_delays_no_answer_and_no_end(api: BotApi, channel: Channel) -> None:
    """SPEC IO-4."""
    api.fault(Fault("sendChatAction", FaultKind.HANG, count=20))
    for run in range(20):
        channel.signal(RunStarted(RunId(str(run)), replace(CHAT, chat=str(ANN + run))))
    await api.wait_calls("sendChatAction", 4)
    async with asyncio.timeout(10):
        await channel.send(reply())
    began = time.monotonic()
    await channel.close()
    assert time.monotonic() - began < 10


async def test_a_message_that_waits_is_marked_and_cleared(api: BotApi, channel: Channel) -> None:
    """SPEC CHAN-4."""
    channel.signal(RunWaits(RUN, CHAT, ("1",)))
    await api.wait_calls("setMessageReaction", 1, ok=True)
    assert api.view(ANN)[0].reactions == ["👀"]
    channel.signal(RunStarted(RUN, CHAT, ("1",)))
    channel.signal(RunEnded(RUN, CHAT, Outcome.COMPLETED, ("1",)))
    await api.wait_calls("setMessageReaction", 2, ok=True)
    assert api.view(ANN)[0].reactions == []


async def test_a_failed_message_is_marked_and_trouble_with_it_changes_nothing(
    api: BotApi, channel: Channel
) -> None:
    """SPEC CHAN-4."""
    channel.signal(RunEnded(RUN, CHAT, Outcome.FAILED, ("99",)))
    await api.wait_calls("setMessageReaction", 1)
    channel.signal(RunEnded(RUN, CHAT, Outcome.FAILED, ("1",)))
    await eventually(lambda: api.view(ANN)[0].reactions == ["👎"])
    await channel.send(reply())
    assert api.texts(ANN) == ["hi"]


async def test_without_reactions_nothing_is_marked(api: BotApi, library: Library) -> None:
    """SPEC CHAN-4."""
    api.say(ANN, "hello")
    async with connected(api, library, reactions=False) as line:
        line.channel.signal(RunEnded(RUN, CHAT, Outcome.FAILED, ("1",)))
        await line.channel.send(reply())
    assert api.counts().get("setMessageReaction", 0) == 0


# ---------------------------------------------------------------------------- drafts


async def test_a_draft_that_was_deleted_is_told_and_its_reply_is_a_new_message(
    api: BotApi, channel: Channel
) -> None:
    """SPEC IO-5."""
    draft = await channel.post_draft(OutboundMessage(CHAT, "one", run_id=RUN))
    api.delete(ANN, int(draft))
    with pytest.raises(MessageGone):
        await channel.edit_draft(OutboundMessage(CHAT, "one two", run_id=RUN, draft=draft))
    final = OutboundMessage(CHAT, "one two three", reply_to="1", run_id=RUN, draft=draft)
    number = await channel.send(final)
    assert number != draft
    assert api.texts(ANN) == ["one two three"]
    assert api.view(ANN)[-1].reply_to == 1
