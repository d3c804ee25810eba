"""What every store promises about what runs look at, and about their alerts (SPEC HB-4, HB-7)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from goclaw_py.core.errors import TooManyEvents, UnknownAgent
from goclaw_py.core.ids import AgentName, HeartbeatRunId
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.core.outcomes import HeartbeatRunKind, Outcome, Trigger
from goclaw_py.core.run_events import Usage
from goclaw_py.records import InboxKind, OutboxQuery, OutboxState
from goclaw_py.schedule.heartbeat.models import (
    MAX_EVENTS,
    HeartbeatClaim,
    HeartbeatEvent,
    HeartbeatRunStatus,
    PreconditionQuery,
)
from goclaw_py.store import heartbeat_rules
from tests.support.store_heartbeats import (
    a_heartbeat_run,
    alert,
    alerted,
    by_hand,
    claim_one,
    ended,
    planned,
    row_of,
    run_end,
    run_for,
    running_heartbeat,
)
from tests.support.stores import AGENT, ANN, BOB, T0, A, World, at, end, inbox, new_run, ran, say

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

OTHER = AgentName("other")
SPENT = Usage(1, 10, 2, 1, Decimal("0.5"))
DAY = timedelta(days=1)


async def an_alert(
    world: World, *messages: OutboundMessage, now: datetime = T0, target: Target = ANN
) -> HeartbeatClaim:
    """A heartbeat run by hand that has said this."""
    claimed = await by_hand(world.a, now=now)
    await world.a.end_heartbeat_run(alerted(claimed, target=target), messages, node=A)
    return claimed


async def sent(world: World) -> None:
    await world.a.mark_sent(await world.claimed(), "m1", now=T0)


async def dead(world: World, *, now: datetime = T0) -> None:
    await world.a.mark_dead(await world.claimed(now=now), "blocked", now=now)


async def given_up(world: World) -> None:
    rows = await world.a.outbox(OutboxQuery(limit=1))
    await world.a.drop_outbox([row.id for row in rows], now=T0)


async def is_busy(world: World, agent: AgentName = AGENT) -> bool:
    return (await world.b.run_facts(agent, spent_since=T0)).is_busy


async def test_an_agent_is_busy_from_the_message_to_its_answer(world: World) -> None:
    """HB-4: while it waits, and while it runs. What a dead process left waits, no command does."""
    await world.a.accept([inbox("c", kind=InboxKind.COMMAND)], node=A, now=T0)
    assert not await is_busy(world)
    first, second = await world.accept(ANN, ANN)
    assert await is_busy(world)
    assert not await is_busy(world, OTHER)
    await world.a.settle([second.id], Outcome.CANCELLED, now=T0)
    await world.a.begin_run(new_run("r", first), node=A)
    assert await is_busy(world)
    await world.a.finish_run(end("r"), node=A)
    assert not await is_busy(world)
    (row,) = await world.accept(ANN)
    await world.crash("lost", row)
    assert await is_busy(world)
    await world.b.settle([row.id], Outcome.CANCELLED, now=at(99))
    assert not await is_busy(world)


async def test_only_runs_for_people_make_an_agent_busy(world: World) -> None:
    for trigger in Trigger:
        await world.a.begin_run(replace(new_run(trigger), trigger=trigger), node=A)
        assert await is_busy(world) == (trigger in (Trigger.CHAT, Trigger.API))
        await world.a.finish_run(end(trigger, Outcome.FAILED), node=A)
        assert not await is_busy(world)


async def test_what_was_used_is_that_of_the_heartbeat_runs_claimed_since_then(world: World) -> None:
    """HB-12: also what one had used when it was given back."""
    await planned(world.a, AGENT, OTHER, now=at(20))
    for n, agent in enumerate([AGENT, AGENT, OTHER, AGENT]):
        claimed = await by_hand(world.a, agent, now=at(n))
        await world.a.end_heartbeat_run(replace(ended(claimed), usage=SPENT), node=A)

    async def used(since: float) -> Usage | None:
        return await world.b.heartbeat_usage(AGENT, since=at(since))

    assert await used(0) == Usage(3, 30, 6, 3, Decimal("1.5"))
    assert await used(1) == Usage(2, 20, 4, 2, Decimal("1.0"))
    assert (await world.b.run_facts(AGENT, spent_since=at(3))).spent == SPENT
    assert await used(3.5) is None
    assert (await world.b.run_facts(AgentName("nobody"), spent_since=T0)) == PreconditionQuery()
    claimed = await claim_one(world.a, now=at(20))
    cut = replace(run_end("r", outcome=Outcome.INTERRUPTED), usage=SPENT)
    await world.a.renew(A, until=at(99))
    await ran(world, run_for("r", claimed, started_at=at(20)), cut)
    await world.a.release_heartbeats([claimed.id], node=A)
    assert await used(20) == SPENT


async def test_events_wait_for_the_heartbeat_run_that_carries_them(world: World) -> None:
    """HB-13."""
    with pytest.raises(UnknownAgent):
        await world.a.add_event(AGENT, "x", now=T0, wake=False)
    await planned(world.a, AGENT, OTHER)
    assert await world.a.events(AGENT) == []

    async def add(text: str, second: float, agent: AgentName = AGENT) -> HeartbeatEvent:
        return await world.a.add_event(agent, text, now=at(second), wake=False)

    one, two = await add("pump", 0), await add("bad \0 \ud800 text", 1)
    foreign = await add("theirs", 5, OTHER)
    assert (two.agent, two.text, two.at) == (AGENT, "bad \ufffd \ufffd text", at(1))
    assert (await world.b.run_facts(AGENT, spent_since=T0)).events == (one, two)
    assert (await running_heartbeat(world.a)).wake_at is None
    claimed = await claim_one(world.a)
    late = await add("late", 6)
    carried = replace(ended(claimed), events=(one.id, two.id, foreign.id))
    await world.a.end_heartbeat_run(carried, node=A)
    assert await world.b.events(AGENT) == [late]
    assert await world.b.events(OTHER) == [foreign]


async def test_an_event_that_is_urgent_wakes(world: World) -> None:
    await planned(world.a, now=at(500))
    await world.a.add_event(AGENT, "pump", now=at(1), wake=True)
    await world.a.add_event(AGENT, "tank", now=at(2), wake=True)
    found = await running_heartbeat(world.b)
    assert (found.wake_at, found.wake_kind) == (at(1), HeartbeatRunKind.EVENT)


async def test_no_more_events_wait_than_are_allowed(world: World) -> None:
    """HB-13; also where they come at once."""
    await planned(world.a, AGENT, OTHER)
    calls = [
        store.add_event(AGENT, f"event {n}", now=T0, wake=False)
        for n in range(MAX_EVENTS)
        for store in (world.a, world.b)
    ]
    got = await asyncio.gather(*calls, return_exceptions=True)
    assert sum(isinstance(one, HeartbeatEvent) for one in got) == MAX_EVENTS
    with pytest.raises(TooManyEvents):
        await world.a.add_event(AGENT, "x", now=T0, wake=True)
    assert (await running_heartbeat(world.a)).wake_at is None
    assert len(await world.a.events(AGENT)) == MAX_EVENTS
    await world.a.add_event(OTHER, "x", now=T0, wake=False)


async def test_it_is_known_when_items_were_carried_last(world: World) -> None:
    """From when they were looked at: what came due while the agent worked was not carried."""
    await planned(world.a, AGENT, OTHER)
    for n, keys, noted in ((0, ("a", "b", "a"), None), (1, ("b", "c\0"), None), (2, ("d",), at(2))):
        last = replace(ended(await by_hand(world.a, now=at(n)), now=at(n + 0.5)), done=keys)
        await world.a.end_heartbeat_run(replace(last, noted_at=noted), node=A)
    done = (await world.b.run_facts(AGENT, spent_since=T0)).done
    assert done == {"a": at(0.5), "b": at(1.5), "c\ufffd": at(1.5), "d": at(2)}
    assert (await world.b.run_facts(OTHER, spent_since=T0)).done == {}


async def test_an_alert_is_known_from_when_it_waits_for_a_time(world: World) -> None:
    """HB-7: it counts from the confirmed delivery; a pending one counts as sent."""
    await planned(world.a)
    assert not await world.a.alert_state("k", since=T0)
    await an_alert(world, alert("pump", "k"))
    assert await world.b.alert_state("k", since=at(9999)) is OutboxState.WAITING
    row = await world.claimed()
    assert await world.b.alert_state("k", since=at(9999)) is OutboxState.WAITING
    await world.a.mark_sent(row, "m1", now=at(5))
    assert await world.b.alert_state("k", since=at(5)) is OutboxState.SENT
    for key, since in (("k", at(5.001)), ("other", T0), ("", T0)):
        assert not await world.b.alert_state(key, since=since)


@pytest.mark.parametrize("lose", [dead, given_up])
async def test_an_alert_of_which_a_message_is_lost_is_not_known(world: World, lose) -> None:  # type: ignore[no-untyped-def]
    """HB-7: or it would be lost for a day. Another one with its key counts."""
    await planned(world.a)
    await an_alert(world, alert("pump", "k"), alert("pump, continued", "k"))
    await sent(world)
    await lose(world)
    assert not await world.b.alert_state("k", since=T0)
    await an_alert(world, alert("pump", "k"))
    assert await world.b.alert_state("k", since=T0)


async def test_an_alert_keeps_its_key_when_its_chat_moves(world: World) -> None:
    """Its target and its row follow; the key names the old chat."""
    await planned(world.a)
    claimed = await an_alert(world, alert("pump", "k"), target=replace(ANN, thread="7"))
    assert await world.a.move_chat("telegram", "default", old="100", new="-300", now=at(1))
    row = await row_of(world.b, claimed.id)
    assert row.target == Target("telegram", "default", "-300", "7")
    (said,) = await world.b.outbox()
    assert (said.message.target.chat, said.message.alert) == ("-300", "k")
    known = await world.b.alert_state("k", since=T0)
    assert (row.delivery, known) == ("waiting", OutboxState.WAITING)


async def test_the_delivery_of_a_heartbeat_run_is_the_worst_of_its_messages(world: World) -> None:
    """HB-9: nobody is told that it alerted if the channel will never take it."""
    await planned(world.a)
    silent = await a_heartbeat_run(world.a)
    claimed = await an_alert(world, *(alert(f"part {n}", "k") for n in range(3)))
    assert (await row_of(world.b, silent.id)).delivery == ""

    async def stands() -> tuple[str, str, str]:
        row = await row_of(world.b, claimed.id)
        for outcome in ("alerted", "logged", "delivery_failed"):
            for agent in (None, row.agent):
                for since, counts in ((row.claimed_at, True), (row.claimed_at + DAY, False)):
                    runs = await world.b.heartbeat_runs(agent, outcome=outcome, since=since)
                    is_found = claimed.id in {one.id for one in runs}
                    assert is_found == (row.outcome == outcome and counts)
        return row.status, row.delivery, row.undelivered

    assert await stands() == ("alerted", "waiting", "")
    await sent(world)
    await sent(world)
    assert await stands() == ("alerted", "waiting", "")
    await dead(world)
    assert await stands() == ("delivery_failed", "failed", "blocked")
    (row,) = await world.a.outbox(OutboxQuery(OutboxState.FAILED))
    await world.a.drop_outbox([row.id], now=T0)
    assert await stands() == ("delivery_failed", "failed", "blocked")
    await world.a.retry_outbox([row.id], now=T0)
    assert await stands() == ("alerted", "waiting", "")
    await sent(world)
    assert await stands() == ("alerted", "sent", "")


async def test_an_alert_without_a_target_is_only_logged(world: World) -> None:
    """HB-8, HB-9: also of a release that stored it as alerted."""
    await planned(world.a)
    for status in (HeartbeatRunStatus.LOGGED, HeartbeatRunStatus.ALERTED):
        claimed = await by_hand(world.a)
        await world.a.end_heartbeat_run(ended(claimed, status), [], node=A)
        assert (await row_of(world.b, claimed.id)).outcome == "logged"
    for agent in (None, AGENT):
        for outcome, number in (("logged", 2), ("alerted", 0), ("delivery_failed", 0)):
            assert len(await world.b.heartbeat_runs(agent, outcome=outcome)) == number


async def test_only_an_alert_fails_by_its_delivery(world: World) -> None:
    await planned(world.a)
    claimed = await by_hand(world.a)
    failed = ended(claimed, HeartbeatRunStatus.FAILED)
    await world.a.end_heartbeat_run(failed, [say("broken")], node=A)
    await dead(world)
    row = await row_of(world.b, claimed.id)
    assert (row.status, row.delivery) == (HeartbeatRunStatus.FAILED, "failed")
    assert await world.b.undelivered([AGENT], since=T0) == []


async def test_an_alert_that_has_died_is_told_once(world: World) -> None:
    await planned(world.a, AGENT, OTHER)
    place = replace(ANN, thread="7")
    texts = ("pump", "pump, continued")
    claimed = await an_alert(world, *(alert(text, "k", place) for text in texts), target=place)
    assert await world.b.undelivered([AGENT], since=T0) == []
    await sent(world)
    await dead(world, now=at(5))
    (found,) = await world.b.undelivered([AGENT, OTHER], since=at(5))
    assert (found.heartbeat_run, found.agent) == (claimed.id, AGENT)
    assert (found.target, found.why) == (place, "blocked")
    assert [(one.text, one.alert) for one in found.said] == [(text, "k") for text in texts]
    assert await world.b.undelivered([AGENT], since=at(5.001)) == []
    assert await world.b.undelivered([OTHER], since=T0) == []
    told = [say("told", BOB)]
    calls = (one.notify_undelivered(claimed.id, told, now=at(6)) for one in (world.a, world.b))
    assert sorted(await asyncio.gather(*calls)) == [False, True]
    assert await world.b.undelivered([AGENT], since=T0) == []
    assert [row.message.text for row in await world.b.outbox()] == ["told", *reversed(texts)]
    assert (await row_of(world.b, claimed.id)).outcome == "delivery_failed"
    assert not await world.a.notify_undelivered(HeartbeatRunId("unknown"), [], now=T0)


async def test_alerts_that_died_are_told_in_that_order_unless_given_up(world: World) -> None:
    await planned(world.a)
    first, _, last = [await an_alert(world, alert(f"alert {n}"), now=at(n)) for n in range(3)]
    for second in (10, 9, 8):
        await dead(world, now=at(second))
    (_, middle, _) = await world.a.outbox()
    await world.a.drop_outbox([middle.id], now=at(11))
    found = await world.b.undelivered([AGENT], since=T0)
    assert [one.heartbeat_run for one in found] == [last.id, first.id]


async def test_the_log_is_kept_for_ninety_days_and_items_for_years(world: World) -> None:
    """DB-5."""
    await planned(world.a)
    old, young = await a_heartbeat_run(world.a, now=T0), await a_heartbeat_run(world.a, now=at(1))
    claimed = await by_hand(world.a, now=at(2))
    await world.a.end_heartbeat_run(replace(ended(claimed), done=("a",)), node=A)
    open_one = await by_hand(world.a, now=at(3))
    assert await world.a.sweep_heartbeat_runs(now=at(1) + 90 * DAY) == 1
    kept = [row.id for row in await world.b.heartbeat_runs()]
    assert (old.id in kept, kept) == (False, [open_one.id, claimed.id, young.id])
    assert await world.a.sweep_heartbeat_runs(now=T0 + 100 * DAY) == 2
    assert [row.id for row in await world.b.heartbeat_runs()] == [open_one.id]
    for second, known in ((2, ["a"]), (3, [])):
        await world.a.sweep_heartbeat_runs(now=at(second) + heartbeat_rules.ITEMS_KEPT)
        assert list((await world.b.run_facts(AGENT, spent_since=T0)).done) == known


async def test_what_cannot_be_stored_is_replaced(world: World) -> None:
    bad = AgentName("agent\0\ud800")
    await planned(world.a, bad)
    (found,) = await world.b.heartbeats([bad])
    assert found.agent == "agent\ufffd\ufffd"
    claimed = await claim_one(world.a, bad)
    await world.a.defer_heartbeat(claimed.id, node=A, detail="\0")
    assert (await row_of(world.b, claimed.id)).detail == "\ufffd"
    last = replace(ended(claimed), detail="\0", reply="\ud800", target=replace(ANN, thread="\0"))
    await world.a.end_heartbeat_run(last, [alert("\0", "\0")], node=A)
    row = await row_of(world.b, claimed.id)
    assert (row.detail, row.reply) == ("\ufffd", "\ufffd")
    assert row.target == replace(ANN, thread="\ufffd")
    assert await world.b.alert_state("\0", since=T0)
    assert (await world.b.run_facts(bad, spent_since=T0)) == PreconditionQuery()
