"""Thoughts in the answers of models, in whichever pieces they come (SPEC AGENT-1, HB-6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from pydantic_ai.messages import TextPart, ThinkingPart

from goclaw_py.agents.models import Provider
from goclaw_py.agents.models.history import to_messages
from goclaw_py.core.errors import AgentError
from goclaw_py.core.messages import Role
from goclaw_py.core.outcomes import Trigger
from tests.support.model_agents import ModelAgents
from tests.support.model_server_orders import Answer, Call, Finish
from tests.support.toolbox import Functions
from tests.unit.agents.builders import Events, request

pytestmark = pytest.mark.real_time

THOUGHT = "If all is well I say HEARTBEAT_OK."
ALERT = "The disk is overfull"

PIECES = {
    "one piece": [f"<think>{THOUGHT}</think>{ALERT}"],
    "each tag a piece": ["<think>", THOUGHT, "</think>", ALERT],
    "the closing tag in a longer piece": ["<think>", THOUGHT, f"</think>{ALERT}"],
    "cut tags": ["<th", "ink>", THOUGHT, "</", "think", ">", ALERT],
    "single characters": list(f"<think>{THOUGHT}</think>{ALERT}"),
}


@pytest.mark.parametrize("pieces", PIECES.values(), ids=list(PIECES))
async def test_thoughts_are_separated_and_kept_as_thoughts(
    agents: ModelAgents, provider: Provider, pieces: list[str]
) -> None:
    agent = agents.make(provider)
    agents.server.obey = lambda *_: Answer(pieces)
    result = await agent.run(request("hi"), Events())
    assert result.text == ALERT
    assert [entry.text for entry in result.entries] == ["hi", ALERT]
    (answer,) = to_messages([entry for entry in result.entries if entry.role is Role.ASSISTANT])
    assert answer.parts == [ThinkingPart(THOUGHT), TextPart(ALERT)]
    agents.server.obey = lambda *_: Answer(["ok"])
    assert (await agent.run(request("again", history=result.entries), Events())).text == "ok"


async def test_a_tag_in_code_ends_no_answer(agents: ModelAgents, provider: Provider) -> None:
    agents.server.obey = lambda *_: Answer(["Write `", "<think>", "` before ", "them."])
    result = await agents.make(provider).run(request("hi"), Events())
    assert result.text == "Write `<think>` before them."


async def test_a_thought_ends_with_its_response(agents: ModelAgents, provider: Provider) -> None:
    async def look_up() -> str:
        """Look a word up."""
        return "found"

    def obey(_order: str, results: Sequence[str], _messages: int) -> Answer:
        call = Call("look_up", "{}", "call_1")
        cut = Answer(["<think>I call it"], calls=[call], end=Finish.CALLS)
        return Answer(["<think>so</think>it ", *results]) if results else cut

    agents.server.obey = obey
    result = await agents.make(provider).run(request("hi", tools=Functions(look_up)), Events())
    assert result.text == "it found"


@pytest.mark.parametrize("trigger", [Trigger.CHAT, Trigger.HEARTBEAT])
async def test_the_beginning_of_a_thought_is_no_answer(
    agents: ModelAgents, provider: Provider, trigger: Trigger
) -> None:
    agents.server.obey = lambda *_: Answer(["<think>The disk is"])
    with pytest.raises(AgentError):
        await agents.make(provider).run(replace(request("hi"), trigger=trigger), Events())
