"""Jobs from being due to what people read of them.

SPEC section 6, AGENT-5, AGENT-7, CMD-2, CRON-4 to CRON-11, CRON-13, CRON-14, DB-4, QUEUE-11.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime

import pytest

from goclaw_py.core.errors import AgentError
from goclaw_py.core.ids import AgentName
from goclaw_py.core.messages import Role
from goclaw_py.core.outcomes import Outcome, Trigger
from goclaw_py.core.run_events import ToolEnded, ToolStarted
from goclaw_py.operations.jobs.models import JobChange, RunNow, StartedNow
from goclaw_py.records import RunQuery
from goclaw_py.runs.instructions import Instructions
from goclaw_py.schedule.jobs.execution_models import OccurrenceStatus, Why
from goclaw_py.schedule.jobs.models import Job, JobState, Notify, TargetKind
from goclaw_py.schedule.jobs.schedule import Schedule
from goclaw_py.scheduler.views import RunProgress
from goclaw_py.testing.agents import Block, Emitting, Fail, Say, ScriptedAgent, Step
from tests.support.harness import GatewayProcess, Ways, a_process, until
from tests.support.jobs import (
    IN_CHAT,
    OPERATOR,
    Wanted,
    after,
    at,
    at_work,
    ends,
    every,
    log_of,
    make,
    service,
    stored,
    until_idle,
)
from tests.support.memory_store import MemoryDatabase

BUSY = AgentError("The model is busy.", "429", retryable=True)
BROKEN = AgentError("I have no key.", "401")


async def test_a_prompt_runs_when_it_is_due_and_its_answer_comes_into_the_chat() -> None:
    async with a_process() as gateway:
        job = await make(gateway, Wanted(every(600), "report"))
        await gateway.channel.until_sent(1)
        assert gateway.clock.now() == after(600)
        assert gateway.channel.texts("ann") == ["🗓 job\n\nre: report"]
        (request,) = gateway.scripted.requests
        assert (request.prompt, request.trigger) == ("report", Trigger.CRON)
        assert request.session == f"agent:main:cron:{job.id}"
        assert (request.budget.turns, str(request.budget.usd)) == (10, "0.50")
        assert "scheduled" in "".join(request.system)
        await gateway.channel.until_sent(2)
        assert gateway.clock.now() == after(1200)
        assert await ends(gateway, job) == ["ok", "ok"]


async def test_what_a_job_says_is_known_in_the_chat() -> None:
    async with a_process() as gateway:
        await gateway.ask("hello")
        await make(gateway, Wanted(at(60)))
        await gateway.channel.until_sent(2)
        await until(lambda: len(gateway.database.sessions) > 1)
        await gateway.ask("what did you mean?")
        said = [entry.text for entry in gateway.scripted.requests[-1].history]
        assert any("re: report" in text and "job" in text for text in said), said


async def test_a_message_is_delivered_without_any_run() -> None:
    async with a_process() as gateway:
        job = await make(gateway, Wanted(at(60), "tea!", message=True))
        await gateway.channel.until_sent(1)
        assert "tea!" in gateway.channel.texts("ann")[0]
        assert gateway.scripted.requests == []
        assert await ends(gateway, job) == ["ok"]
        assert await gateway.store.runs() == []


async def test_a_job_that_ran_once_is_deleted_but_one_of_a_model_is_kept_as_completed() -> None:
    async with a_process(ways=Ways(cron_lane=2)) as gateway:
        job = await make(gateway, Wanted(at(60)))
        of_model = await make(gateway, Wanted(at(60), slug="m"), IN_CHAT)
        await gateway.channel.until_sent(2)
        await until_idle(gateway)
        # When its chat has the result, and not before.
        await asyncio.sleep(5)
        assert await gateway.store.job(job.id) is None
        assert await ends(gateway, job) == ["ok"]
        kept = await stored(gateway, of_model)
        assert (kept.state, kept.next_run_at) == (JobState.COMPLETED, None)


async def test_a_transient_failure_is_tried_again_as_another_run() -> None:
    agent = ScriptedAgent(Fail(BUSY), Fail(BUSY))
    async with a_process(agent) as gateway:
        job = await make(gateway, Wanted(every(600)))
        await gateway.channel.until_sent(1)
        # 2 s and 4 s, each a quarter more or less.
        assert after(600 + 4.5) <= gateway.clock.now() <= after(600 + 7.6)
        (row,) = await log_of(gateway, job)
        assert (row.status, row.attempts) == (OccurrenceStatus.OK, 3)
        assert len(set(row.runs)) == 3
        assert await gateway.outcomes() == [Outcome.FAILED, Outcome.FAILED, Outcome.COMPLETED]


CALLS = (ToolStarted("1", "send", "{}", side_effects=True), ToolEnded("1", "send", ok=True))


@pytest.mark.parametrize(("step", "tries"), [
    (Fail(BROKEN), 1),
    (Fail(ValueError("bug")), 1),
    (Fail(BUSY), 4),
    (Fail(ConnectionResetError("reset")), 4),
    (Fail(TimeoutError("slow")), 4),
    (Fail(AgentError("Sorry.", "503", retryable=True, is_retried=True)), 1),
    (Emitting(CALLS, Fail(BUSY)), 1),
], ids=[
    "permanent", "bug", "transient", "connection", "time-out", "repeated already",
    "after side effects",
])  # fmt: skip
async def test_only_what_may_help_and_harms_nobody_is_tried_again(step: Step, tries: int) -> None:
    """SPEC CRON-7: three retries, of what may be gone in a moment."""
    async with a_process(ScriptedAgent(otherwise=lambda _: step)) as gateway:
        job = await make(gateway, Wanted(at(60)))
        await gateway.channel.until_sent(1)
        (row,) = await log_of(gateway, job)
        assert (row.status, row.attempts) == (OccurrenceStatus.FAILED, tries)
        assert (await stored(gateway, job)).state is JobState.FAILED


async def test_a_failure_is_told_in_one_line_and_by_a_quiet_job_only_the_third_in_a_row() -> None:
    agent = ScriptedAgent(otherwise=lambda _: Fail(BROKEN))
    async with a_process(agent) as gateway:
        await make(gateway, Wanted(every(600), notify=Notify.CONDITIONAL))
        await gateway.channel.until_sent(1)
        assert len(agent.requests) == 3
        await asyncio.sleep(3000)
        (text,) = gateway.channel.texts("ann")
        assert "\n" not in text
        assert "I have no key." in text
        assert "job" in text


@pytest.mark.parametrize(("notify", "reply", "told"), [
    (Notify.CONDITIONAL, " [NOTIFY] Rain!", "Rain!"),
    (Notify.CONDITIONAL, "all dry", None),
    (Notify.CONDITIONAL, "so [NOTIFY]", None),
    (Notify.ALWAYS, "NO_REPLY", None),
])  # fmt: skip
async def test_a_job_speaks_if_it_says_so(notify: Notify, reply: str, told: str | None) -> None:
    async with a_process(ScriptedAgent(otherwise=lambda _: Say(reply))) as gateway:
        job = await make(gateway, Wanted(at(60), notify=notify))
        await asyncio.sleep(100)
        texts = gateway.channel.texts("ann")
        assert [told is not None and told in text for text in texts] == [True] * bool(told)
        assert not any("[NOTIFY]" in text for text in texts)
        (row,) = await log_of(gateway, job)
        why = {"[NOTIFY]": None, "NO_REPLY": Why.NO_REPLY}.get(
            reply.split(maxsplit=1)[0], Why.NO_NOTIFY
        )
        assert (row.status, row.why, row.output) == (OccurrenceStatus.OK, why, reply)


async def test_the_last_chat_is_where_somebody_spoke_last() -> None:
    async with a_process() as gateway:
        await make(gateway, Wanted(at(600), target=TargetKind.LAST))
        await gateway.ask("hello", chat="ann")
        await asyncio.sleep(10)
        await gateway.ask("hello", chat="ben")
        await asyncio.sleep(700)
        assert len(gateway.channel.texts("ann")) == 1
        assert "re: report" in gateway.channel.texts("ben")[-1]


async def test_a_job_that_is_deleted_during_its_run_ends_in_peace() -> None:
    agent = ScriptedAgent(Block("done"))
    async with at_work(agent, Wanted(every(600))) as (gateway, job):
        await service(gateway).delete(job.id, OPERATOR)
        agent.release()
        await gateway.channel.until_sent(1)
        await asyncio.sleep(3000)
        assert await gateway.store.job(job.id) is None
        assert len(agent.requests) == 1
        assert await ends(gateway, job) == ["ok"]


async def test_a_stop_in_its_chat_stops_a_job() -> None:
    async with at_work(ScriptedAgent(Block()), Wanted(every(600))) as (gateway, job):
        await gateway.say("/stop")
        await until_idle(gateway)
        assert await ends(gateway, job) == ["cancelled:stopped"]
        now = await stored(gateway, job)
        assert (now.state, now.failures) == (JobState.ACTIVE, 0)


async def test_a_run_by_hand_changes_nothing_of_the_job() -> None:
    agent = ScriptedAgent(Block())
    async with a_process(agent) as gateway:
        job = await make(gateway, Wanted(at(5000)))
        started = await service(gateway).run_now("job", OPERATOR)
        assert isinstance(started, StartedNow)
        assert started.run is not None
        await until(lambda: bool(agent.active))
        assert await service(gateway).run_now("job", OPERATOR) is RunNow.ALREADY_RUNNING
        agent.release()
        await gateway.channel.until_sent(1)
        await until_idle(gateway)
        now = await stored(gateway, job)
        assert (now.state, now.next_run_at) == (JobState.ACTIVE, job.next_run_at)
        assert (now.runs, now.failures, now.running) == (0, 0, None)
        assert [row.manual for row in await log_of(gateway, job)] == [True]


async def test_a_shutdown_gives_a_run_back_and_it_runs_again() -> None:
    """SPEC QUEUE-11: no attempt is counted."""
    database = MemoryDatabase()
    async with at_work(ScriptedAgent(Block()), Wanted(at(60)), database) as (gateway, job):
        await gateway.shut_down(wait_s=0)
        assert await ends(gateway, job) == ["interrupted"]
    async with a_process(database=database) as second:
        await second.channel.until_sent(1)
        (row,) = await log_of(second, job)
        assert (row.status, row.claims) == (OccurrenceStatus.OK, 1)


async def test_a_crash_runs_an_occurrence_again_and_shows_it() -> None:
    database = MemoryDatabase()
    async with at_work(ScriptedAgent(Block()), Wanted(at(60)), database) as (first, job):
        first.kill()
        async with a_process(database=database) as second:
            await second.channel.until_sent(1)
            (row,) = await log_of(second, job)
            assert (row.status, row.claims) == (OccurrenceStatus.OK, 2)
            assert await second.outcomes() == [Outcome.LOST, Outcome.COMPLETED]
            assert first.channel.texts("ann") == []


async def test_an_occurrence_that_kills_every_process_is_given_up() -> None:
    database = MemoryDatabase()
    async with at_work(ScriptedAgent(Block()), Wanted(at(60)), database) as (_, job):
        pass
    for agent in (ScriptedAgent(Block()), ScriptedAgent(Block())):
        async with a_process(agent, database=database):
            await until(lambda agent=agent: bool(agent.active))  # type: ignore[misc]
    async with a_process(database=database) as last:
        await last.channel.until_sent(1)
        assert last.scripted.requests == []
        (row,) = await log_of(last, job)
        assert (row.status, row.claims) == (OccurrenceStatus.LOST, 4)
        assert (await stored(last, job)).state is JobState.FAILED


async def test_two_processes_run_each_occurrence_once() -> None:
    database = MemoryDatabase()
    one, two = ScriptedAgent(), ScriptedAgent()
    async with a_process(one, database=database) as a, a_process(two, database=database):
        jobs = await crowd(a, [every(60)] * 5)
        await asyncio.sleep(620)
        for job in jobs:
            due = [row.scheduled_at for row in await log_of(a, job)]
            assert len(due) == len(set(due)) == 10
        assert len(one.requests) + len(two.requests) == 50


async def test_jobs_go_on_when_the_database_is_back() -> None:
    async with a_process() as gateway:
        job = await make(gateway, Wanted(every(60), target=TargetKind.NONE))
        await asyncio.sleep(50)
        gateway.store.away = True
        await asyncio.sleep(300)
        gateway.store.away = False
        await asyncio.sleep(20)
        assert await ends(gateway, job) == ["ok"]


CROWD = 40


async def crowd(
    gateway: GatewayProcess, schedules: Sequence[Schedule], *, mixed: bool = False
) -> list[Job]:
    """Jobs that tell nobody; in a mixed crowd each second one is a fixed message."""
    return [
        await make(gateway, Wanted(when, "x", f"j{n}", mixed and n % 2 == 0, TargetKind.NONE))
        for n, when in enumerate(schedules)
    ]


async def until_claimed(gateway: GatewayProcess) -> None:
    await until(lambda: gateway.container.job_module.occurrences.load == CROWD)


async def test_a_restart_after_a_long_time_is_no_stampede() -> None:
    """SPEC CRON-6: at most one start a second."""
    database, ways = MemoryDatabase(), Ways(cron_lane=100)
    async with a_process(ways=ways, database=database) as first:
        await crowd(first, [at(60 + n) for n in range(10)])
        await first.shut_down()
    await asyncio.sleep(1000)
    async with a_process(ways=ways, database=database) as second:
        began = second.clock.now()
        await until(lambda: len(second.scripted.requests) == 10)
        assert (second.clock.now() - began).total_seconds() >= 9


async def test_a_crowd_is_claimed_before_its_time_and_runs_at_it() -> None:
    """SPEC CRON-4: and none of it before."""
    async with a_process(ways=Ways(cron_lane=CROWD)) as gateway:
        await crowd(gateway, [at(60)] * CROWD)
        await until_claimed(gateway)
        assert after(59) < gateway.clock.now() < after(60)
        assert len(await gateway.store.runs(RunQuery(limit=1000))) == CROWD
        assert gateway.scripted.requests == []
        await until(lambda: bool(gateway.scripted.requests))
        assert gateway.clock.now() >= after(60)
        await until_idle(gateway)
        logs = await gateway.store.log_of(limit=1000)
        assert [row.status for row in logs] == [OccurrenceStatus.OK] * CROWD
        assert all(row.started_at and row.started_at >= row.scheduled_at for row in logs)


async def test_a_crowd_is_told_the_time_at_which_it_runs_not_that_of_its_preparation() -> None:
    async with a_process(ways=Ways(cron_lane=CROWD)) as gateway:
        await crowd(gateway, [at(60)] * CROWD)
        await until(lambda: len(gateway.scripted.requests) == CROWD)
        due = after(60).isoformat(timespec="seconds")
        wanted = f"It was due at {due} and runs at {due}"
        assert all(wanted in request.system[-1] for request in gateway.scripted.requests)


async def test_a_crowd_is_prepared_before_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """SPEC CRON-4: at its time nothing but the calls of the agents is left to do."""
    read_at: list[datetime] = []
    read = Instructions.read

    async def noted(self: Instructions, agent: AgentName) -> tuple[str, ...]:
        read_at.append(gateway.clock.now())
        return await read(self, agent)

    monkeypatch.setattr(Instructions, "read", noted)
    async with a_process(ways=Ways(cron_lane=CROWD)) as gateway:
        await crowd(gateway, [at(60)] * CROWD)
        await until(lambda: len(gateway.scripted.requests) == CROWD)
        assert len(read_at) == CROWD
        assert max(read_at) < after(60)


async def test_the_time_limit_of_a_job_does_not_count_the_seconds_before_it_is_due() -> None:
    """A crowd of 300 is claimed 1.5 s early."""
    many = 300
    async with a_process(ways=Ways(cron_lane=many)) as gateway:
        limit = (("run_timeout", 1.0),)
        jobs = [
            await make(gateway, Wanted(at(60), "x", f"j{n}", target=TargetKind.NONE, policy=limit))
            for n in range(many)
        ]
        await until(lambda: len(gateway.scripted.requests) == many)
        await asyncio.sleep(1)
        (ended,) = await log_of(gateway, jobs[0])
        assert ended.status is OccurrenceStatus.OK


async def test_a_crowd_for_which_there_is_no_room_occupies_no_slot_early() -> None:
    """SPEC CRON-4: four may be claimed at once, and that takes no time."""
    async with a_process(ways=Ways(cron_lane=2)) as gateway:
        await crowd(gateway, [at(60)] * CROWD)
        await asyncio.sleep((after(59.95) - gateway.clock.now()).total_seconds())
        assert gateway.container.job_module.occurrences.load == 0
        await until(lambda: len(gateway.scripted.requests) == CROWD)


async def test_what_is_changed_in_the_last_moment_does_not_run() -> None:
    async with a_process(ways=Ways(cron_lane=CROWD)) as gateway:
        jobs = await crowd(gateway, [every(60)] * CROWD, mixed=True)
        await until_claimed(gateway)
        await service(gateway).edit("j0", JobChange(state=JobState.PAUSED), OPERATOR)
        await service(gateway).edit("j1", JobChange(state=JobState.PAUSED), OPERATOR)
        await service(gateway).edit("j2", JobChange(name="renamed"), OPERATOR)
        await until_idle(gateway)
        stopped, done = ["cancelled:stopped"], ["ok"]
        assert [await ends(gateway, job) for job in jobs[:4]] == [stopped, stopped, done, done]
        now = await stored(gateway, jobs[0])
        assert (now.state, now.next_run_at, now.running) == (JobState.PAUSED, None, None)


async def test_a_shutdown_before_their_time_gives_a_crowd_back() -> None:
    database, ways = MemoryDatabase(), Ways(cron_lane=CROWD)
    async with a_process(ways=ways, database=database) as first:
        await crowd(first, [at(60)] * CROWD, mixed=True)
        await until_claimed(first)
        await first.shut_down(wait_s=0)
        assert first.scripted.requests == []
    async with a_process(ways=ways, database=database) as second:
        await asyncio.sleep(30)
        logs = await second.store.log_of(limit=1000)
        assert [row.status for row in logs] == [OccurrenceStatus.OK] * CROWD
        assert {row.claims for row in logs} == {1}


@pytest.mark.parametrize("kind", ["job", "main", "fresh"])
async def test_the_history_of_its_session_marks_what_a_job_asked(kind: str) -> None:
    """SPEC AGENT-7: also of a run that failed; the agent reads the prompt as it was written."""
    agent = ScriptedAgent(Say("hi"), Fail(BROKEN), Say("all is well"))
    async with a_process(agent) as gateway:
        await gateway.ask("hello", chat="ann")
        await make(gateway, Wanted(every(60), "report", "daily", policy=(("session", kind),)))
        await until(lambda: len(agent.requests) == 3)
        await asyncio.sleep(1)
        jobs = agent.requests[1:]
        assert [request.prompt for request in jobs] == ["report", "report"]
        sessions = dict.fromkeys(request.session for request in jobs)
        entries = [one for session in sessions for one in await gateway.store.history(session)]
        asked = [one.entry.text for one in entries if one.entry.role is Role.USER]
        assert asked[-2:] == ["[scheduler:daily] report"] * 2
        assert ("hello" in asked) == (kind == "main")


async def test_operators_see_the_words_of_runs_of_jobs_also_while_they_wait() -> None:
    """SPEC OPS-3: as of messages, or one of several could not be dropped."""
    async with a_process(ScriptedAgent(Block())) as gateway:
        for slug, words in (("a", "water the garden"), ("b", "read the\nnews")):
            job = await make(gateway, Wanted(every(600), words, slug))
            assert isinstance(await service(gateway).run_now(job.id, OPERATOR), StartedNow)
        begun, waiting = (await gateway.control.runs.active()).runs
        assert (begun.activity and begun.activity.prompt) == "water the garden"
        assert waiting.waits_for is not None
        assert waiting.activity == RunProgress("read the news")
