"""Jobs from being due to what people read of them.

SPEC section 6, AGENT-5, AGENT-7, CMD-2, CRON-4 to CRON-11, CRON-13, CRON-14, DB-4, QUEUE-11.
"""

from __future__ import annotations

import asyncio

import pytest

from goclaw_py.jobs.execution_models import OccurrenceStatus, Why
from goclaw_py.jobs.models import JobState, Notify, TargetKind
from goclaw_py.model.errors import AgentError
from goclaw_py.model.outcomes import Outcome, Trigger
from goclaw_py.model.run_events import ToolEnded, ToolStarted
from goclaw_py.ports.agent import RunRequest
from goclaw_py.ports.jobs import JobChange, RunNow, StartedNow
from goclaw_py.store.memory import MemoryDatabase
from goclaw_py.testing.agents import Block, Emitting, Fail, Say, ScriptedAgent, Step
from tests.support.harness import Ways, a_process, until
from tests.support.jobs import (
    ANN,
    IN_CHAT,
    OPERATOR,
    Wanted,
    after,
    at,
    ends,
    every,
    log_of,
    make,
    service,
    setup,
)

BUSY = AgentError("The model is busy.", "429", retryable=True)
BROKEN = AgentError("I have no key.", "401")


async def test_a_prompt_runs_when_it_is_due_and_its_answer_comes_into_the_chat() -> None:
    async with a_process() as gateway:
        job = await make(gateway, Wanted(every(600), "report"))
        await gateway.channel.until_sent(1)
        assert gateway.clock.now() == after(600)
        assert gateway.channel.texts("ann") == ["🗓 job\n\nre: report"]
        (request,) = gateway.scripted.requests
        assert request.prompt == "report"
        assert request.trigger is Trigger.CRON
        assert request.session == f"agent:main:cron:{job.id}"
        assert "scheduled" in "".join(request.system)
        await gateway.channel.until_sent(2)
        assert gateway.clock.now() == after(1200)
        assert await ends(gateway, job) == ["ok", "ok"]


async def test_a_run_of_a_job_has_the_budget_of_scheduled_runs() -> None:
    async with a_process() as gateway:
        await make(gateway, Wanted(at(60)))
        await gateway.channel.until_sent(1)
        budget = gateway.scripted.requests[0].budget
        assert (budget.turns, str(budget.usd)) == (10, "0.50")


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


async def test_a_job_that_ran_once_is_deleted_and_its_log_stays() -> None:
    async with a_process() as gateway:
        job = await make(gateway, Wanted(at(60)))
        await gateway.channel.until_sent(1)
        await until(lambda: not gateway.container.job_module.occurrences.load)
        # When its chat has the result, and not before.
        await asyncio.sleep(5)
        assert await gateway.store.job(job.id) is None
        assert await ends(gateway, job) == ["ok"]


async def test_a_job_of_the_models_is_kept_as_completed() -> None:
    async with a_process() as gateway:
        job = await make(gateway, Wanted(at(60)), IN_CHAT)
        await gateway.channel.until_sent(1)
        await until(lambda: not gateway.container.job_module.occurrences.load)
        stored = await gateway.store.job(job.id)
        assert stored is not None
        assert (stored.state, stored.next_run_at) == (JobState.COMPLETED, None)


# ---------------------------------------------------------------------------- retries


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


async def test_between_attempts_the_lane_is_free() -> None:
    def answer(request: RunRequest) -> Step:
        return Say("fine") if request.prompt == "other" else Fail(BUSY)

    async with a_process(ScriptedAgent(otherwise=answer)) as gateway:
        await make(gateway, Wanted(every(600), "report"))
        await make(gateway, Wanted(at(601), "other", slug="other", message=False))
        await gateway.channel.until_sent(1)
        assert gateway.clock.now() < after(602)


@pytest.mark.parametrize(
    ("error", "tries"), [(BROKEN, 1), (ValueError("bug"), 1), (BUSY, 4)], ids=str
)
async def test_permanent_failures_are_not_tried_again(error: Exception, tries: int) -> None:
    """SPEC CRON-7: three retries, of what may be gone in a moment."""
    async with a_process(ScriptedAgent(otherwise=lambda _: Fail(error))) as gateway:
        job = await make(gateway, Wanted(at(60)), OPERATOR)
        await gateway.channel.until_sent(1)
        (row,) = await log_of(gateway, job)
        assert (row.status, row.attempts) == (OccurrenceStatus.FAILED, tries)
        stored = await gateway.store.job(job.id)
        assert stored is not None
        assert stored.state is JobState.FAILED


async def test_nothing_is_tried_again_after_a_tool_with_side_effects() -> None:
    calls = (ToolStarted("1", "send", "{}", side_effects=True), ToolEnded("1", "send", ok=True))
    agent = ScriptedAgent(otherwise=lambda _: Emitting(calls, Fail(BUSY)))
    async with a_process(agent) as gateway:
        job = await make(gateway, Wanted(at(60)))
        await gateway.channel.until_sent(1)
        (row,) = await log_of(gateway, job)
        assert (row.status, row.attempts) == (OccurrenceStatus.FAILED, 1)


# ---------------------------------------------------------------------------- what people are told


async def test_a_failure_is_told_in_one_line() -> None:
    async with a_process(ScriptedAgent(otherwise=lambda _: Fail(BROKEN))) as gateway:
        await make(gateway, Wanted(every(600)))
        await gateway.channel.until_sent(1)
        (text,) = gateway.channel.texts("ann")
        assert "\n" not in text
        assert "I have no key." in text
        assert "job" in text


async def test_a_quiet_job_tells_only_of_the_third_failure_in_a_row() -> None:
    agent = ScriptedAgent(otherwise=lambda _: Fail(BROKEN))
    async with a_process(agent) as gateway:
        await make(gateway, Wanted(every(600), notify=Notify.CONDITIONAL))
        await gateway.channel.until_sent(1)
        assert len(agent.requests) == 3
        await asyncio.sleep(3000)
        assert len(gateway.channel.texts("ann")) == 1


@pytest.mark.parametrize(
    ("reply", "told"), [(" [NOTIFY] Rain!", "Rain!"), ("all dry", None), ("so [NOTIFY]", None)]
)
async def test_a_conditional_job_speaks_only_if_it_says_so(reply: str, told: str | None) -> None:
    async with a_process(ScriptedAgent(otherwise=lambda _: Say(reply))) as gateway:
        job = await make(gateway, Wanted(at(60), notify=Notify.CONDITIONAL))
        await asyncio.sleep(100)
        texts = gateway.channel.texts("ann")
        assert [told is not None and told in text for text in texts] == [True] * bool(told)
        assert not any("[NOTIFY]" in text for text in texts)
        (row,) = await log_of(gateway, job)
        assert row.output == reply


async def test_a_reply_that_is_no_reply_is_silent() -> None:
    async with a_process(ScriptedAgent(otherwise=lambda _: Say("NO_REPLY"))) as gateway:
        await make(gateway, Wanted(at(60)))
        await asyncio.sleep(100)
        assert gateway.channel.texts("ann") == []


async def test_the_last_chat_is_where_somebody_spoke_last() -> None:
    async with a_process() as gateway:
        await make(gateway, Wanted(at(600), target=TargetKind.LAST))
        await gateway.ask("hello", chat="ann")
        await asyncio.sleep(10)
        await gateway.ask("hello", chat="ben")
        await asyncio.sleep(700)
        assert len(gateway.channel.texts("ann")) == 1
        assert "re: report" in gateway.channel.texts("ben")[-1]


# ---------------------------------------------------------------------------- changes meanwhile


async def test_a_pause_during_a_run_wins() -> None:
    agent = ScriptedAgent(Block())
    async with a_process(agent) as gateway:
        job = await make(gateway, Wanted(every(600)))
        await until(lambda: bool(agent.active), within_s=700)
        await service(gateway).edit(job.id, JobChange(state=JobState.PAUSED), OPERATOR)
        agent.release()
        await gateway.channel.until_sent(1)
        await asyncio.sleep(3000)
        stored = await gateway.store.job(job.id)
        assert stored is not None
        assert (stored.state, stored.next_run_at, stored.runs) == (JobState.PAUSED, None, 1)
        assert len(agent.requests) == 1


async def test_an_edit_during_a_run_wins_over_its_rescheduling() -> None:
    """SPEC CRON-11: and the run uses the definition at its start."""
    agent = ScriptedAgent(Block("old"))
    async with a_process(agent) as gateway:
        job = await make(gateway, Wanted(every(600)))
        await until(lambda: bool(agent.active), within_s=700)
        edited = await service(gateway).edit(job.id, JobChange(schedule=every(5000)), OPERATOR)
        agent.release()
        await gateway.channel.until_sent(1)
        stored = await gateway.store.job(job.id)
        assert stored is not None
        assert stored.next_run_at == edited.next_run_at
        assert edited.next_run_at is not None
        assert edited.next_run_at > after(5000)


async def test_a_job_that_is_deleted_during_its_run_ends_in_peace() -> None:
    agent = ScriptedAgent(Block("done"))
    async with a_process(agent) as gateway:
        job = await make(gateway, Wanted(every(600)))
        await until(lambda: bool(agent.active), within_s=700)
        await service(gateway).delete(job.id, OPERATOR)
        agent.release()
        await gateway.channel.until_sent(1)
        await asyncio.sleep(3000)
        assert await gateway.store.job(job.id) is None
        assert len(agent.requests) == 1
        assert await ends(gateway, job) == ["ok"]


async def test_what_comes_due_during_a_run_is_counted_and_not_caught_up() -> None:
    agent = ScriptedAgent(Say("slow", after_s=1900))
    async with a_process(agent, Ways(jobs=setup(anchor="grid", run_timeout_s=7200))) as gateway:
        job = await make(gateway, Wanted(every(600)))
        await gateway.channel.until_sent(2)
        stored = await gateway.store.job(job.id)
        assert stored is not None
        assert stored.coalesced == 3
        assert gateway.clock.now() == after(3000)


# ---------------------------------------------------------------------------- by hand


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
        await until(lambda: not gateway.container.job_module.occurrences.load)
        stored = await gateway.store.job(job.id)
        assert stored is not None
        assert (stored.state, stored.next_run_at) == (JobState.ACTIVE, job.next_run_at)
        assert (stored.runs, stored.failures, stored.running) == (0, 0, None)
        assert [row.manual for row in await log_of(gateway, job)] == [True]


# ---------------------------------------------------------------------------- busy


async def test_a_hung_job_delays_no_other_one() -> None:
    agent = ScriptedAgent(Block())
    async with a_process(agent, Ways(cron_lane=5)) as gateway:
        await make(gateway, Wanted(at(60), "hangs", slug="a"))
        await make(gateway, Wanted(at(120), "works", slug="b"))
        await gateway.channel.until_sent(1)
        assert gateway.clock.now() == after(120)


@pytest.mark.parametrize("on_busy", ["queue", "skip", "delay"])
async def test_a_busy_conversation_is_respected(on_busy: str) -> None:
    agent = ScriptedAgent(Say("talked", after_s=30))
    policy = (("session", "main"), ("on_busy", on_busy), ("busy_delay_s", 100.0))
    async with a_process(agent) as gateway:
        job = await make(gateway, Wanted(every(60), policy=policy))
        await asyncio.sleep(45)
        await gateway.say("hello")
        await asyncio.sleep(130)
        rows = [(row.status, row.why, row.scheduled_at) for row in await log_of(gateway, job)]
    busy = (OccurrenceStatus.SKIPPED, Why.BUSY, after(60))
    match on_busy:
        case "queue":
            assert rows[0][:2] == (OccurrenceStatus.OK, None)
        case "skip":
            assert rows[0] == busy
            assert rows[1][2] == after(120)
        case _:
            assert rows[0] == busy
            assert rows[1][2] == after(160)


# ---------------------------------------------------------------------------- stop


async def test_a_stop_in_its_chat_stops_a_job() -> None:
    agent = ScriptedAgent(Block())
    async with a_process(agent) as gateway:
        job = await make(gateway, Wanted(every(600)))
        await until(lambda: bool(agent.active), within_s=700)
        await gateway.say("/stop")
        await until(lambda: not gateway.container.job_module.occurrences.load)
        assert await ends(gateway, job) == ["cancelled:stopped"]
        stored = await gateway.store.job(job.id)
        assert stored is not None
        assert (stored.state, stored.failures) == (JobState.ACTIVE, 0)


# ---------------------------------------------------------------------------- ends of processes


async def test_a_shutdown_gives_a_run_back_and_it_runs_again() -> None:
    """SPEC QUEUE-11: no attempt is counted."""
    database, agent = MemoryDatabase(), ScriptedAgent(Block())
    async with a_process(agent, database=database) as gateway:
        job = await make(gateway, Wanted(at(60)))
        await until(lambda: bool(agent.active))
        await gateway.shut_down(wait_s=0)
        assert await ends(gateway, job) == ["interrupted"]
    async with a_process(database=database) as second:
        await second.channel.until_sent(1)
        (row,) = await log_of(second, job)
        assert (row.status, row.claims) == (OccurrenceStatus.OK, 1)


async def test_a_crash_runs_an_occurrence_again_and_shows_it() -> None:
    database, agent = MemoryDatabase(), ScriptedAgent(Block())
    async with a_process(agent, database=database) as first:
        job = await make(first, Wanted(at(60)))
        await until(lambda: bool(agent.active))
        first.kill()
        async with a_process(database=database) as second:
            await second.channel.until_sent(1)
            (row,) = await log_of(second, job)
            assert (row.status, row.claims) == (OccurrenceStatus.OK, 2)
            assert await second.outcomes() == [Outcome.LOST, Outcome.COMPLETED]
            assert first.channel.texts("ann") == []


async def test_an_occurrence_that_kills_every_process_is_given_up() -> None:
    database = MemoryDatabase()
    async with a_process(database=database) as maker:
        job = await make(maker, Wanted(at(60)))
        await maker.shut_down()
    for _ in range(3):
        await _run_and_die(database)
    async with a_process(database=database) as last:
        await last.channel.until_sent(1)
        assert last.scripted.requests == []
        (row,) = await log_of(last, job)
        assert (row.status, row.claims) == (OccurrenceStatus.LOST, 4)
        stored = await last.store.job(job.id)
        assert stored is not None
        assert stored.state is JobState.FAILED


async def _run_and_die(database: MemoryDatabase) -> None:
    agent = ScriptedAgent(Block())
    async with a_process(agent, database=database):
        await until(lambda: bool(agent.active))


async def test_two_processes_run_each_occurrence_once() -> None:
    database = MemoryDatabase()
    one, two = ScriptedAgent(), ScriptedAgent()
    async with a_process(one, database=database) as a, a_process(two, database=database):
        jobs = [
            await make(a, Wanted(every(60), slug=f"j{n}", target=TargetKind.NONE)) for n in range(5)
        ]
        await asyncio.sleep(620)
        for job in jobs:
            rows = await log_of(a, job)
            assert len(rows) == 10
            assert len({row.scheduled_at for row in rows}) == 10
        assert len(one.requests) + len(two.requests) == 50


async def test_what_was_missed_runs_once_and_says_that_it_is_late() -> None:
    database = MemoryDatabase()
    async with a_process(database=database) as first:
        reminder = await make(first, Wanted(at(60), "tea", slug="tea", message=True))
        often = await make(first, Wanted(every(100), slug="often"))
        await first.shut_down()
    await asyncio.sleep(1000)
    async with a_process(database=database) as second:
        await second.channel.until_sent(2)
        texts = second.channel.texts("ann")
        assert any("tea" in text and "Late by" in text for text in texts)
        assert await ends(second, reminder) == ["ok"]
        assert await ends(second, often) == ["ok"]


async def test_what_was_missed_can_be_skipped() -> None:
    database, ways = MemoryDatabase(), Ways(jobs=setup(misfire="skip"))
    async with a_process(ways=ways, database=database) as first:
        job = await make(first, Wanted(every(100)))
        await first.shut_down()
    await asyncio.sleep(1000)
    async with a_process(ways=ways, database=database) as second:
        await asyncio.sleep(1)
        assert await ends(second, job) == ["skipped:missed"]
        assert second.scripted.requests == []


async def test_a_restart_after_a_long_time_is_no_stampede() -> None:
    """SPEC CRON-6: at most one start a second."""
    database, ways = MemoryDatabase(), Ways(cron_lane=100)
    async with a_process(ways=ways, database=database) as first:
        for n in range(10):
            await make(first, Wanted(at(60 + n), slug=f"j{n}", target=TargetKind.NONE))
        await first.shut_down()
    await asyncio.sleep(1000)
    async with a_process(ways=ways, database=database) as second:
        began = second.clock.now()
        await until(lambda: len(second.scripted.requests) == 10)
        assert (second.clock.now() - began).total_seconds() >= 9


async def test_jobs_go_on_when_the_database_is_back() -> None:
    async with a_process() as gateway:
        job = await make(gateway, Wanted(every(60), target=TargetKind.NONE))
        await asyncio.sleep(50)
        gateway.store.away = True
        await asyncio.sleep(300)
        gateway.store.away = False
        await asyncio.sleep(20)
        rows = await log_of(gateway, job)
        assert [row.status for row in rows] == [OccurrenceStatus.OK]
        assert ANN.chat == "ann"


# ---------------------------------------------------------------------------- crowds

CROWD = 40


async def test_a_crowd_is_claimed_before_its_time_and_runs_at_it() -> None:
    """SPEC CRON-4: and none of it before."""
    async with a_process(ways=Ways(cron_lane=CROWD)) as gateway:
        for n in range(CROWD):
            await make(gateway, Wanted(at(60), slug=f"j{n}", target=TargetKind.NONE))
        await until(lambda: gateway.container.job_module.occurrences.load == CROWD)
        assert after(59) < gateway.clock.now() < after(60)
        assert len(await gateway.store.runs(limit=1000)) == CROWD
        assert gateway.scripted.requests == []
        await until(lambda: bool(gateway.scripted.requests))
        assert gateway.clock.now() >= after(60)
        await until(lambda: not gateway.container.job_module.occurrences.load)
        logs = await gateway.store.log_of(limit=1000)
        assert [row.status for row in logs] == [OccurrenceStatus.OK] * CROWD
        assert all(row.started_at and row.started_at >= row.scheduled_at for row in logs)


async def test_what_is_changed_in_the_last_moment_does_not_run() -> None:
    async with a_process(ways=Ways(cron_lane=CROWD)) as gateway:
        jobs = [
            await make(gateway, Wanted(every(60), "x", f"j{n}", message=n % 2 == 0))
            for n in range(CROWD)
        ]
        await until(lambda: gateway.container.job_module.occurrences.load == CROWD)
        await service(gateway).edit("j0", JobChange(state=JobState.PAUSED), OPERATOR)
        await service(gateway).edit("j1", JobChange(state=JobState.PAUSED), OPERATOR)
        await service(gateway).edit("j2", JobChange(name="renamed"), OPERATOR)
        await until(lambda: not gateway.container.job_module.occurrences.load)
        assert [await ends(gateway, job) for job in jobs[:4]] == [
            ["cancelled:stopped"],
            ["cancelled:stopped"],
            ["ok"],
            ["ok"],
        ]
        stored = await gateway.store.job(jobs[0].id)
        assert stored is not None
        assert (stored.state, stored.next_run_at, stored.running) == (JobState.PAUSED, None, None)


async def test_a_shutdown_before_their_time_gives_a_crowd_back() -> None:
    database, ways = MemoryDatabase(), Ways(cron_lane=CROWD)
    async with a_process(ways=ways, database=database) as first:
        for n in range(CROWD):
            await make(first, Wanted(at(60), "x", f"j{n}", n % 2 == 0, TargetKind.NONE))
        await until(lambda: first.container.job_module.occurrences.load == CROWD)
        await first.shut_down(wait_s=0)
        assert first.scripted.requests == []
    async with a_process(ways=ways, database=database) as second:
        await asyncio.sleep(30)
        logs = await second.store.log_of(limit=1000)
        assert [row.status for row in logs] == [OccurrenceStatus.OK] * CROWD
        assert {row.claims for row in logs} == {1}
