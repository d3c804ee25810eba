"""What goes out through Telegram, over both libraries, against a strict Bot API emulator."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from goclaw_py.model.errors import (
    TopicGone,
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
)

pytestmark = pytest.mark.real_time
pytest_plugins = ["tests.support.telegram_fixtures"]

RUN = RunId("0190d2a4-7a2b-7c3d-8e4f-123456789abc")
FORUM = Target("telegram", "default", str(GROUP), str(TOPIC))


def rich(text: str) -> OutboundMessage:
    return OutboundMessage(CHAT, text, rich=True)


# ---------------------------------------------------------------------------- messages


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


# ---------------------------------------------------------------------------- places


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
    assert [call.parameters.get("message_thread_id") for call in calls] == [TOPIC, None, None]
    channel.signal(RunEnded(RUN, CHAT, Outcome.COMPLETED, ("1",)))
    await api.wait_calls("setMessageReaction", 2, ok=True)
    assert api.view(ANN)[0].reactions == []
