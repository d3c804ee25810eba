"""Every statement that a gateway asks of a database with a million of everything.

A node works for a while: messages from chats that were silent, one by one and then a hundred at
once, stops, jobs, heartbeats, questions between nodes, what a dead node left, and looks at the
status. Then every list is asked for over HTTP, and what is old is forgotten, step by step. What
comes before a part, so that statements are planned and their pages read, does not count.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urlencode

from bench.api.measure import Asked, quantile, served
from bench.cluster.member import Kind, Member, member
from bench.cluster.people import said, session_of
from bench.cluster.rows import LEFT, fill
from bench.cluster.watched import Statement, Watch, explained, watched
from bench.jobs.gateway import a_job, add_all, fresh_store
from goclaw_py.core.errors import GoclawError
from goclaw_py.core.messages import InboundMessage
from goclaw_py.schedule.jobs.schedule import Every
from goclaw_py.store.postgres import Address, PostgresStore

LIMIT_MS: Final = 10.0

_DATABASE: Final = "bench_million"
_JOBS: Final = 20
_JOBS_FAR: Final = 10_000
_JOB_EVERY: Final = timedelta(seconds=2)
_HEARTBEAT_S: Final = 2
_BATCH: Final = 100
_TICK_S: Final = 0.05
_WARM: Final = 5
_KIND: Final = Kind(shared_cron=True, cron=4, heartbeats_s=_HEARTBEAT_S)
_SETTLE_S: Final = 12.0
"""A dead node is recovered once everybody had the time to renew."""


@dataclass(frozen=True, slots=True)
class Cost:
    """How long a statement took, in ms, of so many calls."""

    name: str
    calls: int
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True)
class Found:
    """What was measured, the slowest first; plans of those over the limit; what was not asked."""

    singly: Sequence[Cost]
    batches: Sequence[Cost]
    lists: Sequence[Cost]
    forgetting: Sequence[Cost]
    plans: Sequence[str]
    unseen: Sequence[str]


def measure(address: Address, rows: int, seconds: float, times: int) -> Found:
    """Fill a database, work in it for so long, and ask for each list so often."""
    return asyncio.run(_measure(address, rows, seconds, times))


async def _measure(address: Address, rows: int, seconds: float, times: int) -> Found:
    own = replace(address, database=_DATABASE)
    async with fresh_store(address, _DATABASE, min(rows, _JOBS_FAR)) as store:
        async with member(store, Kind()) as first:
            await first.channel.hand_in([said("1", 1, first.clock.now())])
            await first.channel.until_sent(1)
        await fill(own, rows)
        return await measure_filled(store, own, rows, seconds, times)


async def measure_filled(
    store: PostgresStore, address: Address, rows: int, seconds: float, times: int
) -> Found:
    """The same in a database that is filled already."""
    plans: list[str] = []
    with watched() as watch:
        costs: list[Sequence[Cost]] = []
        seen: list[str] = []
        async for statements in _parts(store, rows, seconds, times, watch):
            seen += [one.name for one in statements]
            costs.append(sorted(map(cost, statements), key=_by_p99, reverse=True))
            plans += [await _plan(address, one) for one in statements if is_slow(one)]
        return Found(costs[0], costs[1], costs[2], costs[3], plans, watch.unseen(seen))


async def _parts(
    store: PostgresStore, rows: int, seconds: float, times: int, watch: Watch
) -> AsyncIterator[list[Statement]]:
    async with member(store, _KIND) as node:
        now = node.clock.now()
        await add_all(store, [a_job(n, Every(_JOB_EVERY), now) for n in range(1, _JOBS + 1)])
        writing = _Writing(node, rows)
        await writing.work(max(seconds, _SETTLE_S), batch=_BATCH)
        for batch in (1, _BATCH):
            watch.take()
            await writing.work(seconds, batch=batch)
            yield watch.take()
    await _ask_for_lists(store, rows, _WARM)
    watch.take()
    await _ask_for_lists(store, rows, times)
    yield watch.take()
    await _forget(store, now, _WARM)
    watch.take()
    await _forget(store, now, times)
    yield watch.take()


def cost(statement: Statement) -> Cost:
    """What a statement took."""
    ms = statement.ms
    return Cost(statement.name, len(ms), quantile(ms, 50), quantile(ms, 99))


def is_slow(statement: Statement) -> bool:
    """Whether its time is over the limit as a rule, not only when the machine was busy."""
    return quantile(statement.ms, 50) > LIMIT_MS / 2 or quantile(statement.ms, 99) > LIMIT_MS


def _by_p99(one: Cost) -> float:
    return one.p99_ms


async def _plan(address: Address, statement: Statement) -> str:
    try:
        plan = await explained(address, statement)
    except GoclawError as error:
        plan = str(error)
    one = cost(statement)
    return f"{one.name}: p50 {one.p50_ms:.1f} ms, p99 {one.p99_ms:.1f} ms\n{plan}"


# ------------------------------------------------------------------------------------- working


@dataclass(slots=True)
class _Writing:
    """People who write, each of whom was silent for long."""

    node: Member
    rows: int
    chosen: random.Random = field(default_factory=random.Random)

    async def work(self, seconds: float, *, batch: int) -> None:
        """Let so many write at once, again and again, for so long; and others do what they do."""
        end, ticks = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            await self._hand_in([self._said() for _ in range(batch)])
            if ticks % 10 == 0:
                await self._others()
            ticks += 1
            await asyncio.sleep(_TICK_S * batch**0.5)

    async def _others(self) -> None:
        # Somebody whom nobody knows, and somebody who wants it stopped.
        await self._hand_in([self._said("new")])
        message = self._said()
        await self._hand_in([message, stop(message)])
        await self.node.container.backlog()
        with suppress(GoclawError):
            await self.node.container.calls.ask(self.node.cluster.node.id, "nothing")

    async def _hand_in(self, messages: Sequence[InboundMessage]) -> None:
        await self.node.channel.hand_in(messages)

    def _said(self, new: str = "") -> InboundMessage:
        at = self.node.clock.now()
        chat = str(self.chosen.randrange(LEFT + 2, self.rows))
        return said(f"{new}{chat}", time.monotonic_ns(), at)


def stop(message: InboundMessage) -> InboundMessage:
    """A ``/stop`` that comes behind a message, in one batch."""
    return replace(message, external_id=f"{message.external_id}s", text="/stop")


# --------------------------------------------------------------------------------------- lists


def lists(rows: int) -> dict[str, Asked]:
    """What operators ask for, by what it is called."""
    key = session_of(str(rows // 2))
    run = f"run-{rows // 2:09}"
    return {
        "runs": Asked("/api/runs", {}),
        "runs?active": Asked("/api/runs", {"active": "true"}),
        "runs?session": Asked("/api/runs", {"session": key}),
        "runs?agent": Asked("/api/runs", {"agent": "main"}),
        "runs?outcome, most": Asked("/api/runs", {"outcome": "completed"}),
        "runs?outcome, few": Asked("/api/runs", {"outcome": "failed"}),
        "runs?trigger, few": Asked("/api/runs", {"trigger": "cron"}),
        "a run": Asked(f"/api/runs/{run}", {}, None),
        "a run's record": Asked(f"/api/runs/{run}/record", {}, None),
        "sessions": Asked("/api/sessions", {}),
        "a session": Asked(f"/api/sessions/{key}", {}, None),
        "its history": Asked(f"/api/sessions/{key}/history", {}, None),
        "inbox": Asked("/api/inbox", {}, 0),
        "inbox?waiting": Asked("/api/inbox", {"waiting": "true"}, 0),
        "outbox": Asked("/api/outbox", {}, 0),
        **{
            f"outbox?state={state}": Asked("/api/outbox", {"state": state}, 0)
            for state in ("pending", "sending", "sent", "dead", "dropped")
        },
        "outbox?run": Asked("/api/outbox", {"run": run}, 0),
        "chats": Asked("/api/chats", {}, 3),
        "heard": Asked("/api/heard", {}, 6),
        "people": Asked("/api/people", {}, 3),
        "pairing": Asked("/api/pairing", {}, None),
        "heartbeat_runs": Asked("/api/heartbeat-runs", {}),
        "heartbeat_runs?outcome": Asked("/api/heartbeat-runs", {"outcome": "ok"}),
        "occurrences": Asked("/api/occurrences", {}),
        "occurrences?status": Asked("/api/occurrences", {"status": "failed"}),
        "occurrences of a job": Asked("/api/jobs/far-7/log", {}),
        "jobs": Asked("/api/jobs", {}, None),
        "jobs?owner": Asked("/api/jobs", {"owner": "operator"}, None),
        "jobs?state": Asked("/api/jobs", {"state": "paused"}, None),
        "schedule": Asked("/api/schedule", {}, None),
        "nodes": Asked("/api/nodes", {}, None),
    }


async def _ask_for_lists(store: PostgresStore, rows: int, times: int) -> None:
    async with served(store) as client:
        for asked in lists(rows).values():
            params = {} if asked.keys is None else {"limit": str(asked.limit)}
            path = f"{asked.path}?{urlencode({**params, **asked.params})}"
            for _ in range(times):
                await client.get(path)


# ---------------------------------------------------------------------------------- forgetting


async def _forget(store: PostgresStore, now: datetime, times: int) -> None:
    """As ``common.retention`` does, so many steps of each."""
    for sweep in (store.sweep_outbox, store.sweep_inbox):
        after: int | None = 0
        for _ in range(times):
            if after is None:
                break
            after = (await sweep(now=now, after=after)).after
    steps: Sequence[Callable[[], Awaitable[int]]] = (
        lambda: store.sweep_runs(now=now),
        lambda: store.sweep_sessions(now=now),
        lambda: store.sweep_requests(now=now),
        lambda: store.sweep_jobs(now=now),
        lambda: store.sweep_heartbeat_runs(now=now),
    )
    for step in steps:
        for _ in range(times):
            await step()


@asynccontextmanager
async def opened(address: Address) -> AsyncIterator[PostgresStore]:
    """A store over a database that stays."""
    store = await PostgresStore.open(
        host=address.host, user=address.user, database=address.database
    )
    try:
        yield store
    finally:
        await store.close()
