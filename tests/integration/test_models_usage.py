"""Usage that a provider does not report, or reports wrongly, is estimated and counts (AGENT-5)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import orjson
import pytest

from goclaw_py.agents.models import ModelAgent, Provider
from goclaw_py.core.budget import Budget
from goclaw_py.core.errors import BudgetReached
from goclaw_py.core.run_events import RunNote, RunNoted
from goclaw_py.core.run_steps import ResponseStep
from tests.support.continued import Journal, execute
from tests.support.model_agents import ModelAgents
from tests.support.model_server import ModelServer
from tests.unit.agents.builders import Events, request

# Each test has filters of its own; in a gateway ``measure`` has set them.
pytestmark = [pytest.mark.real_time, pytest.mark.filterwarnings("ignore")]

NAMES = {
    Provider.OPENAI: ("prompt_tokens", "completion_tokens"),
    Provider.ANTHROPIC: ("input_tokens", "output_tokens"),
}

ODD: dict[str, Any] = {
    "nothing in it": {},
    "zeros": (0, 0),
    "negative": (-5, -7),
    "text": ("many", "few"),
    "fractions": (1.5, 2.5),
    "2^63": (2**63, 2**63),
    "2^64": (2**64 - 1, 2**64 - 1),
    "null": (None, None),
    "lists": ([1], [2]),
    "NaN-like": (1e300, 1e300),
    "only the input": (20, None),
    "only the output": (None, 2),
    "a huge input": (2**63, 2),
    "null instead of it": None,
    "a list instead of it": [],
    "a text instead of it": "none",
    "a number instead of it": 5,
    "parts that are none": {
        "cache_creation": 5,
        "completion_tokens_details": "none",
        "iterations": 5,
        "output_tokens_details": [5],
        "prompt_tokens_details": 5,
        "server_tool_use": "none",
    },
    "parts without numbers": {
        "cache_creation": {"ephemeral_1h_input_tokens": "many"},
        "output_tokens_details": {"thinking_tokens": "many"},
        "server_tool_use": {"web_search_requests": [5]},
    },
}


def order(provider: Provider, odd: object, then: str) -> str:
    usage = odd
    if isinstance(odd, tuple):
        usage = dict(zip(NAMES[provider], odd, strict=True))
        if provider is Provider.OPENAI:
            usage["total_tokens"] = odd[0]
    return f"usage {orjson.dumps(usage).decode().replace(' ', '')} {then}"


@pytest.mark.parametrize("odd", ODD.values(), ids=list(ODD))
async def test_odd_usage_is_estimated_from_the_length_and_marked(
    agents: ModelAgents, provider: Provider, odd: object
) -> None:
    agent, journal = agents.make(provider), Journal()
    result = await agent.run(request(order(provider, odd, "say " + "word " * 40)), journal)
    assert result.text.startswith("word word")
    used = result.usage
    assert used.requests == 1
    for count in (used.input_tokens, used.output_tokens):
        assert type(count) is int
        assert 1 <= count < 1_000
    assert used.cost_usd is None or 0 <= used.cost_usd < Decimal(1)
    assert RunNoted(RunNote.USAGE_ESTIMATED) in journal.events
    (step,) = [step for step in journal.steps if isinstance(step, ResponseStep)]
    assert step.usage == used
    # The history can be read and sent: the next message is answered.
    events = Events()
    later = await agent.run(request("say yes", history=result.entries), events)
    assert later.text == "yes"
    assert RunNoted(RunNote.USAGE_ESTIMATED) not in events


async def test_usage_that_is_right_is_no_estimate(agents: ModelAgents, provider: Provider) -> None:
    events = Events()
    result = await agents.make(provider).run(request("say yes"), events)
    assert (result.usage.input_tokens, result.usage.output_tokens) == (10, 1)
    assert not [event for event in events if isinstance(event, RunNoted)]


@pytest.mark.parametrize("odd", [{}, (0, 0), (-1, -1)], ids=["none", "zeros", "negative"])
async def test_a_token_budget_ends_a_run_without_usage(
    agents: ModelAgents, server: ModelServer, provider: Provider, odd: object
) -> None:
    model = order(provider, odd, "many look_up")
    agent = agents.make(provider, model)
    with pytest.raises(BudgetReached):
        await execute(agent, request("x" * 4_000, budget=Budget(tokens=3_000)))
    assert len(server.seen) == 3


async def test_a_stream_without_any_usage_is_estimated(agents: ModelAgents) -> None:
    events = Events()
    result = await agents.make().run(request("usage null say " + "word " * 40), events)
    assert (result.usage.requests, result.usage.output_tokens) == (1, 66)
    assert RunNoted(RunNote.USAGE_ESTIMATED) in events


async def test_summaries_count_too(agents: ModelAgents) -> None:
    agent: ModelAgent = agents.make(model="usage null say short", context_window=2_000)
    from goclaw_py.core.messages import HistoryEntry, Role

    history = [HistoryEntry(role, "long " * 100) for _ in range(8) for role in Role]
    done = await execute(agent, request("hello", history=history))
    assert done.result.usage.requests > 1
    assert done.result.usage.input_tokens > 1_000
