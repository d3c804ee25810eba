"""What an agent's error says is stored and shown without secrets (SPEC SEC-2)."""

from __future__ import annotations

from dataclasses import replace

from goclaw_py.core.redaction import HIDDEN, Redactor
from goclaw_py.runs.agent_loop import Emit, RunRequest
from goclaw_py.schedule.heartbeat.models import HeartbeatRunStatus
from goclaw_py.testing.agents import Do, Fail, ScriptedAgent
from tests.support.harness import Ways, a_process, here, until
from tests.support.heartbeat_gateway import heartbeat_gateway, saying, until_ended, write
from tests.support.jobs import Wanted, every, log_of, make

SECRET = "hunter2-hunter2"
HIDING = Redactor([SECRET])
BROKEN = Fail(ValueError(f"the server refused {SECRET}"))
TOLD = f"ValueError: the server refused {HIDDEN}"


async def ask(request: RunRequest, emit: Emit) -> str:
    """Fails with the error of its subagent."""
    return await here(request).children.subagent("work")


async def test_of_a_run_of_a_chat() -> None:
    async with a_process(ScriptedAgent(BROKEN), Ways(hide=HIDING)) as gateway:
        await gateway.ask("hello")
        assert [run.error for run in await gateway.store.runs()] == [TOLD]


async def test_of_a_subagent_and_of_the_run_that_asked_it() -> None:
    async with a_process(ScriptedAgent(Do(ask), BROKEN), Ways(hide=HIDING)) as gateway:
        await gateway.ask("hello")
        child, parent = await gateway.store.runs()
        assert child.error == TOLD
        assert SECRET not in str(parent.error)


async def test_of_a_job_and_its_time() -> None:
    async with a_process(ScriptedAgent(BROKEN), Ways(hide=HIDING)) as gateway:
        job = await make(gateway, Wanted(every(600)))
        await until(lambda: bool(gateway.database.runs), within_s=700)
        await until(lambda: not gateway.container.job_module.occurrences.load)
        assert [run.error for run in await gateway.store.runs()] == [TOLD]
        assert SECRET not in str(await log_of(gateway, job))
        stored = await gateway.store.job(job.id)
        assert stored is not None
        assert stored.last_error == TOLD


async def test_of_a_heartbeat_run() -> None:
    async with a_process(saying(BROKEN), replace(heartbeat_gateway(), hide=HIDING)) as gateway:
        write(gateway)
        (heartbeat_run,) = await until_ended(gateway, 1)
        assert [run.error for run in await gateway.store.runs()] == [TOLD]
        assert heartbeat_run.status is HeartbeatRunStatus.FAILED
        assert SECRET not in str(heartbeat_run)
