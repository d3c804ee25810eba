"""``channels.telegram.inbound``: topics, replies and what they quote (SPEC CHAN-6)."""

from __future__ import annotations

import pytest

from goclaw_py.core.messages import SELF, Sender, TopicChanged
from tests.unit.channels.telegram.updates import (
    DOCUMENT,
    FORUM,
    NEWS,
    NOON,
    OURSELVES,
    PHOTO,
    STICKER,
    TEAM,
    TOPIC_BEGAN,
    Json,
    answer,
    edited,
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
PLACE = {"latitude": 1.5, "longitude": 2.5}
VENUE = {"title": "Cafe", "address": "1 Main St", "location": PLACE}
POLL = {"question": "Tea?", "options": [{"text": "yes"}]}
VOTE = {
    "question": "Tea?",
    "options": [
        {"text": "yes", "persistent_id": "a"},
        {"text": "no", "persistent_id": "b"},
    ],
}
BUTTONS = {"reply_markup": {"inline_keyboard": [[{"text": "Go", "url": "https://x.y/z"}]]}}
BOBS = {"phone_number": "+1", "first_name": "Bob"}
LONG = {"blocks": [{"type": "paragraph", "text": "x" * 5000}]}
SHOPPING = {
    "title": "Shop",
    "tasks": [{"id": 1, "text": "milk"}, {"id": 2, "text": "tea", "completion_date": NOON}],
}
SHOPPING_TEXT = "[checklist: Shop. ☐ milk; ☑ tea]"
PINNED = "[pinned message]\none two three"
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
        (said(external_reply=ELSEWHERE), "[https://t.me/thenews/5]"),
        (said(external_reply={**ELSEWHERE, "chat": TEAM}), ""),
        (said(external_reply={**ELSEWHERE, "message_id": "5"}), ""),
        (said(reply_to_message=message("post", **BUTTONS)), "post\n[Go](https://x.y/z)"),
        (
            said(reply_to_message=message(None, checklist=SHOPPING), reply_to_checklist_task_id=2),
            f"{SHOPPING_TEXT}\n[this task: tea]",
        ),
        (
            said(reply_to_message=message(None, checklist=SHOPPING), reply_to_checklist_task_id=9),
            SHOPPING_TEXT,
        ),
        (
            said(reply_to_message=message(None, poll=VOTE), reply_to_poll_option_id="b"),
            "[poll: Tea? Options: yes; no]\n[this option: no]",
        ),
        (said(reply_to_message=message(None, photo=PHOTO, caption="my cat")), "my cat"),
        (said(reply_to_message=message(None, photo=PHOTO)), ""),
        (said(reply_to_message=message(" \n")), ""),
        (said(reply_to_message=message("x" * 4096)), "x" * 4096),
        (said(reply_to_message=message(None, rich_message=LONG)), "x" * 4095 + "… [905 more]"),
        (said(reply_to_message=message(None, location=PLACE)), "[location: 1.5, 2.5]"),
        (
            said(reply_to_message=message(None, venue=VENUE, location=PLACE)),
            "[place: Cafe, 1 Main St, 1.5, 2.5]",
        ),
        (said(reply_to_message=message(None, poll=POLL)), "[poll: Tea? Options: yes]"),
        (said(reply_to_message=message(None, contact=BOBS)), "[contact: Bob, +1]"),
        (said(reply_to_message=message(None, sticker=STICKER)), "👍"),
        (said(reply_to_message=message(None, dice={"emoji": "🎲", "value": 3})), "[a dice: 🎲 3]"),
        (said(reply_to_message=message(None, dice={"emoji": 5})), "[a dice]"),
        (said(reply_to_message=message(None, game={"title": "Chess"})), "[a game: Chess]"),
        (said(reply_to_message=message(None, invoice={"title": "Tea"})), "[an invoice: Tea]"),
        (said(reply_to_message=message(None, checklist=SHOPPING)), SHOPPING_TEXT),
        (said(reply_to_message=message(None, paid_media={}, caption="x")), "x\n[paid media]"),
        (said(external_reply={**ELSEWHERE, "checklist": SHOPPING}), SHOPPING_TEXT),
        (said(reply_to_message=message(None, story={"id": 1})), "[a story]"),
        (said(reply_to_message=message(None, new_chat_title="x")), "[new chat title: x]"),
        (said(reply_to_message=message(None, new_chat_members=[BOBS])), "[new chat members]"),
        (said(reply_to_message=message(None, video_chat_started={})), "[video chat started]"),
        (said(reply_to_message=message(None, pinned_message=COUNTING)), PINNED),
        (said(reply_to_message=message(None, pinned_message=5)), "[pinned message]"),
        (said(reply_to_message={"message_id": 9}), ""),
        (said(reply_to_message=message(None, photo=[], caption="broken")), "broken"),
        (said(reply_to_message=message(5, photo=PHOTO, caption=5)), ""),
        (said(reply_to_story={"chat": NEWS, "id": 3}), "[a story]"),
        (said(external_reply={**ELSEWHERE, "poll": POLL}), "[poll: Tea? Options: yes]"),
    ],
)
def test_the_marked_part_of_a_message_is_quoted_before_all_of_it(raw: Json, quote: str) -> None:
    """SPEC CHAN-6."""
    assert parsed(raw).quote == quote


FILES: list[tuple[Json, str]] = [
    ({"photo": PHOTO}, "x"),
    ({"document": DOCUMENT}, "doc"),
    ({"voice": {"file_id": "v"}}, "v"),
    ({"video": {"file_id": "vid"}}, "vid"),
    ({"video_note": {"file_id": "n"}}, "n"),
    ({"audio": {"file_id": "a"}}, "a"),
    ({"animation": {"file_id": "gif"}, "document": DOCUMENT}, "gif"),
]


@pytest.mark.parametrize(("content", "ref"), FILES, ids=[ref for _, ref in FILES])
def test_a_reply_brings_the_files_of_what_it_replies_to(content: Json, ref: str) -> None:
    """SPEC CHAN-6: also to what is quoted from another chat, and below a selected part."""
    replied = message(None, message_id=9, caption="the plan", **content)
    quote = {"text": "plan", "position": 4}
    for raw, words in (
        (said(reply_to_message=replied), "the plan"),
        (said(reply_to_message=replied, quote=quote), "plan"),
        (said(None, sticker=STICKER, reply_to_message=replied), "the plan"),
        (said(external_reply={**ELSEWHERE, **content}), ""),
        (said_in(TEAM, "@GoclawTestBot", reply_to_message={**replied, "chat": TEAM}), "the plan"),
        (edited(reply_to_message=replied), "the plan"),
    ):
        found = parsed(raw)
        assert ([file.ref for file in found.quoted_files], found.quote) == ([ref], words)
        assert found.attachments == ()


def test_a_reply_that_is_only_the_name_asks_about_a_file_too() -> None:
    replied = message(None, message_id=9, chat=TEAM, photo=PHOTO)
    found = parsed(said_in(TEAM, "@GoclawTestBot", reply_to_message=replied))
    assert (found.text, found.addressed, len(found.quoted_files)) == ("", True, 1)


def test_a_reply_to_a_pin_brings_the_files_of_what_is_pinned() -> None:
    pin = message(None, message_id=9, pinned_message=message(None, photo=PHOTO, caption="look"))
    found = parsed(said_in(TEAM, "@GoclawTestBot", reply_to_message={**pin, "chat": TEAM}))
    assert (found.text, found.quote) == ("", "[pinned message]\nlook")
    assert [file.ref for file in found.quoted_files] == ["x"]


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
