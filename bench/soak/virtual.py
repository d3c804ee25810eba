"""A day of a whole gateway in virtual time, over the store in memory (SPEC DB-5)."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from bench.memory import resident_mb
from bench.soak.report import Soaked
from bench.soak.retention import shortened
from bench.soak.series import Fold, Series
from bench.soak.structures import Held, caches, sizes
from bench.soak.townsfolk import PASSER, Clerk, Day, Street, Town
from goclaw_py.core.ids import MAIN_AGENT, AgentName, JobId
from goclaw_py.core.messages import Target
from goclaw_py.core.session_keys import GroupPolicy
from goclaw_py.core.targets import Maker
from goclaw_py.core.time.clocks import new_id
from goclaw_py.observability.prometheus import Metrics
from goclaw_py.schedule.heartbeat.decisions import HeartbeatPolicy
from goclaw_py.schedule.heartbeat.models import HeartbeatConfig
from goclaw_py.schedule.heartbeat.module import HeartbeatSetup
from goclaw_py.schedule.jobs.models import (
    OPERATOR,
    FixedMessage,
    Job,
    JobSpec,
    Payload,
    Prompt,
    TargetKind,
)
from goclaw_py.schedule.jobs.schedule import At, Cron, Every, Schedule
from goclaw_py.schedule.retention import delete_expired
from goclaw_py.testing.loop import VirtualLoop
from tests.support.harness import GatewayProcess, Ways
from tests.support.memory_store import MemoryDatabase

HISTORY_LEFT: Final = 40
"""So many entries of each conversation stay in memory here; a database keeps them all."""

_LOOK_S: Final = 10.0
"""For so long the rate counts as constant."""

_NO_TABLES: Final = (
    "goclaw_py.core.",
    "goclaw_py.core.",
    "goclaw_py.scheduler.",
    "goclaw_py.operations.",
)

_OTHERS: Final = tuple(AgentName(name) for name in ("gardener", "postman"))


@dataclass(frozen=True, slots=True)
class Plans:
    """How long, and how much.

    Args:
        day_s: Virtual seconds from one midnight to the next.
        kept_s: How long what is forgotten at all is kept.
        sample_s: Virtual seconds from one sample to the next.
    """

    hours: float = 24.0
    day_s: float = 7200.0
    per_s: float = 1.0
    kept_s: float = 1800.0
    tidy_s: float = 300.0
    sample_s: float = 600.0
    seed: int = 7


QUICK: Final = Plans(hours=1.0, day_s=1200.0, per_s=0.3, kept_s=120.0, tidy_s=30.0)


@dataclass(slots=True)
class _Gathered:
    """The series, made as they are met."""

    series: dict[str, Series] = field(default_factory=dict)

    def add(self, group: str, name: str, at_s: float, value: float, unit: str = "") -> None:
        """One sample."""
        key = f"{group}/{name}"
        if key not in self.series:
            self.series[key] = Series(name, group, unit, slack=2.0)
            if at_s:
                # It was not there before; nothing of it was.
                self.series[key].add(0.0, 0.0)
        self.series[key].add(at_s, value)

    def add_all(self, group: str, at_s: float, found: Held) -> None:
        """A sample of each, and nothing of those that are not there any more."""
        known = {one.name for one in self.series.values() if one.group == group}
        for name in found.items.keys() | known:
            self.add(group, name, at_s, found.items[name])
        for name, limit in found.limits.items():
            self.series[f"{group}/{name}"].kept = f"holds at most {limit:,}"


def soak(plans: Plans) -> Soaked:
    """Let the time go by. Blocks for some minutes; only errors of the gateway are logged."""
    with (
        _quiet(),
        shortened(timedelta(seconds=plans.kept_s), plans.tidy_s),
        TemporaryDirectory(prefix="goclaw-bench-") as folder,
        asyncio.Runner(loop_factory=VirtualLoop) as runner,
    ):
        return runner.run(_Played(plans, Path(folder)).run())


@contextmanager
def _quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


class _Played:
    def __init__(self, plans: Plans, folder: Path) -> None:
        self._plans = plans
        self._chance = random.Random(plans.seed)
        self._street = Street()
        self._clerk = Clerk(random.Random(plans.seed + 1), plans.day_s)
        self._folder = folder
        self._gathered = _Gathered()
        self._day = Day(plans.day_s, plans.per_s)

    async def run(self) -> Soaked:
        begin = time.monotonic()
        database = MemoryDatabase()
        process = self._process(database)
        town = Town(self._chance, process.clock)
        await process.start()
        await self._add_jobs(process)
        background = [asyncio.create_task(work) for work in _duties(process)]
        life = asyncio.create_task(self._live(process, town))
        try:
            await self._sample_all(process, database, town)
        finally:
            life.cancel()
            await asyncio.gather(life, return_exceptions=True)
        await self._until_answered(town)
        await process.shut_down()
        for task in background:
            task.cancel()
        ended = await asyncio.gather(*background, return_exceptions=True)
        errors = [repr(one) for one in ended if not isinstance(one, asyncio.CancelledError)]
        return self._soaked(town, time.monotonic() - begin, errors)

    async def _until_answered(self, town: Town) -> None:
        """The last messages get some time; then an answer that comes twice gets it, too."""
        for _ in range(60):
            town.hear(self._street.read())
            if not town.waiting:
                break
            await asyncio.sleep(10)
        await asyncio.sleep(60)
        town.hear(self._street.read())

    def _process(self, database: MemoryDatabase) -> GatewayProcess:
        names = (MAIN_AGENT, *_OTHERS)
        policy = HeartbeatPolicy(interval=timedelta(minutes=5))
        heartbeat_runs = HeartbeatSetup(
            policies=dict.fromkeys(names, policy),
            plans={
                name: HeartbeatConfig(name, policy.interval, timedelta(seconds=20 * number))
                for number, name in enumerate(names)
            },
        )
        ways = Ways(
            main_lane=8,
            cron_lane=4,
            groups=GroupPolicy.OPEN,
            mention=False,
            heartbeats=heartbeat_runs,
        )
        (self._folder / "HEARTBEAT.md").write_text("# Checklist\n\n- [ ] look at the calendar\n")
        return GatewayProcess(
            database=database,
            ways=ways,
            agent=self._clerk,
            channels={(self._street.name, self._street.account): self._street},
            workspace=self._folder,
            others=dict.fromkeys(_OTHERS, self._clerk),
            meter=Metrics({"telegram"}, names),
        )

    # ------------------------------------------------------------------ what goes on

    async def _add_jobs(self, process: GatewayProcess) -> None:
        chat = Target("telegram", "default", "chat-1")
        made: list[tuple[Schedule, Payload, dict[str, object], Target | TargetKind]] = [
            (Every(timedelta(minutes=2)), Prompt("sum up"), {}, chat),
            (Every(timedelta(minutes=3)), Prompt("look"), {"session": "fresh"}, TargetKind.NONE),
            (Cron("*/5 * * * *"), FixedMessage("Drink some water."), {}, chat),
            (Every(timedelta(minutes=7)), Prompt("fail"), {"retries": 1}, TargetKind.NONE),
            (Cron("0 * * * *"), Prompt("child"), {"session": "fresh"}, chat),
        ]
        for number, one in enumerate(made):
            await self._add_job(process, f"job-{number}", *one)

    async def _add_job(
        self,
        process: GatewayProcess,
        slug: str,
        schedule: Schedule,
        payload: Payload,
        policy: dict[str, object],
        target: Target | TargetKind,
    ) -> None:
        now = process.clock.now()
        spec = JobSpec(slug, schedule, "UTC", payload, target=target, policy=policy)
        due_at = schedule.at if isinstance(schedule, At) else now + timedelta(minutes=1)
        job = Job(
            JobId(new_id(process.clock)), OPERATOR, Maker.OPERATOR, spec, now, now,
            next_run_at=due_at,
        )  # fmt: skip
        await process.store.add_job(job, most=1_000)

    async def _live(self, process: GatewayProcess, town: Town) -> None:
        """People write, and sometimes somebody asks to be reminded."""
        loop, number = asyncio.get_running_loop(), 0
        while True:
            wait_s = self._chance.expovariate(max(1e-3, self._day.per_s(loop.time())))
            await asyncio.sleep(min(wait_s, _LOOK_S))
            if wait_s > _LOOK_S:
                # By now it is another time of the day.
                continue
            for message in town.next_batch():
                await process.gateway.accept([message])
            if self._chance.random() < 0.01:
                number += 1
                at = process.clock.now() + timedelta(minutes=5)
                await self._add_job(
                    process, f"once-{number}", At(at), FixedMessage("Now."),
                    {"delete_after_run": False},
                    Target("telegram", "default", "chat-2"),
                )  # fmt: skip

    # ------------------------------------------------------------------ what is looked at

    async def _sample_all(
        self, process: GatewayProcess, database: MemoryDatabase, town: Town
    ) -> None:
        loop = asyncio.get_running_loop()
        end_s = self._plans.hours * 3600
        while loop.time() < end_s:
            town.hear(self._street.read())
            kept = timedelta(seconds=2 * self._plans.kept_s)
            _leave_to_the_disk(database, process.clock.now() - kept)
            self._sample(loop.time(), process, database, town)
            await asyncio.sleep(self._plans.sample_s)

    def _sample(
        self, at_s: float, process: GatewayProcess, database: MemoryDatabase, town: Town
    ) -> None:
        gc.collect()
        add = self._gathered.add
        add("process", "resident memory", at_s, resident_mb(), "MB")
        add("process", "objects that Python tracks", at_s, len(gc.get_objects()))
        add("process", "asyncio tasks", at_s, len(asyncio.all_tasks()))
        timers = vars(asyncio.get_running_loop())["_scheduled"]
        add("process", "timers of the loop", at_s, len(timers))
        add("load", "messages without an answer", at_s, len(town.waiting))
        roots = process.container, process.cluster, process.control
        self._gathered.add_all("runtime", at_s, sizes(*roots))
        self._gathered.add_all("caches", at_s, caches())
        self._gathered.add_all("tables", at_s, sizes(database, apart=_NO_TABLES))

    def _soaked(self, town: Town, took_s: float, errors: list[str]) -> Soaked:
        plans = self._plans
        for one in self._gathered.series.values():
            if one.name == "resident memory":
                one.bound, one.slack = 0.03, 2.0
            elif one.name == "objects that Python tracks":
                one.bound, one.slack = 0.03, 1_000.0
            elif one.name == "SessionRecord.history":
                one.kept = f"at most {HISTORY_LEFT} of each conversation"
            # There are more than a hundred: pictures for those that hold something.
            one.plotted = one.most >= 5
        problems = [f"{len(town.waiting)} messages have no answer"] if town.waiting else []
        problems += [f"{len(town.doubled)} answers came twice"] if town.doubled else []
        return Soaked(
            title="soak virtual",
            # Histories and passers-by are for ever (DB-5): see ``_leave_to_the_disk``.
            about=(
                f"{plans.hours:g} virtual hours in {took_s:,.0f} s: {town.said:,} messages of "
                f"{town.regulars} chats and {town.strangers:,} passers-by in days of "
                f"{plans.day_s / 3600:g} h with quiet nights, {self._clerk.runs:,} runs, jobs, "
                f"heartbeats; kept for {plans.kept_s / 60:g} min, of each conversation the last "
                f"{HISTORY_LEFT} entries"
            ),
            fold=Fold(plans.day_s, least=True),
            series=list(self._gathered.series.values()),
            facts={
                "messages": town.said,
                "answered once": town.answered,
                "without an answer": len(town.waiting),
                "answered twice": len(town.doubled),
            },
            problems=problems + errors,
        )


def _duties(process: GatewayProcess) -> list[Coroutine[Any, Any, None]]:
    """What ``app.service`` keeps running beside what a ``GatewayProcess`` does."""
    container = process.container
    return [
        container.job_module.run_retention(),
        container.heartbeats.run_retention(),
        container.incidents.watch(),
        delete_expired(process.store, process.clock, timedelta(days=365)),
    ]


def _leave_to_the_disk(database: MemoryDatabase, before: datetime) -> None:
    """Take what is kept for ever out of memory: conversations, and chats that are over."""
    for session in list(database.sessions.values()):
        session.history = session.current()[-HISTORY_LEFT:]
        is_busy = session.owner or session.pending or session.active or session.unanswered
        if PASSER in session.key and session.last_active_at < before and not is_busy:
            del database.sessions[session.key]
    for key, chat in list(database.chats.items()):
        if PASSER in chat.chat and not any(chat.chat in name for name in database.sessions):
            del database.chats[key]
