"""What people send and what happens to chats: both libraries, long polling and webhook."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from goclaw_py.model.messages import (
    ChatMigrated,
    ChatReached,
    FileKind,
    PeerKind,
    Target,
)
from tests.botapi.files import FileKind as StoredKind
from tests.botapi.people import OTHER
from tests.support.telegram import (
    ANN,
    GROUP,
    TOPIC,
    Line,
)

pytestmark = pytest.mark.real_time
pytest_plugins = ["tests.support.telegram_fixtures"]

TEAM = Target("telegram", "default", str(GROUP))


# ---------------------------------------------------------------------------- what people send


async def test_edits_are_new_versions(line: Line) -> None:
    """SPEC CHAN-6, IO-1."""
    async with line.receiving():
        number = line.api.say(ANN, "helo")[0]["message_id"]
        assert isinstance(number, int)
        await line.inbox.until_accepted("helo")
        line.api.edit(ANN, number, "hello")
        await line.inbox.until_accepted("hello")
    first, second = line.inbox.messages
    assert second.edits == first.external_id == f"7:{number}"
    assert second.external_id.startswith(f"7:{number}:")
    assert second.message_id == first.message_id


async def test_an_album_is_one_message_in_parts(line: Line) -> None:
    """SPEC CHAN-6."""
    async with line.receiving():
        line.api.album(ANN, [StoredKind.PHOTO] * 3, caption="the trip")
        await line.inbox.until(lambda: len(line.inbox.messages) == 3)
    albums = {m.album for m in line.inbox.messages}
    assert len(albums) == 1
    assert None not in albums
    assert line.inbox.texts == ["the trip", "", ""]
    assert len({m.attachments[0].ref for m in line.inbox.messages}) == 3


@pytest.mark.parametrize(
    ("stored", "kind"),
    [
        (StoredKind.PHOTO, FileKind.PHOTO),
        (StoredKind.DOCUMENT, FileKind.DOCUMENT),
        (StoredKind.VOICE, FileKind.VOICE),
        (StoredKind.AUDIO, FileKind.AUDIO),
        (StoredKind.VIDEO, FileKind.VIDEO),
    ],
)
async def test_files_become_attachments(polling: Line, stored: StoredKind, kind: FileKind) -> None:
    """SPEC CHAN-6."""
    async with polling.receiving():
        polling.api.send(ANN, stored, caption="see")
        await polling.inbox.until_accepted("see")
    (attachment,) = polling.inbox.messages[0].attachments
    assert attachment.kind is kind


async def test_a_quote_becomes_context(line: Line) -> None:
    """SPEC CHAN-6."""
    async with line.receiving():
        first = line.api.say(ANN, "one two three")[0]["message_id"]
        assert isinstance(first, int)
        line.api.say(ANN, "what?", reply_to=first, quote="two")
        line.api.say(ANN, "all of it", reply_to=first)
        await line.inbox.until_accepted("what?", "all of it")
    assert [(m.reply_to, m.quote) for m in line.inbox.messages] == [
        (None, ""),
        (str(first), "two"),
        (str(first), "one two three"),
    ]


async def test_each_topic_is_a_place_of_its_own_and_general_is_the_group(line: Line) -> None:
    """SPEC CHAN-6, IO-7."""
    line.api.add_group(GROUP, "Team", topics=[TOPIC])
    async with line.receiving():
        line.api.say(ANN, "in the topic", chat_id=GROUP, thread=TOPIC)
        line.api.say(ANN, "in general", chat_id=GROUP)
        await line.inbox.until_accepted("in the topic", "in general")
    threads = {m.text: m.target.thread for m in line.inbox.messages}
    assert threads == {"in the topic": str(TOPIC), "in general": None}
    assert [m.reply_to for m in line.inbox.messages] == [None, None]
    assert {m.peer for m in line.inbox.messages} == {PeerKind.GROUP}


async def test_a_private_chat_may_have_topics(line: Line) -> None:
    """SPEC CHAN-6."""
    async with line.receiving():
        line.api.say(ANN, "hello")
        line.api.open_topic(ANN, 88)
        line.api.say(ANN, "in a topic", thread=88)
        await line.inbox.until_accepted("hello", "in a topic")
    last = line.inbox.messages[-1]
    assert (last.target.thread, last.peer, last.reply_to) == ("88", PeerKind.DIRECT, None)


async def test_in_groups_only_what_is_meant_for_us_is_addressed(line: Line) -> None:
    """SPEC CHAN-5."""
    line.api.add_group(GROUP, "Team")
    said = {
        "hello all": False,
        "what now, @GoclawTestBot": True,
        "/stop": True,
        "/stop@OtherBot": False,
        "ask @GoclawTestBot2": False,
    }
    async with line.receiving():
        for text in said:
            line.api.say(ANN, text, chat_id=GROUP)
        await line.inbox.until(lambda: len(line.inbox.messages) == len(said))
    assert [m.addressed for m in line.inbox.messages] == list(said.values())


@pytest.mark.parametrize("content", OTHER.values(), ids=OTHER.keys())
async def test_unsupported_kinds_are_told_in_plain_words(
    polling: Line, content: Mapping[str, object]
) -> None:
    """SPEC CHAN-6."""
    async with polling.receiving():
        polling.api.send_other(ANN, dict(content))
        await polling.inbox.until(lambda: polling.inbox.messages)
    (message,) = polling.inbox.messages
    assert message.unsupported or message.text
    assert message.attachments == ()


# ---------------------------------------------------------------------------- what happens to chats


async def test_a_group_that_moves_tells_both_ids(line: Line) -> None:
    """SPEC CHAN-7: by its service messages."""
    line.api.add_group(-500, "Team", kind="group")
    async with line.receiving():
        line.api.say(ANN, "/status", chat_id=-500)
        line.api.migrate(-500, -1009)
        line.api.say(ANN, "/help", chat_id=-1009)
        await line.inbox.until_accepted("/status", "/help")
        await line.inbox.until(lambda: len(line.inbox.moves) == 2)
    assert set(line.inbox.moves) == {ChatMigrated("telegram", "default", "-500", "-1009")}


async def test_who_blocks_us_is_gone_and_comes_back(line: Line) -> None:
    """SPEC CHAN-7."""
    async with line.receiving():
        line.api.say(ANN, "hello")
        line.api.block(ANN)
        line.api.unblock(ANN)
        await line.inbox.until(lambda: len(line.inbox.reached) == 2)
    gone, back = sorted(line.inbox.reached, key=lambda one: not one.gone)
    assert gone == ChatReached(
        Target("telegram", "default", str(ANN)), PeerKind.DIRECT, "the bot was blocked", "Ann"
    )
    assert back.gone == ""


async def test_being_thrown_out_of_a_group_and_let_in_again_is_told(line: Line) -> None:
    """SPEC CHAN-7."""
    line.api.add_group(GROUP, "Team")
    async with line.receiving():
        line.api.kick(GROUP)
        await line.inbox.until(lambda: len(line.inbox.reached) == 1)
        line.api.invite(GROUP)
        await line.inbox.until(lambda: len(line.inbox.reached) == 2)
    assert [(one.target, bool(one.gone)) for one in line.inbox.reached] == [
        (TEAM, True),
        (TEAM, False),
    ]
