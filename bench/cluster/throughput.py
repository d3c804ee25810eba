"""What a message costs, and how many are answered: one node alone, one among others, two.

Each node is a process of its own (``member``), with people at its ``PeopleChannel``; the
database is on the same machine, so that CPU for each message tells more than the rate.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Any, Final

from bench.cluster.member import Kind, Member, member
from bench.cluster.people import said
from bench.inbox.measure import cpu_s
from bench.memory import resident_mb
from bench.scheduler.child import loops, run_on
from goclaw_py.app.loop import collect_less_often
from goclaw_py.store.migrate import migrate
from goclaw_py.store.postgres import Address, PostgresStore, connection

_DATABASE: Final = "bench_throughput"
_LOOK_S: Final = 0.1
_BREATH_S: Final = 3.0
"""After everybody is warm: what that was is counted by the server by then."""

_COUNTED_S: Final = 0.3
_COUNT_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class Load:
    """How much is written: in each of so many chats, ``each`` messages; ``per_s`` 0 is at once."""

    chats: int = 240
    each: int = 40
    per_s: float = 0.0

    @property
    def messages(self) -> int:
        """In all chats together."""
        return self.chats * self.each


@dataclass(frozen=True, slots=True)
class Part:
    """What one node did: from when until when, on the clock of all processes, and its CPU."""

    begin_s: float
    end_s: float
    cpu_s: float
    memory_mb: float


@dataclass(frozen=True, slots=True)
class Counters:
    """What the server has counted so far, of one database."""

    commits: int
    wal_bytes: int
    updates: Mapping[str, int]
    writes: Mapping[str, int]
    hot: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Rates:
    """What was found. CPU is in ms a message, of all nodes together.

    Args:
        waits: What the server's processes were seen waiting for, and how often, in percent of all
            looks at one that was not idle; "" is at work.
        writes: Rows written for each message, by table.
        hot: The percentage of updates that changed no index, by table.
    """

    per_s: float
    node_ms: float
    server_ms: float
    commits: float
    wal_kb: float
    memory_mb: float
    waits: Mapping[str, float]
    writes: Mapping[str, float]
    hot: Mapping[str, float]

    @property
    def whole_ms(self) -> float:
        """Nodes and server."""
        return self.node_ms + self.server_ms


def measure(address: Address, server: int, kinds: Sequence[Kind], load: Load) -> Rates:
    """Let fresh nodes answer, each its part of the chats, on a database of their own."""
    own = replace(address, database=_DATABASE)
    asyncio.run(_make(address, own))
    share = replace(load, chats=load.chats // len(kinds), per_s=load.per_s / len(kinds))
    context = get_context("spawn")
    sent: Any = context.Array("q", len(kinds))
    with ProcessPoolExecutor(len(kinds), context, _share, (sent,)) as processes:
        asked = [
            processes.submit(work, own, kind, share, number) for number, kind in enumerate(kinds)
        ]
        warm = share.chats * len(kinds)
        watching = asyncio.run(_watch(own, server, lambda: sum(sent) >= warm, asked))
        parts = [one.result() for one in asked]
    return _rates(parts, watching, share.messages * len(kinds))


class _Sent:
    """How much each node has sent: any of them may send what another one has to say."""

    each: Any = ()


def _share(sent: Any) -> None:
    _Sent.each = sent


def work(address: Address, kind: Kind, load: Load, number: int) -> Part:
    """What a node does, in a process of its own."""
    collect_less_often()
    return run_on(loops()[-1], _work(address, kind, load, number))


async def _work(address: Address, kind: Kind, load: Load, number: int) -> Part:
    store = await PostgresStore.open(
        host=address.host, user=address.user, database=address.database
    )
    nodes = len(_Sent.each)
    try:
        async with member(store, kind) as node:
            counting = asyncio.create_task(_count(node, number))
            await _write(node, Load(load.chats, 1), f"{number}-warm")
            await _until(nodes * load.chats)
            await asyncio.sleep(_BREATH_S)
            begin, used = time.monotonic(), time.process_time()
            await _write(node, load, str(number))
            await _until(nodes * (load.chats + load.messages))
            part = Part(begin, time.monotonic(), time.process_time() - used, resident_mb())
            counting.cancel()
        return part
    finally:
        await store.close()


async def _count(node: Member, number: int) -> None:
    while True:
        _Sent.each[number] = node.channel.sent
        await asyncio.sleep(_COUNT_S)


async def _until(total: int) -> None:
    """Wait until all nodes together have sent so much."""
    while sum(_Sent.each) < total:  # noqa: ASYNC110 - of other processes
        await asyncio.sleep(_COUNT_S)


async def _write(node: Member, load: Load, who: str) -> None:
    """Everybody writes everything."""
    at = node.clock.now()
    messages = [
        said(f"{who}-{chat}", number, at)
        for number in range(load.each)
        for chat in range(load.chats)
    ]
    if not load.per_s:
        await node.channel.hand_in(messages)
    else:
        await _paced(node, messages, load.per_s)


async def _paced(node: Member, messages: Sequence[Any], per_s: float) -> None:
    begin = time.monotonic()
    for number, message in enumerate(messages):
        await asyncio.sleep(max(begin + number / per_s - time.monotonic(), 0))
        await node.channel.hand_in([message])


# --------------------------------------------------------------------------------- the server


@dataclass(slots=True)
class _Watched:
    server_s: float
    before: Counters
    after: Counters
    waits: dict[str, int]


async def _watch(
    address: Address, server: int, is_warm: Callable[[], bool], asked: Sequence[Any]
) -> _Watched:
    """Look at the server from when the nodes are warm until they have ended."""
    while not (is_warm() or any(one.done() for one in asked)):  # noqa: ASYNC110 - the same
        await asyncio.sleep(_COUNT_S)
    await asyncio.sleep(_BREATH_S - _COUNTED_S)
    waits: dict[str, int] = {}
    async with connection(address) as one:
        before, used = await _counters(one), cpu_s(server)
        while not all(part.done() for part in asked):
            for row in await one.fetch(_WAITS):
                waits[row["what"]] = waits.get(row["what"], 0) + row["backends"]
            await asyncio.sleep(_LOOK_S)
        used = cpu_s(server) - used
        # The server's processes tell what they have done a moment after it, or when they end.
        await asyncio.sleep(1)
        await one.script("select pg_stat_clear_snapshot()")
        return _Watched(used, before, await _counters(one), waits)


_WAITS: Final = """
select coalesce(wait_event_type || ':' || wait_event, '') as what, count(*) as backends
from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and state = 'active'
group by 1
"""

_COUNTS: Final = """
select xact_commit as commits, pg_current_wal_lsn() - '0/0'::pg_lsn as wal
from pg_stat_database
where datname = current_database()
"""

_WRITES: Final = """
select relname as name, n_tup_ins + n_tup_upd + n_tup_del as writes, n_tup_upd as updates,
    n_tup_hot_upd as hot
from pg_stat_user_tables
"""


async def _counters(one: Any) -> Counters:
    (row,) = await one.fetch(_COUNTS)
    tables = await one.fetch(_WRITES)
    return Counters(
        row["commits"],
        int(row["wal"]),
        {table["name"]: table["updates"] for table in tables},
        {table["name"]: table["writes"] for table in tables},
        {table["name"]: table["hot"] for table in tables},
    )


async def _make(address: Address, own: Address) -> None:
    async with connection(address) as one:
        await one.script(f"drop database if exists {_DATABASE} with (force)")
        await one.script(f"create database {_DATABASE}")
    async with connection(own) as one:
        await migrate(one)


def _rates(parts: Sequence[Part], watched: _Watched, messages: int) -> Rates:
    seconds = max(part.end_s for part in parts) - min(part.begin_s for part in parts)
    ms = 1000 / messages
    before, after = watched.before, watched.after
    looks = max(sum(watched.waits.values()), 1)
    updates = {name: after.updates[name] - before.updates.get(name, 0) for name in after.updates}
    hot = {name: after.hot[name] - before.hot.get(name, 0) for name in after.hot}
    writes = {name: after.writes[name] - before.writes.get(name, 0) for name in after.writes}
    return Rates(
        per_s=messages / seconds,
        node_ms=ms * sum(part.cpu_s for part in parts),
        server_ms=ms * watched.server_s,
        commits=(after.commits - before.commits) / messages,
        wal_kb=(after.wal_bytes - before.wal_bytes) / messages / 1024,
        memory_mb=max(part.memory_mb for part in parts),
        waits={what: 100 * count / looks for what, count in watched.waits.items()},
        writes={name: count / messages for name, count in writes.items() if count},
        hot={name: 100 * hot[name] / count for name, count in updates.items() if count},
    )
