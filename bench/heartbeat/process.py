"""A whole gateway process whose agents beat as they do by default, in real time."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.heartbeat.gateway import EVERY, names, own, settings_file, write_checklists
from bench.heartbeat.measure import SILENT, TASK
from bench.jobs.gateway import fresh_store
from bench.telegram.processes import own_cpu_s
from goclaw_py.schedule.heartbeat.models import OPEN, HeartbeatRun
from goclaw_py.schedule.jitter import MAX_OFFSET
from goclaw_py.store.postgres import Address, connection
from tests.support.process import Home, home

_MODEL = "python:bench.heartbeat.gateway:calm"
_FAR = "update heartbeats set next_at = next_at + interval '1 hour' where next_at is not null"
_TOLD = 4_000
"""How many characters of a gateway's log an error tells."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """How long is measured, in seconds, and how long the process may come to rest before."""

    busy_s: float = 60.0
    idle_s: float = 20.0
    rest_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Load:
    """What was found. CPU is that of the gateway process, as a part of one processor.

    Args:
        busy: Within the minutes over which the heartbeat runs of a half-hour are spread.
        idle: While no heartbeat run is due.
        beat_ms: What one adds to that.
        late_s: The longest from when one was due to its claim.
        began_s: The same to the beginning of its run, 0 if there was none.
    """

    busy: float
    idle: float
    heartbeat_ms: float
    late_s: float
    began_s: float

    @property
    def mean(self) -> float:
        """Over the whole half-hour."""
        part = MAX_OFFSET / EVERY
        return part * self.busy + (1 - part) * self.idle


def measure(address: Address, agents: int, stretch: Stretch, *, asks: bool) -> Load:
    """Run one on the database of a server, with a lane for all agents.

    Its first heartbeat runs come within five minutes after the start, at the offsets of its agents;
    of these minutes a stretch is measured. ``asks``: each run asks an agent that takes no time,
    else it is skipped.
    """
    return asyncio.run(_measure(address, agents, stretch, asks=asks))


async def _measure(address: Address, agents: int, stretch: Stretch, *, asks: bool) -> Load:
    database = "bench_process"
    async with fresh_store(address, database) as store:
        url = f"postgresql:///{database}?host={address.host}&user={address.user}"
        with _place(agents, url, asks=asks) as place:
            gateway = await asyncio.to_thread(place.start)
            await asyncio.sleep(stretch.rest_s)
            before = {
                heartbeat_run.id for heartbeat_run in await store.heartbeat_runs(limit=agents)
            }
            busy, took_s = await _cpu(gateway.pid, stretch.busy_s)
            rows = await store.heartbeat_runs(limit=agents)
            async with connection(own(address, database)) as one:
                await one.script(_FAR)
            await asyncio.sleep(stretch.rest_s / 5)
            idle, _ = await _cpu(gateway.pid, stretch.idle_s)
            # Here, for the database goes before the home does.
            await asyncio.to_thread(place.end)
    return _load([row for row in rows if row.id not in before], busy, idle, took_s, asks=asks)


@contextmanager
def _place(agents: int, url: str, *, asks: bool) -> Iterator[Home]:
    with (
        tempfile.TemporaryDirectory(prefix="goclaw-bench-") as folder,
        home(Path(folder), GOCLAW_DATABASE_URL=url) as place,
    ):
        known = names(agents)
        workspaces = [place.folder / "workspaces" / name for name in known]
        write_checklists(workspaces, TASK if asks else SILENT)
        settings = settings_file(known, model=_MODEL if asks else "")
        (place.folder / "goclaw.toml").write_text(settings)
        try:
            yield place
        except Exception as error:
            # The folder goes away, and with it what the gateway has to say about it.
            for log in place.folder.glob("*.log"):
                error.add_note(log.read_text(errors="replace")[-_TOLD:])
            raise


async def _cpu(process: int, seconds: float) -> tuple[float, float]:
    """What a process uses for so long, as a part of one processor; how long that was."""
    used, begin = own_cpu_s(process), time.perf_counter()
    await asyncio.sleep(seconds)
    passed = time.perf_counter() - begin
    return (own_cpu_s(process) - used) / passed, passed


def _load(
    rows: Sequence[HeartbeatRun], busy: float, idle: float, took_s: float, *, asks: bool
) -> Load:
    ended = [row for row in rows if row.status not in OPEN]
    found = {row.outcome for row in ended}
    if found != {"ok" if asks else "skipped:empty"}:
        raise RuntimeError(f"beats ended as {found or 'nothing'}")
    late = [(row.claimed_at - row.due_at).total_seconds() for row in rows]
    began = [
        (row.started_at - row.due_at).total_seconds() for row in ended if row.started_at is not None
    ]
    return Load(
        busy=busy,
        idle=idle,
        heartbeat_ms=1000 * (busy - idle) * took_s / len(ended),
        late_s=max(late),
        began_s=max(began, default=0.0),
    )
