"""A run ends when it has used up what it may use (SPEC AGENT-5)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from decimal import Decimal

import pytest
import pytest_asyncio

from goclaw_py.agents import AgentSpec
from goclaw_py.agents.models import ModelAgent, Provider
from goclaw_py.model.budget import Budget
from goclaw_py.model.errors import BudgetReached
from goclaw_py.model.ids import AgentName
from goclaw_py.ports.agent import Role
from tests.support.model_server import ModelServer
from tests.support.toolbox import Functions
from tests.unit.agents.builders import Events, request

pytestmark = pytest.mark.real_time

FIRST_REQUEST_TOKENS = 12
"""One message of 10, a word and a call."""

calls: list[str] = []


async def again() -> str:
    """Do it again."""
    calls.append("again")
    return "again"


@pytest.fixture(autouse=True)
def no_calls() -> None:
    calls.clear()


@pytest_asyncio.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer() as running:
        yield running


async def runs_out(
    server: ModelServer, budget: Budget, order: str = "many again", model: str = "gpt-4o"
) -> tuple[BudgetReached, Events]:
    spec = AgentSpec(AgentName("main"), base_url=server.base_url)
    agent = ModelAgent(spec, Provider.OPENAI, model, environ={})
    events = Events()
    try:
        with pytest.raises(BudgetReached) as caught:
            await agent.run(request(order, tools=Functions(again), budget=budget), events)
    finally:
        await agent.close()
    return caught.value, events


@pytest.mark.parametrize("turns", [1, 3])
async def test_exactly_as_many_requests_are_made_as_a_run_may_make(
    server: ModelServer, turns: int
) -> None:
    error, events = await runs_out(server, Budget(turns=turns))
    assert f"{turns} model requests" in error.friendly
    assert "turns" in str(error)
    assert len(server.seen) == turns
    assert events.steps[-1].usage.requests == turns
    # The last call was not made: nobody would have read what it gave.
    assert len(calls) == turns - 1


async def test_a_run_that_may_make_no_request_makes_none(server: ModelServer) -> None:
    _, events = await runs_out(server, Budget(turns=0))
    assert server.seen == []
    assert len(events.steps) == 1


async def test_an_answer_with_the_last_request_is_an_answer(server: ModelServer) -> None:
    spec = AgentSpec(AgentName("main"), base_url=server.base_url)
    agent = ModelAgent(spec, Provider.OPENAI, "gpt-4o", environ={})
    asked = request("tool again {}", tools=Functions(again), budget=Budget(turns=2))
    result = await agent.run(asked, Events())
    await agent.close()
    assert result.text == "looking\n\ntool gave: again"


@pytest.mark.parametrize(("tokens", "requests"), [(1, 1), (12, 1), (13, 2), (44, 2), (45, 3)])
async def test_a_run_stops_once_its_tokens_are_used_up(
    server: ModelServer, tokens: int, requests: int
) -> None:
    """Requests take 10 tokens for each message and 2 for the answer: 12, 32, 52 …"""
    error, events = await runs_out(server, Budget(tokens=tokens))
    assert f"{tokens} tokens" in error.friendly
    assert len(server.seen) == requests
    assert len(calls) == requests - 1
    assert events.steps[-1].usage.tokens >= tokens


async def test_a_run_stops_once_its_money_is_spent(server: ModelServer) -> None:
    error, events = await runs_out(server, Budget(usd=Decimal("0.0003")))
    assert "$0.00" in error.friendly
    spent = [step.usage.cost_usd for step in events.steps[1:]]
    assert all(cost is not None for cost in spent)
    assert spent[-2] < Decimal("0.0003") <= spent[-1]  # type: ignore[operator]


async def test_of_an_unknown_price_the_rest_of_the_budget_holds(server: ModelServer) -> None:
    budget = Budget(usd=Decimal("0.0001"), turns=4)
    error, events = await runs_out(server, budget, model="my-own-model")
    assert "4 model requests" in error.friendly
    assert events.steps[-1].usage.cost_usd is None


@pytest.mark.parametrize("order", ["hang", "slow 1000 0.01", "tool wait {}"])
async def test_a_run_stops_once_its_time_is_over(server: ModelServer, order: str) -> None:
    cleaned = asyncio.Event()

    async def wait() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.set()
        return "never"

    spec = AgentSpec(AgentName("main"), base_url=server.base_url)
    agent = ModelAgent(spec, Provider.OPENAI, "gpt-4o", environ={})
    await agent.warm_up()
    events, began = Events(), time.monotonic()
    asked = request(order, tools=Functions(wait), budget=Budget(seconds=1.5))
    with pytest.raises(BudgetReached) as caught:
        await agent.run(asked, events)
    assert 1.4 < time.monotonic() - began < 10
    assert "1.5 seconds" in caught.value.friendly
    assert caught.value.__context__ is None
    assert cleaned.is_set() is order.startswith("tool")
    await agent.close()


async def test_what_a_run_has_said_before_it_ran_out_is_in_its_entries(
    server: ModelServer,
) -> None:
    _, events = await runs_out(server, Budget(turns=2))
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
