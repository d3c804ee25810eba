"""One measurement each, to be made in a process of its own."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final
from urllib.parse import urlencode

from bench.api.rows import NOW, fill
from bench.jobs.gateway import CLOCK, fresh_store
from bench.scheduler.child import loops, run_on
from goclaw_py.app.loop import collect_less_often
from goclaw_py.core.pagination import Cursor
from goclaw_py.gateway.store_control import StoreControl
from goclaw_py.store.postgres import Address, PostgresStore
from goclaw_py.web.api.routes import closing_of, make_api
from goclaw_py.web.front import WebAccess, tcp_server
from goclaw_py.web.tcp import listen_tcp

PAGE: Final = 50
SPANS: Final = 2_000
_LINK: Final = re.compile(rb"\r\nlink: <\?([^>]*)>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Asked:
    """A list. ``keys``: how many texts its places have, 0 where rows have numbers, None: no place.

    Args:
        prefix: Of the ids, which are as long as those of the rows.
    """

    path: str
    params: Mapping[str, str]
    keys: int | None = 1
    limit: int = PAGE


def lists(rows: int) -> dict[str, Asked]:
    """What is asked for, by what it is called."""
    since = NOW - timedelta(seconds=rows // 2)
    span = {"since": since.isoformat(), "until": (since + timedelta(seconds=SPANS)).isoformat()}
    key = "agent:main:telegram:direct:77"
    return {
        "runs": Asked("/api/runs", {}),
        "runs?active": Asked("/api/runs", {"active": "true"}),
        "runs?session": Asked("/api/runs", {"session": key}),
        "runs?agent, most": Asked("/api/runs", {"agent": "main"}),
        "runs?agent, few": Asked("/api/runs", {"agent": "rare"}),
        "runs?trigger, a third": Asked("/api/runs", {"trigger": "cron"}),
        "runs?trigger, few": Asked("/api/runs", {"trigger": "subagent"}),
        "runs?outcome, most": Asked("/api/runs", {"outcome": "completed"}),
        "runs?outcome, few": Asked("/api/runs", {"outcome": "abandoned"}),
        "runs?trigger&outcome": Asked("/api/runs", {"trigger": "cron", "outcome": "failed"}),
        "runs/timeline": Asked("/api/runs/timeline", span, None, SPANS),
        "sessions": Asked("/api/sessions", {}),
        "inbox": Asked("/api/inbox", {}, 0),
        "inbox?waiting": Asked("/api/inbox", {"waiting": "true"}, 0),
        "outbox": Asked("/api/outbox", {}, 0),
        **{
            f"outbox?state={state}": Asked("/api/outbox", {"state": state}, 0)
            for state in ("pending", "sending", "sent", "dead", "dropped")
        },
        "outbox?run": Asked("/api/outbox", {"run": "run-000000077"}, 0),
        "chats": Asked("/api/chats", {}, 3),
        "heard": Asked("/api/heard", {}, 6),
        "people": Asked("/api/people", {}, 3),
        "heartbeat_runs": Asked("/api/heartbeat-runs", {}),
        "heartbeat_runs?outcome=ok": Asked("/api/heartbeat-runs", {"outcome": "ok"}),
        "heartbeat_runs?outcome=skipped:budget": Asked(
            "/api/heartbeat-runs", {"outcome": "skipped:budget"}
        ),
        "heartbeat_runs?outcome, few": Asked("/api/heartbeat-runs", {"outcome": "failed"}),
        "occurrences": Asked("/api/occurrences", {}),
        "occurrences?status, few": Asked("/api/occurrences", {"status": "timed_out"}),
        "occurrences of a job": Asked("/api/jobs/j7/log", {}),
        "jobs": Asked("/api/jobs", {}, None),
        "jobs?owner, most": Asked("/api/jobs", {"owner": "operator"}, None),
        "jobs?owner, few": Asked("/api/jobs", {"owner": "rare"}, None),
        "jobs?state, few": Asked("/api/jobs", {"state": "paused"}, None),
        "jobs?name, few": Asked("/api/jobs", {"name": "far-777"}, None),
        "schedule": Asked("/api/schedule", {}, None),
        "a run's record": Asked("/api/runs/run-000000077/record", {}, None),
    }


@dataclass(frozen=True, slots=True)
class Cost:
    """How long answers took, in ms: the first page, and one deep in the list."""

    first_p50_ms: float
    first_p99_ms: float
    deep_p50_ms: float
    deep_p99_ms: float
    rows: int


def measure(address: Address, rows: int, times: int) -> dict[str, Cost]:
    """Every list, with so many rows of each kind; each is asked for so often."""
    return run_on(loops()[-1], _measure(address, rows, times))


async def _measure(address: Address, rows: int, times: int) -> dict[str, Cost]:
    collect_less_often()
    name = "bench_api"
    async with fresh_store(address, name, rows) as store:
        await fill(store, replace(address, database=name), rows)
        async with served(store) as client:
            return {
                name: await _cost(client, asked, rows, times) for name, asked in lists(rows).items()
            }


async def _cost(client: Client, asked: Asked, rows: int, times: int) -> Cost:
    first = {"limit": str(asked.limit), **asked.params}
    deep = first if asked.keys is None else {**first, "before": _deep(asked.keys, rows)}
    took: list[list[float]] = []
    found = 0
    for params in (first, deep):
        path = f"{asked.path}?{urlencode(params)}"
        # Statements are planned, and pages of the database read.
        await client.get(path)
        body = b""
        took.append([])
        for _ in range(times):
            begin = time.perf_counter()
            body = await client.get(path)
            took[-1].append(1000 * (time.perf_counter() - begin))
        if params is first:
            shown = json.loads(body)
            found = len(shown) if isinstance(shown, list) else 1
    return Cost(
        quantile(took[0], 50),
        quantile(took[0], 99),
        quantile(took[1], 50),
        quantile(took[1], 99),
        found,
    )


def _deep(keys: int, rows: int) -> str:
    """A place behind nine tenths of a list."""
    at = NOW - timedelta(seconds=rows * 9 // 10)
    return str(Cursor(at, ("x",) * keys)) if keys else str(rows // 10)


def quantile(values: list[float], percent: int) -> float:
    """The smallest value that so many percent do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


class Client:
    """One connection that is kept. Does little, so that the server is what is measured."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def get(self, path: str) -> bytes:
        """The body of a good answer. Raises ``RuntimeError`` for another."""
        self._writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"\r\ncontent-length: (\d+)", head, re.IGNORECASE)
        body = await self._reader.readexactly(int(length[1]) if length else 0)
        if not head.startswith(b"HTTP/1.1 200 "):
            raise RuntimeError(f"{path}: {head.splitlines()[0]!r} {body!r}")
        return body


@asynccontextmanager
async def served(store: PostgresStore) -> AsyncIterator[Client]:
    """The API on TCP, as a gateway has it, in this process."""
    listener = listen_tcp("127.0.0.1", 0)
    app = make_api(StoreControl(store, CLOCK))
    server = tcp_server(listener, (), app, WebAccess("127.0.0.1"), on_stop=closing_of(app).set)
    port = listener.getsockname()[1]
    serving = asyncio.create_task(server.run())
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()
        server.stop()
        await serving
