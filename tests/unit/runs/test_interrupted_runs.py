"""What a run had called before a crash cut it, and who is told of that (SPEC AGENT-9)."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest

from goclaw_py.chat.outbound import texts
from goclaw_py.core.budget import Budget
from goclaw_py.core.errors import NotContinued
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.run_events import ToolEnded, ToolStarted, Usage
from goclaw_py.core.run_steps import MOST_STORED
from goclaw_py.runs.agent_loop import Emit, ModelStep, RunRequest
from goclaw_py.runs.budget_tracker import Limits
from goclaw_py.runs.run_recorder import MOST_CALLS, MOST_CHARS
from goclaw_py.schedule.jobs.execution_models import OccurrenceStatus, Why
from goclaw_py.schedule.jobs.models import Notify
from goclaw_py.testing.agents import Do, ScriptedAgent
from tests.support.harness import Ways, a_process, here, message, until
from tests.support.jobs import Wanted, at, every, make, setup
from tests.support.memory_store import MemoryDatabase

USED = Usage(1, 100, 10, 0, Decimal("0.1"))


async def pay(request: RunRequest, emit: Emit) -> str:
    """Pays once, and hangs before it pays a second time."""
    emit(ModelStep(USED, "a-model"))
    for number, result in (("1", "receipt 77"), ("2", "")):
        emit(ToolStarted(number, "pay", f'{{"bill": {number}}}'))
        await request.recorded()
        if not result:
            await asyncio.Event().wait()
        emit(ToolEnded(number, "pay", ok=True, result=result))
    raise AssertionError


async def paying(
    agent: ScriptedAgent, database: MemoryDatabase, ways: Ways, *wanted: Wanted
) -> None:
    """A process is killed while its agent pays, asked by a message or by a job."""
    async with a_process(agent, ways, database=database) as process:
        for one in wanted:
            await make(process, one)
        if not wanted:
            await process.gateway.accept([message("pay my bills")])
        await until(lambda: len(agent.requests) == 1)
        await asyncio.sleep(1)
        process.kill()


async def test_the_next_attempt_is_told_what_the_one_before_had_called() -> None:
    """And the record of the one before has its tools, its model and what it used."""
    database, agent = MemoryDatabase(), ScriptedAgent(Do(pay))
    limited = Ways(limits=Limits(Budget(turns=8)))
    await paying(agent, database, limited)
    async with a_process(agent, limited, database=database) as process:
        await process.channel.until_sent(1)
        told = agent.requests[1].interrupted
        assert '- pay({"bill": 1}) -> done: receipt 77' in told
        assert agent.requests[1].budget.turns == 7
        assert '- pay({"bill": 2}) -> outcome unknown' in told
        assert "Do not repeat any of them blindly" in told
        second, first = await process.store.runs()
        assert (first.outcome, second.outcome) == (Outcome.LOST, Outcome.COMPLETED)
        assert [(call.name, call.ok) for call in first.tools] == [("pay", True), ("pay", None)]
        assert (first.usage, first.model) == (USED, "a-model")


def reading(calls: int, *, size: int) -> ScriptedAgent:
    """An agent that calls a tool with results of this size, and then hangs in its first run."""

    async def work(request: RunRequest, emit: Emit) -> str:
        for number in range(calls):
            emit(ToolStarted(str(number), "read", "{}", side_effects=False))
            emit(ToolEnded(str(number), "read", ok=True, result="x" * size))
        await request.recorded()
        await asyncio.Event().wait()
        raise AssertionError

    return ScriptedAgent(Do(work))


async def test_the_record_of_a_run_is_bounded_and_its_steps_are_whole() -> None:
    database, agent = MemoryDatabase(), reading(MOST_CALLS + 1, size=MOST_CHARS + 1)
    await paying(agent, database, Ways())
    async with a_process(agent, database=database) as process:
        await process.channel.until_sent(1)
        _, cut = await process.store.runs()
        assert (len(cut.tools), len(cut.tools[0].result)) == (MOST_CALLS, MOST_CHARS)
        whole = ToolEnded("0", "read", ok=True, result="x" * (MOST_CHARS + 1))
        steps = agent.requests[1].steps
        assert (len(steps), steps[1]) == (2 * (MOST_CALLS + 1), whole)


async def test_of_a_result_that_is_too_large_to_be_stored_the_beginning_is_kept() -> None:
    """The run itself has the whole result."""
    size = 50_000_000

    database, agent = MemoryDatabase(), reading(1, size=size)
    await paying(agent, database, Ways())
    async with a_process(agent, database=database) as process:
        await process.channel.until_sent(1)
        stored = agent.requests[1].steps[1]
        assert isinstance(stored, ToolEnded)
        more = f"\n[{size - MOST_STORED} more characters were not stored]"
        assert stored.result == "x" * MOST_STORED + more


async def test_who_follows_no_cut_run_is_told_nothing() -> None:
    agent = ScriptedAgent()
    async with a_process(agent) as process:
        await process.ask("hello")
        await process.ask("hello again")
    assert [request.interrupted for request in agent.requests] == ["", ""]


@pytest.mark.parametrize("notify", [Notify.ALWAYS, Notify.CONDITIONAL, Notify.NEVER])
async def test_a_job_that_had_called_a_tool_is_reported_and_not_run_again(notify: Notify) -> None:
    database, agent = MemoryDatabase(), ScriptedAgent(Do(pay))
    wanted = Wanted(every(60), notify=notify)
    await paying(agent, database, Ways(), wanted)
    async with a_process(agent, database=database) as process:
        await process.channel.until_sent(1)
        assert len(agent.requests) == 1
        (text,) = process.channel.texts()
        assert "interrupted after it had called pay, so it was not retried" in text
        (row,) = await process.store.log_of()
        assert (row.status, row.why) == (OccurrenceStatus.LOST, Why.EFFECTS)


async def test_a_job_that_may_be_repeated_is_run_again_and_told_of_the_calls() -> None:
    database, agent = MemoryDatabase(), ScriptedAgent(Do(pay))
    ways = Ways(jobs=setup(retry_after_effects=True))
    await paying(agent, database, ways, Wanted(at(60)))
    async with a_process(agent, ways, database=database) as process:
        await process.channel.until_sent(1)
        assert "receipt 77" in agent.requests[1].interrupted


async def test_a_message_that_crashes_every_run_ends_with_one_message_of_what_was_done() -> None:
    """SPEC IO-2: also if two gateways see the last crash."""
    database, agent = MemoryDatabase(), ScriptedAgent(Do(pay), Do(pay), Do(pay))
    await paying(agent, database, Ways())
    for attempt in (2, 3):
        async with a_process(agent, database=database) as process:
            await until(lambda attempt=attempt: len(agent.requests) == attempt)  # type: ignore[misc]
            await asyncio.sleep(1)
            process.kill()
    async with a_process(agent, database=database) as one, a_process(database=database) as two:
        await until(lambda: bool(one.channel.texts() + two.channel.texts()))
        await asyncio.sleep(60)
        (text,) = one.channel.texts() + two.channel.texts()
        assert text.startswith(texts.LOST)
        assert "completed: pay 3 times; outcome unknown: pay)" in text
        assert len(agent.requests) == 3
        assert two.scripted.requests == []


async def test_a_message_that_crashes_every_run_ends_at_the_budget() -> None:
    """SPEC AGENT-5, AGENT-9: what was done is told then too."""
    database, agent = MemoryDatabase(), ScriptedAgent(Do(pay), Do(pay))
    limited = Ways(limits=Limits(Budget(turns=2)))
    await paying(agent, database, limited)
    async with a_process(agent, limited, database=database) as process:
        await process.channel.until_sent(1)
        (text,) = process.channel.texts()
        assert "reached its limit of 2 model requests" in text
        assert "(completed: pay; outcome unknown: pay)" in text
        assert await process.outcomes() == [Outcome.LOST, Outcome.FAILED]


@pytest.mark.parametrize("notify", [Notify.ALWAYS, Notify.NEVER])
async def test_a_job_that_crashes_every_run_ends_with_one_message_of_what_was_done(
    notify: Notify,
) -> None:
    """SPEC CRON-5, CRON-13."""
    database, agent = MemoryDatabase(), ScriptedAgent(Do(pay), Do(pay), Do(pay))
    ways = Ways(jobs=setup(retry_after_effects=True))
    await paying(agent, database, ways, Wanted(every(60), notify=notify))
    for attempt in (2, 3):
        async with a_process(agent, ways, database=database) as process:
            await until(lambda attempt=attempt: len(agent.requests) == attempt)  # type: ignore[misc]
            await asyncio.sleep(1)
            process.kill()
    async with a_process(agent, ways, database=database) as process:
        await process.channel.until_sent(1)
        await asyncio.sleep(30)
        (text,) = process.channel.texts()
        assert "The program crashed 3 times while it ran." in text
        assert "completed: pay 3 times; outcome unknown: pay)" in text
        assert len(agent.requests) == 3
        (row,) = await process.store.log_of()
        assert (row.status, row.error) == (OccurrenceStatus.LOST, texts.crashed(3))


async def refuse(request: RunRequest, emit: Emit) -> str:
    """What an agent does that must not begin again."""
    raise NotContinued("I did not start it again.", "interrupted")


async def test_a_run_that_must_not_begin_again_ends_lost_with_one_message() -> None:
    """SPEC AGENT-10: its messages can be retried, and then nothing is continued."""
    database, agent = MemoryDatabase(), ScriptedAgent(Do(pay), Do(refuse))
    await paying(agent, database, Ways())
    async with a_process(agent, database=database) as process:
        await process.channel.until_sent(1)
        await asyncio.sleep(60)
        (said,) = process.channel.sent
        done = "Before that I had called tools (completed: pay; outcome unknown: pay)."
        assert said.text == f"I did not start it again. {done}"
        assert said.buttons
        assert await process.outcomes() == [Outcome.LOST, Outcome.LOST]
        (letter,) = await process.store.dead_letters()
        assert letter.row.reason is Reason.NOT_CONTINUED
        await process.store.retry_dead_letters([letter.row.id], now=process.clock.now())
        await process.channel.until_sent(2)
        assert len(agent.requests) == 3
        assert agent.requests[2].steps == ()


async def test_a_job_that_must_not_begin_again_is_reported_once() -> None:
    database, agent = MemoryDatabase(), ScriptedAgent(Do(pay), Do(refuse))
    ways = Ways(jobs=setup(retry_after_effects=True, retry_on="any"))
    await paying(agent, database, ways, Wanted(every(60), notify=Notify.NEVER))
    async with a_process(agent, ways, database=database) as process:
        await process.channel.until_sent(1)
        await asyncio.sleep(30)
        (text,) = process.channel.texts()
        assert "I did not start it again. Before that" in text
        (row,) = await process.store.log_of()
        assert row.status is OccurrenceStatus.LOST


async def test_no_tool_is_called_before_that_is_stored() -> None:
    called: list[str] = []

    async def call(request: RunRequest, emit: Emit) -> str:
        emit(ToolStarted("1", "pay", "{}"))
        await request.recorded()
        called.append("pay")
        return "done"

    async with a_process(ScriptedAgent(Do(call))) as process:
        process.store.broken = {"note_run"}
        await process.gateway.accept([message("pay")])
        await asyncio.sleep(5)
        assert called == []
        process.store.broken = set()
        await process.channel.until_sent(1)
        assert called == ["pay"]


async def test_a_parent_goes_on_waiting_for_the_same_child() -> None:
    """Its calls have the same keys as before; the child continues, and so do its own calls."""

    async def parent(request: RunRequest, emit: Emit) -> str:
        started = [step for step in request.steps if isinstance(step, ToolStarted)]
        emit(ToolStarted("1", "delegate", "{}", key=started[0].key if started else ""))
        await request.recorded()
        children = here(request).children
        return await children.subagent("work hard", request.call_key("1"))

    async def child(request: RunRequest, emit: Emit) -> str:
        if request.steps:
            return "worked"
        emit(ToolStarted("c", "pay", "{}"))
        await request.recorded()
        await asyncio.Event().wait()
        raise AssertionError

    def choose(request: RunRequest) -> Do:
        return Do(child if request.prompt == "work hard" else parent)

    database, agent = MemoryDatabase(), ScriptedAgent(otherwise=choose)
    async with a_process(agent, database=database) as process:
        await process.gateway.accept([message("ask")])
        await until(lambda: len(agent.requests) == 2)
        await asyncio.sleep(1)
        process.kill()
    async with a_process(agent, database=database) as process:
        await process.channel.until_sent(1)
        assert process.channel.texts() == ["worked"]
    asked, before, again, after = agent.requests
    assert again.steps == (ToolStarted("1", "delegate", "{}", key=f"{asked.run_id}-0"),)
    assert after.steps == (ToolStarted("c", "pay", "{}", key=f"{before.run_id}-0"),)
