"""Places in a shared lane, through random histories of several nodes (SPEC NODE-2, LANE-4)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.core.ids import LaneName, NodeId
from goclaw_py.records import LaneShare
from tests.support.memory_store import MemoryDatabase, MemoryStore
from tests.support.stores import T0, a_node

LANE = LaneName("cron")
NODES = [NodeId(name) for name in "abc"]
STEPS = st.tuples(st.sampled_from(NODES), st.sampled_from(["want", "end", "lose", "leave", "die"]))


@dataclass
class Holder:
    """What a node knows: places in which runs work, and for how many more runs it waits."""

    held: list[int] = field(default_factory=list)
    wanted: int = 0


@dataclass
class Line:
    """The same as one list of whose turn it is: the first ``size`` of it work."""

    size: int
    inside: list[NodeId] = field(default_factory=list)
    waiting: list[NodeId] = field(default_factory=list)

    def want(self, node: NodeId) -> None:
        self.waiting.append(node)
        self._admit()

    def end(self, node: NodeId) -> None:
        self.inside.remove(node)
        self._admit()

    def leave(self, node: NodeId) -> None:
        """The last of the node's that wait goes."""
        last = len(self.waiting) - 1 - self.waiting[::-1].index(node)
        del self.waiting[last]

    def die(self, node: NodeId) -> None:
        self.inside = [one for one in self.inside if one != node]
        self.waiting = [one for one in self.waiting if one != node]

    def _admit(self) -> None:
        while self.waiting and len(self.inside) < self.size:
            self.inside.append(self.waiting.pop(0))

    def settle(self) -> None:
        """Whoever asks next finds what a dead node has left."""
        self._admit()


class World:
    """Three nodes on one store, each of which tells what it has after whatever happens."""

    def __init__(self, size: int) -> None:
        self.store = MemoryStore(MemoryDatabase())
        self.line = Line(size)
        self.holders = {node: Holder() for node in NODES}

    async def open(self) -> None:
        for node in NODES:
            await self.store.join(a_node(node))

    async def do(self, node: NodeId, step: str) -> None:
        holder = self.holders[node]
        match step:
            case "want":
                holder.wanted += 1
                self.line.want(node)
                await self.tell(node)
            case "end" if holder.held:
                ended = [holder.held.pop(0)]
                self.line.end(node)
                await self.tell(node, ended)
            case "lose":
                # The answer is lost on its way: the node learns of no place, and asks again.
                share = LaneShare(LANE, self.line.size, tuple(holder.held), (), holder.wanted)
                await self.store.share(node, share, now=T0)
            case "leave" if holder.wanted:
                holder.wanted -= 1
                self.line.leave(node)
                await self.tell(node)
            case "die":
                self.holders[node] = Holder()
                self.line.die(node)
                await self.store.leave(node, now=T0)
                await self.store.join(a_node(node))
        self.line.settle()
        for other in NODES:
            await self.tell(other)

    async def tell(self, node: NodeId, gone: list[int] | None = None) -> None:
        holder = self.holders[node]
        share = LaneShare(
            LANE, self.line.size, tuple(holder.held), tuple(gone or ()), holder.wanted
        )
        grant = await self.store.share(node, share, now=T0)
        holder.held += grant.places
        holder.wanted -= len(grant.places)
        assert holder.wanted >= 0

    def check(self) -> None:
        places = [place for holder in self.holders.values() for place in holder.held]
        assert len(places) == len(set(places)) <= self.line.size
        for node, holder in self.holders.items():
            assert len(holder.held) == self.line.inside.count(node), node
            assert holder.wanted == self.line.waiting.count(node), node


@given(size=st.integers(1, 3), steps=st.lists(STEPS, max_size=40))
def test_whoever_came_first_works_first_on_whatever_node(
    size: int, steps: list[tuple[NodeId, str]]
) -> None:
    """No place is used twice, none is free while somebody waits, and the order is that of all."""

    async def play() -> None:
        world = World(size)
        await world.open()
        for node, step in steps:
            await world.do(node, step)
            world.check()

    asyncio.run(play())
