"""The store in memory does with heartbeats what PostgreSQL does."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal

import pytest

from goclaw_py.core.ids import AgentName, HeartbeatRunId, RunId
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.core.outcomes import HeartbeatRunKind, Outcome, Reason, Trigger
from goclaw_py.core.run_events import Usage
from goclaw_py.records import InboxKind, NewInbox, OutboxQuery, RunQuery
from goclaw_py.schedule.heartbeat.models import (
    HeartbeatClaim,
    HeartbeatConfig,
    HeartbeatRunEnd,
    HeartbeatRunStatus,
    Skip,
)
from tests.property.players import Player, both_do_the_same, seeds
from tests.support.postgres import Database
from tests.support.store_heartbeats import run_end, run_for
from tests.support.stores import T0, A, at, inbox, new_run

pytestmark = pytest.mark.real_time

AGENTS = [AgentName(name) for name in ("ann", "bob", "default")]
CHATS = [Target("telegram", "default", chat) for chat in ("100", "200")]
KEYS = ["", "pump", "tank"]
ENDS = [
    HeartbeatRunStatus(name)
    for name in ("ok", "alerted", "alerted", "logged", "no_route", "skipped", "failed")
]
OUTCOMES = [
    "ok",
    "alerted",
    "logged",
    "delivery_failed",
    "skipped",
    "skipped:empty",
    "lost",
    "what",
]


@dataclass(slots=True)
class Heartbeats(Player):
    claims: list[HeartbeatClaim] = field(default_factory=list)
    """All that was ever claimed."""
    events: list[int] = field(default_factory=list)

    moves = (
        "plan plan switch wake wake claim claim claim claim_manual defer begin begin "
        "finish finish end end give_back crash leave move event talk send drop tell look"
    )
    steps = 90
    pause_s = 9
    likely = 0.5

    async def after_a_move(self) -> None:
        store, wakes = self.world.a, self.chance.random() < 0.5
        due_at = await store.next_heartbeat_due(AGENTS, wakes=wakes)
        self.told.append((await store.heartbeats(), due_at))

    async def plan(self) -> None:
        intervals = [
            None,
            *(timedelta(microseconds=us) for us in (1_000_000, 7_000_001, 33_333_333)),
        ]
        offset = timedelta(microseconds=self.chance.randint(0, 9_000_000))
        plans = [
            HeartbeatConfig(agent, self.chance.choice(intervals), offset)
            for agent in self.some(AGENTS)
        ]
        await self.store.plan_heartbeats(plans, now=self.now)

    async def switch(self) -> object:
        agent, on = self.agent(), self.chance.choice([None, False, True, True])
        muted = self.chance.choice([None, at(self.second + 60)])
        return (
            await self.store.switch_heartbeat(agent, on=on, now=self.now),
            await self.store.mute_heartbeat(agent, muted),
        )

    async def wake(self) -> object:
        kind = self.chance.choice([HeartbeatRunKind.EVENT, HeartbeatRunKind.JOB])
        return await self.store.wake_heartbeat(self.agent(), kind, now=self.now)

    async def claim(self) -> object:
        ids = [HeartbeatRunId(f"beat {self.number():04}") for _ in range(self.chance.randint(0, 3))]
        claimed = await self.store.claim_heartbeats(
            A, self.some([*AGENTS, *AGENTS]), now=self.now, ids=ids, wakes=self.chance.randint(0, 2)
        )
        self.claims.extend(claimed)
        return claimed

    async def claim_manual(self) -> object:
        heartbeat_run = HeartbeatRunId(f"beat {self.number():04}")
        claimed = await self.store.claim_heartbeat_now(
            A, self.agent(), now=self.now, heartbeat_run=heartbeat_run
        )
        self.claims.extend([claimed] if claimed else [])
        return claimed

    async def defer(self) -> None:
        for claimed in self.some(self.claims[-3:]):
            await self.store.defer_heartbeat(claimed.id, node=A, detail=f"busy {self.second}")

    async def begin(self) -> None:
        """Also for what has ended by then."""
        for claimed in self.some(self.claims[-4:]):
            name = f"run {self.number():04}"
            await self.store.begin_run(run_for(name, claimed, started_at=self.now), node=A)
            self.runs[RunId(name)] = claimed

    async def finish(self) -> None:
        for run_id in self.some(list(self.runs)):
            claimed = self.runs.pop(run_id)
            last = self.an_end(claimed) if claimed and self.chance.random() < 0.7 else None
            outcome = self.chance.choice([Outcome.COMPLETED, Outcome.FAILED, Outcome.INTERRUPTED])
            end = replace(
                run_end(run_id, last, outcome),
                finished_at=self.now,
                say=self.words(last),
                usage=self.chance.choice([None, self.a_usage()]),
            )
            await self.store.finish_run(end, node=A)

    async def end(self) -> None:
        """Also what has ended before."""
        chosen = self.some(self.claims[-4:])
        ends = [self.an_end(one) for one in {one.agent: one for one in chosen}.values()]
        for end in ends:
            words = self.words(end) if self.chance.random() < 0.5 else ()
            await self.store.end_heartbeat_run(end, words, node=A)

    def words(self, end: HeartbeatRunEnd | None) -> tuple[OutboundMessage, ...]:
        if end is None or end.target is None:
            return ()
        key = self.chance.choice(KEYS)
        texts = [f"{key} {self.second} {n}" for n in range(self.chance.randint(1, 2))]
        return tuple(OutboundMessage(end.target, text, alert=key) for text in texts)

    def an_end(self, claimed: HeartbeatClaim) -> HeartbeatRunEnd:
        status = self.chance.choice(ENDS)
        return HeartbeatRunEnd(
            claimed.id,
            claimed.agent,
            status,
            self.now,
            skip=self.chance.choice([*Skip]) if status is HeartbeatRunStatus.SKIPPED else None,
            detail=self.chance.choice(["", "broken"]),
            reply=f"reply {self.second}",
            target=self.chance.choice(CHATS) if status is HeartbeatRunStatus.ALERTED else None,
            started_at=self.chance.choice([None, claimed.claimed_at]),
            attempts=self.chance.randint(0, 3),
            failed=self.chance.choice([None, False, True]),
            events=tuple(self.some(self.events)),
            done=tuple(self.some(["a", "b", "a"])),
            usage=self.chance.choice([None, self.a_usage()]),
        )

    def a_usage(self) -> Usage:
        cost = self.chance.choice([None, Decimal(self.chance.randint(0, 40)) / 8])
        return Usage(1, self.chance.randint(0, 9), 3, 0, cost)

    async def give_back(self) -> None:
        ids = [claimed.id for claimed in self.some(self.claims[-4:])]
        if self.chance.random() < 0.5:
            await self.store.release_heartbeats(ids, node=A)
        else:
            await self.store.release_unclaimed_heartbeats(ids, node=A)

    async def event(self) -> object:
        wake = self.chance.random() < 0.3
        event = await self.store.add_event(
            self.agent(), f"event {self.second}", now=self.now, wake=wake
        )
        self.events.append(event.id)
        return event

    async def talk(self) -> None:
        """Somebody talks to an agent: a message waits, or is answered."""
        target = self.chance.choice(CHATS)
        kind = self.chance.choice([InboxKind.MESSAGE, InboxKind.COMMAND])
        new: NewInbox = inbox(self.number(), target, kind=kind)
        rows = (await self.store.accept([new], node=A, now=self.now)).rows
        if not rows or self.chance.random() < 0.5:
            ids = [row.id for row in rows]
            await self.store.settle(ids, Outcome.CANCELLED, now=self.now, reason=Reason.STOPPED)
            return
        name = f"run {self.number():04}"
        trigger = self.chance.choice([Trigger.CHAT, Trigger.API, Trigger.SUBAGENT])
        run = replace(new_run(name, *rows, target=target, started_at=self.now), trigger=trigger)
        await self.store.begin_run(run, node=A)
        self.runs[RunId(name)] = None

    async def send(self) -> None:
        """What was said reaches its chat, or does not."""
        for chat in CHATS:
            row = await self.store.claim_next(chat, node=A, now=self.now)
            if row is not None and self.chance.random() < 0.6:
                await self.store.mark_sent(row, f"m{self.number()}", now=self.now)
            elif row is not None:
                await self.store.mark_dead(row, f"blocked {row.id}", now=self.now)

    async def drop(self) -> object:
        rows = [row.id for row in await self.store.outbox(OutboxQuery(limit=4))]
        if self.chance.random() < 0.5:
            return await self.store.drop_outbox(rows[:1], now=self.now)
        return await self.store.retry_outbox(rows[1:2], now=self.now)

    async def tell(self) -> object:
        since = at(self.second - self.chance.randint(0, 60))
        found = await self.store.undelivered(AGENTS[:2], since=since)
        told = [
            await self.store.notify_undelivered(
                one.heartbeat_run, [OutboundMessage(CHATS[0], one.why)], now=self.now
            )
            for one in [*found[:1], *found[:1]]
        ]
        return found, told

    async def look(self) -> object:
        store = self.world.a
        since = at(self.second - self.chance.randint(0, 90))
        return (
            [await store.run_facts(agent, spent_since=since) for agent in AGENTS],
            await store.heartbeat_usage(self.agent(), since=T0),
            [await store.alert_state(key, since=since) for key in KEYS[1:]],
            await store.heartbeat_runs(
                self.chance.choice([None, *AGENTS]),
                limit=self.chance.randint(1, 4),
                outcome=self.chance.choice([None, *OUTCOMES]),
            ),
        )

    async def left(self) -> dict[str, object]:
        """All that is stored."""
        store = self.world.a
        return {
            "log": await store.heartbeat_runs(limit=1000),
            "logs": [await store.heartbeat_runs(agent, limit=1000) for agent in AGENTS],
            "by outcome": [await store.heartbeat_runs(outcome=outcome) for outcome in OUTCOMES],
            "events": [await store.events(agent) for agent in AGENTS],
            "runs": await store.runs(RunQuery(limit=1000)),
            "outbox": [
                (row.id, row.message, row.created_at, row.state, row.sent_at)
                for row in await store.outbox(OutboxQuery(limit=999))
            ],
        }

    def agent(self) -> AgentName:
        return self.chance.choice(AGENTS)


@pytest.mark.parametrize("seed", seeds(40))
async def test_both_stores_do_the_same_with_heartbeats(
    postgres_database: Database, seed: int
) -> None:
    await both_do_the_same(Heartbeats, postgres_database, seed)
