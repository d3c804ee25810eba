"""Names and chats of invited people (SPEC CHAN-13)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.core.ids import AgentName
from goclaw_py.core.messages import PeerKind, Sender, Target
from goclaw_py.core.pagination import Cursor
from goclaw_py.core.session_keys import chat_of, chat_session
from goclaw_py.core.web_links import (
    WEB_PLACE,
    chat_of_guest,
    conversation_of,
    guest_name,
    guest_of,
    is_guest_chat,
    is_guest_name,
    is_secret,
    searched_part,
)
from goclaw_py.records import Chat, Person, Standing, unapproved

T0 = datetime(2026, 1, 1, tzinfo=UTC)

guests = st.one_of(
    st.from_regex("[A-Za-z0-9][A-Za-z0-9_-]{0,31}", fullmatch=True),
    st.text(st.characters(categories=["L", "M", "N"]), min_size=1, max_size=8).filter(
        is_guest_name
    ),
)
names = st.one_of(st.from_regex(r"[A-Za-z0-9._-]{0,40}", fullmatch=True), st.text(max_size=20))


@given(guest=guests, other=guests, name=names)
def test_no_name_leads_to_a_chat_of_somebody_else(guest: str, other: str, name: str) -> None:
    try:
        chat = chat_of_guest(guest, name)
    except ValueError:
        return
    assert is_guest_chat(chat)
    assert guest_of(chat) == guest
    key = chat_session(AgentName("main"), Target(*WEB_PLACE, chat), PeerKind.DIRECT)
    assert chat_of(key) == Target(*WEB_PLACE, chat)
    assert searched_part(chat).lower() in key.lower()
    assert conversation_of(guest, chat) == name
    assert other == guest or conversation_of(other, chat) is None


@pytest.mark.parametrize("name", [
    "Анна", "张伟", "محمد", "अनिल", "Zoë", "Ελένη", "さくら", "ann-1", "0_x", "\u0445" * 32,
])  # fmt: skip
def test_a_name_may_have_any_script(name: str) -> None:
    assert guest_name(name) == name
    assert chat_of_guest(name, "2") == f"{name}.2"


@pytest.mark.parametrize(("typed", "name"), [("Zoe\u0308", "Zoë"), ("\uff21\uff4e\uff4e", "Ann")])
def test_names_that_look_the_same_are_the_same(typed: str, name: str) -> None:
    assert guest_name(typed) == name
    assert not is_guest_name(typed)


@pytest.mark.parametrize("name", [
    "", "-", "_a", "a b", "a.b", "a/b", "a:b", "a\n", "a\0", "x" * 33, "😀", "a\u202eb", "a\u200bb",
    "\u0308a", "\uff0e", "a\ud800",
])  # fmt: skip
def test_a_name_has_nothing_that_is_no_letter(name: str) -> None:
    with pytest.raises(ValueError, match="1 to 32 characters"):
        guest_name(name)


@pytest.mark.parametrize("name", ["", ".", "a b", "a/b", "..", "-a", "é", "a" * 61, "a\n", "a:b"])
def test_an_impossible_conversation_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="characters of A-Z"):
        chat_of_guest("ann", name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a" * 43, True), ("a" * 42, False), ("a" * 44, False), ("", False), ("a" * 42 + "\n", False),
     ("a" * 42 + "=", False), ("a" * 42 + "ü", False)],
)  # fmt: skip
def test_a_secret_is_known_by_its_form(text: str, expected: bool) -> None:
    assert is_secret(text) is expected


async def test_the_conversations_of_an_invited_person_are_approved() -> None:
    person = Person("web", "default", Sender("ann", "ann"), Standing.GUEST, T0)

    def chat(name: str) -> Chat:
        return Chat("web", "default", name, PeerKind.DIRECT, "", None, "", T0, T0)

    chats = [chat("ann"), chat("ann.trip"), chat("anna"), chat("bob")]

    async def people(*, limit: int, before: Cursor | None) -> list[Person]:
        del limit, before
        return [person]

    assert [one.chat for one in await unapproved(people, chats)] == ["anna", "bob"]
