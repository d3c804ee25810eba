"""No history is sent again and again that a provider refuses (SPEC AGENT-12)."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
import pytest_asyncio

from goclaw_py.agents.models import ModelAgent, Provider
from goclaw_py.core.errors import AgentError
from goclaw_py.core.messages import HistoryEntry, Role
from goclaw_py.core.run_events import RunNote, RunNoted, ToolEnded, ToolStarted
from tests.support.model_agents import ModelAgents, look_up, url
from tests.support.model_server import ModelServer
from tests.support.toolbox import Functions
from tests.unit.agents.builders import Events, request

pytestmark = pytest.mark.real_time


@pytest.fixture
def agent(agents: ModelAgents, provider: Provider) -> ModelAgent:
    return agents.make(provider)


def calls(*calls: tuple[str, str, object]) -> str:
    return f"calls {orjson.dumps(calls).decode()}"


def refused(server: ModelServer) -> list[str]:
    return [seen.refused for seen in server.seen if seen.refused]


def notes(events: Events) -> list[RunNote]:
    return [event.note for event in events if isinstance(event, RunNoted)]


OWL, CAT = {"word": "owl"}, {"word": "cat"}

ODD_CALLS = {
    "the same id twice": [("call_0", "look_up", OWL), ("call_0", "look_up", CAT)],
    "three times": [("a", "look_up", OWL)] * 3,
    "an id that looks renumbered": [("a", "look_up", OWL), ("a-2", "look_up", OWL)] * 2,
    "an id of its own": [("unlike-others", "look_up", OWL)],
    "no JSON": [("a", "look_up", '{"word": ')],
    "no object": [("a", "look_up", "[1]")],
    "a tool that is not there": [("a", "nothing", {}), ("a", "look_up", OWL)],
    "ids of other signs": [("call 1!", "look_up", OWL), ("</think>", "look_up", CAT)],
    "a longer id": [("i" * 65, "look_up", OWL)],
    "long ids": [("i" * 64, "look_up", OWL), ("i" * 64, "look_up", CAT)],
}


@pytest.mark.parametrize("odd", ODD_CALLS.values(), ids=list(ODD_CALLS))
async def test_what_a_model_calls_is_accepted_with_each_later_message(
    agent: ModelAgent, server: ModelServer, provider: Provider, odd: list[Any]
) -> None:
    box = Functions(look_up)
    history: tuple[HistoryEntry, ...] = ()
    for _ in range(3):
        events = Events()
        result = await agent.run(request(calls(*odd), tools=box, history=history), events)
        assert result.text.startswith("looking\n\ntool gave: ")
        started = [event.call_id for event in events if isinstance(event, ToolStarted)]
        ended = [event.call_id for event in events if isinstance(event, ToolEnded)]
        assert len(set(started)) == len(odd)
        assert sorted(ended) == sorted(started)
        history += result.entries
    assert refused(server) == []
    expected = [given for _, name, given in odd if name == "look_up" and isinstance(given, dict)]
    assert box.calls == [("look_up", given) for given in expected] * 3


async def test_an_id_that_names_its_function_is_kept(agents: ModelAgents) -> None:
    """Some models are trained on such ids, and read them in the next request."""
    events = Events()
    order = calls(("functions.look_up:0", "look_up", OWL))
    await agents.make().run(request(order, tools=Functions(look_up)), events)
    started = [event.call_id for event in events if isinstance(event, ToolStarted)]
    assert started == ["functions.look_up:0"]


ODD_HISTORIES = {
    "the agent speaks first": [HistoryEntry(Role.ASSISTANT, "The build is red.")],
    "nothing was said": [HistoryEntry(Role.USER, ""), HistoryEntry(Role.ASSISTANT, "")],
    "blanks": [HistoryEntry(Role.USER, " "), HistoryEntry(Role.ASSISTANT, "\n")],
    "twice the agent": [
        HistoryEntry(Role.USER, "hi"),
        HistoryEntry(Role.ASSISTANT, "one"),
        HistoryEntry(Role.ASSISTANT, "two"),
    ],
    "twice a person": [HistoryEntry(Role.USER, "hi"), HistoryEntry(Role.USER, "there?")],
}


@pytest.mark.parametrize("history", ODD_HISTORIES.values(), ids=list(ODD_HISTORIES))
async def test_any_history_is_sent_in_a_form_that_is_accepted(
    agent: ModelAgent, server: ModelServer, history: list[HistoryEntry]
) -> None:
    result = await agent.run(request("say yes", history=history), Events())
    assert result.text.endswith("yes")
    assert refused(server) == []


async def test_a_stored_history_with_repeated_and_unpaired_calls_is_accepted(
    agent: ModelAgent, server: ModelServer
) -> None:
    from pydantic_ai.messages import (
        ModelMessagesTypeAdapter,
        ModelRequest,
        ModelResponse,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
        UserPromptPart,
    )

    def turn(*between: Any) -> tuple[HistoryEntry, HistoryEntry]:
        prompt = ModelMessagesTypeAdapter.dump_json([ModelRequest(parts=[UserPromptPart("hi")])])
        answer = ModelMessagesTypeAdapter.dump_json(
            [*between, ModelResponse(parts=[TextPart("x")])]
        )
        return (
            HistoryEntry(Role.USER, "hi", prompt, "pydantic-ai"),
            HistoryEntry(Role.ASSISTANT, "x", answer, "pydantic-ai"),
        )

    def call(call_id: str) -> ToolCallPart:
        return ToolCallPart("look_up", OWL, call_id)

    def gave(call_id: str) -> ToolReturnPart:
        return ToolReturnPart("look_up", "meaning", call_id)

    twice = [
        ModelResponse(parts=[call("a"), call("a")]),
        ModelRequest(parts=[gave("a"), gave("a")]),
    ]
    history = [
        *turn(*twice),
        *turn(*twice),
        *turn(ModelResponse(parts=[call("b"), call("c")]), ModelRequest(parts=[gave("c")])),
        *turn(ModelRequest(parts=[gave("d")])),
        *turn(ModelResponse(parts=[TextPart(" "), call("")]), ModelRequest(parts=[gave("")])),
    ]
    assert (await agent.run(request("say yes", history=history), Events())).text == "yes"
    assert refused(server) == []


# ---------------------------------------------------------------------------- refused all the same


@pytest_asyncio.fixture
async def picky() -> Any:
    async with ModelServer(in_calls="owl") as server:
        yield server


@pytest.fixture
def refusing(agents: ModelAgents, picky: ModelServer, provider: Provider) -> ModelAgent:
    return agents.make(provider, base_url=url(picky, provider))


TOOL = 'tool look_up {"word": "owl"}'


async def test_a_refused_response_is_sent_again_as_plain_text_once(
    refusing: ModelAgent, picky: ModelServer
) -> None:
    events, box = Events(), Functions(look_up)
    result = await refusing.run(request(TOOL, tools=box), events)
    assert result.text.startswith("looking")
    assert [bool(seen.refused) for seen in picky.seen] == [False, True, False]
    assert notes(events) == [RunNote.HISTORY_REPAIRED]
    assert "meaning of owl" in str(picky.seen[-1].texts)
    assert box.calls == [("look_up", OWL)]
    # What is stored is what was accepted.
    later = Events()
    await refusing.run(request("say yes", history=result.entries, tools=box), later)
    assert not picky.seen[-1].refused
    assert "meaning of owl" in str(picky.seen[-1].texts)
    assert notes(later) == []


async def test_a_history_that_is_refused_is_repaired_for_all_later_runs(
    refusing: ModelAgent, picky: ModelServer
) -> None:
    """Written before the provider became picky, or by another one."""
    box, picky.in_calls = Functions(look_up), "nothing"
    history = (await refusing.run(request("say one"), Events())).entries
    history += (await refusing.run(request(TOOL, tools=box, history=history), Events())).entries
    history += (await refusing.run(request("say two", history=history), Events())).entries
    picky.in_calls = "owl"
    for number, tries in enumerate([2, 1, 1]):
        picky.seen.clear()
        events = Events()
        result = await refusing.run(request("say yes", tools=box, history=history), events)
        history += result.entries
        assert (number, result.text, len(picky.seen)) == (number, "yes", tries)
        assert notes(events) == [RunNote.HISTORY_REPAIRED] * (tries - 1)
        assert "meaning of owl" in str(picky.seen[-1].texts)


@pytest.mark.parametrize("order", ["say poison", "poison", TOOL.replace("owl", "poison")])
async def test_words_that_a_provider_refuses_fail_their_own_run_only(
    refusing: ModelAgent, picky: ModelServer, order: str
) -> None:
    box = Functions(look_up)
    history = (await refusing.run(request("say one"), Events())).entries
    for _ in range(2):
        events = Events()
        with pytest.raises(AgentError):
            await refusing.run(request(order, tools=box, history=history), events)
        make = events.steps[-1].entries
        assert make is not None
        history += make("[failed]")
    for tries in (2, 1):
        picky.seen.clear()
        result = await refusing.run(request("say yes", tools=box, history=history), Events())
        history += result.entries
        assert (result.text, len(picky.seen)) == ("yes", tries)
        assert "left out" in str(picky.seen[-1].texts)


async def test_a_conversation_without_anything_new_is_not_sent_again(
    refusing: ModelAgent, picky: ModelServer
) -> None:
    with pytest.raises(AgentError):
        await refusing.run(request("say poison"), Events())
    assert len(picky.seen) == 1
