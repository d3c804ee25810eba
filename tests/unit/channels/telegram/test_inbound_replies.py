"""``channels.telegram.inbound``: topics, replies and what they quote (SPEC CHAN-6)."""

from __future__ import annotations

import pytest

from goclaw_py.model.messages import SELF, Sender, Target, TopicChanged
from tests.unit.channels.telegram.updates import (
    FORUM,
    NEWS,
    NOON,
    OURSELVES,
    PHOTO,
    TEAM,
    TOPIC_BEGAN,
    answer,
    message,
    parsed,
    read,
    said,
    said_in,
    said_in_topic,
    update,
)


def test_a_topic_is_a_thread() -> None:
    """SPEC CHAN-6: each topic is a session of its own."""
    found = parsed(said_in_topic())
    assert found.target.thread == "55"
    assert (found.reply_to, found.quote) == (None, ""), "the topic's own message is no reply"
    assert not found.addressed, "though the bot began the topic"


def test_a_topic_named_by_a_slim_service_message_is_no_reply_either() -> None:
    found = parsed(said_in_topic(reply_to_message={"message_id": 55, "from": OURSELVES}))
    assert (found.reply_to, found.addressed) == (None, False)


def test_the_beginning_of_a_topic_is_no_reply_wherever_it_is_shown() -> None:
    found = parsed(said_in(FORUM, reply_to_message=TOPIC_BEGAN))
    assert (found.reply_to, found.addressed) == (None, False)


def test_a_reply_inside_a_topic_is_a_reply() -> None:
    found = parsed(said_in_topic(reply_to_message=answer(message_id=60, chat=FORUM)))
    assert (found.target.thread, found.reply_to, found.quote) == ("55", "60", "the answer")
    assert found.addressed


def test_topics_of_private_chats_are_threads_too() -> None:
    found = parsed(said(is_topic_message=True, message_thread_id=31))
    assert found.target == Target("telegram", "default", "7", "31")


def test_the_general_topic_and_reply_threads_are_no_threads() -> None:
    """SPEC IO-7."""
    assert parsed(said_in(FORUM)).target.thread is None
    general = said_in(FORUM, is_topic_message=True, message_thread_id=1)
    assert parsed(general).target.thread is None
    reply = said_in(TEAM, message_thread_id=60, reply_to_message=answer(message_id=60))
    assert parsed(reply).target.thread is None
    assert parsed(reply).reply_to == "60"


@pytest.mark.parametrize(
    "replied",
    ["x", {"message_id": "60"}, {"message_id": True}, {"message_id": 6.0}, {"message_id": 0}, {}],
)
def test_a_broken_reply_does_not_cost_the_message(replied: object) -> None:
    found = parsed(said(reply_to_message=replied))
    assert (found.text, found.reply_to) == ("hello", None)


def test_the_marked_part_of_a_message_is_quoted_before_all_of_it() -> None:
    """SPEC CHAN-6."""
    replied = message("one two three", message_id=9)
    marked = {"text": "two", "position": 4, "is_manual": True}
    assert parsed(said(reply_to_message=replied, quote=marked)).quote == "two"
    assert parsed(said(reply_to_message=replied)).quote == "one two three"
    assert parsed(said(reply_to_message=replied, quote={"text": 5})).quote == "one two three"


def test_what_is_quoted_from_another_chat_is_given() -> None:
    other = {
        "origin": {"type": "channel", "chat": NEWS, "message_id": 5, "date": NOON},
        "chat": NEWS,
        "message_id": 5,
    }
    raw = said(external_reply=other, quote={"text": "the news", "position": 0})
    assert (parsed(raw).quote, parsed(raw).reply_to) == ("the news", None)
    assert parsed(said(external_reply=other)).quote == ""


def test_a_caption_is_quoted_like_a_text_and_an_empty_message_not_at_all() -> None:
    captioned = message(None, message_id=9, photo=PHOTO, caption="my cat")
    assert parsed(said(reply_to_message=captioned)).quote == "my cat"
    bare = message(None, message_id=9, photo=PHOTO)
    assert parsed(said(reply_to_message=bare)).quote == ""
    assert parsed(said(reply_to_message=message(" \n", message_id=9))).quote == ""


def test_a_quote_is_cut() -> None:
    found = parsed(said(reply_to_message=message("x" * 4096, message_id=9))).quote
    assert (len(found), found[-1]) == (1000, "…")


def test_the_beginning_of_a_topic_is_no_message() -> None:
    assert isinstance(read(update("message", TOPIC_BEGAN)), TopicChanged)


# ---------------------------------------------------------------------------- whose words (CHAN-11)

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
