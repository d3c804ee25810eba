"""Halves of UTF-16 pairs in the answers of models (SPEC AGENT-1)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from goclaw_py.agents.models import Provider
from goclaw_py.core.run_events import ToolStarted
from goclaw_py.core.text import well_formed
from tests.support.model_agents import ModelAgents
from tests.support.model_server_orders import Answer, Call, Finish
from tests.support.toolbox import Functions
from tests.unit.agents.builders import Events, request

pytestmark = pytest.mark.real_time

TEXTS = {
    "a pair in two chunks": (["party \ud83c", "\udf89 time"], "party 🎉 time"),
    "half of one alone": (["\ud83d"], "\ufffd"),
    "a second half alone": (["a", "\ude00", "b"], "a\ufffdb"),
    "halves in the wrong order": (["\ude00\ud83d"], "\ufffd\ufffd"),
    "a first half and a letter": (["a\ud83d", "b"], "a\ufffdb"),
    "a NUL": (["a\0b"], "a\ufffdb"),
}


@pytest.mark.parametrize(("pieces", "text"), TEXTS.values(), ids=list(TEXTS))
async def test_halves_in_texts_and_thoughts_are_joined_or_replaced(
    agents: ModelAgents, provider: Provider, pieces: list[str], text: str
) -> None:
    agent, events = agents.make(provider), Events()
    agents.server.obey = lambda *_: Answer(pieces, thought="".join(pieces))
    result = await agent.run(request("hi"), events)
    assert result.text == text
    assert well_formed(events.text).replace("\0", "\ufffd") == text
    assert [entry.text for entry in result.entries] == ["hi", text]
    agents.server.obey = lambda *_: Answer(["ok"])
    assert (await agent.run(request("again", history=result.entries), Events())).text == "ok"


ARGUMENTS = {
    '{"word": "a\\ud83d"}': "a\ufffd",
    '{"word": "a\ud83d"}': "a\ufffd",
    '{"word": "a\\ud83d\\ude00"}': "a😀",
    '{"word": "a\\\\ud83d"}': "a\\ud83d",
}


@pytest.mark.parametrize(("arguments", "word"), ARGUMENTS.items(), ids=["1", "2", "3", "4"])
async def test_halves_in_calls_and_results_stop_no_run(
    agents: ModelAgents, provider: Provider, arguments: str, word: str
) -> None:
    heard: list[str] = []

    async def look_up(word: str) -> str:
        """Look a word up."""
        heard.append(word)
        return "found \ud83d"

    def obey(_order: str, results: Sequence[str], _messages: int) -> Answer:
        if results:
            return Answer(["it ", *results])
        call = Call("look_up", arguments, "call_\ud83d")
        return Answer(["looking"], calls=[call], end=Finish.CALLS)

    agents.server.obey = obey
    events = Events()
    result = await agents.make(provider).run(request("hi", tools=Functions(look_up)), events)
    assert heard == [word]
    assert result.text == "looking\n\nit found \ufffd"
    (call,) = (event for event in events if isinstance(event, ToolStarted))
    call.arguments.encode()


async def test_an_unknown_tool_with_half_a_name_stops_no_run(
    agents: ModelAgents, provider: Provider
) -> None:
    def obey(_order: str, results: Sequence[str], _messages: int) -> Answer:
        call = Call("look\ud83d", "{}", "call_1")
        return Answer(["so"]) if results else Answer([], calls=[call], end=Finish.CALLS)

    agents.server.obey = obey
    assert (await agents.make(provider).run(request("hi"), Events())).text == "so"
