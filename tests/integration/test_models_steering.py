"""Messages that a model hears about while it works, and how full its context is."""

from __future__ import annotations

import asyncio

import pytest

from goclaw_py.agents.models import ModelAgent, Provider
from goclaw_py.ports.agent import Role, TextPart
from goclaw_py.scheduler.models import Mode, QueuePolicy
from tests.support.harness import Ways, a_process
from tests.support.model_agents import ModelAgents
from tests.support.model_server import INPUT_TOKENS_PER_MESSAGE, ModelServer
from tests.support.toolbox import Armed, Functions
from tests.unit.agents.builders import Coming, Events, request

pytestmark = pytest.mark.real_time

TOOL = 'tool look_up {"word":"owl"}'
FOUND = "meaning of owl"
WAIT_S = 20
"""How long a test waits for something that should be there in milliseconds."""


async def look_up(word: str) -> str:
    """Look a word up."""
    return f"meaning of {word}"


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
