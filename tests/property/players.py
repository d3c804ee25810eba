"""Histories of calls by chance, played on both stores: PostgreSQL, and the one in memory.

Calls come single and at once, with crashes. Every answer and all that is left are compared.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, TypeVar

import pytest

from goclaw_py.core.errors import HeartbeatError, JobError, StoreError
from goclaw_py.core.ids import RunId
from goclaw_py.records import Store
from tests.support.postgres import Database
from tests.support.stores import APOLOGY, A, InMemory, World, a_node, at, world_on

Item = TypeVar("Item")


@dataclass(slots=True)
class Player:
    """Plays one history on one store, and keeps what that answered."""

    world: World
    chance: random.Random
    told: list[object] = field(default_factory=list)
    runs: dict[RunId, Any] = field(default_factory=dict)
    """Runs that work, and what is known of them."""
    numbers: int = 0
    second: int = 0

    moves: ClassVar[str]
    """Methods by name; the more often one is named, the more often it is called."""
    steps: ClassVar[int]
    pause_s: ClassVar[int] = 1
    """At most so long between two moves."""
    likely: ClassVar[float] = 0.4
    """How likely each of ``some`` is."""

    @property
    def store(self) -> Store:
        return self.world.a

    @property
    def now(self) -> datetime:
        return at(self.second)

    async def play(self) -> None:
        moves = self.moves.split()
        for _ in range(self.steps):
            self.second += self.chance.randint(1, self.pause_s)
            await self.world.stay_alive(self.now)
            move = self.chance.choice(moves)
            try:
                self.told.append((move, await getattr(self, move)()))
            except (StoreError, JobError, HeartbeatError) as error:
                self.told.append((move, self.refused(error)))
            await self.after_a_move()

    def refused(self, error: Exception) -> str:
        return str(error)

    async def after_a_move(self) -> None:
        """To look at something each time."""

    async def left(self) -> Mapping[str, object]:
        """All that is stored, without the ids that each database gives."""
        raise NotImplementedError

    async def crash(self) -> object:
        if self.chance.random() < 0.5:
            return None
        now = self.now
        await self.store.end_lease(A, now=now)
        recovery = await self.world.b.recover(now=now, max_attempts=2, apology=APOLOGY)
        await self.come_back()
        return [(cut.run_id, cut.session, cut.outcome) for cut in recovery.cut_runs]

    async def leave(self) -> None:
        if self.chance.random() < 0.5:
            await self.store.leave(A, now=self.now)
            await self.come_back()

    async def come_back(self) -> None:
        self.runs.clear()
        await self.store.join(a_node(A))
        await self.world.stay_alive(self.now)

    async def move(self) -> object:
        """A chat gets the id of the other one, or a new one. Its old id is used again."""
        old, new = self.chance.choice([("100", "200"), ("200", "100"), ("100", "300")])
        if self.chance.random() < 0.6:
            return None
        return await self.store.move_chat("telegram", "default", old=old, new=new, now=self.now)

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    def some(self, items: Iterable[Item]) -> list[Item]:
        return [item for item in items if self.chance.random() < self.likely]


def in_memory() -> AbstractAsyncContextManager[World]:
    return world_on(InMemory())


def seeds(number: int) -> list[Any]:
    """Return the seeds of so many random histories, of which ``make test`` takes each third."""
    slow = pytest.mark.slow
    return [seed if seed % 3 == 0 else pytest.param(seed, marks=slow) for seed in range(number)]


async def both_do_the_same(
    kind: type[Player],
    database: Database,
    seed: int,
    other: Callable[[], AbstractAsyncContextManager[World]] = in_memory,
) -> None:
    async with world_on(database) as real, other() as memory:
        mine, theirs = (kind(world, random.Random(seed)) for world in (real, memory))
        for player in (mine, theirs):
            await player.play()
        for step, (one, two) in enumerate(zip(mine.told, theirs.told, strict=True)):
            assert one == two, f"step {step} of {mine.told[: step + 1]}"
        kept = await theirs.left()
        for what, found in (await mine.left()).items():
            assert found == kept[what], f"{what} after {mine.told}"
