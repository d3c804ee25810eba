"""A run ends when it has used up what it may use (SPEC AGENT-5)."""

from __future__ import annotations

import asyncio
import time
from decimal import Decimal

import pytest

from goclaw_py.agents.models import ModelAgent
from goclaw_py.model.budget import Budget
from goclaw_py.model.errors import BudgetReached
from goclaw_py.ports.agent import Role
from tests.support.model_agents import ModelAgents
from tests.support.toolbox import Functions
from tests.unit.agents.builders import Events, request

pytestmark = pytest.mark.real_time

calls: list[str] = []


async def again() -> str:
    """Do it again."""
    calls.append("again")
    return "again"


@pytest.fixture(autouse=True)
def no_calls() -> None:
    calls.clear()


async def runs_out(
    agents: ModelAgents, budget: Budget, model: str = "gpt-4o"
) -> tuple[BudgetReached, Events]:
    events, asked = Events(), request("many again", tools=Functions(again), budget=budget)
    with pytest.raises(BudgetReached) as caught:
        await agents.make(model=model).run(asked, events)
    return caught.value, events


@pytest.mark.parametrize("turns", [0, 1, 3])
async def test_exactly_as_many_requests_are_made_as_a_run_may_make(
    agents: ModelAgents, turns: int
) -> None:
    error, events = await runs_out(agents, Budget(turns=turns))
    assert f"{turns} model requests" in error.friendly
    assert "turns" in str(error)
    assert len(agents.server.seen) == turns
    assert events.steps[-1].usage.requests == turns
    assert len(events.steps) == turns + 1
    # The last call was not made: nobody would have read what it gave.
    assert len(calls) == max(turns - 1, 0)


async def test_an_answer_with_the_last_request_is_an_answer(agent: ModelAgent) -> None:
    asked = request("tool again {}", tools=Functions(again), budget=Budget(turns=2))
    result = await agent.run(asked, Events())
    assert result.text == "looking\n\ntool gave: again"


@pytest.mark.parametrize(("tokens", "requests"), [(1, 1), (12, 1), (13, 2), (44, 2), (45, 3)])
async def test_a_run_stops_once_its_tokens_are_used_up(
    agents: ModelAgents, tokens: int, requests: int
) -> None:
    """Requests take 10 tokens for each message and 2 for the answer: 12, 32, 52 …"""
    error, events = await runs_out(agents, Budget(tokens=tokens))
    assert f"{tokens} tokens" in error.friendly
    assert len(agents.server.seen) == requests
    assert len(calls) == requests - 1
    assert events.steps[-1].usage.tokens >= tokens


async def test_a_run_stops_once_its_money_is_spent(agents: ModelAgents) -> None:
    error, events = await runs_out(agents, Budget(usd=Decimal("0.0003")))
    assert "$0.00" in error.friendly
    spent = [step.usage.cost_usd for step in events.steps[1:]]
    assert all(cost is not None for cost in spent)
    assert spent[-2] < Decimal("0.0003") <= spent[-1]  # type: ignore[operator]


async def test_of_an_unknown_price_the_rest_of_the_budget_holds(agents: ModelAgents) -> None:
    budget = Budget(usd=Decimal("0.0001"), turns=4)
    error, events = await runs_out(agents, budget, model="my-own-model")
    assert "4 model requests" in error.friendly
    assert events.steps[-1].usage.cost_usd is None


@pytest.mark.parametrize("order", ["hang", "slow 1000 0.01", "tool wait {}"])
async def test_a_run_stops_once_its_time_is_over(agent: ModelAgent, order: str) -> None:
    cleaned = asyncio.Event()

    async def wait() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.set()
        return "never"

    await agent.warm_up()
    events, began = Events(), time.monotonic()
    asked = request(order, tools=Functions(wait), budget=Budget(seconds=1.5))
    with pytest.raises(BudgetReached) as caught:
        await agent.run(asked, events)
    assert 1.4 < time.monotonic() - began < 10
    assert "1.5 seconds" in caught.value.friendly
    assert caught.value.__context__ is None
    assert cleaned.is_set() is order.startswith("tool")


async def test_what_a_run_has_said_before_it_ran_out_is_in_its_entries(agents: ModelAgents) -> None:
    _, events = await runs_out(agents, Budget(turns=2))
    make = events.steps[-1].entries
    assert make is not None
    entries = make("[stopped]")
    assert [(entry.role, entry.text) for entry in entries] == [
        (Role.USER, "many again"),
        (Role.ASSISTANT, "looking\n\nlooking\n\n[stopped]"),
    ]
    assert entries[1].native is not None
    assert entries[1].native.count(b'"tool-call"') == 2
    assert entries[1].native.count(b'"tool-return"') == 2
    assert entries[1].native.count(b'"outcome":"interrupted"') == 1
