"""Questions about jobs and reminders, each provoked (SPEC OPS-4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from goclaw_py.core.errors import AgentError, ChatGone, UnknownZone
from goclaw_py.operations.explanation import Explanation
from goclaw_py.operations.jobs.models import JobChange
from goclaw_py.schedule.jobs.creation import JobCreationRules
from goclaw_py.schedule.jobs.models import Job, JobState, Notify, TargetKind
from goclaw_py.schedule.jobs.module import JobSetup
from goclaw_py.schedule.jobs.policy import DEFAULT_PROFILE
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.testing.agents import Block, Fail, Say, ScriptedAgent, Step
from tests.support.harness import GatewayProcess, Ways, a_process, session_of
from tests.support.jobs import OPERATOR, Wanted, at, every, make, service, setup
from tests.support.memory_store import MemoryDatabase
from tests.support.why import Case, Cases, ask, ask_database, check

AT_ONCE = Ways(QueuePolicy())
BROKEN = Fail(AgentError("Sorry.", "the model said 400"))
CASES = Cases()


@asynccontextmanager
async def with_job(
    wanted: Wanted, *steps: Step, jobs: JobSetup | None = None
) -> AsyncIterator[tuple[GatewayProcess, Job]]:
    """A gateway with a job that its agent works on in these steps."""
    ways = replace(AT_ONCE, jobs=jobs or JobSetup())
    async with a_process(ScriptedAgent(*steps), ways) as gateway:
        await gateway.ask("hello")
        yield gateway, await make(gateway, wanted)


async def after(
    wait_s: float, wanted: Wanted, *steps: Step, jobs: JobSetup | None = None
) -> Explanation:
    """Ask about a job after so long."""
    async with with_job(wanted, *steps, jobs=jobs) as (gateway, _):
        await asyncio.sleep(wait_s)
        return await ask(gateway, "job")


@CASES.question("A job does not run any more")
@CASES.answer("job.paused", "The job job does not run: paused", "Resume it: goclaw jobs resume ")
async def paused() -> Explanation:
    async with with_job(Wanted(every(60))) as (gateway, job):
        await service(gateway).edit(job.id, JobChange(state=JobState.PAUSED), OPERATOR)
        return await ask(gateway, "job")


@CASES.question("A job has switched itself off")
@CASES.answer("job.disabled", "disabled after 2 failures in a row: AgentError: the model said 400",
              "Resume it: goclaw jobs resume ")  # fmt: skip
async def disabled() -> Explanation:
    never = setup(auto_disable_after=2, retries=0)
    return await after(300, Wanted(every(60)), Say("hi"), BROKEN, BROKEN, jobs=never)


@CASES.question("A reminder has not come yet, or comes at the wrong hour")
@CASES.answer("job.not_yet", "has not been due yet: it runs today 05:04 (UTC)",
              " --tz Europe/Berlin")  # fmt: skip
async def not_due_yet() -> Explanation:
    return await after(0, Wanted(at(7200)))


async def test_a_chat_has_been_heard_of_whoever_let_its_person_in() -> None:
    """CRON-7: also while another agent answers there."""
    places = JobSetup(JobCreationRules(DEFAULT_PROFILE, places={("telegram", "default")}))
    async with a_process(ways=replace(AT_ONCE, jobs=places)) as gateway:
        job = await make(gateway, Wanted(every(3600)))
        problem = await service(gateway).no_route(job.id, OPERATOR)
        assert problem == "no message has come from this chat yet"
        await gateway.ask("hi")
        assert await service(gateway).no_route(job.id, OPERATOR) == ""
        del gateway.database.sessions[session_of()]
        assert await service(gateway).no_route(job.id, OPERATOR) == ""


async def test_times_are_in_the_zone_of_who_asks() -> None:
    """They name the zone of the job if it is another one; an unknown one is refused."""
    async with with_job(Wanted(every(3600))) as (gateway, _):
        control, about = gateway.control, "job"
        in_india = "today 09:34 (Fri 04:04 in UTC)."
        for zone, words in (("", "today 04:04 (UTC)."), ("Asia/Kolkata", in_india)):
            assert (await control.why(about, zone=zone)).answer.endswith(f"it runs {words}")
        with pytest.raises(UnknownZone):
            await control.why(about, zone="Mars/Base")


async def test_a_first_run_that_is_late_is_not_said_to_come() -> None:
    """SPEC OPS-4: what was due and is not claimed has been due."""
    ways = replace(AT_ONCE, jobs=setup())
    async with a_process(ScriptedAgent(Say("hi"), otherwise=lambda _: Block()), ways) as gateway:
        await gateway.ask("hello")
        for number in range(3):
            await make(gateway, Wanted(every(10), slug=f"before-{number}"))
        await asyncio.sleep(15)
        await make(gateway, Wanted(every(10)))
        await asyncio.sleep(30)
        found = await ask(gateway, "job")
        assert found.answer == "The job job came due 20 s ago and has not started."


@CASES.question("A job was due while the gateway was down")
@CASES.answer("job.missed", "was skipped: no gateway was running when it was due",
              " --policy misfire=once")  # fmt: skip
async def missed() -> Explanation:
    database = MemoryDatabase()
    ways = replace(AT_ONCE, jobs=setup(misfire="skip"))
    async with a_process(ways=ways, database=database) as gateway:
        await gateway.ask("hello")
        await make(gateway, Wanted(every(600)))
        await gateway.shut_down()
    await asyncio.sleep(900)
    async with a_process(ways=ways, database=database) as gateway:
        await asyncio.sleep(5)
        return await ask(gateway, "job")


@CASES.question("A job ran, and nobody was told")
@CASES.answer("job.no_route", "completed, but there was no chat to send its result to",
              " --to last")  # fmt: skip
async def nobody_to_tell() -> Explanation:
    async with a_process(ways=AT_ONCE) as gateway:
        await make(gateway, Wanted(every(60), target=TargetKind.LAST))
        await asyncio.sleep(65)
        return await ask(gateway, "job")


@CASES.answer("job.undelivered", "completed, but the channel refused its result",
              " --to last")  # fmt: skip
async def refused_by_the_chat() -> Explanation:
    async with with_job(Wanted(every(60))) as (gateway, _):
        gateway.channel.fail(ChatGone("Forbidden: bot was blocked by the user"), chat="ann")
        await asyncio.sleep(65)
        return await ask(gateway, "job")


@CASES.question("A job that watches something is always silent")
@CASES.answer("job.no_notify", "no message was sent: its reply did not begin with [NOTIFY]",
              " --notify always")  # fmt: skip
async def without_the_word() -> Explanation:
    wanted = Wanted(every(60), notify=Notify.CONDITIONAL)
    return await after(65, wanted, Say("hi"), Say("all quiet"))


@CASES.answer("job.tells_nobody", "its result is not sent, because the job has notify = never",
              " --notify always")  # fmt: skip
async def tells_nobody() -> Explanation:
    return await after(65, Wanted(every(60), notify=Notify.NEVER))


@CASES.question("No job runs at all")
@CASES.answer("job.scheduler_off", "jobs are turned off (scheduler.enabled)",
              "enabled = true under [scheduler]")  # fmt: skip
async def scheduler_off() -> Explanation:
    off = JobSetup(JobCreationRules(DEFAULT_PROFILE, enabled=False))
    return await after(0, Wanted(every(60)), jobs=off)


@CASES.question("A reminder is gone from the list")
@CASES.answer("job.done_and_deleted", "ran and was then deleted", "goclaw jobs runs")
async def done_and_deleted() -> Explanation:
    return await after(120, Wanted(at(60), message=True))


@CASES.question("A job failed")
@CASES.answer("job.failed", "failed: AgentError: the model said 400", "goclaw why run:")
async def failed() -> Explanation:
    return await after(70, Wanted(every(60)), Say("hi"), BROKEN)


@CASES.question("A reminder did not come: no gateway ran")
@CASES.answer("job.no_gateway", "no gateway is running here", "goclaw run")
async def due_without_a_gateway() -> Explanation:
    database = MemoryDatabase()
    async with a_process(ways=AT_ONCE, database=database) as gateway:
        await make(gateway, Wanted(at(60)))
        await gateway.shut_down()
        await asyncio.sleep(600)
        return await ask_database(database, "job", gateway)


@CASES.answer("job.running", "The job job is running, for", "goclaw why run:")
async def still_running() -> Explanation:
    return await after(120, Wanted(every(60)), Say("hi"), Block())


@CASES.answer("job.failed", "does not run: failed: AgentError: the model said 400",
              "Run it now: goclaw jobs run ")  # fmt: skip
async def run_once_and_failed() -> Explanation:
    return await after(120, Wanted(at(60)), Say("hi"), BROKEN)


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_a_question_about_a_job_is_answered(case: Case) -> None:
    await check(case)
