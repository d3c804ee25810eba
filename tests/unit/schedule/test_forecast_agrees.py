"""A forecast agrees with the real services, on random jobs and heartbeats (SPEC OPS-6).

Those run on a virtual clock over the memory store, with agents that only take time.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from goclaw_py.app.gateway_config import agent_limits, forecast_rules, heartbeat_setup, job_rules
from goclaw_py.chat.outbound.ok_token import HEARTBEAT_OK
from goclaw_py.config import Settings, load
from goclaw_py.core.ids import AgentName, JobId, NodeId
from goclaw_py.core.run_events import Usage
from goclaw_py.core.targets import Maker
from goclaw_py.gateway.container import Container
from goclaw_py.gateway.dependencies import GatewayDependencies
from goclaw_py.records import Node
from goclaw_py.records.bound import bind
from goclaw_py.runs.agent_loop import AgentResult, Emit, RunRequest, TextPart
from goclaw_py.runs.toolbox import NO_TOOLS, Toolbox, ToolContext
from goclaw_py.schedule import poller
from goclaw_py.schedule.forecast import forecast
from goclaw_py.schedule.forecast_models import Assumed, Forecast, ForecastInput, KnownHeartbeat
from goclaw_py.schedule.heartbeat import module as heartbeat_module
from goclaw_py.schedule.heartbeat.checklist.checklist import parse
from goclaw_py.schedule.heartbeat.models import Heartbeat
from goclaw_py.schedule.jobs.models import (
    OPERATOR,
    FixedMessage,
    Job,
    JobSpec,
    Prompt,
    TargetKind,
    timing,
)
from goclaw_py.schedule.jobs.module import JobSetup
from goclaw_py.schedule.jobs.policy import JobPolicy, policy_with
from goclaw_py.schedule.jobs.schedule import At, Cron, Every, Schedule, first_run_at
from goclaw_py.scheduler.scheduler import RunScheduler
from goclaw_py.testing.clock import LoopClock
from goclaw_py.testing.loop import VirtualLoop
from tests.support.memory_store import MemoryStore

# The day on which clocks in Berlin are put forward.
SINCE = datetime(2026, 3, 29, 0, 0, 3, 300_000, tzinfo=UTC)
LENGTH = timedelta(hours=9)
EXACT_S = 0.01
"""Virtual time is a float."""


@dataclass(frozen=True, slots=True)
class Case:
    settings: Settings
    given: ForecastInput


class _Takes:
    """An agent whose runs only take time."""

    def __init__(self, given: ForecastInput) -> None:
        self._seconds = {job.id: given.assumed[job.id].seconds for job in given.jobs}
        self._hearts = {one.agent: one for one in given.heartbeats}

    async def run(self, request: RunRequest, emit: Emit) -> AgentResult:
        del emit
        (part,) = request.parts
        assert isinstance(part, TextPart)
        if part.text in self._seconds:
            await asyncio.sleep(self._seconds[JobId(part.text)])
            return AgentResult("done")
        heart = self._hearts[request.agent]
        await asyncio.sleep(heart.seconds)
        return AgentResult(HEARTBEAT_OK, usage=heart.usage)

    async def warm_up(self) -> None:
        pass

    async def close(self) -> None:
        pass


class _NoTools:
    def toolbox(self, here: ToolContext) -> Toolbox:
        del here
        return NO_TOOLS


# ---------------------------------------------------------------------------- random cases


def a_case(seed: int, folder: Path) -> Case:
    """In a narrow lane, or with limits of agents and with messages.

    Not all together: whether a run that is ending counts for what is claimed at that instant, and
    when a message is found beside jobs that wait for room, depends on the speed of a database.
    """
    rng = random.Random(seed)
    is_narrow = rng.random() < 0.5
    text = f"[lanes]\ncron = {rng.randint(1, 3) if is_narrow else 20}\n[agents.main]\n"
    if not is_narrow:
        text += f"max_concurrent = {rng.randint(1, 2)}\n"
    text += f'[agents.ann.heartbeat]\ninterval = "{rng.choice((11, 30, 90))}m"\n'
    if rng.random() < 0.5:
        text += f'active_hours = {{ start = "0{rng.randint(0, 9)}:15", end = "20:00" }}\n'
    text += f"[scheduler]\nprofile = {rng.choice(('goclaw', 'caco', 'halo', 'herdctl'))!r}\n"
    text += '[runs]\ntimeout = "1747s"\n'
    (folder / "goclaw.toml").write_text(text, "utf-8")
    settings = load(env={"GOCLAW_HOME": str(folder), "TZ": "UTC"})
    base = job_rules(settings).base
    jobs = [a_job(rng, n, base, messages=not is_narrow) for n in range(rng.randint(1, 14))]
    assumed = {job.id: Assumed(odd(rng, rng.choice((5, 300, 3000)))) for job in jobs}
    hearts = [a_heart(rng, AgentName(name), settings) for name in settings.agents]
    return Case(settings, ForecastInput(jobs, assumed, hearts))


def odd(rng: random.Random, most: int) -> float:
    """A duration that ends at no instant at which something else happens."""
    return rng.randrange(1, most) + rng.randrange(1, 10**6) / 1e6


def a_job(rng: random.Random, number: int, base: JobPolicy, *, messages: bool) -> Job:
    job_id = JobId(f"id-{number:02}")
    timeout_s = rng.choice((121.1, 903.3, 1801.1))  # no multiple of a minute, as all durations
    own: dict[str, object] = {"run_timeout": timeout_s, "history_keep": 10_000, **a_policy(rng)}
    schedule = a_schedule(rng)
    is_message = messages and rng.random() < 0.2
    spec = JobSpec(
        slug=f"job-{number}",
        schedule=schedule,
        zone=rng.choice(("UTC", "Europe/Berlin")),
        payload=FixedMessage("Good morning!") if is_message else Prompt(job_id),
        agent=AgentName(rng.choice(("main", "main", "ann"))),
        target=TargetKind.NONE,
        session=f"shared-{rng.randint(0, 1)}" if own.get("session") == "key" else "",
        policy=own,
        max_runs=rng.choice((None, None, None, 5)),
        not_after=rng.choice((None, None, None, SINCE + 0.9 * LENGTH)),
        wake_heartbeat=rng.random() < 0.2,
    )
    due_at = first_run_at(timing(spec, policy_with(base, own), job_id), now=SINCE)
    if rng.random() < 0.2:
        due_at = SINCE - timedelta(seconds=rng.randrange(1, 100_000))
    return Job(job_id, OPERATOR, Maker.OPERATOR, spec, SINCE, SINCE, next_run_at=due_at)


def a_schedule(rng: random.Random) -> Schedule:
    minute = rng.randrange(60)
    kind = rng.randrange(6)
    if kind == 0:
        return At(SINCE + timedelta(seconds=rng.randrange(1, 25_000)))
    if kind < 3:
        return Every(timedelta(seconds=rng.choice((600, 1800, 3600, 7200)) + rng.randrange(500)))
    return Cron(rng.choice((f"{minute} * * * *", f"*/20 {3 + minute % 6} * * *", "0,30 * * * *")))


def a_policy(rng: random.Random) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, values in (
        ("anchor", ("grid", "completion", "start")),
        ("on_busy", ("queue", "skip", "delay")),
        ("busy_delay", (900.0,)),
        ("max_per_agent", (1, 2)),
        ("misfire", ("skip", "once")),
        ("misfire_grace", (1.0, 600.0)),
        ("auto_disable_after", (2,)),
        ("error_retry", (700.0,)),
        ("backoff", ((60.0, 3000.0),)),
        ("session", ("key", "key", "fresh")),
        ("jitter", (0.1,)),
        ("stagger", (True,)),
    ):
        if rng.random() < (0.5 if key in ("on_busy", "session") else 0.2):
            found[key] = rng.choice(values)
    return found


def a_heart(rng: random.Random, agent: AgentName, settings: Settings) -> KnownHeartbeat:
    checklist = rng.choice(("", "- Look.\n", "- every 2h: Look.\n", "- 09:00: Plan.\n"))
    folder = settings.workspace(agent)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "HEARTBEAT.md").write_text(checklist, "utf-8")
    muted = SINCE + rng.random() * LENGTH if rng.random() < 0.3 else None
    return KnownHeartbeat(
        Heartbeat(agent, None, muted_until=muted),
        parse(checklist),
        events=rng.choice(((), ("The build is red.",))),
        seconds=odd(rng, rng.choice((5, 300, 3000))),
        usage=Usage(1, 100, cost_usd=rng.choice((None, Decimal("0.04"), Decimal("0.30")))),
    )


# ---------------------------------------------------------------------------- the real services


async def really(case: Case, folder: Path) -> MemoryStore:
    """Run the real services for ``LENGTH``."""
    store, clock = MemoryStore(), LoopClock(SINCE)
    node = Node(NodeId("node"), "", 0, "", SINCE, SINCE + 2 * LENGTH)
    await store.join(node)
    for job in case.given.jobs:
        await store.add_job(job, most=None)
    for one in case.given.heartbeats:
        store._db.heartbeat_runs.heartbeats[one.agent] = one.heartbeat
        for text in one.events:
            store._db.heartbeat_runs.enter_event(one.agent, text, SINCE)
    agent = _Takes(case.given)
    names = list(map(AgentName, case.settings.agents))
    limits = agent_limits(case.settings)
    container = Container(
        bind(store, lambda: node.id),
        clock,
        RunScheduler(case.settings.lane_sizes, agents=limits),
        GatewayDependencies(
            channels={},
            rules={},
            agents=dict.fromkeys(names, agent),
            workspaces=dict.fromkeys(names, folder),
            context_windows=dict.fromkeys(names, 1_000_000),
            tool_factory=_NoTools(),
            jobs=JobSetup(replace(job_rules(case.settings), enabled=True), limits=limits),
            heartbeats=heartbeat_setup(case.settings),
        ),
    )
    store.on_notice(lambda _: container.poll_due())
    loops = [container.job_module.loop.run(), container.heartbeats.run()]
    running = [asyncio.create_task(loop) for loop in loops]
    await asyncio.sleep(LENGTH.total_seconds())
    container.job_module.loop.close()
    container.heartbeats.loop.close()
    container.dispatcher.interrupt()
    for task in running:
        task.cancel()
    await asyncio.wait(running)
    return store


Rows = Mapping[str, list[tuple[str, float, float | None]]]
"""Status and reason, due time and start of what has ended, by job or agent."""


def forecast_rows(found: Forecast) -> Rows:
    rows: dict[str, list[tuple[str, float, float | None]]] = {}
    for one in found.events:
        if one.finished_at >= SINCE + LENGTH:
            continue
        rows.setdefault(one.job, []).append(row(one.status, one.why, one.due_at, one.started_at))
    for run in found.heartbeat_runs:
        if run.finished_at >= SINCE + LENGTH:
            continue
        cells = row(run.status, run.skip, run.due_at, run.started_at)
        rows.setdefault(run.agent, []).append(cells)
    return {name: sorted(cells, key=lambda cell: cell[1]) for name, cells in rows.items()}


def real_rows(store: MemoryStore) -> Rows:
    rows: dict[str, list[tuple[str, float, float | None]]] = {}
    end = SINCE + LENGTH
    for one in store._db.cron.logs.values():
        if one.finished_at is not None and one.finished_at < end:
            cells = row(one.status, one.why, one.scheduled_at, one.started_at)
            rows.setdefault(one.job, []).append(cells)
    for run in store._db.heartbeat_runs.rows.values():
        if run.finished_at is not None and run.finished_at < end:
            cells = row(run.status, run.skip, run.due_at, run.started_at)
            rows.setdefault(run.agent, []).append(cells)
    return {name: sorted(cells, key=lambda cell: cell[1]) for name, cells in rows.items()}


def row(
    status: str, why: str | None, due_at: datetime, started_at: datetime | None
) -> tuple[str, float, float | None]:
    started_s = None if started_at is None else (started_at - SINCE).total_seconds()
    return f"{status} {why or ''}", (due_at - SINCE).total_seconds(), started_s


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.slow
def test_a_forecast_agrees_with_the_real_services(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Notices arrive, so nothing has to be looked for each second.
    for module in (poller, heartbeat_module):
        monkeypatch.setattr(module, "LOOK_S", 86_400.0)
    case = a_case(seed, tmp_path)
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        real = real_rows(runner.run(really(case, tmp_path)))
    told = forecast_rows(forecast(forecast_rules(case.settings), case.given, since=SINCE, days=1))
    assert real.keys() == told.keys()
    for name, cells in real.items():
        assert [cell[0] for cell in cells] == [cell[0] for cell in told[name]], name
        for mine, theirs in zip(told[name], cells, strict=True):
            assert mine[1:] == pytest.approx(theirs[1:], abs=EXACT_S), name
