"""Names and chats of invited people (SPEC CHAN-13)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.core.messages import PeerKind, Sender
from goclaw_py.core.pagination import Cursor
from goclaw_py.core.session_keys import is_chat_name
from goclaw_py.core.web_links import GUEST_NAME, chat_of_guest, conversation_of, guest_of, is_secret
from goclaw_py.records import Chat, Person, Standing, unapproved

T0 = datetime(2026, 1, 1, tzinfo=UTC)

guests = st.from_regex(GUEST_NAME, fullmatch=True)
names = st.one_of(st.from_regex(r"[A-Za-z0-9._-]{0,40}", fullmatch=True), st.text(max_size=20))


@given(guest=guests, other=guests, name=names)
def test_no_name_leads_to_a_chat_of_somebody_else(guest: str, other: str, name: str) -> None:
    try:
        chat = chat_of_guest(guest, name)
    except ValueError:
        return
    assert is_chat_name(chat)
    assert guest_of(chat) == guest
    assert conversation_of(guest, chat) == name
    assert other == guest or conversation_of(other, chat) is None


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
