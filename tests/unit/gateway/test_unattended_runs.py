"""Work that is stored as running and that nothing does ends as lost (SPEC QUEUE-10)."""

from __future__ import annotations

import asyncio

import pytest

from goclaw_py.core.outcomes import Outcome, Reason, Trigger
from goclaw_py.gateway.unattended_runs import LOOK_S
from goclaw_py.records import RunQuery
from goclaw_py.runs.agent_loop import RunRequest
from goclaw_py.schedule.jobs.execution_models import OccurrenceStatus
from goclaw_py.testing.agents import Block, Do, ScriptedAgent, Step
from tests.support.harness import GatewayProcess, Ways, a_process, until
from tests.support.heartbeat_gateway import beating, until_ended
from tests.support.heartbeat_gateway import log_of as heartbeats_of
from tests.support.jobs import Wanted, ends, every, log_of, make, setup
from tests.support.why import ask
from tests.unit.runs.test_children_of_runs import spawn

MINUTE_S = 60.0


def lose_ends(gateway: GatewayProcess, times: int = 1) -> None:
    """Let the task that stores the end of a run die, which no boundary can prevent."""
    work = gateway.dispatcher._host.record
    left = times

    async def record(*args: object) -> None:
        nonlocal left
        if left:
            left -= 1
            raise RuntimeError("a bug")
        await work(*args)  # type: ignore[arg-type]  # as it was called

    gateway.dispatcher._host.record = record  # type: ignore[method-assign,assignment]  # as the test says


async def test_a_job_that_stands_still_is_lost_within_a_minute_and_goes_on() -> None:
    async with a_process(ways=Ways(jobs=setup())) as gateway:
        job = await make(gateway, Wanted(every(10)))
        lose_ends(gateway)
        await until(lambda: len(gateway.scripted.requests) == 1)
        await asyncio.sleep(MINUTE_S)
        lost, *_ = reversed(await gateway.store.runs(RunQuery(limit=9)))
        assert (lost.outcome, lost.reason) == (Outcome.LOST, Reason.CRASHED)
        assert "forgotten" in (lost.error or "")
        assert (await ends(gateway, job))[-1] == "ok"
        (warning,) = gateway.container.unattended.warnings()
        assert str(warning).startswith("1 run stood still without a task and ended as lost")
        await asyncio.sleep(3700)
        assert gateway.container.unattended.warnings() == ()


async def test_a_heartbeat_run_that_stands_still_is_lost_and_the_next_comes() -> None:
    async with beating(spoken_by=None) as gateway:
        lose_ends(gateway)
        await until_ended(gateway, 2)
        assert [row.outcome for row in await heartbeats_of(gateway)] == ["lost", "ok"]


async def test_a_message_whose_run_stands_still_is_answered_after_all() -> None:
    async with a_process() as gateway:
        lose_ends(gateway)
        assert await gateway.ask("hi") == "re: hi"
        await asyncio.sleep(MINUTE_S)
        assert await gateway.outcomes() == [Outcome.LOST, Outcome.COMPLETED]
        assert gateway.pending == []


@pytest.mark.slow
async def test_what_works_for_long_is_left_alone() -> None:
    def choose(request: RunRequest) -> Step:
        if request.trigger is Trigger.SUBAGENT:
            return Block()
        return Do(spawn) if request.prompt == "spawn" else Block()

    ways = Ways(jobs=setup(), cron_lane=1)
    async with a_process(ScriptedAgent(otherwise=choose), ways) as gateway:
        for slug in ("one", "two"):
            await make(gateway, Wanted(every(10), slug=slug))
        await gateway.say("spawn", "work", chat="bob")
        await asyncio.sleep(100 * LOOK_S)
        assert gateway.container.unattended.warnings() == ()
        assert Outcome.LOST not in await gateway.outcomes()


@pytest.mark.parametrize("within_s", [LOOK_S / 2, 3 * LOOK_S])
async def test_nothing_is_ended_while_the_database_is_away(within_s: float) -> None:
    async with a_process(ways=Ways(jobs=setup())) as gateway:
        job = await make(gateway, Wanted(every(10)))
        await until(lambda: len(gateway.scripted.requests) == 1)
        gateway.store.away = True
        await asyncio.sleep(within_s)
        gateway.store.away = False
        await asyncio.sleep(5 * MINUTE_S)
        log = await log_of(gateway, job)
        assert OccurrenceStatus.LOST not in {row.status for row in log}


async def test_status_and_why_name_what_stood_still() -> None:
    async with a_process(ways=Ways(jobs=setup())) as gateway:
        await make(gateway, Wanted(every(10)))
        lose_ends(gateway)
        await until(lambda: len(gateway.scripted.requests) == 1)
        await asyncio.sleep(MINUTE_S)
        lost = (await gateway.store.runs(RunQuery(limit=9)))[-1]
        assert "nothing ran it" in (await ask(gateway, lost.id)).answer
        assert "stood still" in (await ask(gateway)).answer
