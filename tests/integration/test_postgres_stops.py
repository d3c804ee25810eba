"""Stops, begins and ends of the same messages at once: nobody waits for each other for ever."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from dataclasses import replace

import pytest

from goclaw_py.model.errors import Fenced
from goclaw_py.model.messages import Target
from goclaw_py.model.outcomes import Outcome, Reason
from goclaw_py.ports.store import InboxKind, InboxRow, NewRun, Stops
from tests.support.postgres import Database
from tests.support.stores import T0, A, World, end, inbox, new_run, world_on

pytestmark = pytest.mark.real_time

CHATS = 12
EACH = 3


def chat(number: int) -> Target:
    return Target("telegram", "default", str(1000 + number))


async def with_drafts(world: World, rows: list[InboxRow], name: str) -> None:
    """Each message has been worked on, and a draft is left for it."""
    runs = [new_run(f"{name} {row.id}", row, target=row.message.target) for row in rows]
    await asyncio.gather(*(world.a.begin_run(run, node=A) for run in runs))
    for run in runs:
        await world.a.open_draft(run.id, run.target or chat(0), now=T0)
        await world.a.draft_posted(run.id, f"draft of {run.id}")
    cut = (end(run.id, Outcome.INTERRUPTED) for run in runs)
    await asyncio.gather(*(world.a.finish_run(one, node=A) for one in cut))


async def stopped(
    world: World, how: str, rows: list[InboxRow], number: str, after_s: float
) -> None:
    """Somebody stops all of a chat."""
    await asyncio.sleep(after_s)
    if how == "settle":
        ids = [row.id for row in rows]
        await world.b.settle(ids, Outcome.CANCELLED, now=T0, reason=Reason.STOPPED_ALL)
        return
    stop = inbox(number, rows[0].message.target, kind=InboxKind.COMMAND, outcome=Outcome.COMPLETED)
    if how == "a stop that comes again":
        await world.a.accept([stop], node=A, now=T0)
    names = tuple(row.message.external_id for row in rows)
    await world.b.accept([replace(stop, stops=Stops(names, Reason.STOPPED_ALL))], node=A, now=T0)


async def begin_and_end(world: World, run: NewRun, after_s: float) -> None:
    await asyncio.sleep(after_s)
    with suppress(Fenced):  # all that it would answer was stopped before
        await world.a.begin_run(run, node=A)
        await world.a.finish_run(end(run.id, Outcome.CANCELLED), node=A)


@pytest.mark.parametrize("how", ["settle", "a stop", "a stop that comes again"])
async def test_whatever_meets_in_a_chat_goes_on(postgres_database: Database, how: str) -> None:
    """A deadlock would end one of them with an error."""
    chance = random.Random(how)
    async with world_on(postgres_database) as world:
        for turn in range(6):
            rows = await world.accept(*(chat(n) for n in range(CHATS) for _ in range(EACH)))
            await with_drafts(world, rows, f"first {turn}")
            runs = [new_run(f"{turn} {row.id}", row, target=row.message.target) for row in rows]
            chance.shuffle(runs)
            of_chats = [rows[at : at + EACH] for at in range(0, len(rows), EACH)]
            await asyncio.gather(
                *(begin_and_end(world, run, chance.random() / 100) for run in runs),
                *(
                    stopped(world, how, mine, f"stop {turn}", chance.random() / 100)
                    for mine in of_chats
                ),
            )
            assert await world.a.drafts() == []
