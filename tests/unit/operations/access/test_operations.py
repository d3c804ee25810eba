"""Tokens are made, shown once, listed and revoked (SPEC SEC-8)."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest

from goclaw_py.core.actors import AccessRole
from goclaw_py.core.errors import NotAccepted, NotFound
from goclaw_py.core.web_links import secret_hash
from goclaw_py.operations.access.operations import Access
from goclaw_py.records.tokens import TokenExists, is_token
from tests.support.memory_store import MemoryStore
from tests.support.work import SetClock
from tests.unit.web.fakes import NOW

VIEWER, OPERATOR = AccessRole.VIEWER, AccessRole.OPERATOR


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def access(store: MemoryStore) -> Access:
    return Access(store, SetClock(NOW))


async def test_a_token_is_shown_once_and_found_by_its_hash(
    store: MemoryStore, access: Access, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        made = await access.create_token("grafana", VIEWER, expires_at=NOW + timedelta(days=1))
        other = await access.create_token("ci", OPERATOR)
    assert is_token(made.secret)
    assert made.secret != other.secret
    assert made.secret not in repr(made) + caplog.text
    assert await store.token_of(secret_hash(made.secret), now=NOW) == made.token
    assert await access.tokens() == [other.token, made.token]
    assert [vars(one)["token"] for one in caplog.records] == ["grafana", "ci"]


async def test_only_viewers_may_be_kept_from_texts(access: Access) -> None:
    made = {role: await access.create_token(role, role) for role in AccessRole}
    reads = {role: one.token.reads_text for role, one in made.items()}
    assert reads == {VIEWER: False, OPERATOR: True, AccessRole.ADMIN: True}
    assert (await access.create_token("reader", VIEWER, reads_text=True)).token.reads_text


@pytest.mark.parametrize("name", [
    "", " ", " ci", "ci ", "a\nb", "a\x00b", "a\x1b[2Jb", "a\u202eb", "a\u200bb", "x" * 65,
    "x" * 300, "\ud800",
])  # fmt: skip
async def test_a_name_is_something_that_can_be_read(access: Access, name: str) -> None:
    with pytest.raises(NotAccepted, match="a name of a token has 1 to 64 characters"):
        await access.create_token(name, VIEWER)
    assert await access.tokens() == []


@pytest.mark.parametrize("name", ["x", "x" * 64, "Grafana in the office", "büro/ci: 1", "<b>"])
async def test_a_name_may_have_words(access: Access, name: str) -> None:
    await access.create_token(name, VIEWER)
    await access.revoke_token(name)


async def test_a_name_is_taken_once_and_free_after_it_was_revoked(access: Access) -> None:
    first = await access.create_token("ci", VIEWER)
    with pytest.raises(TokenExists, match="there is a token 'ci'"):
        await access.create_token("ci", AccessRole.ADMIN)
    assert await access.tokens() == [first.token]
    await access.revoke_token("ci")
    with pytest.raises(NotFound, match="there is no token 'ci'"):
        await access.revoke_token("ci")
    assert (await access.create_token("ci", OPERATOR)).token.role is OPERATOR


@pytest.mark.parametrize("ago", [timedelta(0), timedelta(seconds=1), timedelta(days=10_000)])
async def test_an_end_is_to_come(access: Access, ago: timedelta) -> None:
    with pytest.raises(NotAccepted, match="must be in the future"):
        await access.create_token("ci", VIEWER, expires_at=NOW - ago)
    assert await access.tokens() == []
