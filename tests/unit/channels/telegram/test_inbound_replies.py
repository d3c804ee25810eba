"""``channels.telegram.inbound``: topics, replies and what they quote (SPEC CHAN-6)."""

from __future__ import annotations

import pytest

from goclaw_py.model.messages import SELF, Sender, TopicChanged
from tests.unit.channels.telegram.updates import (
    FORUM,
    NEWS,
    NOON,
    OURSELVES,
    PHOTO,
    TEAM,
    TOPIC_BEGAN,
    Json,
    answer,
    message,
    parsed,
    read,
    said,
    said_in,
    said_in_topic,
    update,
)

SLIM = {"message_id": 55, "from": OURSELVES}
IN_FORUM = answer(message_id=60, chat=FORUM)
THREAD = said_in(TEAM, message_thread_id=60, reply_to_message=answer(message_id=60))
COUNTING = message("one two three", message_id=9)
ORIGIN = {"type": "channel", "chat": NEWS, "message_id": 5, "date": NOON}
ELSEWHERE = {"origin": ORIGIN, "chat": NEWS, "message_id": 5}


@pytest.mark.parametrize(
    ("raw", "thread", "reply", "addressed"),
    [
        (said_in_topic(), "55", (None, ""), False),
        (said_in_topic(reply_to_message=SLIM), "55", (None, ""), False),
        (said_in(FORUM, reply_to_message=TOPIC_BEGAN), None, (None, ""), False),
        (said_in_topic(reply_to_message=IN_FORUM), "55", ("60", "the answer"), True),
        (said(is_topic_message=True, message_thread_id=31), "31", (None, ""), True),
        (said_in(FORUM), None, (None, ""), False),
        (said_in(FORUM, is_topic_message=True, message_thread_id=1), None, (None, ""), False),
        (THREAD, None, ("60", "the answer"), True),
    ],
    ids=[
        "topic", "slim service message", "its beginning elsewhere", "reply inside", "private",
        "general", "general by number", "thread of replies",
    ],
)  # fmt: skip
def test_a_topic_is_a_thread_and_its_beginning_no_reply(
    raw: Json, thread: str | None, reply: tuple[str | None, str], addressed: bool
) -> None:
    """SPEC CHAN-6, IO-7: each topic is a session of its own."""
    found = parsed(raw)
    assert (found.target.thread, found.addressed) == (thread, addressed)
    assert (found.reply_to, found.quote) == reply


@pytest.mark.parametrize(
    "replied",
    ["x", {"message_id": "60"}, {"message_id": True}, {"message_id": 6.0}, {"message_id": 0}, {}],
)
def test_a_broken_reply_does_not_cost_the_message(replied: object) -> None:
    found = parsed(said(reply_to_message=replied))
    assert (found.text, found.reply_to) == ("hello", None)


@pytest.mark.parametrize(
    ("raw", "quote"),
    [
        (said(reply_to_message=COUNTING, quote={"text": "two", "position": 4}), "two"),
        (said(reply_to_message=COUNTING), "one two three"),
        (said(reply_to_message=COUNTING, quote={"text": 5}), "one two three"),
        (said(external_reply=ELSEWHERE, quote={"text": "the news", "position": 0}), "the news"),
        (said(external_reply=ELSEWHERE), ""),
        (said(reply_to_message=message(None, photo=PHOTO, caption="my cat")), "my cat"),
        (said(reply_to_message=message(None, photo=PHOTO)), ""),
        (said(reply_to_message=message(" \n")), ""),
        (said(reply_to_message=message("x" * 4096)), "x" * 999 + "…"),
    ],
)
def test_the_marked_part_of_a_message_is_quoted_before_all_of_it(raw: Json, quote: str) -> None:
    """SPEC CHAN-6."""
    assert parsed(raw).quote == quote


def test_what_is_quoted_from_another_chat_is_no_reply() -> None:
    assert parsed(said(external_reply=ELSEWHERE)).reply_to is None


def test_the_beginning_of_a_topic_is_no_message() -> None:
    assert isinstance(read(update("message", TOPIC_BEGAN)), TopicChanged)


USER = {"id": 8, "is_bot": False, "first_name": "Bob", "username": "bob"}
BOB = Sender("8", "Bob", "bob")
NEWS_CHANNEL = Sender("-1001009", "News", "thenews")

ORIGINS = [
    ({"type": "user", "sender_user": USER}, BOB),
    ({"type": "user", "sender_user": OURSELVES}, SELF),
    ({"type": "hidden_user", "sender_user_name": "Cid\n[x]"}, Sender("", "Cid [x]")),
    ({"type": "chat", "sender_chat": NEWS, "author_signature": "Ed"}, NEWS_CHANNEL),
    ({"type": "channel", "chat": NEWS, "message_id": 5}, NEWS_CHANNEL),
    ({"type": "of the future"}, Sender("")),
    ({"type": "user", "sender_user": {"id": "x"}}, Sender("")),
    ("x", None),
    (None, None),
]


@pytest.mark.parametrize(("origin", "author"), ORIGINS)
def test_a_forwarded_message_names_its_author(origin: object, author: Sender | None) -> None:
    assert parsed(said(forward_origin=origin)).forwarded_from == author


@pytest.mark.parametrize(("origin", "author"), ORIGINS)
def test_what_is_quoted_from_another_chat_names_its_author(
    origin: object, author: Sender | None
) -> None:
    other = {"origin": origin, "chat": NEWS, "message_id": 5}
    assert parsed(said(external_reply=other)).quoted_from == author


@pytest.mark.parametrize(
    ("replied", "author"),
    [
        (message("x", message_id=9) | {"from": USER}, BOB),
        (answer(message_id=9), SELF),
        (message("x", message_id=9) | {"from": USER, "sender_chat": NEWS}, NEWS_CHANNEL),
        ({"message_id": 9, "text": "x"}, None),
        ({"message_id": 9, "text": "x", "from": {"id": "x"}}, None),
        ("x", None),
    ],
)
def test_a_reply_names_whose_message_it_replies_to(replied: object, author: Sender | None) -> None:
    found = parsed(said(reply_to_message=replied))
    assert found.quoted_from == author
    assert found.forwarded_from is None
