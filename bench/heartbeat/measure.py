"""One measurement each, to be made in a process of its own."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg

from bench.heartbeat.gateway import HeartbeatLoad, heartbeat_runs_of, names, own, write_checklists
from bench.jobs.gateway import CLOCK, fresh_store
from bench.scheduler.child import loops, run_on
from goclaw_py.app.loop import collect_less_often
from goclaw_py.core.budget import Budget
from goclaw_py.schedule.heartbeat.active_hours import read_hours
from goclaw_py.schedule.heartbeat.decisions import HeartbeatPolicy
from goclaw_py.schedule.heartbeat.models import HeartbeatRunStatus, Skip
from goclaw_py.store.postgres import Address, PostgresStore

SILENT = "# Checklist\n\n<!-- nothing yet -->\n\n- [ ]\n- [x] what was done\n"
"""A checklist without a task."""

TASK = "# Checklist\n\n- [ ] look at the calendar\n"

CONNECTIONS = 10
"""As many as a store has."""

_SETTLE = timedelta(seconds=1)
_PATIENCE_S = 60.0
_ALL = 1_000_000


@dataclass(frozen=True, slots=True)
class Cause:
    """Why heartbeat runs are skipped.

    Args:
        sql: What is changed in the database to that end.
    """

    skip: Skip
    checklist: str | None = TASK
    policy: HeartbeatPolicy = field(default_factory=HeartbeatPolicy)
    sql: str = ""


def _causes() -> dict[str, Cause]:
    now = datetime.now(UTC)
    later, latest = (f"{now + timedelta(hours=hours):%H:%M}" for hours in (8, 12))
    asleep = HeartbeatPolicy(hours=read_hours(later, latest, "UTC"))
    causes = (
        Cause(Skip.EMPTY, SILENT),
        Cause(Skip.NO_FILE, None),
        Cause(Skip.UNREADABLE, "\0"),
        Cause(Skip.NOTHING_DUE, f"- daily {latest}: look at the calendar\n"),
        Cause(Skip.QUIET_HOURS, policy=asleep),
        Cause(
            Skip.MUTED,
            sql=f"update heartbeats set muted_until = '{now + timedelta(days=1)}'",
        ),
        Cause(
            Skip.BUDGET,
            policy=HeartbeatPolicy(day=Budget(tokens=1)),
            sql="update heartbeat_runs set requests = 1, input_tokens = 1, output_tokens = 1,"
            " cached_tokens = 0",
        ),
    )
    return {cause.skip.value: cause for cause in causes}


CAUSES = tuple(_causes())
"""Those that a heartbeat run by the grid meets; ``disabled`` needs somebody who asks for one."""


@dataclass(frozen=True, slots=True)
class HeartbeatTimes:
    """How many runs are measured, of how many agents, and how long it is from one to the next.

    Args:
        apart_ms: 0: all are due at once.
    """

    agents: int
    count: int
    apart_ms: float = 0.0

    @property
    def apart(self) -> timedelta:
        """The same."""
        return timedelta(milliseconds=self.apart_ms)


@dataclass(frozen=True, slots=True)
class Cost:
    """What heartbeat runs have cost. Of each: CPU of the process, and rows of the log.

    Args:
        p50_ms: From the claim until its end is stored.
        late_ms: The longest from when one was due to its claim.
        asked_ms: The same until its agent was asked, 0 if none was.
    """

    cpu_ms: float
    rows: float
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    late_ms: float = 0.0
    asked_ms: float = 0.0


def skips(address: Address, cause: str, heartbeat_runs: HeartbeatTimes) -> Cost:
    """Heartbeat runs that are skipped, each of another agent."""
    collect_less_often()
    return run_on(loops()[-1], _heartbeat_runs(address, _causes()[cause], heartbeat_runs))


def asked(address: Address, heartbeat_runs: HeartbeatTimes) -> Cost:
    """Heartbeat runs that ask an agent that takes no time, in a lane for all of them."""
    collect_less_often()
    return run_on(loops()[-1], _heartbeat_runs(address, None, heartbeat_runs))


async def _heartbeat_runs(
    address: Address, cause: Cause | None, heartbeat_runs: HeartbeatTimes
) -> Cost:
    name, agents = "bench_beats", heartbeat_runs.agents
    with tempfile.TemporaryDirectory(prefix="goclaw-bench-") as folder:
        workspaces = {agent: Path(folder) / agent for agent in names(agents)}
        write_checklists(workspaces.values(), TASK if cause is None else cause.checklist)
        policy = HeartbeatPolicy() if cause is None else cause.policy
        async with (
            fresh_store(address, name) as store,
            heartbeat_runs_of(
                store, own(address, name), workspaces, policy, lane=agents
            ) as heartbeat_gateway,
        ):
            # The first heartbeat run of each reads its file, the second finds all as it will be.
            await heartbeat_gateway.heard.until(agents, _PATIENCE_S)
            await heartbeat_gateway.run_sql(f"{'' if cause is None else cause.sql}; analyze")
            await _once(store, heartbeat_gateway, HeartbeatTimes(agents, agents))
            cost = await _once(store, heartbeat_gateway, heartbeat_runs)
        found = {(end.status, end.skip) for end, _ in heartbeat_gateway.heard.ends}
    wanted = (
        (HeartbeatRunStatus.OK, None) if cause is None else (HeartbeatRunStatus.SKIPPED, cause.skip)
    )
    if found != {wanted}:
        raise RuntimeError(f"beats were to end {wanted}, but ended {found}")
    return cost


async def _once(
    store: PostgresStore, heartbeat_gateway: HeartbeatLoad, heartbeat_runs: HeartbeatTimes
) -> Cost:
    heard, asked_at = heartbeat_gateway.heard, heartbeat_gateway.agent.asked
    heard.expect()
    asked_at.clear()
    before = len(await store.heartbeat_runs(limit=_ALL))
    at = CLOCK.now() + _SETTLE
    await heartbeat_gateway.fall_due(at, heartbeat_runs.apart, heartbeat_runs.count)
    await asyncio.sleep((at - CLOCK.now()).total_seconds() - 0.02)
    used = time.process_time()
    await heard.until(
        heartbeat_runs.count,
        _PATIENCE_S + (heartbeat_runs.apart * heartbeat_runs.count).total_seconds(),
    )
    used = time.process_time() - used
    rows = await store.heartbeat_runs(limit=_ALL)
    claimed = {row.id: row for row in rows}
    took = [
        1000 * (heard_at - claimed[end.id].claimed_at.timestamp()) for end, heard_at in heard.ends
    ]
    mine = [claimed[end.id] for end, _ in heard.ends]
    late = [1000 * (row.claimed_at - row.due_at).total_seconds() for row in mine]
    due = sorted(row.due_at.timestamp() for row in mine)
    waited = [1000 * (one - due_at) for one, due_at in zip(sorted(asked_at), due, strict=False)]
    return Cost(
        cpu_ms=1000 * used / heartbeat_runs.count,
        rows=(len(rows) - before) / heartbeat_runs.count,
        p50_ms=statistics.median(took),
        p99_ms=statistics.quantiles(took, n=100, method="inclusive")[98],
        late_ms=max(late),
        asked_ms=max(waited, default=0.0),
    )


# ---------------------------------------------------------------------------- the least there is

_ROW = (
    "insert into heartbeat_runs"
    " (id, agent, kind, due_at, claimed_at, finished_at, status, skip)"
    " values ($1, $2, 'interval', $3, $3, $3, 'skipped', 'empty')"
)


def bare(address: Address, heartbeat_runs: HeartbeatTimes) -> Cost:
    """One row for each heartbeat run, a commit each, by a loop that does nothing else."""
    collect_less_often()
    return run_on(loops()[-1], _bare(address, heartbeat_runs))


async def _bare(address: Address, heartbeat_runs: HeartbeatTimes) -> Cost:
    name = "bench_bare"
    async with fresh_store(address, name), AsyncExitStack() as ending:
        place = {"host": address.host, "user": address.user, "database": name}
        # Without a pool: that would ask the server to reset each connection that it takes back.
        free = [await asyncpg.connect(**place) for _ in range(CONNECTIONS)]
        for one in free:
            ending.push_async_callback(one.close)
        took: list[float] = []

        async def heartbeat_run(number: int) -> None:
            begin = time.perf_counter()
            mine = free.pop()
            await mine.execute(_ROW, f"beat-{number}", "agent", CLOCK.now())
            free.append(mine)
            took.append(1000 * (time.perf_counter() - begin))

        await asyncio.gather(*(heartbeat_run(-1 - number) for number in range(CONNECTIONS)))
        took.clear()
        used = time.process_time()
        await _one_by_one(heartbeat_run, heartbeat_runs.count, heartbeat_runs.apart_ms / 1000)
        used = time.process_time() - used
        rows = await free[0].fetchval("select count(*) from heartbeat_runs")
    return Cost(
        cpu_ms=1000 * used / heartbeat_runs.count,
        rows=(rows - CONNECTIONS) / heartbeat_runs.count,
        p50_ms=statistics.median(took),
        p99_ms=statistics.quantiles(took, n=100, method="inclusive")[98],
    )


async def _one_by_one(
    heartbeat_run: Callable[[int], Awaitable[None]], heartbeat_runs: int, apart_s: float
) -> None:
    if not apart_s:
        line = iter(range(heartbeat_runs))

        async def work() -> None:
            for number in line:
                await heartbeat_run(number)

        await asyncio.gather(*(work() for _ in range(CONNECTIONS)))
        return
    begin = time.perf_counter()
    for number in range(heartbeat_runs):
        await asyncio.sleep(max(0.0, begin + number * apart_s - time.perf_counter()))
        await heartbeat_run(number)
