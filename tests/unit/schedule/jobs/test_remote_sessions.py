"""Jobs whose session another node holds (SPEC CRON-10, NODE-1, CMD-2)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime

import pytest

from goclaw_py.operations.jobs.models import JobChange, StartedNow
from goclaw_py.records import RunQuery
from goclaw_py.schedule.jobs.execution_models import LoggedOccurrence, OccurrenceStatus, Why
from goclaw_py.schedule.jobs.models import Job, JobState
from goclaw_py.testing.agents import Block, ScriptedAgent
from tests.support.harness import GatewayProcess, Ways, a_process, message, session_of, until
from tests.support.jobs import OPERATOR, Wanted, after, at, every, log_of, make, service, setup
from tests.support.memory_store import MemoryDatabase

AT_ONCE_S = 0.3
WAYS = Ways(jobs=setup(session="main", busy_delay=100.0, anchor="grid"), cron_lane=2)
NO_JOBS = replace(WAYS, jobs=replace(WAYS.jobs, rules=replace(WAYS.jobs.rules, enabled=False)))
EACH_MINUTE = Wanted(every(60))

Nodes = tuple[GatewayProcess, GatewayProcess]


@asynccontextmanager
async def two(owner_ways: Ways = WAYS, *, block: int = 1) -> AsyncIterator[Nodes]:
    """A node that is to hold the session of a chat, and one that is faster to claim what is due."""
    database = MemoryDatabase()
    agent = ScriptedAgent(*(Block(),) * block)
    async with (
        a_process(agent, owner_ways, database=database) as owner,
        a_process(ScriptedAgent(), WAYS, database=database) as other,
    ):
        owner.store.slow_before_s["claim_due"] = 0.05
        yield owner, other


async def busy_at(seconds: float, owner: GatewayProcess) -> None:
    """Let the chat work on the owner from that time on."""
    await asyncio.sleep((after(seconds) - owner.clock.now()).total_seconds())
    await owner.say("long")
    await owner.scripted.until_active(1)


async def due_while_busy(nodes: Nodes, wanted: Wanted = EACH_MINUTE) -> Job:
    """Let a job come due at 60 s, in a session that works on the first node since 50 s."""
    owner, other = nodes
    job = await make(other, wanted)
    await busy_at(50, owner)
    await asyncio.sleep(20)
    assert other.scripted.prompts == []
    return job


async def first(gateway: GatewayProcess, job: Job) -> LoggedOccurrence:
    """The one row of what was due at 60 s."""
    (row,) = [row for row in await log_of(gateway, job) if row.scheduled_at == after(60)]
    return row


async def began_after(gateway: GatewayProcess, job: Job, free_at: datetime) -> float:
    """How long after its session became free the occurrence began, in seconds; it went well."""
    await asyncio.sleep(3)
    row = await first(gateway, job)
    assert (row.status, row.why, row.attempts) == (OccurrenceStatus.OK, None, 1)
    assert row.started_at is not None
    return (row.started_at - free_at).total_seconds()


async def test_it_begins_as_soon_as_the_session_is_free_and_has_one_row() -> None:
    async with two() as nodes:
        owner, _ = nodes
        job = await due_while_busy(nodes)
        free_at = owner.clock.now()
        owner.scripted.release()
        assert 0 <= await began_after(owner, job, free_at) <= AT_ONCE_S
        assert owner.scripted.prompts == ["long", "report"]


async def test_it_takes_its_turn_among_the_messages_of_the_session() -> None:
    async with two() as nodes:
        owner, other = nodes
        await due_while_busy(nodes)
        await other.say("later")
        await asyncio.sleep(3)
        owner.scripted.release()
        await until(lambda: len(owner.scripted.prompts) == 3)
        assert owner.scripted.prompts == ["long", "report", "later"]


@pytest.mark.parametrize(("on_busy", "next_at"), [("skip", 120), ("delay", 160)])
async def test_other_policies_look_at_the_session_where_it_is(on_busy: str, next_at: int) -> None:
    """It is skipped once, and is due again when its policy says so."""
    async with two() as nodes:
        owner, _ = nodes
        job = await due_while_busy(nodes, Wanted(every(60), policy=(("on_busy", on_busy),)))
        owner.scripted.release()
        await asyncio.sleep(next_at - 70 + 5)
        rows = [
            (row.status, row.why, row.scheduled_at.replace(microsecond=0))
            for row in await log_of(owner, job)
        ]
        assert rows[:2] == [
            (OccurrenceStatus.SKIPPED, Why.BUSY, after(60)),
            (OccurrenceStatus.OK, None, after(next_at)),
        ]


async def leaves(nodes: Nodes) -> None:
    """The owner is shut down; its run ends meanwhile."""
    owner, _ = nodes
    ending = asyncio.create_task(owner.shut_down())
    await asyncio.sleep(5)
    owner.scripted.release()
    await ending


async def dies(nodes: Nodes) -> None:
    """The owner is killed, and taken over by the other node."""
    owner, other = nodes
    owner.kill()
    await until(lambda: bool(other.recoveries))


@pytest.mark.parametrize("ends", [leaves, dies])
async def test_it_begins_elsewhere_when_the_owner_is_gone(
    ends: Callable[[Nodes], Awaitable[None]],
) -> None:
    """Nothing is lost with the owner, whether it has claimed what waits or not."""
    async with two() as nodes:
        owner, other = nodes
        job = await due_while_busy(nodes)
        await ends(nodes)
        await until(lambda: "report" in other.scripted.prompts, within_s=5)
        await asyncio.sleep(3)
        assert (await first(other, job)).status is OccurrenceStatus.OK
        assert owner.scripted.prompts == ["long"]


async def test_an_owner_without_jobs_releases_the_session_for_it_whatever_its_name_is() -> None:
    async with two(NO_JOBS) as nodes:
        owner, other = nodes
        job = await due_while_busy(nodes)
        await service(other).edit(job.id, JobChange(name="Weather"), OPERATOR)
        row = await first(owner, job)
        assert (row.status, row.waits_for) == (OccurrenceStatus.WAITING, session_of())
        owner.scripted.release()
        await asyncio.sleep(4)
        assert (await first(owner, job)).status is OccurrenceStatus.OK
        assert other.scripted.prompts == ["report"]


@pytest.mark.parametrize("change", [
    JobChange(state=JobState.PAUSED), JobChange(schedule=every(1000)), None,
], ids=["paused", "another time", "deleted"])  # fmt: skip
async def test_what_people_change_while_it_waits_holds(change: JobChange | None) -> None:
    """SPEC CRON-11: it does not run, and its row ends."""
    async with two(NO_JOBS) as nodes:
        owner, other = nodes
        job = await due_while_busy(nodes)
        if change is None:
            await service(other).delete(job.id, OPERATOR)
        else:
            await service(other).edit(job.id, change, OPERATOR)
        row = await first(owner, job)
        assert (row.status, row.why) == (OccurrenceStatus.SKIPPED, Why.BUSY)
        assert row.finished_at is not None
        owner.scripted.release()
        await asyncio.sleep(10)
        assert other.scripted.prompts == []


@pytest.mark.parametrize("command", ["/stopall", "/stop"])
async def test_a_stop_reaches_what_no_node_has_claimed(command: str) -> None:
    async with two(NO_JOBS) as nodes:
        owner, other = nodes
        job = await due_while_busy(nodes)
        if command == "/stop":
            # The first one takes the chat's own run.
            await owner.say("/stop")
            await asyncio.sleep(0.1)
        await owner.gateway.accept([message(command)])
        await asyncio.sleep(10)
        row = await first(owner, job)
        assert (row.status, row.why) == (OccurrenceStatus.CANCELLED, Why.STOPPED)
        assert other.scripted.prompts == []
        kept = await service(other).get(job.id, OPERATOR)
        assert (kept.state, kept.running, kept.next_run_at) == (JobState.ACTIVE, None, after(120))


async def test_a_run_by_hand_waits_too_and_has_the_id_that_was_told() -> None:
    async with two() as nodes:
        owner, other = nodes
        job = await make(other, Wanted(at(10_000)))
        await busy_at(50, owner)
        started = await service(other).run_now(job.id, OPERATOR)
        assert isinstance(started, StartedNow)
        await asyncio.sleep(20)
        owner.scripted.release()
        await until(lambda: owner.scripted.prompts == ["long", "report"], within_s=AT_ONCE_S)
        await asyncio.sleep(3)
        (row,) = await log_of(owner, job)
        assert (row.status, row.runs, row.manual) == (OccurrenceStatus.OK, (started.run,), True)


async def test_a_claim_by_hand_whose_answer_is_lost_waits_again() -> None:
    async with two(NO_JOBS) as nodes:
        owner, other = nodes
        job = await make(other, Wanted(at(10_000)))
        await busy_at(50, owner)
        await service(other).run_now(job.id, OPERATOR)
        await asyncio.sleep(5)
        other.store.lose_answer["claim_waiting"] = 1
        owner.scripted.release()
        await asyncio.sleep(10)
        (row,) = await log_of(owner, job)
        assert (row.status, row.attempts) == (OccurrenceStatus.OK, 1)


async def test_a_session_that_is_lost_between_claim_and_begin_is_waited_for() -> None:
    """Its lane is full on the other node; meanwhile the chat begins to work on the owner."""
    async with two() as nodes:
        owner, other = nodes
        other.scripted.script = (Block(), Block())
        for slug in ("a", "b"):
            policy = (("session", "job"),)
            await make(other, Wanted(at(55), "fill", slug=slug, policy=policy))
        job = await make(other, Wanted(every(60)))
        await asyncio.sleep(65)
        await busy_at(70, owner)
        await asyncio.sleep(5)
        other.scripted.release()
        await asyncio.sleep(5)
        free_at = owner.clock.now()
        owner.scripted.release()
        assert 0 <= await began_after(owner, job, free_at) <= AT_ONCE_S
        assert other.scripted.prompts == ["fill", "fill"]


async def test_what_ends_at_once_does_not_wait(caplog: pytest.LogCaptureFixture) -> None:
    """SPEC CRON-5: what another node left behind, or a time that was missed."""
    caplog.set_level("INFO")
    async with two() as nodes:
        owner, other = nodes
        wanted = Wanted(every(60), policy=(("misfire", "skip"), ("misfire_grace", 1.0)))
        job = await make(other, wanted)
        await busy_at(50, owner)
        for gateway in nodes:
            gateway.store.broken |= {"claim_due"}
        await asyncio.sleep(15)
        for gateway in nodes:
            gateway.store.broken -= {"claim_due"}
        await until(lambda: bool(rows_of(owner, job)))
        assert [(row.status, row.why) for row in rows_of(owner, job)] == [
            (OccurrenceStatus.SKIPPED, Why.MISSED)
        ]
        assert "job_waits_for_session" not in caplog.messages


def rows_of(gateway: GatewayProcess, job: Job) -> list[LoggedOccurrence]:
    """What is logged of a job and has ended or waits."""
    logs = gateway.database.cron.logs.values()
    return [row for row in logs if row.job == job.id and row.status is not OccurrenceStatus.RUNNING]


async def test_the_log_tells_what_it_waits_for() -> None:
    """SPEC OPS-4: its session, and the run that works there on which node."""
    async with two() as nodes:
        owner, other = nodes
        job = await due_while_busy(nodes)
        told = await owner.control.why(f"job:{job.spec.slug}")
        assert told.answer.startswith(f"The job job waits for session {session_of()} (run ")
        (row,) = await service(other).log(job.id, OPERATOR)
        (run,) = await owner.store.runs(RunQuery(limit=1, session=session_of(), active=True))
        assert (row.waits_for, row.blocking_run) == (session_of(), run.id)
        assert row.blocking_node == owner.node()
