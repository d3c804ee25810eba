"""Laws of usage: however it is grouped, each run counts once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.core.ids import MAIN_LANE, AgentName, LaneName, RunId, SessionKey
from goclaw_py.core.outcomes import Outcome, Trigger
from goclaw_py.core.run_events import Usage
from goclaw_py.core.time.zones import zone
from goclaw_py.records import NewRun, RunEnd
from goclaw_py.runs.usage_report import (
    NOTHING_USED,
    DaySpan,
    Grouping,
    UsageQuery,
    UsageTable,
    report,
    span_of,
    total_of,
)
from tests.support.postgres import Database
from tests.support.stores import AGENT, ANN, T0, A, InMemory, World, inbox, world_on

ZONES = [
    *("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo"),
    *("Pacific/Apia", "Pacific/Kiritimati", "Asia/Kathmandu", "America/Havana", "Asia/Beirut"),
    *("Antarctica/Troll", "Asia/Tehran"),
]
"""Those with changes at midnight, of half an hour, of two hours and of a whole day among them."""

zones = st.sampled_from(ZONES)
subsets = st.lists(st.sampled_from(list(Grouping)), unique=True).map(tuple)
days = st.dates(date(2008, 1, 1), date(2027, 12, 31))
lengths = st.integers(0, 365)


def span(since: date, length: int, name: str) -> DaySpan:
    return span_of(UsageQuery(since=since, until=since + timedelta(length), zone=name), T0)


# ---------------------------------------------------------------------------- days


@given(days, lengths, zones)
def test_days_follow_each_other_without_gap_or_overlap(since: date, length: int, name: str) -> None:
    found = span(since, length, name)
    assert len(found.starts) == len(found.days) + 1 == length + 2
    assert list(found.starts) == sorted(found.starts)
    assert list(found.days) == [since + timedelta(n) for n in range(length + 1)]


@given(days, lengths, zones, st.data())
def test_an_instant_is_of_the_day_that_clocks_show_unless_they_went_back_over_midnight(
    since: date, length: int, name: str, data: st.DataObject
) -> None:
    found = span(since, length, name)
    least, most = found.starts[0] - timedelta(days=2), found.starts[-1] + timedelta(days=2)
    naive = data.draw(st.datetimes(least.replace(tzinfo=None), most.replace(tzinfo=None)))
    instant = naive.replace(tzinfo=UTC)
    day = found.day_of(instant)
    inside = found.starts[0] <= instant < found.starts[-1]
    assert (day is not None) == inside
    if day is not None:
        shown = instant.astimezone(zone(name)).date()
        assert day == shown or (day == shown + timedelta(1) and _went_back(instant, name))


def _went_back(instant: datetime, name: str) -> bool:
    """Whether clocks had shown midnight before they showed this time."""
    hours = (instant - timedelta(hours=n / 2) for n in range(1, 8))
    return any(
        h.astimezone(zone(name)).replace(tzinfo=None).date() > instant.astimezone(zone(name)).date()
        for h in hours
    )


# ---------------------------------------------------------------------------- sums


class Runs:
    """Runs by chance, over some days."""

    def __init__(self, chance: random.Random, starts: Sequence[datetime]) -> None:
        self._chance = chance
        self._starts = starts

    async def make(self, world: World, number: int) -> None:
        await world.stay_alive(self._starts[-1] + timedelta(days=2))
        for n in range(number):
            rows = [row.id for row in await self._messages(world, n)]
            run = self._run(n, tuple(rows))
            await world.a.begin_run(run, node=A)
            if self._chance.random() < 0.9:
                await world.a.finish_run(self._end(run), node=A)

    async def _messages(self, world: World, n: int) -> Sequence:  # type: ignore[type-arg]
        sender = self._chance.choice(["7", "8", ""])
        if not sender:
            return []
        batch = [inbox(f"{n}", sender=sender)]
        return (await world.a.accept(batch, node=A, now=T0)).rows

    def _run(self, n: int, rows: tuple[int, ...]) -> NewRun:
        pick = self._chance.choice
        first, last = self._starts[0], self._starts[-1]
        begin = (
            first
            - timedelta(days=1)
            + (last - first + timedelta(days=2))
            * pick([self._chance.random(), self._chance.random()])
        )
        edge = pick([None, None, *self._starts])
        return NewRun(
            id=RunId(f"run {n}"),
            session=SessionKey("agent:default:telegram:direct:100"),
            agent=pick([AGENT, AgentName("Zoe"), AgentName("änne")]),
            trigger=pick(list(Trigger)),
            lane=pick([MAIN_LANE, LaneName("cron")]),
            inbox=rows,
            target=ANN,
            started_at=edge or begin.replace(microsecond=begin.microsecond),
            parent=pick([None, RunId(f"run {n - 1}"), RunId("nobody")]),
            model=pick(["", "small", "large"]),
        )

    def _end(self, run: NewRun) -> RunEnd:
        pick = self._chance.choice
        cost = pick([None, Decimal("0.0000001"), Decimal("12.5"), Decimal(0)])
        usage = pick([None, Usage(1, 2, 3, 1, cost), Usage(2, 0, 0, 0, cost)])
        return RunEnd(
            run.id,
            pick([Outcome.COMPLETED, Outcome.FAILED]),
            T0,
            usage=usage,
            model=pick(["", "x"]),
        )


def check(by: tuple[Grouping, ...], span: DaySpan, table: UsageTable, whole: UsageTable) -> None:
    """What holds of each answer beside the one that is not grouped."""
    assert table.total == whole.total
    query = UsageQuery(by, since=span.days[0], until=span.days[-1])
    messages = {
        (day, agent): (n, 2 * n) for n, day in enumerate(span.days) for agent in (None, AGENT)
    }
    answer = report(query, span, table, messages)
    rest = NOTHING_USED if answer.others is None else answer.others
    added = total_of(row.used for row in answer.rows).plus(rest)
    assert replace(added, received=None, sent=None) == whole.total
    count = sum(received for received, _ in messages.values())
    is_counted = set(by) <= {Grouping.AGENT, Grouping.DAY}
    assert (added.received or 0, added.sent or 0) == (count * is_counted, 2 * count * is_counted)
    assert (answer.total.received, answer.total.sent) == (count, 2 * count)
    groups = [tuple(row.group.items()) for row in table.rows]
    assert len(set(groups)) == len(groups)
    assert all(list(row.group) == list(by) for row in table.rows)


@given(st.integers(0, 2**32), days, st.integers(0, 4), zones, subsets, st.integers(1, 6))
def test_groups_and_what_is_left_out_add_up_to_the_whole(
    seed: int, since: date, length: int, name: str, by: tuple[Grouping, ...], limit: int
) -> None:
    async def play() -> None:
        found = span(since, length, name)
        async with world_on(InMemory()) as world:
            await Runs(random.Random(seed), found.starts).make(world, 12)
            whole = await world.a.usage((), found)
            check(by, found, await world.a.usage(by, found), whole)
            check(by, found, await world.a.usage(by, found, limit=limit), whole)
            parts = [(await world.a.usage((), span(day, 0, name))).total for day in found.days]
            assert total_of(parts) == whole.total

    asyncio.run(play())


@pytest.mark.real_time
@pytest.mark.parametrize("seed", range(4))
async def test_both_stores_give_the_same_answers(seed: int, postgres_database: Database) -> None:
    chance = random.Random(seed)
    name = chance.choice(ZONES)
    found = span(date(2026, 3, 1) + timedelta(chance.randrange(300)), chance.randrange(40), name)
    async with world_on(InMemory()) as memory, world_on(postgres_database) as postgres:
        for world in (memory, postgres):
            await Runs(random.Random(seed), found.starts).make(world, 60)
        whole = await postgres.a.usage((), found)
        for _ in range(25):
            by = tuple(chance.sample(list(Grouping), chance.randrange(len(Grouping) + 1)))
            limit = chance.choice([1, 2, 5, 1000])
            answer = await postgres.a.usage(by, found, limit=limit)
            assert answer == await memory.a.usage(by, found, limit=limit)
            check(by, found, answer, whole)
    assert whole.total.runs > 10
