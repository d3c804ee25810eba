"""Scheduled runs schedule the next ones without end, and spend (SPEC AGENT-14).

Promised: where no person and no program begins anything in between, the turns and runs that cause
each other end after some, with a sentence for the model and a warning to the owners. Tried: runs
that create jobs (once, at intervals, with a new one in place of their own), that move, resume or
rezone their own job or each other's, in chains with subagents, over restarts and retries.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from goclaw_py.agents.tools.schedule_arguments import Figures
from goclaw_py.agents.tools.schedules import schedule_tools
from goclaw_py.core.errors import AgentError, ToolFailed
from goclaw_py.core.outcomes import Trigger
from goclaw_py.operations.jobs.models import JobChange
from goclaw_py.runs.agent_loop import Emit, RunRequest
from goclaw_py.schedule.jobs.models import JobState, Prompt
from goclaw_py.testing.agents import Do, Fail, Say, ScriptedAgent, Step
from tests.support.harness import GatewayProcess, Ways, a_process, here, until
from tests.support.heartbeat_gateway import heartbeat_gateway, write
from tests.support.jobs import IN_CHAT, OPERATOR, Wanted, every, make, service, setup, stored
from tests.support.memory_store import MemoryDatabase

MOST = 10
RUNS_MAY_SCHEDULE = Ways(jobs=setup(tools_in_runs=True))
TOOLS = {tool.name: tool for tool in schedule_tools(Figures())}
OFTEN = {"cadence_type": "interval", "cadence_value": "60"}
LONG_S = 25 * 60.0
"""Time for more than twice as many runs as a chain may have."""


async def use(request: RunRequest, action: str, **given: str) -> dict[str, Any]:
    """Call a tool as the model of this run does."""
    tool = TOOLS[f"schedule_{action}"]
    answer = await tool.call(tool.arguments.model_validate(given), here(request))
    found: dict[str, Any] = json.loads(answer)
    return found


def once(request: RunRequest) -> dict[str, str]:
    """In a minute."""
    service_of_run = here(request).jobs
    assert service_of_run is not None
    at = service_of_run.clock.now() + timedelta(minutes=1)
    return {"cadence_type": "once", "cadence_value": at.isoformat()}


async def jobs_of(request: RunRequest) -> dict[str, str]:
    """The ids of the jobs that a run sees, by the first line of their goals."""
    found = await use(request, "search")
    return {job["goal"]: job["schedule_id"] for job in found["schedules"]}


# ---------------------------------------------------------------------------- the ways


async def creates_one(request: RunRequest) -> None:
    await use(request, "create", goal="go on", **once(request))


async def creates_a_cadence_in_place_of_its_own(request: RunRequest) -> None:
    own = (await jobs_of(request))["go on"]
    await use(request, "create", goal="go on", **OFTEN)
    await use(request, "delete", schedule_id=own)


async def moves_itself(request: RunRequest) -> None:
    await use(request, "edit", schedule_id=(await jobs_of(request))["go on"], **once(request))


async def changes_its_own_cadence(request: RunRequest) -> None:
    (job,) = (await use(request, "search"))["schedules"]
    other = OFTEN | {"cadence_value": "61" if "60s" in job["cadence"] else "60"}
    await use(request, "edit", schedule_id=job["schedule_id"], **other)


async def resumes_itself(request: RunRequest) -> None:
    own = (await jobs_of(request))["go on"]
    await use(request, "edit", schedule_id=own, status="paused", **OFTEN)
    await use(request, "edit", schedule_id=own, status="active")


async def rezones_itself(request: RunRequest) -> None:
    own = (await jobs_of(request))["go on"]
    cadence = {"cadence_type": "cron", "cadence_value": "* * * * *"}
    await use(request, "edit", schedule_id=own, timezone="Asia/Kolkata", **cadence)
    await use(request, "edit", schedule_id=own, timezone="Europe/Berlin")


async def wakes_another_that_wakes_it(request: RunRequest) -> None:
    known = await jobs_of(request)
    other = "and on" if "go on" in request.prompt else "go on"
    if other in known:
        await use(request, "edit", schedule_id=known[other], **once(request))
    else:
        await use(request, "create", goal=other, **once(request))


ONE_BY_ONE = (creates_one, moves_itself, wakes_another_that_wakes_it)
"""Ways that need a further call for each run; the others also go on by themselves."""
BY_THEMSELVES = (
    creates_a_cadence_in_place_of_its_own, changes_its_own_cadence, resumes_itself, rezones_itself,
)  # fmt: skip
Way = Callable[[RunRequest], Awaitable[None]]


@dataclass
class Chain:
    """What the runs of an agent did that schedules in each of its runs.

    Args:
        turns_first: So many results of subagents begin turns before a turn creates the first job.
    """

    way: Way
    turns_first: int = 0
    runs: int = 0
    turns: int = 0
    scheduled: int = 0
    refused: list[str] = field(default_factory=list)

    def agent(self) -> ScriptedAgent:
        def choose(request: RunRequest) -> Step:
            if request.trigger is Trigger.CRON:
                return Do(self._runs)
            if request.trigger is Trigger.SUBAGENT:
                return Say("done", after_s=1)
            return Say("hi") if request.own_texts == "hello" else Do(self._answers)

        return ScriptedAgent(otherwise=choose)

    async def _runs(self, request: RunRequest, _emit: Emit) -> str:
        self.runs += 1
        try:
            await self.way(request)
            self.scheduled += 1
        except ToolFailed as error:
            self.refused.append(str(error))
        return "and on"

    async def _answers(self, request: RunRequest, _emit: Emit) -> str:
        if self.turns < self.turns_first:
            self.turns += 1
            assert await here(request).children.spawn("work", "part") is not None
        else:
            await use(request, "create", goal="go on", **once(request))
        return "begun"


async def begins(gateway: GatewayProcess) -> None:
    """Let a person begin a chain, and wait for long."""
    await gateway.say("go")
    await asyncio.sleep(LONG_S)


# ---------------------------------------------------------------------------- the promise


@pytest.mark.parametrize("way", ONE_BY_ONE, ids=lambda way: way.__name__)
@pytest.mark.parametrize("turns_first", [0, 4, MOST])
async def test_a_chain_of_jobs_ends(way: Way, turns_first: int) -> None:
    """Turns that subagents begin and runs of jobs are counted together."""
    chain = Chain(way, turns_first)
    async with a_process(chain.agent(), RUNS_MAY_SCHEDULE) as gateway:
        await begins(gateway)
        assert chain.turns + chain.runs == max(MOST, turns_first)
        assert len(chain.refused) == (turns_first < MOST)


@pytest.mark.parametrize("way", BY_THEMSELVES, ids=lambda way: way.__name__)
async def test_a_job_that_recurs_schedules_itself_some_times_only(way: Way) -> None:
    """It runs on as it was scheduled last, as a job of a person does."""
    chain = Chain(way)
    async with a_process(chain.agent(), RUNS_MAY_SCHEDULE) as gateway:
        await begins(gateway)
        assert chain.scheduled == MOST - 1
        assert chain.refused


async def test_the_model_reads_why_and_what_to_do() -> None:
    chain = Chain(creates_one)
    async with a_process(chain.agent(), RUNS_MAY_SCHEDULE) as gateway:
        await begins(gateway)
        (sentence,) = chain.refused
        assert sentence == (
            "schedule: 10 turns in a row began without a person, so this run can schedule nothing "
            "more; ask the user to do it, or say in your answer what is left"
        )


async def test_the_owners_are_warned_once() -> None:
    chain = Chain(creates_one)
    async with a_process(chain.agent(), RUNS_MAY_SCHEDULE) as gateway:
        await gateway.ask("hello", chat="bob")
        for _ in range(2):
            await begins(gateway)
        assert len(chain.refused) == 2
        _, warning = gateway.channel.texts("bob")
        assert "went on by itself in jobs of another chat on Telegram: 10 turns" in warning
        assert "/jobs lists them there" in warning


async def test_a_person_who_changes_the_job_lets_it_go_on() -> None:
    chain = Chain(changes_its_own_cadence)
    async with a_process(chain.agent(), RUNS_MAY_SCHEDULE) as gateway:
        await begins(gateway)
        (job,) = gateway.database.cron.jobs.values()
        assert job.chained == MOST - 1
        await service(gateway).edit(job.id, JobChange(name="mine"), OPERATOR)
        await asyncio.sleep(LONG_S)
        assert chain.scheduled == 2 * (MOST - 1)


async def test_a_run_that_a_person_starts_begins_to_count_again() -> None:
    chain = Chain(moves_itself)
    async with a_process(chain.agent(), RUNS_MAY_SCHEDULE) as gateway:
        await begins(gateway)
        assert chain.runs == MOST
        (job,) = gateway.database.cron.jobs.values()
        await service(gateway).run_now(job.id, OPERATOR)
        await asyncio.sleep(LONG_S)
        assert chain.runs == 2 * MOST + 1


@pytest.mark.parametrize(
    ("state", "change", "count"),
    [
        (JobState.ACTIVE, JobChange(schedule=every(90)), 5),
        (JobState.ACTIVE, JobChange(schedule=every(90), state=JobState.PAUSED), 0),
        (JobState.ACTIVE, JobChange(state=JobState.PAUSED), 0),
        (JobState.ACTIVE, JobChange(payload=Prompt("else")), 0),
        (JobState.PAUSED, JobChange(state=JobState.ACTIVE), 5),
        (JobState.PAUSED, JobChange(schedule=every(90)), 0),
        (JobState.PAUSED, JobChange(name="else"), 0),
    ],
)
async def test_an_edit_counts_if_the_job_then_runs_at_other_times(
    state: JobState, change: JobChange, count: int
) -> None:
    run = replace(IN_CHAT, chained=5)
    async with a_process(ways=RUNS_MAY_SCHEDULE) as gateway:
        job = await make(gateway, Wanted(every(60)), IN_CHAT)
        if state is JobState.PAUSED:
            await service(gateway).edit(job.id, JobChange(state=state), IN_CHAT)
        assert (await service(gateway).edit(job.id, change, run)).chained == count
        assert (await stored(gateway, job)).chained == count


@pytest.mark.parametrize("changed", ["goal", "name", "paused"])
async def test_what_schedules_nothing_is_not_counted(changed: str) -> None:
    """A recurring job may keep notes in its own goal, and a chain may end itself."""

    async def notes(request: RunRequest) -> None:
        (own,) = (await jobs_of(request)).values()
        change = {"status": changed} if changed == "paused" else {changed: request.run_id}
        await use(request, "edit", schedule_id=own, **change)

    chain = Chain(notes)
    async with a_process(chain.agent(), RUNS_MAY_SCHEDULE) as gateway:
        await gateway.ask("go")
        (job,) = gateway.database.cron.jobs.values()
        await service(gateway).edit(job.id, JobChange(schedule=every(60)), OPERATOR)
        await asyncio.sleep(LONG_S + 1)
        assert not chain.refused
        assert chain.scheduled == (1 if changed == "paused" else 25)


async def test_each_run_of_a_persons_job_may_create_one() -> None:
    """A job that recurs is no chain."""
    chain = Chain(creates_one)

    def choose(request: RunRequest) -> Step:
        return Do(chain._runs) if "daily" in request.prompt else Say("done")

    async with a_process(ScriptedAgent(otherwise=choose), RUNS_MAY_SCHEDULE) as gateway:
        await gateway.ask("hello")
        await make(gateway, Wanted(every(60), text="daily"), IN_CHAT)
        await asyncio.sleep(LONG_S + 1)
        assert chain.scheduled == 25
        assert not chain.refused


async def test_a_restart_does_not_begin_to_count_again() -> None:
    database, chain = MemoryDatabase(), Chain(creates_one)
    async with a_process(chain.agent(), RUNS_MAY_SCHEDULE, database=database) as before:
        await before.say("go")
        await until(lambda: chain.runs == 4, within_s=3600)
        await before.shut_down()
    async with a_process(chain.agent(), RUNS_MAY_SCHEDULE, database=database):
        await asyncio.sleep(LONG_S)
        assert chain.runs == MOST


async def test_a_run_that_runs_again_counts_as_one_run() -> None:
    """Each attempt may schedule, as often as the settings let it run."""
    chain = Chain(creates_one)
    failed: set[str] = set()

    def choose(request: RunRequest) -> Step:
        if request.trigger is Trigger.CRON and request.session not in failed:
            failed.add(request.session)
            return Fail(AgentError("Sorry.", "a broken connection", retryable=True))
        return chain.agent().otherwise(request)

    async with a_process(ScriptedAgent(otherwise=choose), RUNS_MAY_SCHEDULE) as gateway:
        await begins(gateway)
        assert len(failed) == chain.runs == MOST


@pytest.mark.parametrize(("most", "runs"), [(3, 3), (1, 1), (0, 2 * MOST)])
async def test_the_limit_is_a_setting(most: int, runs: int) -> None:
    chain = Chain(creates_one)
    async with a_process(chain.agent(), replace(RUNS_MAY_SCHEDULE, max_chained_turns=most)) as one:
        await begins(one)
        assert chain.runs == runs if most else chain.runs >= runs


async def test_no_chain_leads_through_heartbeats_and_subagents_of_jobs() -> None:
    """They cannot schedule, and results of subagents of jobs begin no turns."""
    may_schedule: dict[Trigger, bool] = {}

    async def starts_children(request: RunRequest, _emit: Emit) -> str:
        assert await here(request).children.spawn("work", "part") is None
        return await here(request).children.subagent("work")

    def choose(request: RunRequest) -> Step:
        may_schedule[request.trigger] = here(request).jobs is not None
        return Do(starts_children) if request.trigger is Trigger.CRON else Say("done")

    ways = replace(heartbeat_gateway(), jobs=RUNS_MAY_SCHEDULE.jobs)
    async with a_process(ScriptedAgent(otherwise=choose), ways) as gateway:
        write(gateway)
        await gateway.ask("hello")
        await make(gateway, Wanted(every(60)), IN_CHAT)
        await asyncio.sleep(600)
        assert may_schedule == {
            Trigger.CHAT: True,
            Trigger.CRON: True,
            Trigger.SUBAGENT: False,
            Trigger.HEARTBEAT: False,
        }
