"""What every store promises about sign-ins to the dashboard (SPEC SEC-6)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from goclaw_py.core.actors import AccessRole
from goclaw_py.records import SignIn, SignInMethod, Token
from tests.support.stores import T0, World, at

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

DAY = timedelta(days=1)


def sign_in(name: str, *, lasts: timedelta = DAY) -> SignIn:
    return SignIn(name, T0, T0, T0 + lasts, "192.0.2.1", "Firefox \ud800\0")


async def begin(world: World, name: str, *, token: str = "t", lasts: timedelta = DAY) -> SignIn:
    made = sign_in(name, lasts=lasts)
    assert await world.a.begin_sign_in(made, f"secret of {name}", token)
    return replace(made, user_agent=(await world.a.sign_ins(now=T0))[0].user_agent)


async def test_a_sign_in_is_found_by_its_secret_on_every_node(world: World) -> None:
    ann, bob = await begin(world, "ann"), await begin(world, "bob")
    assert await world.b.sign_in_of("secret of ann", "t", now=T0) == ann
    assert await world.b.sign_ins(now=T0) == [ann, bob]
    for secret, token in [("secret of eve", "t"), ("secret of ann", "u"), ("ann", "t"), ("", "")]:
        assert await world.b.sign_in_of(secret, token, now=T0) is None


async def test_a_sign_in_ends_with_its_time(world: World) -> None:
    await begin(world, "ann")
    assert await world.b.sign_in_of("secret of ann", "t", now=T0 + DAY) is None
    assert await world.b.sign_ins(now=T0 + DAY) == []


async def test_one_or_all_are_ended(world: World) -> None:
    for name in ("ann", "bob", "eve"):
        await begin(world, name)
    assert await world.b.end_sign_in("bob")
    assert not await world.b.end_sign_in("bob")
    assert not await world.b.end_sign_in("\0")
    assert await world.a.sign_in_of("secret of bob", "t", now=T0) is None
    assert await world.b.end_sign_ins() == 2
    assert await world.b.end_sign_ins() == 0
    assert await world.a.sign_in_of("secret of ann", "t", now=T0) is None


async def test_the_last_use_only_moves_on_and_orders_the_list(world: World) -> None:
    for name in ("ann", "bob"):
        await begin(world, name)
    for seconds in (70, 60):
        await world.b.note_sign_in_used("bob", now=at(seconds))
    await world.b.note_sign_in_used("nobody", now=at(80))
    found = await world.a.sign_ins(now=at(80))
    assert [(one.id, one.last_used_at) for one in found] == [("bob", at(70)), ("ann", T0)]


async def test_another_token_ends_all(world: World) -> None:
    await begin(world, "ann")
    await begin(world, "bob", token="u")
    assert [one.id for one in await world.b.sign_ins(now=T0)] == ["bob"]


async def test_expired_sign_ins_are_deleted(world: World) -> None:
    """DB-5."""
    await begin(world, "ann")
    await begin(world, "bob", lasts=2 * DAY)
    late = T0 + DAY + timedelta(seconds=1)
    assert await world.b.sweep_sign_ins(now=late) == 1
    assert [one.id for one in await world.b.sign_ins(now=T0)] == ["bob"]


async def test_a_sign_in_carries_who_and_what_they_may_do(world: World) -> None:
    """SEC-8, SEC-10."""
    made = replace(
        sign_in("ann"),
        user_agent="",
        name="ann@example.org",
        role=AccessRole.VIEWER,
        reads_text=False,
        method=SignInMethod.OPENID,
    )
    assert await world.a.begin_sign_in(made, "secret", "t")
    assert await world.b.sign_in_of("secret", "t", now=T0) == made
    assert await world.b.sign_ins(now=T0) == [made]


async def test_a_sign_in_ends_with_its_token(world: World) -> None:
    """SEC-8: and a name alone, of a token or a person, ends nothing else."""
    for name in ("grafana", "other"):
        await world.a.add_token(Token(name, AccessRole.OPERATOR, True, T0), f"hash of {name}")
    of_token = SignInMethod.TOKEN
    for number, (name, method) in enumerate(
        [("grafana", of_token), ("other", of_token), ("grafana", SignInMethod.PROXY)]
    ):
        made = replace(sign_in(f"s{number}"), name=name, method=method)
        assert await world.a.begin_sign_in(made, f"secret {number}", "t")
    assert await world.b.revoke_token("grafana")
    assert {one.id for one in await world.a.sign_ins(now=T0)} == {"s1", "s2"}
    late = replace(sign_in("late"), name="grafana", method=of_token)
    assert not await world.a.begin_sign_in(late, "late", "t")
    assert await world.b.sign_in_of("late", "t", now=T0) is None
