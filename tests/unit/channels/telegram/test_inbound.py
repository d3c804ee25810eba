"""``channels.telegram.inbound``: shapes of updates."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.telegram.inbound import Malformed, parse_update, update_id
from goclaw_py.core.messages import InboundMessage, PeerKind, Sender, Target
from tests.unit.channels.telegram.scripted import update

FORUM = {"id": -1007, "type": "supergroup", "title": "Team", "is_forum": True}
TOPIC_BEGAN = {"message_id": 55, "forum_topic_created": {"name": "Plans"}}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


def parsed(raw: object) -> InboundMessage:
    message = parse_update(raw, account="default")
    assert message is not None
    return message


def changed(**more: object) -> dict[str, object]:
    """The usual update with fields of its message changed; None removes one."""
    raw = update(12)
    message = raw["message"]
    assert isinstance(message, dict)
    message.update(more)
    raw["message"] = {key: value for key, value in message.items() if value is not None}
    return raw


def test_a_private_text_becomes_a_direct_message() -> None:
    assert parsed(update(12, "hello")) == InboundMessage(
        external_id="7:12",
        target=Target("telegram", "default", "7"),
        peer=PeerKind.DIRECT,
        sender=Sender("7", "Ann"),
        text="hello",
        sent_at=datetime.fromtimestamp(1_790_000_000, UTC),
        message_id="12",
    )


def test_name_and_user_name_of_the_sender_are_kept() -> None:
    user = {"id": 8, "is_bot": False, "first_name": "Ann", "last_name": "Lee", "username": "annl"}
    assert parsed(changed(**{"from": user})).sender == Sender("8", "Ann Lee", "annl")


def test_a_sender_without_a_usable_name_is_still_a_sender() -> None:
    user = {"id": 8, "is_bot": False, "first_name": None, "username": 5}
    assert parsed(changed(**{"from": user})).sender == Sender("8")


def test_who_writes_as_a_chat_is_that_chat() -> None:
    """All anonymous admins share one user id, which must not become a permission."""
    shown = changed(chat=FORUM, sender_chat={"id": -1007, "type": "supergroup", "title": "Team"})
    assert parsed(shown).sender == Sender("-1007", "Team")


@pytest.mark.parametrize("kind", ["group", "supergroup"])
def test_groups_are_groups(kind: str) -> None:
    message = parsed(changed(chat={"id": -5, "type": kind, "title": "Team"}))
    assert (message.peer, message.target.chat, message.external_id) == (
        PeerKind.GROUP,
        "-5",
        "-5:12",
    )


def test_a_caption_counts_as_text() -> None:
    """SPEC CMD-2: a command works in a caption."""
    assert parsed(changed(text=None, caption="/stop", photo=[{"file_id": "x"}])).text == "/stop"


@pytest.mark.parametrize(
    "raw",
    [
        changed(text=None, photo=[{}]),
        changed(text=None, new_chat_members=[{"id": 1}]),
        changed(text=None, migrate_to_chat_id=-1008),
        changed(chat={"id": -9, "type": "channel", "title": "News"}),
        changed(**{"from": None}),
        {"update_id": 1, "edited_message": {"text": "x"}},
        {"update_id": 1, "callback_query": {"id": "5", "data": "x"}},
        {"update_id": 1, "something_of_next_year": 5},
        {"update_id": 1},
    ],
)
def test_other_kinds_are_passed_over(raw: object) -> None:
    assert parse_update(raw, account="default") is None


@pytest.mark.parametrize(
    "raw",
    [
        5,
        None,
        ["update"],
        {"update_id": 1, "message": None},
        {"update_id": 1, "message": "hello"},
        changed(text=5),
        changed(text=["a"]),
        changed(message_id="12"),
        changed(message_id=True),
        changed(date="yesterday"),
        changed(date=-1),
        changed(date=10**18),
        changed(chat=None),
        changed(chat={"id": "7", "type": "private"}),
        changed(chat={"type": "private"}),
        changed(chat={"id": 7, "type": 5}),
        changed(**{"from": {"id": None}}),
        changed(**{"from": "Ann"}),
        changed(is_topic_message=True, message_thread_id="x"),
    ],
)
def test_a_malformed_update_says_so(raw: object) -> None:
    with pytest.raises(Malformed):
        parse_update(raw, account="default")


@given(json_values, st.sampled_from(["message_id", "from", "chat", "date", "text", "sender_chat"]))
def test_no_value_of_a_field_raises_anything_else(value: object, field: str) -> None:
    for raw in (value, {"update_id": 1, "message": value}, changed(**{field: value})):
        number = update_id(raw)
        assert number is None or isinstance(number, int)
        with suppress(Malformed):
            message = parse_update(raw, account="default")
            assert message is None or isinstance(message, InboundMessage)


def test_a_topic_is_a_thread() -> None:
    """SPEC CHAN-6: each topic is a session of its own."""
    message = parsed(
        changed(
            chat=FORUM, is_topic_message=True, message_thread_id=55, reply_to_message=TOPIC_BEGAN
        )
    )
    assert message.target.thread == "55"
    assert message.reply_to is None, "the topic's own service message is no reply"


def test_a_topic_named_by_a_slim_service_message_is_no_reply_either() -> None:
    message = parsed(
        changed(
            chat=FORUM,
            is_topic_message=True,
            message_thread_id=55,
            reply_to_message={"message_id": 55},
        )
    )
    assert message.reply_to is None


def test_a_reply_inside_a_topic_is_a_reply() -> None:
    message = parsed(
        changed(
            chat=FORUM,
            is_topic_message=True,
            message_thread_id=55,
            reply_to_message={"message_id": 60},
        )
    )
    assert (message.target.thread, message.reply_to) == ("55", "60")


def test_the_general_topic_and_reply_threads_are_no_threads() -> None:
    assert parsed(changed(chat=FORUM)).target.thread is None
    reply = changed(chat=FORUM, message_thread_id=60, reply_to_message={"message_id": 60})
    assert parsed(reply).target.thread is None
    assert parsed(reply).reply_to == "60"


@pytest.mark.parametrize("replied", ["x", {"message_id": "60"}, {}, []])
def test_a_broken_reply_does_not_cost_the_message(replied: object) -> None:
    assert parsed(changed(reply_to_message=replied)).reply_to is None


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("x" * 4096, True),
        ("x" * 4095, False),
        ("😀" * 2048, True),
        ("😀" * 4096, True),
        ("", False),
    ],
)
def test_a_text_of_the_greatest_length_was_probably_cut(text: str, *, cut: bool) -> None:
    """SPEC QUEUE-6."""
    assert parsed(update(1, text)).cut is cut


def test_what_a_database_or_json_cannot_hold_is_replaced() -> None:
    assert parsed(update(1, "a\x00b\ud83dc")).text == "a\ufffdb\ufffdc"


def test_redelivery_is_marked() -> None:
    message = parse_update(update(1), account="default", redelivered=True)
    assert message is not None
    assert message.redelivered


@pytest.mark.parametrize(
    ("raw", "number"),
    [
        ({"update_id": 5}, 5),
        ({"update_id": "5"}, None),
        ({"update_id": True}, None),
        ({}, None),
        ([], None),
        (None, None),
    ],
)
def test_only_a_whole_number_is_an_update_id(raw: object, number: int | None) -> None:
    assert update_id(raw) == number
