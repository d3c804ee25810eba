"""What people send and what happens to chats, over both libraries and both ways of receiving.

The updates are the emulator's; ``tests/unit/channels`` has every shape that one can have.
"""

from __future__ import annotations

import logging

import pytest

from goclaw_py.model.messages import ChatMigrated, ChatReached, PeerKind, Target
from tests.botapi.files import FileKind as StoredKind
from tests.botapi.people import OTHER
from tests.support.telegram import ANN, BEN, GROUP, TOPIC, Line

pytestmark = pytest.mark.real_time
pytest_plugins = ["tests.support.telegram_fixtures"]

TEAM = Target("telegram", "default", str(GROUP))


async def test_edits_quotes_and_albums_name_what_they_belong_to(line: Line) -> None:
    """SPEC CHAN-6, IO-1."""
    async with line.receiving():
        number = line.api.say(ANN, "one two thre")[0]["message_id"]
        assert isinstance(number, int)
        await line.inbox.until_accepted("one two thre")
        line.api.edit(ANN, number, "one two three")
        line.api.say(ANN, "what?", reply_to=number, quote="two")
        line.api.say(ANN, "all of it", reply_to=number)
        line.api.album(ANN, [StoredKind.PHOTO] * 3, caption="the trip")
        await line.inbox.until(lambda: len(line.inbox.messages) == 7)
    first, second, what, whole, *album = line.inbox.messages
    assert second.edits == first.external_id == f"7:{number}"
    assert second.external_id.startswith(f"7:{number}:")
    assert second.message_id == first.message_id
    assert (first.reply_to, first.quote) == (None, "")
    assert (what.reply_to, what.quote) == (str(number), "two")
    assert (whole.reply_to, whole.quote) == (str(number), "one two three")
    assert [one.text for one in album] == ["the trip", "", ""]
    assert len({one.album for one in album} - {None}) == 1
    assert len({one.attachments[0].ref for one in album}) == 3


async def test_each_topic_is_a_place_of_its_own_and_general_is_the_group(line: Line) -> None:
    """SPEC CHAN-6, IO-7: private chats may have topics, too."""
    line.api.add_group(GROUP, "Team", topics=[TOPIC])
    async with line.receiving():
        line.api.say(ANN, "in the topic", chat_id=GROUP, thread=TOPIC)
        line.api.say(ANN, "in general", chat_id=GROUP)
        line.api.say(ANN, "in private")
        line.api.open_topic(ANN, 88)
        line.api.say(ANN, "in a private topic", thread=88)
        await line.inbox.until(lambda: len(line.inbox.messages) == 4)
    assert {m.text: (m.peer, m.target.thread) for m in line.inbox.messages} == {
        "in the topic": (PeerKind.GROUP, str(TOPIC)),
        "in general": (PeerKind.GROUP, None),
        "in private": (PeerKind.DIRECT, None),
        "in a private topic": (PeerKind.DIRECT, "88"),
    }
    assert {m.reply_to for m in line.inbox.messages} == {None}


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


async def test_unsupported_kinds_are_told_in_plain_words(polling: Line) -> None:
    """SPEC CHAN-6."""
    async with polling.receiving():
        for content in OTHER.values():
            polling.api.send_other(ANN, dict(content))
        await polling.inbox.until(lambda: len(polling.inbox.messages) == len(OTHER))
    assert all(m.unsupported or m.text for m in polling.inbox.messages)
    assert not any(m.attachments for m in polling.inbox.messages)


async def test_a_malformed_update_leaves_a_trace_and_the_next_one_is_taken(
    line: Line, caplog: pytest.LogCaptureFixture
) -> None:
    async with line.receiving():
        line.api.push({"brand_new_kind": {"id": 5}})
        updates: list[dict[str, object]] = [
            {"message": {"message_id": 1, "date": 1, "text": "no chat"}},
            {"message": None},
            {"stopped_message_generation": {"chat": {"id": ANN, "type": "private"}}},
        ]
        malformed = [line.api.push(update) for update in updates]
        line.api.say(BEN, "next")
        await line.inbox.until_accepted("next")
        await line.api.wait_confirmed()
    assert line.inbox.texts == ["next"]
    traces = [r for r in caplog.records if r.levelno >= logging.WARNING]
    assert {trace.getMessage() for trace in traces} == {"update_malformed"}
    assert sorted(vars(trace)["update_id"] for trace in traces) == malformed


async def test_what_happens_to_chats_is_told(line: Line) -> None:
    """SPEC CHAN-7: groups that move, groups that throw us out, people who block us."""
    line.api.add_group(GROUP, "Team")
    line.api.add_group(-500, "Team", kind="group")
    async with line.receiving():
        line.api.say(ANN, "hello")
        line.api.block(ANN)
        await line.inbox.until(lambda: len(line.inbox.reached) == 1)
        line.api.unblock(ANN)
        await line.inbox.until(lambda: len(line.inbox.reached) == 2)
        line.api.kick(GROUP)
        await line.inbox.until(lambda: len(line.inbox.reached) == 3)
        line.api.invite(GROUP)
        await line.inbox.until(lambda: len(line.inbox.reached) == 4)
        line.api.migrate(-500, -1009)
        await line.inbox.until(lambda: len(line.inbox.moves) == 2)
    blocked, *others = line.inbox.reached
    ann = Target("telegram", "default", str(ANN))
    assert blocked == ChatReached(ann, PeerKind.DIRECT, "the bot was blocked", "Ann")
    assert [(one.target, bool(one.gone)) for one in others] == [
        (ann, False),
        (TEAM, True),
        (TEAM, False),
    ]
    assert set(line.inbox.moves) == {ChatMigrated("telegram", "default", "-500", "-1009")}
