"""What every store promises about what runs have used, added up (SPEC OPS-1, AGENT-5)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from goclaw_py.core.ids import AgentName, LaneName, RunId, SessionKey
from goclaw_py.core.messages import InboundMessage, Sender
from goclaw_py.core.outcomes import Outcome, Trigger
from goclaw_py.core.run_events import Usage
from goclaw_py.core.session_keys import announcement_id
from goclaw_py.records import InboxKind, InboxRow, NewInbox, NewRun
from goclaw_py.runs.usage_report import (
    NOTHING_USED,
    DayTimes,
    Grouping,
    UsageQuery,
    UsageTable,
    Used,
    span_of,
)
from tests.support.store_jobs import a_job, added, claim_one, ended, renamed, run_for, stored_job
from tests.support.stores import (
    AGENT,
    ANN,
    BOB,
    T0,
    A,
    World,
    at,
    end,
    key_of,
    message,
    new_run,
    pairing,
    recovered,
    say,
)

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

JOB, SENDER, DAY = Grouping.JOB, Grouping.SENDER, Grouping.DAY
A_CENT = Usage(2, 100, 10, 40, Decimal("0.01"))
UNPRICED = Usage(1, 50, 5)
HOUR = timedelta(hours=1)
ANNS = "telegram/default/7"


async def used(
    world: World, by: Collection[Grouping] = (), *, limit: int = 1000, zone: str = "UTC"
) -> UsageTable:
    """In the week around the beginning of the test's time."""
    query = UsageQuery(since=date(2025, 12, 30), until=date(2026, 1, 5), zone=zone)
    return await world.b.usage(by, span_of(query, T0), limit=limit)


async def counted(world: World, by: Grouping) -> dict[str | None, int]:
    """How many runs there are in each group."""
    return {row.group[by]: row.used.runs for row in (await used(world, [by])).rows}


async def ran(world: World, run: NewRun, usage: Usage | None = A_CENT) -> None:
    """A run from its begin to its end, on a node that lives."""
    assert await world.a.renew(A, until=run.started_at + timedelta(seconds=10))
    await world.a.begin_run(run, node=A)
    await world.a.finish_run(replace(end(run.id), usage=usage), node=A)


async def received(world: World, *messages: InboundMessage) -> list[InboxRow]:
    batch = [NewInbox(one, key_of(one.target), AGENT) for one in messages]
    return list((await world.a.accept(batch, node=A, now=T0)).rows)


async def ran_for(world: World, sent: InboundMessage, name: str = "r") -> None:
    await ran(world, new_run(name, *await received(world, sent), target=sent.target))


def child_of(parent: str, name: str = "child", trigger: Trigger = Trigger.SUBAGENT) -> NewRun:
    return replace(
        new_run(name),
        session=SessionKey(f"agent:default:{trigger}:{name}"),
        trigger=trigger,
        target=None,
        parent=RunId(parent),
        payer=key_of(ANN),
    )


async def test_the_sum_alone_is_one_group_without_values(world: World) -> None:
    for by in ((), list(Grouping)):
        assert await used(world, by) == UsageTable((), NOTHING_USED)
    for name, usage in (("r1", A_CENT), ("r2", UNPRICED), ("r3", None)):
        await ran(world, new_run(name), usage)
    found = await used(world)
    assert found.total == Used(3, 3, 150, 15, 40, Decimal("0.01"), unpriced=1)
    assert [(row.group, row.used, row.names) for row in found.rows] == [({}, found.total, {})]


async def test_a_run_counts_when_it_has_ended_however_it_ended(world: World) -> None:
    """Of a lost one nobody knows what it used."""
    await world.a.begin_run(new_run("works"), node=A)
    assert (await used(world)).total == NOTHING_USED
    for outcome in (Outcome.COMPLETED, Outcome.FAILED, Outcome.CANCELLED, Outcome.INTERRUPTED):
        await world.a.begin_run(new_run(outcome), node=A)
        await world.a.finish_run(replace(end(outcome, outcome), usage=A_CENT), node=A)
    assert (await used(world)).total == Used(4, 8, 400, 40, 160, Decimal("0.04"))
    await recovered(world)
    assert (await used(world)).total == Used(5, 8, 400, 40, 160, Decimal("0.04"))


async def test_a_run_belongs_to_the_day_on_which_it_started(world: World) -> None:
    """Days begin in the zone that is asked for: there it is an hour later."""
    midnight = datetime(2026, 1, 3, tzinfo=UTC)
    for name, hours, early in (("a", 24, 0), ("b", 1, 1), ("c", 1, 0), ("d", 0, 1), ("e", 0, 0)):
        begin = midnight - hours * HOUR - early * timedelta.resolution
        await ran(world, new_run(name, started_at=begin))
    assert await counted(world, DAY) == {"2026-01-02": 4, "2026-01-03": 1}
    found = await used(world, [DAY], zone="Europe/Berlin")
    days = {row.group[DAY]: row.used.runs for row in found.rows}
    assert days == {"2026-01-02": 2, "2026-01-03": 3}


async def test_what_was_before_or_after_the_days_does_not_count(world: World) -> None:
    edges = (datetime(2025, 12, 30, tzinfo=UTC), datetime(2026, 1, 6, tzinfo=UTC))
    for number, begin in enumerate(edges):
        await ran(world, new_run(f"in {number}", started_at=begin - number * HOUR))
        await ran(world, new_run(f"out {number}", started_at=begin - (1 - number) * HOUR))
    assert (await used(world)).total.runs == 2


async def test_runs_are_told_apart_by_agent_model_trigger_and_lane(world: World) -> None:
    """The model is the one that has answered."""
    here = replace(new_run("r1"), model="small")
    await ran(world, here)
    await ran(world, replace(here, id=RunId("r2"), agent=AgentName("other")))
    await ran(world, replace(here, id=RunId("r3"), trigger=Trigger.HEARTBEAT))
    await world.a.begin_run(replace(here, id=RunId("r4"), lane=LaneName("cron")), node=A)
    await world.a.finish_run(replace(end("r4"), model="large", usage=A_CENT), node=A)
    assert await counted(world, Grouping.AGENT) == {"default": 3, "other": 1}
    assert await counted(world, Grouping.TRIGGER) == {"chat": 3, "heartbeat": 1}
    assert await counted(world, Grouping.LANE) == {"main": 3, "cron": 1}
    assert await counted(world, Grouping.MODEL) == {"small": 3, "large": 1}
    assert len((await used(world, list(Grouping))).rows) == 4


async def test_a_run_counts_for_the_sender_of_its_first_message(world: World) -> None:
    rows = await received(world, message(1, sender="7"), message(2, sender="8"))
    await ran(world, new_run("both", *rows))
    await ran(world, new_run("nobody's"))
    assert await counted(world, SENDER) == {ANNS: 1, None: 1}
    await world.a.move_chat("telegram", "default", old=ANN.chat, new="-100", now=at(100))
    assert await counted(world, SENDER) == {ANNS: 1, None: 1}


@pytest.mark.parametrize(
    ("sent", "counts_for"),
    [
        (message(1, replace(ANN, account="work")), "telegram/work/7"),
        (replace(message(1), sender=Sender("api", "API"), source="api"), "api"),
        (message(1, sender="a/b\0\ud800'; --"), "telegram/default/a/b\ufffd\ufffd'; --"),
        (replace(message(1), external_id="subagent:gone", source="subagent"), None),
    ],
    ids=["another account", "over the API", "any id", "of an unknown subagent"],
)
async def test_whoever_has_sent_a_message_is_told_apart(
    world: World, sent: InboundMessage, counts_for: str | None
) -> None:
    await ran_for(world, sent)
    assert await counted(world, SENDER) == {counts_for: 1}


async def test_a_message_that_joined_a_run_later_changes_nothing(world: World) -> None:
    (first,) = await received(world, message(1, sender="7"))
    await world.a.begin_run(new_run("r", first), node=A)
    (second,) = await received(world, message(2, sender="8"))
    await world.a.finish_run(replace(end("r"), taken_in=(second.id,), usage=A_CENT), node=A)
    assert await counted(world, SENDER) == {ANNS: 1}


async def test_a_sender_who_was_approved_has_a_name(world: World) -> None:
    await ran_for(world, message(1, sender="42"), "r1")
    await ran_for(world, message(2, BOB, sender="43"), "r2")
    await world.a.accept([], node=A, now=T0, pairings=[pairing("42", "code")])
    assert await world.a.approve("code", guest=False, now=T0)
    names = {row.group[SENDER]: row.names for row in (await used(world, [SENDER])).rows}
    assert names == {"telegram/default/42": {SENDER: "name 42"}, "telegram/default/43": {}}


@pytest.mark.parametrize(("forget", "last"), [(True, {}), (False, {JOB: "tea"})])
async def test_a_run_counts_for_its_job_also_when_that_is_gone(
    world: World, forget: bool, last: dict[Grouping, str]
) -> None:
    """With the name that it has now; a deleted one has that of its log, if that is kept."""
    (job,) = await added(world.a, a_job("tea"))
    claimed = await claim_one(world.a)
    await world.a.begin_run(run_for("r", claimed), node=A)
    await ran(world, child_of("r"))
    await world.a.finish_run(replace(end("r"), usage=A_CENT, occurrence=ended(claimed)), node=A)

    async def names() -> dict[Grouping, str]:
        (row,) = (await used(world, [JOB])).rows
        assert (row.group, row.used.runs) == ({JOB: job.id}, 2)
        return dict(row.names)

    assert await names() == {JOB: "tea"}
    assert await world.a.change_job(renamed(await stored_job(world.a, job), "coffee"))
    assert await names() == {JOB: "coffee"}
    titled = await stored_job(world.a, job)
    assert await world.a.change_job(replace(titled, spec=replace(titled.spec, name="Tea for two")))
    assert await names() == {JOB: "Tea for two"}
    assert await world.a.delete_job(job.id, forget=forget)
    assert await names() == last


async def test_a_child_counts_once_for_whom_its_parent_works(world: World) -> None:
    """AGENT-5: its parent's session pays for it."""
    await world.a.begin_run(new_run("r", *await received(world, message(1))), node=A)
    await ran(world, child_of("r"))
    await ran(world, child_of("child", "grandchild", Trigger.DELEGATE))
    await world.a.finish_run(replace(end("r"), usage=A_CENT), node=A)
    found = await used(world, [SENDER, Grouping.TRIGGER])
    assert found.total == Used(3, 6, 300, 30, 120, Decimal("0.03"))
    assert {row.group[SENDER] for row in found.rows} == {ANNS}
    assert {row.group[Grouping.TRIGGER] for row in found.rows} == {"chat", "subagent", "delegate"}


async def test_a_run_that_reads_a_result_counts_for_whom_that_worked(world: World) -> None:
    await ran_for(world, message(1))
    await ran(world, child_of("r"))
    result = replace(message(2), external_id=announcement_id(RunId("child")), source="subagent")
    await ran_for(world, replace(result, sender=Sender("subagent", "Subagent")), "reads")
    assert await counted(world, SENDER) == {ANNS: 3}


async def test_the_groups_that_cost_most_come_first(world: World) -> None:
    prices = {"b": "0.10", "a": "0.1", "c": "0.3", "d": None}
    for name, price in prices.items():
        cost = None if price is None else Decimal(price)
        run = replace(new_run(name), agent=AgentName(name))
        await ran(world, run, Usage(1, 100, 0, cost_usd=cost))
    found = await used(world, [Grouping.AGENT])
    assert [row.group[Grouping.AGENT] for row in found.rows] == ["c", "a", "b", "d"]
    few = await used(world, [Grouping.AGENT], limit=2)
    assert (few.rows, few.total, few.left_out) == (found.rows[:2], found.total, 2)


async def test_the_times_that_runs_and_people_waited_are_told_for_each_day(world: World) -> None:
    """All runs wait to start; for a first text only people, if they were answered."""
    base = new_run("x").started_at
    runs = [  # seconds of waiting, until the first text, outcome, trigger
        (1, 3, Outcome.COMPLETED, Trigger.CHAT), (2, 5, Outcome.COMPLETED, Trigger.CHAT),
        (9, None, Outcome.FAILED, Trigger.CHAT), (-5, None, Outcome.CANCELLED, Trigger.CHAT),
        (500, 900, Outcome.LOST, Trigger.CRON),
    ]  # fmt: skip
    for number, (wait, first, outcome, trigger) in enumerate(runs):
        asked = base - timedelta(seconds=wait)
        run = replace(new_run(f"r{number}"), submitted_at=asked, trigger=trigger)
        await world.a.begin_run(run, node=A)
        text_at = None if first is None else asked + timedelta(seconds=first)
        done = replace(end(run.id, outcome), first_text_at=text_at)
        await world.a.finish_run(done, node=A)
    await world.a.begin_run(new_run("works"), node=A)
    span = span_of(UsageQuery(since=T0.date() - timedelta(days=1), until=T0.date()), T0)
    before, today = await world.b.run_times(span)
    assert before == DayTimes(T0.date() - timedelta(days=1))
    assert (today.day, today.runs, today.failed) == (T0.date(), 5, 2)
    assert today.wait_s == pytest.approx((2.0, 401.8))
    assert today.first_text_s == pytest.approx((4.0, 4.9))
    assert today.used == (await world.b.usage([], span)).total


async def counted_messages(world: World) -> dict[tuple[str, str | None], tuple[int, int]]:
    query = UsageQuery(since=date(2025, 12, 30), until=date(2026, 1, 12))
    found = await world.b.message_counts(span_of(query, T0))
    return {(day.isoformat(), agent): count for (day, agent), count in found.items()}


async def test_messages_count_on_the_day_on_which_they_came_or_were_delivered(
    world: World,
) -> None:
    """Commands too; results of subagents never came from outside, and unsent ones were not sent."""
    command = NewInbox(message(1), key_of(ANN), AGENT, kind=InboxKind.COMMAND)
    await world.a.accept([command], node=A, now=T0)
    await received(world, message(2), message(3, BOB))
    result = replace(message(4), external_id="subagent:r", source="subagent")
    await received(world, result)
    await world.put(say("waits", BOB))
    await world.put(say("to no session"))
    await world.a.mark_sent(await world.claimed(), "m", now=at(10))
    row, *_ = await received(world, message(5))
    await world.a.begin_run(new_run("r", row), node=A)
    await world.a.finish_run(replace(end("r"), say=(say("answer"),)), node=A)
    next_day = at(24 * 3600)
    await world.stay_alive(next_day)
    await world.a.mark_sent(await world.claimed(now=next_day), "m", now=next_day)
    assert await counted_messages(world) == {
        ("2026-01-02", "default"): (4, 0),
        ("2026-01-02", None): (0, 1),
        ("2026-01-03", "default"): (0, 1),
    }


@pytest.mark.parametrize("deleted", ["by age", "with the session"])
async def test_messages_count_for_90_days_also_when_they_are_deleted(
    world: World, deleted: str
) -> None:
    row, *_ = await received(world, message(1))
    await world.a.begin_run(new_run("r", row), node=A)
    await world.a.finish_run(replace(end("r"), say=(say("answer"),)), node=A)
    await world.stay_alive(at(60))
    await world.a.mark_sent(await world.claimed(now=at(60)), "m", now=at(60))
    counts = {("2026-01-02", "default"): (1, 1)}
    assert await counted_messages(world) == counts
    if deleted == "by age":
        assert (await world.a.sweep_inbox(now=T0 + timedelta(days=8))).rows == 1
        assert (await world.a.sweep_outbox(now=T0 + timedelta(days=8))).rows == 1
    else:
        assert await world.a.delete_session(key_of(ANN))
    assert await counted_messages(world) == counts
    assert await world.a.sweep_message_counts(now=T0 + timedelta(days=89)) == 0
    assert await world.a.sweep_message_counts(now=T0 + timedelta(days=91)) == 2
    assert await counted_messages(world) == {}
