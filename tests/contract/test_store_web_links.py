"""What every store promises about personal links to the web chat (SPEC CHAN-13)."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from goclaw_py.core.messages import Sender
from goclaw_py.records import Notice, Person, Standing, WebLink
from tests.support.stores import T0, World, at, listen, until

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

DAY = timedelta(days=1)


async def invite(world: World, name: str, link: str, *, again: bool = False, now: int = 0) -> bool:
    return await world.a.invite(name, link, again=again, now=at(now), expires_at=at(now) + DAY)


async def use(world: World, link: str, cookie: str, *, now: int = 1) -> WebLink | None:
    return await world.b.use_web_link(link, cookie, now=at(now), until=at(now) + 2 * DAY)


async def test_an_invited_person_is_a_guest_with_a_link(world: World) -> None:
    """Other nodes hear of it: they admit the person."""
    heard = listen(world.b)
    assert await invite(world, "ann", "l1")
    await until(lambda: Notice.PEOPLE in heard)
    person = Person("web", "default", Sender("ann", "ann"), Standing.GUEST, T0)
    assert await world.b.people() == [person]
    assert await world.b.web_links() == [WebLink("ann", "l1", T0, T0 + DAY)]


async def test_a_name_is_invited_once_unless_again(world: World) -> None:
    assert await invite(world, "bob", "b1", again=True)
    assert await invite(world, "ann", "l1")
    assert not await invite(world, "ann", "l2")
    assert {link.link_hash for link in await world.b.web_links()} == {"b1", "l1"}
    assert {one.standing for one in await world.b.people()} == {Standing.GUEST}


async def test_another_link_replaces_unused_ones_and_keeps_browsers(world: World) -> None:
    await invite(world, "ann", "l1")
    await use(world, "l1", "c1")
    await invite(world, "bob", "b1")
    for number in (2, 3):
        assert await invite(world, "ann", f"l{number}", again=True, now=number)
    found = {(link.name, link.link_hash) for link in await world.b.web_links()}
    assert found == {("ann", "l1"), ("ann", "l3"), ("bob", "b1")}


async def test_a_link_is_used_once(world: World) -> None:
    await invite(world, "ann", "l1")
    assert await world.b.web_link("l1") == WebLink("ann", "l1", T0, T0 + DAY)
    used = WebLink("ann", "l1", T0, at(1) + 2 * DAY, at(1), "c1")
    assert await use(world, "l1", "c1") == used
    assert await use(world, "l1", "c2", now=2) == used
    assert await use(world, "l9", "c3") is None
    assert [await world.b.web_link(one) for one in ("l1", "l9")] == [used, None]
    assert await world.a.web_link_of_cookie("c1", now=at(2)) == used
    for stranger in ("c2", "c3", "l1", ""):
        assert await world.a.web_link_of_cookie(stranger, now=at(2)) is None


async def test_of_several_uses_at_once_one_succeeds(world: World) -> None:
    await invite(world, "ann", "l1")
    found = await asyncio.gather(*(use(world, "l1", f"c{number}") for number in range(8)))
    assert len({link.cookie_hash for link in found if link}) == 1


async def test_an_expired_link_signs_nobody_in(world: World) -> None:
    await invite(world, "ann", "l1")
    late = T0 + DAY
    found = await world.b.use_web_link("l1", "c1", now=late, until=late + DAY)
    assert found == WebLink("ann", "l1", T0, T0 + DAY)
    assert await world.b.web_link_of_cookie("c1", now=late) is None


async def test_a_sign_in_ends_with_its_time_and_when_it_is_ended(world: World) -> None:
    for name in ("ann", "bob"):
        await invite(world, name, name)
        await use(world, name, f"cookie of {name}")
    assert await world.a.web_link_of_cookie("cookie of ann", now=at(1) + 2 * DAY) is None
    await world.b.end_web_sign_in("cookie of ann")
    await world.b.end_web_sign_in("cookie of nobody")
    assert await world.a.web_link_of_cookie("cookie of ann", now=at(2)) is None
    assert await world.a.web_link_of_cookie("cookie of bob", now=at(2)) is not None


async def test_a_removed_person_has_no_links_and_no_browsers(world: World) -> None:
    for name in ("ann", "bob"):
        await invite(world, name, f"{name} 1")
        await use(world, f"{name} 1", f"cookie of {name}")
        await invite(world, name, f"{name} 2", again=True)
    assert await world.b.revoke("web", "default", "ann")
    assert await world.a.web_link_of_cookie("cookie of ann", now=at(2)) is None
    assert await use(world, "ann 2", "c") is None
    assert {link.link_hash for link in await world.a.web_links()} == {"bob 1", "bob 2"}
    assert await invite(world, "ann", "ann 3", again=True)
    assert await world.a.web_link_of_cookie("cookie of ann", now=at(2)) is None


async def test_an_invitation_and_a_removal_at_once_leave_no_link_without_a_person(
    world: World,
) -> None:
    for number in range(20):
        await invite(world, "ann", f"first {number}", again=True)
        await asyncio.gather(
            world.b.revoke("web", "default", "ann"),
            invite(world, "ann", f"second {number}", again=True),
        )
        people = {one.sender.id for one in await world.a.people()}
        assert {link.name for link in await world.a.web_links()} == people


async def test_expired_links_are_deleted_after_thirty_days(world: World) -> None:
    """DB-5: of used ones the end of the sign-in counts."""
    await invite(world, "ann", "unused")
    await invite(world, "bob", "used")
    await use(world, "used", "cookie")
    end = T0 + 31 * DAY
    assert await world.b.sweep_web_links(now=end) == 0
    assert await world.b.sweep_web_links(now=end + timedelta(seconds=1)) == 1
    assert [link.link_hash for link in await world.b.web_links()] == ["used"]
    assert await world.b.sweep_web_links(now=end + 2 * DAY) == 1
