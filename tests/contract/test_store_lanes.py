"""What every store promises about lanes that all nodes share (SPEC NODE-2)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime

import pytest

from goclaw_py.model.ids import LaneName, NodeId
from goclaw_py.ports.store import LaneShare, Notice, Store
from tests.support.stores import LEASE_S, T0, A, B, Heard, World, a_node, at, until

pytestmark = pytest.mark.real_time

CRON = LaneName("cron")
C = NodeId("c")


@dataclass
class Holder:
    """A node with what it knows to have of a lane."""

    store: Store
    node: NodeId
    lane: LaneName = CRON
    held: list[int] = field(default_factory=list)
    elsewhere: int = 0

    async def wants(self, wanted: int, *, size: int = 1, ended: int = 0, now: datetime = T0) -> int:
        """Tell that so many runs have ended and so many wait; how many places came."""
        gone, self.held = self.held[:ended], self.held[ended:]
        share = LaneShare(self.lane, size, tuple(self.held), tuple(gone), wanted)
        grant = await self.store.share(self.node, share, now=now)
        self.held += grant.places
        self.elsewhere = grant.elsewhere
        return len(grant.places)


async def test_a_free_place_is_given_at_once(world: World) -> None:
    """Again when its answer was lost. Lanes know nothing of each other."""
    one, other = Holder(world.a, A), Holder(world.b, B)
    assert sorted(await asyncio.gather(one.wants(1), other.wants(1))) == [0, 1]
    first, second = sorted((one, other), key=lambda holder: not holder.held)
    first.held.clear()
    assert await first.wants(1) == 1
    assert await second.wants(1) == 0
    assert await Holder(second.store, second.node, LaneName("other")).wants(1) == 1


async def test_whoever_came_first_is_next_when_a_place_is_given_back(world: World) -> None:
    """Also before one of the node that gives it back."""
    await world.b.join(a_node(C))
    holders = {name: Holder(*one) for name, one in _three(world).items()}
    await holders["a"].wants(1)
    await holders["b"].wants(2)
    await holders["c"].wants(1)
    await holders["a"].wants(1)
    left, order = {"a": 1, "b": 2, "c": 1}, ["a"]
    for _ in range(4):
        last = order[-1]
        for name in (last, *holders):
            if await holders[name].wants(left[name], ended=1 if name is last else 0):
                left[name] -= 1
                order.append(name)
                break
            last = ""
    assert order == ["a", "b", "b", "c", "a"]


def _three(world: World) -> dict[str, tuple[Store, NodeId]]:
    return {"a": (world.a, A), "b": (world.b, B), "c": (world.b, C)}


async def test_no_more_places_are_given_than_there_are(world: World) -> None:
    """A node hears how many places others have."""
    one, other = Holder(world.a, A), Holder(world.b, B)
    assert await one.wants(5, size=3) == 3
    assert one.elsewhere == 0
    assert await other.wants(5, size=3) == 0
    assert other.elsewhere == 3
    assert await one.wants(0, size=3, ended=1) == 0
    assert await other.wants(5, size=3) == 1
    assert (one.elsewhere, other.elsewhere) == (1, 2)


async def test_a_place_that_nobody_wants_any_more_is_others(world: World) -> None:
    """Whoever wants no more leaves the line."""
    one, other = Holder(world.a, A), Holder(world.b, B)
    await one.wants(1)
    await other.wants(1)
    await one.wants(0, ended=1)
    assert await other.wants(0) == 0
    assert await one.wants(1) == 1
    await other.wants(3)
    await other.wants(0)
    assert await one.wants(1, ended=1) == 1


async def test_a_larger_size_holds_from_the_next_word_on(world: World) -> None:
    one, other = Holder(world.a, A), Holder(world.b, B)
    await one.wants(1)
    assert await other.wants(1, size=2) == 1
    # And a smaller one takes nothing away.
    assert await one.wants(1, size=1) == 0
    assert len(one.held) == 1


async def test_what_a_node_had_goes_with_it(world: World) -> None:
    one = Holder(world.a, A)
    await one.wants(1)
    await world.a.leave(A, now=T0)
    assert await Holder(world.b, B).wants(1) == 1
    assert await one.wants(1) == 0


async def test_a_node_whose_lease_has_ended_is_passed_over_and_keeps_its_turn(world: World) -> None:
    """NODE-1: what it got would be idle until its recovery."""
    await world.b.join(a_node(C))
    first, ended, last = (Holder(*one) for one in _three(world).values())
    await first.wants(1)
    await ended.wants(1)
    await last.wants(1)
    now = at(LEASE_S)
    for node in (A, C):
        await world.a.renew(node, until=at(1000))
    assert await ended.wants(1, now=now) == 0
    await first.wants(0, ended=1, now=now)
    assert await last.wants(1, now=now) == 1
    # Back again, it is next, and before those who have come meanwhile.
    await world.b.renew(B, until=at(1000))
    await first.wants(1, now=now)
    await last.wants(0, ended=1, now=now)
    assert await first.wants(1, now=now) == 0
    assert await ended.wants(1, now=now) == 1


async def test_a_node_whose_lease_has_ended_keeps_what_it_has_and_can_give_it_back(
    world: World,
) -> None:
    """Its runs may still work."""
    one, other = Holder(world.a, A), Holder(world.b, B)
    await one.wants(1)
    now = await world.kill(A)
    assert await other.wants(1, now=now) == 0
    await one.wants(0, ended=1, now=now)
    assert await other.wants(1, now=now) == 1


async def test_nobody_gives_back_what_is_anothers(world: World) -> None:
    one, other = Holder(world.a, A), Holder(world.b, B)
    await one.wants(1)
    other.held = list(one.held)
    assert await other.wants(1, ended=1) == 0


async def test_others_are_told_that_a_place_is_theirs(world: World) -> None:
    heard = Heard()
    one, other = Holder(world.a, A), Holder(world.b, B)
    await one.wants(1)
    await other.wants(1)
    world.b.on_notice(heard.append)
    await one.wants(0)
    await one.wants(0, ended=1)
    await until(heard.expect(Notice.LANES))
    assert heard.count(Notice.LANES) == 1
