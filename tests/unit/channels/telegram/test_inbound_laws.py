"""``channels.telegram.inbound``: whatever comes in, a message or ``Malformed`` comes out."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.telegram.inbound.content import SERVICE
from channels.telegram.inbound.reader import KINDS, Malformed, press_of, update_id
from goclaw_py.core.messages import Inbound, InboundMessage
from tests.unit.channels.telegram.updates import (
    ANN,
    BEN,
    DOCUMENT,
    FORUM,
    NEWS,
    NOON,
    OURSELVES,
    PHOTO,
    RESTRICTED,
    STICKER,
    TEAM,
    WITH_ANN,
    Json,
    answer,
    edited,
    message,
    read,
    said,
    said_in,
    said_in_topic,
    update,
)

words = st.text(st.characters(), max_size=8) | st.sampled_from(
    [
        "@GoclawTestBot", "/stop", "@GoclawTestBot /stop", "private", "supergroup", "mention",
        "kicked",
    ]
)  # fmt: skip
numbers = (
    st.integers() | st.floats() | st.sampled_from([0, 1, 7, 4242, 1 << 63, -(1 << 63), 10**400])
)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | words,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            words | st.sampled_from(["id", "type", "text", "file_id", "chat", "from", "blocks"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)

VALID: list[Json] = [
    said(),
    said("@GoclawTestBot hello"),
    said(None, photo=PHOTO, caption="look", media_group_id="5"),
    said(None, document=DOCUMENT),
    said(None, sticker=STICKER),
    said(None, location={"latitude": 1.5, "longitude": 2.5}),
    said(None, rich_message={"blocks": [{"type": "paragraph", "text": [{"text": "hello"}]}]}),
    said_in(TEAM, "/stop", sender_chat=TEAM),
    said_in(
        TEAM, "ask @GoclawTestBot x", entities=[{"type": "mention", "offset": 4, "length": 14}]
    ),
    said_in_topic(reply_to_message=answer(chat=FORUM), quote={"text": "the", "position": 0}),
    said_in(TEAM, None, migrate_from_chat_id=-5),
    edited(),
    update(
        "callback_query",
        {
            "id": "5",
            "from": BEN,
            "data": "y",
            "chat_instance": "1",
            "message": answer(
                reply_markup={"inline_keyboard": [[{"text": "Yes", "callback_data": "y"}]]}
            ),
        },
    ),
    update("my_chat_member", {"chat": TEAM, "from": ANN, "date": NOON,
     "old_chat_member": {"user": OURSELVES, "status": "member"}, "new_chat_member": RESTRICTED}),
    update("stopped_message_generation", {"chat": WITH_ANN, "draft_id": 3, "message_thread_id": 9}),
]  # fmt: skip


def paths(value: object, before: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The way to every value inside a value."""
    found = [before]
    items = value.items() if isinstance(value, dict) else ()
    for key, inner in items or enumerate(value if isinstance(value, list) else ()):
        found += paths(inner, (*before, key))
    return found


def value_at(value: Any, path: tuple[str | int, ...]) -> object:
    for key in path:
        value = value[key]
    return value


def replaced(value: object, path: tuple[str | int, ...], new: object) -> object:
    """A copy of a value with another one at the end of ``path``."""
    if not path:
        return new
    key, *rest = path
    if isinstance(value, dict):
        return {**value, key: replaced(value[key], tuple(rest), new)}
    assert isinstance(value, list)
    assert isinstance(key, int)
    return [*value[:key], replaced(value[key], tuple(rest), new), *value[key + 1 :]]


_ENTITIES: list[Json] = [
    {"type": "text_link", "offset": 0, "length": 2, "url": "https://a.example"},
    {"type": "pre", "offset": 2, "length": 2, "language": "py"},
    {"type": "text_mention", "offset": 4, "length": 1, "user": BEN},
]
_LINK: Json = {"inline_keyboard": [[{"text": "Read", "url": "https://b.example"}]]}
_VENUE: Json = {
    "location": {"latitude": 1.5, "longitude": 2.5}, "title": "The Mill", "address": "River 1",
}  # fmt: skip
_CONTACT: Json = {"phone_number": "+49 1", "first_name": "Cara", "last_name": "Om", "vcard": "V"}
_POLL: Json = {"id": "5", "question": "Tea?", "options": [{"text": "Yes"}, {"text": "No"}]}
_TASKS: Json = {"title": "To do", "tasks": [{"id": 1, "text": "Tea"}, {"id": 2, "text": "Milk"}]}
_HIDDEN: Json = {"type": "hidden_user", "sender_user_name": "Dan", "date": NOON}
_POSTED: Json = {
    "type": "channel", "chat": NEWS, "message_id": 3, "author_signature": "Eve", "date": NOON,
}  # fmt: skip
TEXTS: list[Json] = [
    *VALID,
    said("hello", entities=_ENTITIES, reply_markup=_LINK),
    said(None, photo=PHOTO, caption="hello", caption_entities=_ENTITIES),
    said(None, audio={**DOCUMENT, "performer": "Ann", "title": "Song"}),
    said(None, venue=_VENUE, location=_VENUE["location"]),
    said(None, contact=_CONTACT),
    said(None, poll=_POLL),
    said(None, checklist=_TASKS),
    said(forward_origin=_HIDDEN),
    said(forward_origin=_POSTED, author_signature="Eve"),
    said(external_reply={"origin": _POSTED, "chat": NEWS, "message_id": 3, "document": DOCUMENT}),
    said(quote={"text": "hello", "entities": _ENTITIES, "position": 0}, reply_to_message=answer()),
    *(
        said(reply_to_message=message(None, message_id=1, **about), reply_to_poll_option_id="x")
        for about in (
            {"venue": _VENUE}, {"contact": _CONTACT}, {"poll": _POLL}, {"checklist": _TASKS},
            {"document": DOCUMENT, "caption": "hello", "reply_markup": _LINK},
            {"new_chat_title": "Team"}, {"forum_topic_created": {"name": "Tea"}},
        )
    ),
    said_in_topic(None, forum_topic_created={"name": "Tea", "icon_color": 1}),
    said_in_topic(None, forum_topic_edited={"name": "Tea"}),
    said_in(TEAM, sender_chat=NEWS, author_signature="Eve", sender_tag="chief"),
]  # fmt: skip
"""Messages of all kinds that contain texts of people."""

ODD_TEXTS = [
    "\ud83d", "\ude00", "\ude00\ud83d", "\ud83d\ude00", "a\0b", "\0", "\ufffe\uffff",
    "\u202eabc\u2066", "", " ", "\u2028", "\x1b[31m", "a" * 70_000, "😀" * 9_000,
    "\ud83d" * 9_000, "\u0301" * 9_000,
    "@GoclawTestBot\ud83d", "/stop\0", "/new \udc00 x",
]  # fmt: skip

WORDED = frozenset([
    "first_name", "last_name", "username", "title", "text", "caption", "name", "file_name",
    "performer", "address", "phone_number", "vcard", "question", "url", "language",
    "sender_user_name", "author_signature", "new_chat_title", "mime_type", "media_group_id",
    "emoji", "sender_tag",
])  # fmt: skip
"""The fields whose texts people choose."""

PLACES = [(raw, path) for raw in VALID for path in paths(raw)]


def check(raw: object) -> None:
    """The law, and that what comes out can be stored."""
    number = update_id(raw)
    assert number is None or -(1 << 63) <= number < 1 << 63
    assert press_of(raw) is None or isinstance(press_of(raw), tuple)
    with suppress(Malformed):
        found = read(raw)
        assert found is None or isinstance(found, Inbound)
        shown = repr(found)
        assert "\\x00" not in shown
        shown.encode()


@given(json_values)
def test_any_json_is_read_or_malformed(value: object) -> None:
    check(value)


@given(st.sampled_from([*KINDS, "channel_post"]), json_values)
def test_any_content_of_an_update_is_read_or_malformed(kind: str, value: object) -> None:
    check({"update_id": 5, kind: value})


@given(st.sampled_from(PLACES), json_values)
def test_a_valid_update_with_any_value_in_one_place_is_read_or_malformed(
    place: tuple[Json, tuple[str | int, ...]], value: object
) -> None:
    raw, path = place
    check(replaced(raw, path, value))


@given(st.sampled_from(sorted(SERVICE)), json_values)
def test_a_message_with_any_more_field_is_read_or_malformed(field: str, value: object) -> None:
    check(update("message", {**message(), field: value}))
    check(update("message", {**message(None), field: value}))


@pytest.mark.parametrize("odd", ODD_TEXTS, ids=lambda odd: ascii(odd)[:24])
def test_any_text_of_people_is_read_and_can_be_stored(odd: str) -> None:
    """SPEC IO-1: one that is lost is confirmed, and never comes again."""
    for raw in TEXTS:
        kept = read(raw)
        for path in paths(raw):
            if path[-1:] and path[-1] in WORDED and isinstance(value_at(raw, path), str):
                changed = replaced(raw, path, odd)
                check(changed)
                found = read(changed)
                assert (found is None) == (kept is None), path
                if isinstance(found, InboundMessage):
                    assert len(found.sender.name) <= 300
                    assert len(found.place_name) <= 300


@pytest.mark.parametrize("raw", TEXTS)
def test_a_valid_update_is_read(raw: Json) -> None:
    assert read(raw) is not None


@pytest.mark.parametrize("raw", VALID)
def test_an_update_that_comes_again_is_the_same(raw: Json) -> None:
    """SPEC IO-1."""
    assert read(json.loads(json.dumps(raw))) == read(raw)


def test_no_two_of_these_have_one_external_id() -> None:
    """SPEC IO-1: a message, its versions, a press and a stop in one chat with equal numbers."""
    press = {"from": ANN, "data": "y", "chat_instance": "1", "message": answer()}
    raws = [
        said(),
        edited(),
        edited(edit_date=NOON + 6),
        update("callback_query", {"id": "7:12", **press}),
        update("stopped_message_generation", {"chat": WITH_ANN, "draft_id": 12}),
        update("stopped_message_generation", {"chat": WITH_ANN, "draft_id": 12}, number=901),
    ]
    found = [read(raw) for raw in raws]
    ids = {each.external_id for each in found if isinstance(each, InboundMessage)}
    assert len(ids) == len(raws)


def test_replies_to_replies_are_read_one_deep() -> None:
    replied = message("the first", message_id=1)
    for number in range(2, 300):
        replied = message(f"reply {number}", message_id=number, reply_to_message=replied)
    found = read(said("why?", message_id=300, reply_to_message=replied))
    assert isinstance(found, InboundMessage)
    assert (found.reply_to, found.quote) == ("299", "reply 299")
