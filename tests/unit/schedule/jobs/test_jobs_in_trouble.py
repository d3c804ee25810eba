"""What one bad job, a blinking database or a dying process do to the others: nothing.

SPEC AGENT-7, CMD-2, CRON-7, CRON-11.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from goclaw_py.core.errors import AgentError, StoreUnavailable, WorkSourceError
from goclaw_py.core.ids import JobId
from goclaw_py.core.outcomes import Outcome
from goclaw_py.operations.jobs.models import JobChange, StartedNow
from goclaw_py.schedule.jobs.execution_models import OccurrenceStatus
from goclaw_py.schedule.jobs.models import Job, JobState, Prompt, TargetKind, WorkItem
from goclaw_py.schedule.jobs.module import JobSetup
from goclaw_py.schedule.jobs.schedule import Cron
from goclaw_py.testing.agents import Block, Fail, Ignore, Say, ScriptedAgent
from tests.support.flaky_store import FlakyJobs
from tests.support.harness import GatewayProcess, Ways, a_process, until
from tests.support.jobs import (
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
    stored,
)
from tests.support.memory_store import MemoryDatabase
from tests.unit.schedule.jobs.service_parts import Script, started, takes

BUSY = AgentError("The model is busy.", "429", retryable=True)


async def spoil(gateway: GatewayProcess, job: Job, **changes: object) -> None:
    """Change the stored definition behind everybody's back."""
    known = gateway.database.cron.jobs[job.id]
    gateway.database.cron.put(replace(known, spec=replace(known.spec, **changes)))  # type: ignore[arg-type]  # as the test says


@pytest.mark.parametrize(
    "change", [{"zone": "US/Gone"}, {"policy": {"newer_key": 1}}], ids=["zone", "policy"]
)
async def test_a_job_that_cannot_be_read_is_off_and_stops_no_other(
    change: dict[str, object],
) -> None:
    async with a_process(ways=Ways(jobs=setup(misfire="skip"))) as gateway:
        bad = [await make(gateway, Wanted(Cron("*/10 * * * *"), slug=f"bad{n}")) for n in range(3)]
        good = await make(gateway, Wanted(every(600), slug="good"))
        for job in bad:
            await spoil(gateway, job, **change)
        await asyncio.sleep(3700)
        assert {(await stored(gateway, job)).state for job in bad} == {JobState.DISABLED}
        assert len(await ends(gateway, good)) == 6
        assert gateway.container.job_module.occurrences.load == 0


async def test_neighbours_of_such_a_job_end_as_they_should() -> None:
    database, ways = MemoryDatabase(), Ways(cron_lane=10, jobs=setup(misfire="skip"))
    async with a_process(ways=ways, database=database) as first:
        jobs = [await make(first, Wanted(every(600), slug=f"j{n}")) for n in range(4)]
        await spoil(first, jobs[0], schedule=Cron("0 * * * *"), zone="US/Gone")
        await first.shut_down()
    await asyncio.sleep(2000)
    async with a_process(ways=ways, database=database) as second:
        await asyncio.sleep(700)
        for job in jobs[1:]:
            assert await ends(second, job) == ["skipped:missed", "ok"]


async def test_whoever_asks_for_a_run_and_goes_away_leaves_nothing_behind() -> None:
    async with a_process() as gateway:
        await gateway.ask("hello")
        job = await make(gateway, Wanted(every(600), target=TargetKind.LAST))
        gateway.store.slow_before_s["activity"] = 5
        asked = asyncio.create_task(service(gateway).run_now("job", OPERATOR))
        await asyncio.wait([asked], timeout=1)
        asked.cancel()
        gateway.store.slow_before_s.clear()
        await asyncio.sleep(1300)
        assert gateway.container.job_module.occurrences.load == 0
        assert (await ends(gateway, job))[-2:] == ["ok", "ok"]


async def test_a_result_is_told_although_the_database_blinks_at_its_end() -> None:
    agent = ScriptedAgent(Say("hi"), Say("important", after_s=5))
    async with a_process(agent) as gateway:
        await gateway.ask("hello")
        await make(gateway, Wanted(every(600), target=TargetKind.LAST))
        await until(lambda: len(agent.requests) == 2, within_s=700)
        gateway.store.broken = {"activity", "finish_run", "end_occurrence"}
        await asyncio.sleep(10)
        gateway.store.broken = set()
        await gateway.channel.until_sent(2)
        assert "important" in gateway.channel.texts("ann")[-1]


async def test_a_reminder_comes_although_the_database_blinks_when_it_begins_and_within_it() -> None:
    """An outage within a run is a reason to try again."""
    agent = ScriptedAgent(Say("hi"), Fail(StoreUnavailable("away")), Say("done"))
    async with a_process(agent) as gateway:
        await gateway.ask("hello")
        job = await make(gateway, Wanted(at(600), target=TargetKind.LAST))
        await asyncio.sleep(590)
        gateway.store.broken = {"activity", "begin_run"}
        await asyncio.sleep(20)
        gateway.store.broken = set()
        await gateway.channel.until_sent(2)
        assert await ends(gateway, job) == ["ok"]


async def test_a_node_that_has_expired_runs_nothing_twice() -> None:
    """SPEC CRON-5: its late results are refused, and free nothing."""
    agent = ScriptedAgent(Ignore(for_s=30, reply="late"), Say("again", after_s=60))
    async with a_process(agent, Ways(cancel_grace_s=100)) as gateway:
        job = await make(gateway, Wanted(at(60)))
        await until(lambda: bool(agent.active))
        await gateway.store.end_lease(gateway.node(), now=gateway.clock.now())
        await gateway.cluster.recover()
        await gateway.channel.until_sent(1)
        await asyncio.sleep(300)
        (text,) = gateway.channel.texts("ann")
        assert text.startswith("⏰ again")
        assert len(agent.requests) == 2
        assert await ends(gateway, job) == ["ok"]


@pytest.mark.parametrize("error", [None, RuntimeError("a bug"), StoreUnavailable("away")])
async def test_a_begin_stored_behind_a_stop_leaves_no_run_open(error: Exception | None) -> None:
    """SPEC CRON-5: its conversation would not be free for the next time."""
    async with a_process() as gateway:
        job = await make(gateway, Wanted(at(60)))
        gateway.store.on_its_way_s["begin_run"] = 5
        await until(lambda: gateway.store.calls["begin_run"] > 0)
        gateway.store.on_its_way_s.clear()
        if error is None:
            gateway.store.slow_before_s["end_occurrence"] = 10
        elif isinstance(error, StoreUnavailable):
            gateway.store.broken.add("begin_run")
        else:
            gateway.store.errors["begin_run"] = error
        await gateway.say("/stopall")
        await asyncio.sleep(60)
        assert await ends(gateway, job) == ["cancelled:stopped"]
        assert gateway.container.job_module.occurrences.load == 0
        assert gateway.scripted.requests == []
        if error is None:
            (run,) = gateway.database.runs.values()
            assert run.end is not None
            assert run.end.outcome is Outcome.CANCELLED


async def test_a_job_that_is_stopped_just_before_its_next_attempt_ends() -> None:
    agent = ScriptedAgent(Fail(BUSY))
    async with a_process(agent) as gateway:
        job = await make(gateway, Wanted(at(60)))
        gateway.store.slow_before_s["withdrawn"] = 20
        await until(lambda: gateway.store.calls["withdrawn"] > 0)
        await gateway.say("/stopall")
        await asyncio.sleep(60)
        assert await ends(gateway, job) == ["cancelled:stopped"]
        assert gateway.container.job_module.occurrences.load == 0
        assert len(agent.requests) == 1


@pytest.mark.parametrize("change", [
    None, JobChange(state=JobState.PAUSED), JobChange(schedule=every(5000)),
], ids=["deleted", "paused", "later"])  # fmt: skip
async def test_what_is_changed_while_it_waits_does_not_run(change: JobChange | None) -> None:
    agent = ScriptedAgent(Block())
    async with a_process(agent) as gateway:
        await make(gateway, Wanted(at(60), "long", slug="long"))
        await make(gateway, Wanted(every(70), "waits", slug="waits"))
        await asyncio.sleep(100)
        if change is None:
            await service(gateway).delete("waits", OPERATOR)
        else:
            await service(gateway).edit("waits", change, OPERATOR)
        agent.release()
        await asyncio.sleep(1000)
        assert agent.prompts == ["long"]


@pytest.mark.parametrize(("said", "stored_s"), [("/stop", 0), ("/stop", 5), ("", 0)])
async def test_no_attempt_follows_a_stop_or_the_end_of_the_job(said: str, stored_s: float) -> None:
    """Also while the end of an attempt is stored."""
    agent = ScriptedAgent(otherwise=lambda _: Fail(BUSY))
    async with a_process(agent) as gateway:
        job = await make(gateway, Wanted(every(60)))
        if stored_s:
            gateway.store.slow_before_s["finish_run"] = stored_s
        await until(lambda: bool(agent.requests), within_s=100)
        await asyncio.sleep(0.5)
        if said:
            await gateway.say(said)
        else:
            await service(gateway).delete(job.id, OPERATOR)
        await asyncio.sleep(58)
        assert len(agent.requests) == 1
        assert not said or await ends(gateway, job) == ["cancelled:stopped"]


async def test_a_stop_takes_what_waits_for_room_at_its_agent() -> None:
    agent = ScriptedAgent(Say("one", after_s=30))
    ways = Ways(cron_lane=5, jobs=setup(max_per_agent=1))
    async with a_process(agent, ways) as gateway:
        await make(gateway, Wanted(at(60), "one", slug="a"))
        await make(gateway, Wanted(at(61), "two", slug="b"))
        await asyncio.sleep(70)
        await gateway.say("/stopall")
        await asyncio.sleep(100)
        assert agent.prompts == ["one"]
        assert gateway.container.job_module.occurrences.load == 0


async def test_a_run_by_hand_that_ends_when_it_is_due_makes_it_skip_nothing() -> None:
    agent = ScriptedAgent(Say("by hand", after_s=100))
    async with a_process(agent, Ways(cron_lane=5, jobs=setup(on_busy="skip"))) as gateway:
        job = await make(gateway, Wanted(every(60)))
        await asyncio.sleep(10)
        await service(gateway).run_now("job", OPERATOR)
        await gateway.channel.until_sent(2)
        assert await ends(gateway, job) == ["ok", "ok"]


async def test_jobs_that_are_over_take_no_room_of_their_agent() -> None:
    database, ways = MemoryDatabase(), Ways(cron_lane=5)
    policy = (("max_per_agent", 1), ("on_busy", "skip"))
    async with a_process(ways=ways, database=database) as first:
        skips = (*policy, ("misfire", "skip"))
        missed = await make(first, Wanted(every(60), slug="a", policy=skips))
        kept = await make(first, Wanted(every(61), slug="b", policy=policy))
        await first.shut_down()
    await asyncio.sleep(1000)
    async with a_process(ways=ways, database=database) as second:
        await asyncio.sleep(10)
        assert await ends(second, missed) == ["skipped:missed"]
        assert await ends(second, kept) == ["ok"]


async def test_a_hung_prompt_delays_no_message() -> None:
    """SPEC CRON-4: it needs no place in a lane."""
    agent = ScriptedAgent(Block())
    async with a_process(agent) as gateway:
        for slug in ("a", "b", "c"):
            await make(gateway, Wanted(at(60), "hangs", slug=slug))
        await make(gateway, Wanted(at(120), "tea", slug="tea", message=True))
        await gateway.channel.until_sent(1)
        assert gateway.clock.now() < after(121)
        assert len(agent.requests) == 1


async def test_what_was_missed_delays_nothing_that_is_on_time() -> None:
    database = MemoryDatabase()
    async with a_process(database=database) as first:
        for n in range(40):
            await make(first, Wanted(at(60 + n), "x", f"j{n}", target=TargetKind.NONE))
        await first.shut_down()
    await asyncio.sleep(1000)
    async with a_process(database=database) as second:
        due = (second.clock.now() - after(0)).total_seconds() + 5
        await make(second, Wanted(at(due), "now", slug="now"))
        await second.channel.until_sent(1)
        assert second.clock.now() < after(due + 3)


class Slow:
    """A work source that takes its time; ``held`` is what it gave back or was told."""

    def __init__(self, *, take_s: float = 0.0, done_s: float = 0.0, bug: bool = False) -> None:
        self.take_s, self.done_s, self.bug = take_s, done_s, bug
        self.told: list[str] = []

    async def claim(self, job: JobId) -> WorkItem | None:
        await asyncio.sleep(self.take_s)
        return WorkItem("1", f"work of {job}")

    async def done(self, item: WorkItem, *, ok: bool, text: str) -> None:
        if self.bug:
            raise RuntimeError("bug")
        await asyncio.sleep(self.done_s)
        self.told.append(f"{item.id} {ok} {text}")

    async def give_back(self, item: WorkItem, reason: str) -> None:
        self.told.append(f"{item.id} {reason}")
        raise WorkSourceError("away")


def with_source(source: Slow) -> Ways:
    return Ways(jobs=JobSetup(replace(setup().rules, sources=("todo",)), {"todo": source}))


async def work_of(gateway: GatewayProcess) -> Job:
    draft = replace(Wanted(every(60), "do it", slug="works").draft(), source="todo")
    return await service(gateway).create(draft, OPERATOR)


@pytest.mark.parametrize("source", [Slow(done_s=500), Slow(bug=True)], ids=["slow", "bug"])
async def test_a_work_source_holds_no_place_after_the_run(source: Slow) -> None:
    async with a_process(ways=with_source(source)) as gateway:
        await work_of(gateway)
        await make(gateway, Wanted(at(61), "other", slug="other"))
        await gateway.channel.until_sent(2)
        assert gateway.clock.now() < after(63)
        await asyncio.sleep(3)
        owned = [session for session in gateway.database.sessions.values() if session.owner]
        assert owned == []


async def test_a_work_source_that_hangs_does_not_hold_up_the_shutdown() -> None:
    """SPEC QUEUE-11: and its job is due again."""
    database = MemoryDatabase()
    async with a_process(ways=with_source(Slow(take_s=5000)), database=database) as first:
        job = await work_of(first)
        await asyncio.sleep(61)
        began = first.clock.now()
        await first.shut_down(wait_s=1)
        assert (first.clock.now() - began).total_seconds() < 10
        assert await ends(first, job) == ["interrupted"]


async def test_a_shutdown_while_the_database_is_away_gets_on() -> None:
    agent = ScriptedAgent(otherwise=lambda _: Fail(BUSY))
    async with a_process(agent) as gateway:
        await make(gateway, Wanted(every(60)))
        await until(lambda: bool(agent.requests), within_s=100)
        await asyncio.sleep(0.5)
        gateway.store.broken = {"give_back"}
        closing = asyncio.create_task(gateway.shut_down(wait_s=5))
        await asyncio.sleep(20)
        assert gateway.dispatcher.draining
        gateway.store.broken = set()
        await closing


async def test_the_prompt_of_work_is_the_users_message() -> None:
    async with a_process(ways=with_source(Slow())) as gateway:
        job = await work_of(gateway)
        assert isinstance(job.spec.payload, Prompt)
        await gateway.channel.until_sent(1)
        (request,) = gateway.scripted.requests
        assert f"work of {job.id}" in request.prompt
        assert not any("work of" in text for text in request.system)


SILENT = Wanted(every(60), target=TargetKind.NONE)


async def test_what_was_claimed_without_an_answer_runs_all_the_same() -> None:
    async with a_process() as gateway:
        job = await make(gateway, SILENT)
        gateway.store.lose_answer["claim_due"] = 2
        await asyncio.sleep(150)
        log = await log_of(gateway, job)
        assert [(row.status, row.claims) for row in log] == [(OccurrenceStatus.OK, 1)] * 2
        assert log[0].scheduled_at == job.next_run_at


async def test_what_runs_while_an_answer_is_lost_goes_on_undisturbed() -> None:
    store, script = FlakyJobs(), Script([takes(30), takes(30)])
    async with started(script, store) as jobs:
        await jobs.add("first", every(60))
        await asyncio.sleep(50)
        await jobs.add("second", every(20))
        await asyncio.sleep(15)
        store.lose_answer["claim_due"] = 1
        await asyncio.sleep(20)
        assert script.slugs() == ["first", "second"]
        assert {row.claims for row in await store.log_of()} == {1}


async def test_a_run_by_hand_whose_claim_had_no_answer_begins_once() -> None:
    """CRON-11."""
    async with a_process() as gateway:
        job = await make(gateway, SILENT)
        gateway.store.lose_answer["claim_now"] = 1
        assert isinstance(await service(gateway).run_now(job.id, OPERATOR), StartedNow)
        await asyncio.sleep(30)
        (row,) = await log_of(gateway, job)
        assert (row.status, row.manual) == (OccurrenceStatus.OK, True)
        assert len(gateway.scripted.requests) == 1


async def test_a_service_runs_by_hand_what_it_claimed_without_an_answer() -> None:
    store, script = FlakyJobs(), Script()
    async with started(script, store) as jobs:
        await jobs.add("first", every(60))
        store.lose_answer["claim_now"] = 1
        assert isinstance(await jobs.run("first"), StartedNow)
        await asyncio.sleep(90)
        assert [due.manual for due in script.begun] == [True, False]
