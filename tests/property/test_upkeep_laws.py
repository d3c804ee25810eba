"""What is forgotten is missed by nobody (SPEC DB-5).

Histories by chance are played on the store in memory; ``test_stores_agree`` shows that the other
one does the same.
"""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from goclaw_py.core.outcomes import Outcome
from goclaw_py.records import (
    DeadLetterQuery,
    IncomingState,
    OutboxQuery,
    OutboxState,
    RunQuery,
    SessionQuery,
)
from tests.property.test_stores_agree import Chats
from tests.support.stores import PLACES, A, InMemory, World, at, end, world_on

LATER = at(0) + timedelta(days=1000)
SEEDS = range(60)


async def sweep(player: Chats) -> None:
    """Forget everything that may go, as if it were years later."""
    store = player.world.a
    for stretch in (store.sweep_inbox, store.sweep_outbox):
        after: int | None = 0
        while after is not None:
            swept = await stretch(now=LATER, after=after)
            after = swept.after
    for step in (store.sweep_sessions, store.sweep_runs, store.sweep_requests):
        while await step(now=LATER):
            pass


async def open_things(player: Chats) -> dict[str, object]:
    """All that has not ended, and the conversations of chats."""
    store = player.world.a
    found = await store.sessions(SessionQuery(limit=1000))
    chats = [one for one in found if ":subagent:" not in one.key]
    outbox = await store.outbox(OutboxQuery(limit=1000))
    unsent = (OutboxState.WAITING, OutboxState.SENDING)
    return {
        "runs": await store.runs(RunQuery(limit=1000, active=True)),
        "inbox": [
            await store.dead_letters(DeadLetterQuery(state, limit=1000))
            for state in (IncomingState.WAITING, IncomingState.RUNNING)
        ],
        "outbox": [row for row in outbox if row.state in unsent],
        "drafts": await store.drafts(),
        "chats": chats,
        "history": [await store.history(one.key) for one in chats],
    }


async def ends(player: Chats) -> list[object]:
    """What is told when everything that is open comes to its end."""
    store, now = player.world.a, at(player.second + 1)
    for run in await store.runs(RunQuery(limit=1000, active=True)):
        await store.finish_run(end(run.id, Outcome.COMPLETED, "well"), node=A)
    pending = await store.claim_pending(A, now=now, places=PLACES)
    await store.settle([row.id for row in pending], Outcome.CANCELLED, now=now)
    return [pending, await store.recover(now=LATER, max_attempts=2, apology="sorry")]


async def played(world: World, seed: int) -> Chats:
    player = Chats(world, random.Random(seed))
    await player.play()
    return player


@pytest.mark.parametrize("seed", SEEDS)
async def test_nothing_that_has_not_ended_is_forgotten_and_what_stays_is_still_needed(
    seed: int,
) -> None:
    async with world_on(InMemory()) as world:
        player = await played(world, seed)
        before = await open_things(player)
        await sweep(player)
        assert await open_things(player) == before
        active = {run.id for run in await world.a.runs(RunQuery(limit=1000, active=True))}
        drafts = {draft.run_id for draft in await world.a.drafts()}
        assert {run.id for run in await world.a.runs(RunQuery(limit=1000))} == active | drafts
        if not drafts:
            left = [await world.a.dead_letter(one.id) for one in player.rows.values()]
            ended = [one.row for one in left if one and one.row.outcome is not None]
            assert {row.run_id for row in ended} <= active


@pytest.mark.parametrize("seed", SEEDS)
async def test_what_has_not_ended_ends_as_if_nothing_were_forgotten(seed: int) -> None:
    async with world_on(InMemory()) as swept, world_on(InMemory()) as whole:
        mine, theirs = await played(swept, seed), await played(whole, seed)
        await sweep(mine)
        assert await ends(mine) == await ends(theirs)
        assert await open_things(mine) == await open_things(theirs)
