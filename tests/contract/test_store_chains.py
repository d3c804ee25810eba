"""What every store promises about turns in a row that no person has begun (SPEC AGENT-14)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import SUBAGENT, Target
from goclaw_py.core.outcomes import Outcome
from goclaw_py.records import InboxRow
from goclaw_py.schedule.jobs.execution_models import OccurrenceStatus
from tests.support.store_jobs import a_job, by_hand, claimed_job, stored_job
from tests.support.stores import ANN, BOB, A, World, at, end, inbox, new_run

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

MOST = 5


async def arrives(world: World, number: int, source: str, chat: Target = ANN) -> InboxRow:
    """A message of a person, or of what has this name."""
    offered = inbox(number, chat)
    row = replace(offered, message=replace(offered.message, source=source))
    (accepted,) = (await world.a.accept([row], node=A, now=at(number / 10))).rows
    return accepted


async def begins(world: World, number: int, *rows: InboxRow, chat: Target = ANN) -> RunId:
    """A run that answers some messages."""
    run = new_run(f"r{number:02}", *rows, target=chat, started_at=at(number / 10 + 0.05))
    await world.a.begin_run(run, node=A)
    return run.id


async def turn(world: World, number: int, source: str, chat: Target = ANN) -> RunId:
    """A message and the whole run that answers it."""
    run = await begins(world, number, await arrives(world, number, source, chat), chat=chat)
    await world.a.finish_run(end(run), node=A)
    return run


@pytest.mark.parametrize(
    ("sources", "count"),
    [
        ([""], 0),
        (["", SUBAGENT], 1),
        (["", SUBAGENT, SUBAGENT], 2),
        (["", *[SUBAGENT] * 9], MOST),
        (["", SUBAGENT, "", SUBAGENT], 1),
        (["", SUBAGENT, SUBAGENT, ""], 0),
        (["", SUBAGENT, "api", SUBAGENT], 1),
        ([SUBAGENT, SUBAGENT], 2),
    ],
)
async def test_turns_that_subagents_begin_are_counted_up_to_the_last_of_a_person(
    world: World, sources: Sequence[str], count: int
) -> None:
    runs = [await turn(world, number, source) for number, source in enumerate(sources, 1)]
    assert await world.b.chained_turns(runs[-1], limit=MOST) == count


async def test_a_turn_that_also_answers_a_person_is_begun_by_one(world: World) -> None:
    await turn(world, 1, SUBAGENT)
    rows = [await arrives(world, 2, SUBAGENT), await arrives(world, 3, "")]
    assert await world.a.chained_turns(await begins(world, 4, *rows), limit=MOST) == 0


async def test_a_person_who_was_heard_since_ends_the_count(world: World) -> None:
    """Their message may have been taken in by a turn that a subagent has begun, or wait."""
    await turn(world, 1, SUBAGENT)
    await arrives(world, 2, "")
    assert await world.a.chained_turns(await turn(world, 3, SUBAGENT), limit=MOST) == 1


async def test_attempts_at_the_same_messages_are_one_turn(world: World) -> None:
    row = await arrives(world, 1, SUBAGENT)
    for number in (1, 2):
        run = await begins(world, number, row)
        await world.a.finish_run(end(run, Outcome.INTERRUPTED), node=A)
    assert await world.a.chained_turns(await begins(world, 3, row), limit=MOST) == 1


async def test_other_conversations_and_later_turns_do_not_count(world: World) -> None:
    first = await turn(world, 1, SUBAGENT)
    await turn(world, 2, SUBAGENT)
    await turn(world, 3, SUBAGENT, BOB)
    assert await world.a.chained_turns(first, limit=MOST) == 1


async def test_a_claim_knows_what_led_to_its_job(world: World) -> None:
    """Also a later one, after an edit that somebody else has made."""
    claimed = await claimed_job(world.a, replace(a_job("tea"), chained=3))
    assert claimed.job.chained == 3
    assert await world.b.change_job(replace(await stored_job(world.b, claimed.job), chained=4))
    await world.a.give_back([claimed.id], node=A, status=OccurrenceStatus.INTERRUPTED)
    assert (await by_hand(world.a, claimed.job)).job.chained == 4
