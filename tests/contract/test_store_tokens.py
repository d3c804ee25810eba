"""What every store promises about tokens (SPEC SEC-8)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from goclaw_py.core.actors import AccessRole
from goclaw_py.records import Token
from tests.support.stores import T0, World, at

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

DAY = timedelta(days=1)


def token(
    name: str, role: AccessRole = AccessRole.VIEWER, *, lasts: timedelta | None = None
) -> Token:
    return Token(
        name, role, role is not AccessRole.VIEWER, T0, None if lasts is None else T0 + lasts
    )


async def add(world: World, made: Token) -> Token:
    assert await world.a.add_token(made, f"hash of {made.name}")
    return made


async def test_a_token_is_found_by_its_hash_on_every_node(world: World) -> None:
    made = [await add(world, token(f"of {role}", role)) for role in AccessRole]
    assert await world.b.tokens() == sorted(made, key=lambda one: one.name)
    for one in made:
        assert await world.b.token_of(f"hash of {one.name}", now=T0) == one
    for wrong in ("", "of viewer", "hash of nobody", "hash of of viewer "):
        assert await world.b.token_of(wrong, now=T0) is None


async def test_a_name_belongs_to_one_token(world: World) -> None:
    """Also while the other one has expired: the list shows it, and its log lines are about it."""
    made = await add(world, token("grafana", lasts=DAY))
    assert not await world.b.add_token(token("grafana", AccessRole.ADMIN), "another hash")
    assert await world.b.token_of("another hash", now=T0) is None
    assert await world.b.tokens() == [made]
    await add(world, token("Grafana"))
    assert [one.name for one in await world.b.tokens()] == ["Grafana", "grafana"]


async def test_a_token_ends_with_its_time_and_stays_in_the_list(world: World) -> None:
    made = await add(world, token("short", lasts=DAY))
    just_before = T0 + DAY - timedelta(microseconds=1)
    assert await world.b.token_of("hash of short", now=just_before) == made
    assert await world.b.token_of("hash of short", now=T0 + DAY) is None
    assert await world.b.tokens() == [made]


async def test_a_revoked_token_is_gone_and_its_name_free(world: World) -> None:
    await add(world, token("grafana"))
    assert await world.b.revoke_token("grafana")
    assert await world.a.token_of("hash of grafana", now=T0) is None
    assert not await world.a.revoke_token("grafana")
    assert not await world.a.revoke_token("\0\ud800")
    assert await world.a.add_token(token("grafana"), "a new hash")
    assert await world.b.token_of("hash of grafana", now=T0) is None


async def test_the_last_use_only_moves_on(world: World) -> None:
    made = await add(world, token("grafana"))
    for seconds in (70, 60):
        await world.b.note_token_used("grafana", now=at(seconds))
    await world.b.note_token_used("nobody", now=at(80))
    assert await world.a.tokens() == [replace(made, last_used_at=at(70))]
