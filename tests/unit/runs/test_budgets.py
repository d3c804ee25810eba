"""What runs may use up, in a whole gateway (SPEC AGENT-5)."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest

from goclaw_py.model.budget import Budget
from goclaw_py.model.errors import BudgetReached
from goclaw_py.model.outcomes import Outcome, Reason
from goclaw_py.model.run_events import TextDelta, Usage
from goclaw_py.ports.agent import AgentResult, Emit, HistoryEntry, Role, RunRequest
from goclaw_py.ports.agent import ModelStep as LoopStep
from goclaw_py.runs.budget_tracker import Limits
from goclaw_py.store.memory import MemoryDatabase
from goclaw_py.testing.agents import Block, Do, Emitting, Return, Say, ScriptedAgent
from tests.support.harness import Ways, a_process, here, session_of


def used(turns: int, tokens: int = 0, usd: str | None = None) -> Usage:
    cost = None if usd is None else Decimal(usd)
    return Usage(requests=turns, input_tokens=tokens, cost_usd=cost)


def with_run(budget: Budget) -> Ways:
    return Ways(limits=Limits(run=budget))


async def go_on(request: RunRequest, emit: Emit) -> str:
    """Ask a model again and again, 100 tokens and ten cents each time, a second apart."""
    for turn in range(1, 1000):
        emit(TextDelta(f"{turn} "))
        emit(LoopStep(used(turn, turn * 100, f"{turn * 0.1:.1f}")))
        await asyncio.sleep(1)
    return "never"


@pytest.mark.parametrize(
    ("budget", "said", "amount"),
    [
        (Budget(turns=3), "1 2 3", "3 model requests"),
        (Budget(tokens=200), "1 2", "200 tokens"),
        (Budget(usd=Decimal("0.35")), "1 2 3 4", "$0.35"),
        (Budget(seconds=2.5), "1 2 3", "2.5 seconds"),
    ],
)
async def test_a_run_ends_with_what_it_had_so_far(budget: Budget, said: str, amount: str) -> None:
    async with a_process(ScriptedAgent(Do(go_on)), with_run(budget)) as gateway:
        answer = await gateway.ask("go")
        assert answer == f"{said} \n\nI stopped here: this task reached its limit of {amount}."
        (run,) = await gateway.store.runs()
        assert (run.outcome, run.reason) == (Outcome.FAILED, Reason.BUDGET)
        assert run.usage is not None
        assert run.usage.requests == len(said.split())


async def test_a_reply_that_is_complete_counts_whatever_it_has_used() -> None:
    last = Emitting((LoopStep(used(3), done=True),), Say("complete"))
    async with a_process(ScriptedAgent(last), with_run(Budget(turns=3))) as gateway:
        assert await gateway.ask("go") == "complete"


async def test_what_was_used_by_a_run_that_was_stopped_is_recorded() -> None:
    """And the entries of its last step are left."""

    def entries(note: str) -> tuple[HistoryEntry, ...]:
        return (HistoryEntry(Role.USER, "go"), HistoryEntry(Role.ASSISTANT, f"native {note}"))

    step = LoopStep(used(2, 50), model="m", entries=entries)
    async with a_process(ScriptedAgent(Emitting((step,), Block()))) as gateway:
        await gateway.say("go")
        await gateway.scripted.until_active(1)
        await gateway.say("/stop")
        await gateway.scripted.until_active(0)
        await asyncio.sleep(1)
        (run,) = await gateway.store.runs()
        assert (run.outcome, run.usage, run.model) == (Outcome.CANCELLED, used(2, 50), "m")
        assert await gateway.said_in_history() == ["go", "native [cancelled]"]


def spending(usage: Usage) -> ScriptedAgent:
    return ScriptedAgent(otherwise=lambda _: Return(AgentResult("spent", usage=usage)))


async def test_a_session_has_a_budget_for_each_day_in_utc() -> None:
    ways, database = Ways(limits=Limits(session_day=Budget(tokens=100))), MemoryDatabase()
    async with a_process(spending(used(1, 60)), ways, database=database) as gateway:
        assert await gateway.ask("a") == "spent"
        assert await gateway.ask("b") == "spent"
        assert await gateway.ask("c") == (
            "I stopped here: this conversation has used its budget for today, 100 tokens."
        )
        assert await gateway.ask("d", chat="bob") == "spent"
        await gateway.shut_down()
    await asyncio.sleep(24 * 3600)
    async with a_process(spending(used(1, 60)), ways, database=database) as gateway:
        assert await gateway.ask("e") == "spent"


async def test_an_agent_has_a_budget_over_all_its_sessions_and_restarts() -> None:
    ways, database = Ways(limits=Limits(agent_day=Budget(turns=2))), MemoryDatabase()
    async with a_process(spending(used(1)), ways, database=database) as gateway:
        assert await gateway.ask("a") == "spent"
        await gateway.shut_down()
    async with a_process(spending(used(1)), ways, database=database) as gateway:
        assert await gateway.ask("b", chat="bob") == "spent"
        assert await gateway.ask("c", chat="cid") == (
            "I stopped here: I have used my budget for today, 2 model requests."
        )


async def test_what_is_left_of_the_day_is_what_a_run_is_told() -> None:
    ways = Ways(limits=Limits(Budget(turns=9), agent_day=Budget(turns=10, usd=Decimal(1))))
    agent = ScriptedAgent(Return(AgentResult("spent", usage=used(4, usd="0.3"))))
    async with a_process(agent, ways) as gateway:
        await gateway.ask("a")
        await gateway.ask("b")
        first, second = (request.budget for request in agent.requests)
        assert (first.turns, first.usd) == (9, Decimal(1))
        assert (second.turns, second.usd) == (6, Decimal("0.7"))


async def test_runs_that_work_together_share_what_is_left_of_the_day() -> None:
    """None of them alone uses it up. A request that is under way counts when it has ended."""
    ways = Ways(limits=Limits(agent_day=Budget(turns=5)), main_lane=3)
    async with a_process(ScriptedAgent(otherwise=lambda _: Do(go_on)), ways) as gateway:
        for chat in ("ann", "bob", "cid"):
            await gateway.say("go", chat=chat)
        await gateway.channel.until_sent(3)
        runs = await gateway.store.runs()
        assert {run.reason for run in runs} == {Reason.BUDGET}
        assert sum(run.usage.requests for run in runs if run.usage) <= 5 + 2


async def test_what_subagents_use_counts_for_the_run_that_asked_for_them() -> None:
    async def ask(request: RunRequest, emit: Emit) -> str:
        return await here(request).children.subagent("work")

    agent = ScriptedAgent(otherwise=lambda asked: Do(ask if asked.prompt == "ask" else go_on))
    limits = Limits(Budget(turns=4), session_day=Budget(turns=100))
    async with a_process(agent, Ways(limits=limits)) as gateway:
        told = "I stopped here: this task reached its limit of 4 model requests."
        assert await gateway.ask("ask") == told
        assert agent.active == set()
        today = gateway.clock.now().replace(hour=0)
        assert (await gateway.store.spent(since=today, payer=session_of())).requests == 4


async def test_a_run_that_the_loop_itself_has_stopped_ends_for_want_of_budget() -> None:
    async def stop(request: RunRequest, emit: Emit) -> str:
        emit(TextDelta("so far"))
        raise BudgetReached("Too much.", "turns")

    async with a_process(ScriptedAgent(Do(stop))) as gateway:
        assert await gateway.ask("go") == "so far\n\nToo much."
        (run,) = await gateway.store.runs()
        assert (run.outcome, run.reason) == (Outcome.FAILED, Reason.BUDGET)


async def test_people_can_ask_what_was_used_today() -> None:
    """SPEC CMD-5."""
    limits = Limits(session_day=Budget(tokens=1000), agent_day=Budget(usd=Decimal(1)))
    agent = spending(used(2, 60, "0.25"))
    async with a_process(agent, Ways(limits=limits)) as gateway:
        await gateway.ask("a")
        await gateway.ask("b", chat="bob")
        assert await gateway.ask("/usage") == (
            "Today (UTC):\n"
            "This conversation: 2 model requests, 60 of 1,000 tokens, $0.25\n"
            "Agent main, all conversations: 4 model requests, 120 tokens, $0.50 of $1.00"
        )


async def test_usage_of_a_model_whose_price_is_not_known_says_so() -> None:
    async with a_process(spending(used(1, 60))) as gateway:
        await gateway.ask("a")
        assert (await gateway.ask("/usage")).endswith("I do not know the price of this model.")
