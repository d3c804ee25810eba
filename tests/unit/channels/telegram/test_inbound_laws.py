"""``channels.telegram.inbound``: whatever comes in, a message or ``Malformed`` comes out."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.telegram.inbound.content import SERVICE
from channels.telegram.inbound.reader import KINDS, Malformed, press_of, update_id
from goclaw_py.model.messages import Inbound, InboundMessage
from tests.unit.channels.telegram.updates import (
    ANN,
    BEN,
    DOCUMENT,
    FORUM,
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


@pytest.mark.parametrize("raw", VALID)
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
