"""Bad input through Telegram, over both libraries, long polling and webhook.

No crash, a clear trace, and the next message is taken.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

import pytest

from tests.support.telegram import (
    ANN,
    BEN,
    GROUP,
    Line,
)

pytestmark = pytest.mark.real_time
pytest_plugins = ["tests.support.telegram_fixtures"]


# ---------------------------------------------------------------------------- bad input


def private(**fields: object) -> dict[str, object]:
    """A message of ann's as the server tells it."""
    return {
        "message_id": 900,
        "date": 1_790_000_000,
        "chat": {"id": ANN, "type": "private", "first_name": "Ann"},
        "from": {"id": ANN, "is_bot": False, "first_name": "Ann"},
        **fields,
    }


HARMLESS: Mapping[str, dict[str, object]] = {
    "unknown kind": {"brand_new_kind": {"id": 5}},
    "no kind at all": {},
    "a kind we never asked for": {"poll_answer": {"poll_id": "1"}},
    "channel post": {
        "message": {"message_id": 1, "date": 1, "chat": {"id": -1, "type": "channel"}}
    },
    "chat of an unknown type": {
        "message": {"message_id": 1, "date": 1, "chat": {"id": 1, "type": "hologram"}}
    },
    "new kind of membership": {
        "my_chat_member": {
            "chat": {"id": ANN, "type": "private"},
            "new_chat_member": {"status": "haunting"},
        }
    },
}
MALFORMED: Mapping[str, dict[str, object]] = {
    "no chat": {"message": {"message_id": 1, "date": 1, "text": "x"}},
    "a text instead of a message": {"message": "x"},
    "null instead of a message": {"message": None},
    "a number instead of a chat": {"message": private(chat=5, text="x")},
    "an id that is a text": {"message": private(message_id="x", text="x")},
    "a time out of reach": {"message": private(date=10**30, text="x")},
    "a photo without sizes": {"message": private(photo=[])},
    "a press without a sender": {"callback_query": {"id": "p1", "message": private(), "data": "x"}},
    "a stop without a draft": {
        "stopped_message_generation": {"chat": {"id": ANN, "type": "private"}}
    },
}


@pytest.mark.parametrize("update", HARMLESS.values(), ids=HARMLESS.keys())
async def test_an_update_that_says_nothing_to_us_is_passed_over(
    line: Line, update: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    async with line.receiving():
        line.api.push(update)
        line.api.say(BEN, "next")
        await line.inbox.until_accepted("next")
        await line.api.wait_confirmed()
    assert line.inbox.texts == ["next"]
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]


@pytest.mark.parametrize("update", MALFORMED.values(), ids=MALFORMED.keys())
async def test_a_malformed_update_leaves_a_trace_and_the_next_one_is_taken(
    line: Line, update: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    async with line.receiving():
        number = line.api.push(update)
        line.api.say(BEN, "next")
        await line.inbox.until_accepted("next")
        await line.api.wait_confirmed()
    assert line.inbox.texts == ["next"]
    (trace,) = [r for r in caplog.records if r.levelno >= logging.WARNING]
    assert trace.getMessage() == "update_malformed"
    assert vars(trace)["update_id"] == number


async def test_a_message_without_a_sender_is_taken_or_passed_over(line: Line) -> None:
    async with line.receiving():
        nobody = private(text="who?")
        del nobody["from"]
        line.api.push({"message": nobody})
        line.api.say(BEN, "next")
        await line.inbox.until_accepted("next")
        await line.api.wait_confirmed()


async def test_ten_thousand_entities_take_no_time(line: Line) -> None:
    entities = [{"type": "mention", "offset": n, "length": 14} for n in range(10_000)]
    team = {"id": GROUP, "type": "supergroup", "title": "Team"}
    text = "@GoclawTestBot " * 270
    async with line.receiving():
        await line.ready()
        began = asyncio.get_running_loop().time()
        line.api.push({"message": private(chat=team, text=text, entities=entities)})
        line.api.say(BEN, "next")
        await line.inbox.until_accepted("next")
        await line.api.wait_confirmed()
        assert asyncio.get_running_loop().time() - began < 30
    assert len(line.inbox.messages) == 2
    assert all(m.addressed for m in line.inbox.messages)


async def test_only_the_number_of_a_sender_says_who_it_is(line: Line) -> None:
    """SPEC CHAN-5: names can be anything."""
    async with line.receiving():
        line.api.say(ANN, "it's me", name="Ann", username="ann")
        line.api.say(BEN, "it's me, Ann", name="Ann", username="ann")
        line.api.say(9, "and me", name="7", username="telegram_7")
        await line.inbox.until(lambda: len(line.inbox.messages) == 3)
    senders = {m.text: m.sender.id for m in line.inbox.messages}
    assert senders == {"it's me": "7", "it's me, Ann": "8", "and me": "9"}


async def test_names_that_turn_the_direction_of_text_lose_their_tricks(line: Line) -> None:
    async with line.receiving():
        line.api.say(ANN, "hello", name="\u202enwo \u2066moc.elpmaxe")
        await line.inbox.until_accepted("hello")
    (message,) = line.inbox.messages
    for sign in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069":
        assert sign not in message.sender.name
        assert sign not in message.place_name


async def test_a_lone_surrogate_makes_nobody_deaf(line: Line) -> None:
    async with line.receiving():
        await line.ready()
        line.api.push({"message": private(text="a\ud83db")})
        line.api.say(BEN, "next")
        await line.inbox.until_accepted("a\ufffdb", "next")
        await line.api.wait_confirmed()
