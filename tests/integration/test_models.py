"""Model agents against a real HTTP server on loopback, through the providers' own clients.

What holds in both protocols is in ``test_models_anthropic.py`` and ``test_models_failures.py``.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from decimal import Decimal

import pytest

from goclaw_py.agents.models import ModelAgent, Provider
from goclaw_py.core.budget import Budget
from goclaw_py.core.errors import AgentError, BudgetReached
from goclaw_py.core.messages import HistoryEntry, Role
from goclaw_py.core.run_events import TextDelta, Usage
from goclaw_py.runs.agent_loop import LoopEvent, ModelStep, TextPart
from goclaw_py.scheduler.models import Mode, QueuePolicy
from tests.support.harness import Ways, a_process
from tests.support.model_agents import ModelAgents, fails, look_up
from tests.support.model_server import INPUT_TOKENS_PER_MESSAGE, ModelServer
from tests.support.toolbox import Armed, Functions
from tests.unit.agents.builders import Coming, Events, request

pytestmark = pytest.mark.real_time


async def fail_always() -> str:
    """Fail."""
    raise AgentError("The tool is out of order.", "tool raised")


async def test_the_first_piece_arrives_long_before_the_last(agent: ModelAgent) -> None:
    await agent.warm_up()
    times: list[float] = []

    def emit(event: LoopEvent | ModelStep) -> None:
        if isinstance(event, TextDelta):
            times.append(time.monotonic())

    began = time.monotonic()
    await agent.run(request("slow 11 0.1"), emit)
    assert times[0] - began < 0.5
    assert times[-1] - times[0] > 0.9


async def test_the_cost_is_counted_and_that_of_an_unknown_model_is_not_guessed(
    agents: ModelAgents,
) -> None:
    known = (await agents.make(model="gpt-4o").run(request("say a b c"), Events())).usage
    assert known.cost_usd is not None
    assert Decimal(0) < known.cost_usd < Decimal("0.01")
    unknown = (await agents.make(model="my-own-model").run(request("say a"), Events())).usage
    assert unknown == Usage(requests=1, input_tokens=10, output_tokens=1, cost_usd=None)


async def test_an_agent_error_of_a_tool_keeps_its_own_words(agent: ModelAgent) -> None:
    error = await fails(agent, "tool fail_always {}", fail_always)
    assert error.friendly == "The tool is out of order."


async def test_entries_of_another_loop_are_read_from_their_text(
    server: ModelServer, agent: ModelAgent
) -> None:
    history = [
        HistoryEntry(Role.USER, "count to 2"),
        HistoryEntry(Role.ASSISTANT, "1 2", b"<binary>", "another"),
        HistoryEntry(Role.USER, "and now?", b"broken", "pydantic-ai"),
        HistoryEntry(Role.ASSISTANT, "now this", b"[{}]", "pydantic-ai"),
    ]
    await agent.run(request("hi", history=history), Events())
    assert server.seen[0].texts == ["count to 2", "1 2", "and now?", "now this", "hi"]
    assert server.seen[0].roles == ["user", "assistant", "user", "assistant", "user"]


async def test_a_cut_call_of_a_tool_is_not_carried_out(agent: ModelAgent) -> None:
    called: list[str] = []

    async def delete() -> str:
        called.append("deleted")
        return "deleted"

    await fails(agent, "halftool delete", delete)
    assert called == []


async def test_a_server_that_is_not_there_is_tried_three_times_and_told(
    agents: ModelAgents, caplog: pytest.LogCaptureFixture
) -> None:
    agent = agents.make(base_url="http://127.0.0.1:1/v1")
    with caplog.at_level(logging.WARNING, "goclaw_py"):
        error = await fails(agent, "hi")
    assert "connection to the model broke" in error.friendly
    assert len([record for record in caplog.records if record.name.startswith("goclaw_py")]) == 2


async def test_a_server_of_ones_own_is_asked_without_a_key(agents: ModelAgents) -> None:
    await agents.make(api_key=None).run(request("hi"), Events())
    assert agents.server.seen[0].headers["authorization"] == "Bearer none"


async def test_key_and_address_are_taken_from_the_environment(agents: ModelAgents) -> None:
    agents.environ |= {
        "OPENAI_API_KEY": "sk-from-env-123456\n",
        "OPENAI_BASE_URL": agents.server.base_url,
    }
    agent = agents.make(base_url=None, api_key=None)
    assert (await agent.run(request("say hi"), Events())).text == "hi"
    assert agents.server.seen[0].headers["authorization"] == "Bearer sk-from-env-123456"


async def test_closing_while_the_libraries_are_imported_waits_and_closes(agent: ModelAgent) -> None:
    warming = asyncio.create_task(agent.warm_up())
    await asyncio.sleep(0)
    await agent.close()
    assert warming.done()


async def test_cancelling_the_first_run_leaves_the_import_to_the_others(agent: ModelAgent) -> None:
    first = asyncio.create_task(agent.run(request("say one"), Events()))
    second = asyncio.create_task(agent.run(request("say two"), Events()))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).text == "two"
    assert first.cancelled()


async def test_warming_up_imports_what_the_first_run_needs(agent: ModelAgent) -> None:
    await agent.warm_up()
    assert "openai" in sys.modules
    known = set(sys.modules)
    await agent.run(request("say hi"), Events())
    assert not [name for name in set(sys.modules) - known if name.startswith("openai.resources")]


async def test_a_run_after_closing_connects_again(agent: ModelAgent) -> None:
    await agent.run(request("say one"), Events())
    await agent.close()
    await agent.close()
    assert (await agent.run(request("say two"), Events())).text == "two"


async def test_a_failed_start_of_the_engine_is_tried_again(
    agent: ModelAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library that was just being upgraded must not break the agent for ever."""
    with monkeypatch.context() as upgrade:
        upgrade.setattr(Provider, "is_installed", False)
        await fails(agent, "say hi")
    assert (await agent.run(request("say hi"), Events())).text == "hi"


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


TOOL = 'tool look_up {"word":"owl"}'
FOUND = "meaning of owl"
WAIT_S = 20
"""How long a test waits for something that should be there in milliseconds."""


@pytest.fixture
def agent(agents: ModelAgents) -> ModelAgent:
    return agents.make()


async def test_the_second_request_holds_what_came_while_a_tool_worked(
    server: ModelServer, agent: ModelAgent
) -> None:
    """SPEC QUEUE-4: steer."""
    await agent.run(request(TOOL, take=Coming("say the rest"), tools=Functions(look_up)), Events())
    assert server.seen[0].roles == ["user"]
    assert server.seen[1].roles == ["user", "assistant", "tool", "user"]
    assert server.seen[1].texts[2:] == [FOUND, "say the rest"]
    assert len(server.seen) == 2


async def test_several_messages_at_once_are_one_turn_in_their_order(
    server: ModelServer, agent: ModelAgent
) -> None:
    parts = [(TextPart("one"), TextPart("two"))]

    def take() -> tuple[TextPart, ...]:
        return parts.pop() if parts else ()

    result = await agent.run(request(TOOL, take=take, tools=Functions(look_up)), Events())
    assert server.seen[1].texts[-1] == "one\ntwo"
    assert result.text == "looking\n\nyou said: one\ntwo"


async def test_a_message_that_comes_after_the_last_request_is_left_for_a_turn_of_its_own(
    server: ModelServer, agent: ModelAgent
) -> None:
    """SPEC QUEUE-4: what is not taken stays queued."""
    coming = Coming("too late")
    result = await agent.run(request("say done", take=coming), Events())
    assert (result.text, coming.left, len(server.seen)) == ("done", ["too late"], 1)


async def test_the_history_of_a_steered_run_is_readable_and_reads_back_what_the_model_saw(
    server: ModelServer, agent: ModelAgent
) -> None:
    """SPEC AGENT-4, QUEUE-4."""
    result = await agent.run(
        request(TOOL, take=Coming("say the rest"), tools=Functions(look_up)), Events()
    )
    assert [(entry.role, entry.text) for entry in result.entries] == [
        (Role.USER, TOOL),
        (Role.ASSISTANT, "looking"),
        (Role.USER, "say the rest"),
        (Role.ASSISTANT, "the rest"),
    ]
    await agent.run(request("say bye", history=result.entries), Events())
    before = server.seen[1].body["messages"]
    assert server.seen[2].body["messages"] == [
        *before,
        {"role": "assistant", "content": "the rest"},
        {"role": "user", "content": "say bye"},
    ]


def test_work_without_a_word_before_a_message_makes_no_empty_entry() -> None:
    from pydantic_ai.messages import (
        ModelMessage,
        ModelMessagesTypeAdapter,
        ModelRequest,
        ModelResponse,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
        UserPromptPart,
    )

    from goclaw_py.agents.models.history import to_entries, to_messages

    messages: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart("look")]),
        ModelResponse(parts=[ToolCallPart("look_up", "{}", "1")]),
        ModelRequest(parts=[ToolReturnPart("look_up", FOUND, "1")]),
        ModelRequest(parts=[UserPromptPart("hurry")]),
        ModelResponse(parts=[TextPart("done")]),
    ]
    entries = to_entries("look", "done", messages)
    assert [(entry.role, entry.text) for entry in entries] == [
        (Role.USER, "look"),
        (Role.USER, "hurry"),
        (Role.ASSISTANT, "done"),
    ]
    again = to_messages(entries)
    assert ModelMessagesTypeAdapter.dump_json(again) == ModelMessagesTypeAdapter.dump_json(messages)


async def test_the_context_is_what_the_last_request_and_its_answer_took(agent: ModelAgent) -> None:
    """SPEC QUEUE-7."""
    plain = await agent.run(request("say a b c"), Events())
    assert plain.context_tokens == INPUT_TOKENS_PER_MESSAGE + 3
    tool = await agent.run(request(TOOL, tools=Functions(look_up)), Events())
    assert tool.context_tokens == 3 * INPUT_TOKENS_PER_MESSAGE + 3
    assert tool.usage.input_tokens == 4 * INPUT_TOKENS_PER_MESSAGE


async def test_the_context_is_known_over_anthropics_protocol_too(agents: ModelAgents) -> None:
    """SPEC QUEUE-7."""
    result = await agents.make(Provider.ANTHROPIC).run(request("hi"), Events())
    assert result.context_tokens == INPUT_TOKENS_PER_MESSAGE + 3


async def test_a_message_in_a_chat_reaches_the_model_while_a_tool_works(
    server: ModelServer, agents: ModelAgents
) -> None:
    """SPEC QUEUE-4: the whole way, from the channel to the second request and back."""
    looking, found = asyncio.Event(), asyncio.Event()

    async def look_around() -> str:
        """Look around."""
        looking.set()
        await found.wait()
        return "a field"

    model = Armed(agents.make(), Functions(look_around))
    steer = Ways(direct=QueuePolicy(mode=Mode.STEER))
    async with a_process(model, steer) as gateway:
        await gateway.say("tool look_around {}")
        await asyncio.wait_for(looking.wait(), WAIT_S)
        await gateway.say("say a field, then")
        assert len(gateway.dispatcher.runs()) == 2
        found.set()
        await asyncio.wait_for(gateway.channel.until_sent(1), WAIT_S)
        assert server.seen[1].texts[-2:] == ["a field", "say a field, then"]
        assert gateway.channel.texts() == ["looking\n\na field, then"]
        assert gateway.pending == []
        assert await gateway.history() == [
            (Role.USER, "tool look_around {}"),
            (Role.ASSISTANT, "looking"),
            (Role.USER, "say a field, then"),
            (Role.ASSISTANT, "a field, then"),
        ]
