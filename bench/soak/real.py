"""Half an hour of gateway processes on PostgreSQL, behind the Bot API emulator."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import asyncpg

from bench.embedded import server
from bench.jobs.gateway import CLOCK, a_job
from bench.memory import resident_mb
from bench.soak import gateway
from bench.soak.agent import MARK
from bench.soak.measured import connections, descriptors, scraped, tables
from bench.soak.report import Soaked
from bench.soak.series import Fold, Series
from bench.telegram.processes import own_cpu_s
from goclaw_py.core.messages import Target
from goclaw_py.schedule.jobs.models import FixedMessage
from goclaw_py.schedule.jobs.schedule import Every
from goclaw_py.store.postgres import Address, PostgresStore, connection
from tests.botapi.control import Control
from tests.support.process import Home, Program, emulator, telegram, wait_for

DATABASE: Final = "soak"
FIRST: Final = 10_001
"""The first user; the others follow."""

_OTHERS: Final = ("gardener", "postman")
_CHECKLIST: Final = "# Checklist\n\n- [ ] look at the calendar\n"
_LAST_S: Final = 120.0
"""How long the last messages may take."""
_FOR_EVER: Final = {"history": "conversations of chats are kept for ever (DB-5)"}
_HTTP: Final = "the pools of a bot hold at most 77"
_SHOWN: Final = {
    "goclaw_inbox_open": "messages that are not done",
    "goclaw_outbox_open": "messages that are not sent",
    "goclaw_inbox_unanswered": "messages that failed",
    "goclaw_lane_waiting": "runs that wait for a slot",
}
_RATES: Final = {
    "goclaw_messages_received_total": "received",
    "goclaw_deliveries_total": "delivered",
}


@dataclass(frozen=True, slots=True)
class Plans:
    """How long, and how much.

    Args:
        chats: So many people write, in turns.
        kept_s: How long what is forgotten at all is kept.
        fold_s: Of each stretch of this length the median counts.
    """

    minutes: float = 30.0
    per_s: float = 20.0
    nodes: int = 1
    chats: int = 200
    kept_s: float = 120.0
    tidy_s: float = 15.0
    sample_s: float = 5.0
    fold_s: float = 60.0


QUICK: Final = Plans(minutes=1.0, chats=50, kept_s=10.0, tidy_s=3.0, fold_s=30.0, sample_s=2.0)


def soak(plans: Plans) -> Soaked:
    """Let people write for so long, and sample. Blocks that long, and a little longer."""
    with (
        server() as address,
        emulator() as api,
        tempfile.TemporaryDirectory(prefix="goclaw-bench-") as folder,
    ):
        asyncio.run(_make_database(address))
        api.record(on=False)
        nodes: list[Node] = []
        try:
            for number in range(plans.nodes):
                # Known one by one: if the second does not start, the first is ended.
                node = _started(Path(folder) / f"node-{number}", address, api, plans)
                nodes.append(node)
            return asyncio.run(_Lived(plans, address, api, nodes).run())
        except Exception as error:
            for node in nodes:
                error.add_note(node.program.output[-4_000:])
            raise
        finally:
            for node in nodes:
                node.program.end()


async def _make_database(address: Address) -> None:
    async with connection(address) as one:
        await one.script(f"create database {DATABASE}")


# ---------------------------------------------------------------------------- gateways


@dataclass(slots=True)
class Node:
    """A gateway process, with what it notes of itself."""

    name: str
    program: Program
    url: str
    notes: Path
    read: int = 0
    """How many of its notes are read."""
    cpu_s: float = 0.0
    figures: Counter[str] = field(default_factory=Counter)


def _started(folder: Path, address: Address, api: Control, plans: Plans) -> Node:
    settings = telegram(
        api,
        GOCLAW_DATABASE_URL=f"postgresql:///{DATABASE}?host={address.host}&user={address.user}",
        GOCLAW_AGENTS__MAIN__MODEL="python:bench.soak.agent:run",
        GOCLAW_CHANNELS__TELEGRAM__DIRECT="open",
        GOCLAW_CHANNELS__TELEGRAM__ALLOW=str(FIRST),  # alerts go to owners
        GOCLAW_LANE_MAIN="50",
        GOCLAW_WEB__API="true",
        GOCLAW_WEB__PORT="0",
    )
    place, notes = Home(folder, **settings), folder / "notes.jsonl"
    (folder / "goclaw.toml").write_text(_settings())
    for name in ("main", *_OTHERS):
        workspace = folder / "workspaces" / name
        workspace.mkdir(parents=True)
        (workspace / "HEARTBEAT.md").write_text(_CHECKLIST)
    asked = (str(notes), str(plans.kept_s), str(plans.tidy_s))
    arguments = [sys.executable, "-m", "bench.soak.gateway", *asked]
    program = Program(arguments, place.env, folder / "gateway.log")
    try:
        place.wait_ready(program)
        look = partial(re.search, r"dashboard +(http://\S+)")
        url = wait_for(lambda: look(program.output), "the address of the API")[1]
    except BaseException:
        program.end()
        raise
    return Node(folder.name, program, url, notes, cpu_s=own_cpu_s(program.pid))


def _settings() -> str:
    agents = "".join(f'[agents.{n}]\nmodel = "python:bench.soak.agent:run"\n' for n in _OTHERS)
    return f'[lanes]\ncron = 10\n[heartbeat]\ninterval = "20s"\n{agents}'


# ---------------------------------------------------------------------------- what goes on


@dataclass(slots=True)
class _Writers:
    """People who write at an even pace, each in turn."""

    api: Control
    plans: Plans
    said: int = 0
    _late_s: float = 0.0

    @property
    def late_s(self) -> float:
        """The longest that a message was late: the emulator, or the machine, was too slow."""
        return self._late_s

    async def write(self) -> None:
        """Write until the time is over."""
        begin, users = time.monotonic(), self.plans.chats
        end_s = 60 * self.plans.minutes
        while (due_s := self.said / self.plans.per_s) < end_s:
            wait_s = begin + due_s - time.monotonic()
            self._late_s = max(self._late_s, -wait_s)
            await asyncio.sleep(max(0.0, wait_s))
            user, text = FIRST + self.said % users, f"What about #{self.said}#?"
            await asyncio.to_thread(self.api.say, user, text, name=f"User {user}")
            self.said += 1

    def problems(self) -> tuple[int, list[str]]:
        """How many messages were answered once; what is wrong with the others."""
        marks: Counter[str] = Counter()
        wrong = []
        for user in range(FIRST, FIRST + self.plans.chats):
            mine = [mark for text in self.api.texts(user) for mark in MARK.findall(text)]
            marks.update(mine)
            if mine != sorted(mine, key=lambda mark: int(mark.strip("#"))):
                wrong.append(f"the answers to user {user} are out of order")
        said = {f"#{number}#" for number in range(self.said)}
        missing = said - marks.keys()
        doubled = [mark for mark, count in marks.items() if count > 1]
        if missing:
            wrong.append(f"{len(missing)} messages have no answer, such as {min(missing)}")
        if doubled:
            wrong.append(f"{len(doubled)} messages were answered twice, such as {min(doubled)}")
        return len(said) - len(missing) - len(doubled), wrong


async def _add_jobs(address: Address) -> None:
    """Jobs with conversations of their own, with one for all runs, and without any agent."""
    store = await PostgresStore.open(
        host=address.host, user=address.user, database=address.database
    )
    try:
        for number, (seconds, policy) in enumerate(
            ((5, {"session": "fresh"}), (7, {}), (10, {"session": "fresh"}), (11, {}))
        ):
            await _add_job(store, number, seconds, policy)
        told = a_job(9, Every(timedelta(seconds=10)), CLOCK.now())
        target = Target("telegram", "default", str(FIRST))
        spec = replace(told.spec, payload=FixedMessage("Drink some water."), target=target)
        await store.add_job(replace(told, spec=spec), most=100)
    finally:
        await store.close()


async def _add_job(
    store: PostgresStore, number: int, seconds: int, policy: Mapping[str, object]
) -> None:
    job = a_job(number, Every(timedelta(seconds=seconds)), CLOCK.now())
    await store.add_job(replace(job, spec=replace(job.spec, policy=policy)), most=100)


# ---------------------------------------------------------------------------- what is sampled


class _Lived:
    def __init__(self, plans: Plans, address: Address, api: Control, nodes: Sequence[Node]) -> None:
        self._plans = plans
        self._address = replace(address, database=DATABASE)
        self._nodes = nodes
        self._writers = _Writers(api, plans)
        port = urlsplit(api.url).port
        assert port is not None, api.url
        self._port = port
        self._series: dict[str, Series] = {}
        self._load: list[float] = []
        self._begin = self._at = time.monotonic()

    async def run(self) -> Soaked:
        await _add_jobs(self._address)
        place = self._address
        database = await asyncpg.connect(host=place.host, user=place.user, database=place.database)
        try:
            self._begin = self._at = time.monotonic()
            writing = asyncio.create_task(self._writers.write())
            while not writing.done():
                await asyncio.wait({writing}, timeout=self._plans.sample_s)
                if not writing.done():
                    await self._sample(database)
            await writing
            await self._until_done(database)
        finally:
            await database.close()
        return self._soaked(*await asyncio.to_thread(self._writers.problems))

    async def _until_done(self, database: asyncpg.Connection) -> None:
        """The last messages get their answers; those that get none are told of."""
        open_rows = (
            "select (select count(*) from inbox where finished_at is null)"
            " + (select count(*) from outbox where finished_at is null)"
        )
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_S):
                # What has come in at the emulator is not in the database yet.
                await asyncio.sleep(self._plans.sample_s)
                while await database.fetchval(open_rows):  # noqa: ASYNC110  (nobody tells)
                    await asyncio.sleep(0.5)

    def _add(self, group: str, name: str, at_s: float, value: float, **how: object) -> Series:
        key = f"{group}/{name}"
        if key not in self._series:
            self._series[key] = Series(name, group, **how)  # type: ignore[arg-type]
        self._series[key].add(at_s, value)
        return self._series[key]

    async def _sample(self, database: asyncpg.Connection) -> None:
        now = time.monotonic()
        at_s, passed = now - self._begin, now - self._at
        self._at = now
        self._load.append(os.getloadavg()[0])
        for node in self._nodes:
            self._of_process(node, at_s, passed)
            await self._of_figures(node, at_s, passed)
            self._of_notes(node)
        held = await connections(database)
        self._add("database", "connections", at_s, held, slack=1.0)
        for table in await tables(database):
            why, name = _FOR_EVER.get(table.name, ""), table.name
            add = partial(self._add, at_s=at_s, kept=why)
            # Tables grow by pages, and by what autovacuum leaves from one minute to the next.
            add("tables", name, value=table.all_mb, unit="MB", slack=0.25)
            add("indexes", name, value=table.index_mb, unit="MB", slack=0.25)
            add("dead rows", name, value=table.dead, slack=1000.0)
            add("live rows, as estimated", name, value=table.live, slack=200.0)

    def _of_process(self, node: Node, at_s: float, passed: float) -> None:
        process, used = node.program.pid, own_cpu_s(node.program.pid)
        memory = resident_mb(process)
        self._add(node.name, "resident memory", at_s, memory, unit="MB", bound=0.03, slack=2.0)
        cpu = 100 * (used - node.cpu_s) / passed
        self._add(node.name, "CPU", at_s, cpu, unit="%", bound=0.25, slack=2.0)
        opened = descriptors(process, self._port)
        self._add(node.name, "open files but for these", at_s, opened.others, slack=2.0)
        self._add(
            node.name, "connections to the Bot API", at_s, opened.to_port, kept=_HTTP, slack=2.0
        )
        node.cpu_s = used

    async def _of_figures(self, node: Node, at_s: float, passed: float) -> None:
        found = await asyncio.to_thread(scraped, node.url)
        for key, name in _SHOWN.items():
            self._add(f"{node.name}, /metrics", name, at_s, found[key], slack=5.0)
        for key, name in _RATES.items():
            if node.figures:
                rate = (found[key] - node.figures[key]) / passed
                self._add(f"{node.name}, /metrics", name, at_s, rate, unit="/s")
        node.figures = found

    def _of_notes(self, node: Node) -> None:
        notes = list(gateway.read(node.notes))
        for note in notes[node.read :]:
            at_s = note.at_s - self._begin
            if at_s < 0:
                continue
            self._add(node.name, "lag of the loop", at_s, note.lag_ms, unit="ms", slack=50.0)
            self._add(node.name, "asyncio tasks", at_s, note.tasks, slack=3.0)
            for name, count in note.held.items():
                limit = note.limits.get(name)
                why = "" if limit is None else f"holds at most {limit:,}"
                self._add(f"{node.name} holds", name, at_s, count, slack=10.0, kept=why)
        node.read = len(notes)

    def _soaked(self, answered: int, problems: list[str]) -> Soaked:
        plans, writers = self._plans, self._writers
        for one in self._series.values():
            one.plotted = one.most >= (0.1 if one.unit == "MB" else 5)
        processes = "one gateway process" if plans.nodes == 1 else f"{plans.nodes} processes"
        load = sum(self._load) / len(self._load) if self._load else 0.0
        return Soaked(
            title="soak real",
            about=(
                f"{plans.minutes:g} min of {processes} on PostgreSQL with {plans.per_s:g} messages "
                f"a second in {plans.chats} chats, 5 jobs, 3 heartbeats; kept for "
                f"{plans.kept_s:g} s, swept every {plans.tidy_s:g} s; load of the machine "
                f"{load:.1f} on average, {max(self._load, default=0.0):.1f} at most, on "
                f"{os.cpu_count()} processors"
            ),
            fold=Fold(plans.fold_s),
            series=list(self._series.values()),
            facts={
                "messages": writers.said,
                "answered once": answered,
                "latest message, s": writers.late_s,
            },
            problems=problems,
        )
