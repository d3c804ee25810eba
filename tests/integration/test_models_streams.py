"""Any stream of a model ends its run, leaves a history that can be stored, and the next message is
answered (SPEC AGENT-1)."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.agents.models import ModelAgent, Provider
from goclaw_py.core.errors import AgentError
from goclaw_py.core.run_events import TextDelta
from goclaw_py.core.storable import storable
from goclaw_py.runs.agent_loop import LoopEvent, ModelStep, RequestSent
from tests.support.continued import Journal
from tests.support.model_agents import BOTH, ModelAgents, fails, look_up, model_agents
from tests.support.toolbox import Functions
from tests.unit.agents.builders import Events, request

# The library warns of values that it did not expect.
pytestmark = [pytest.mark.real_time, pytest.mark.filterwarnings("ignore")]

Event = dict[str, Any]

WORDS = st.one_of(
    st.sampled_from(["", " ", "yes", "<think>", "</think>", "\0", "\ud83d", "\ude00", "🎉"]),
    st.text(st.characters(), max_size=12),
)
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.sampled_from([0, -1, 1.5, 2**31, 2**63, 2**64, 1e300, float("nan")]),
        WORDS,
    ),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=3,
)
COUNTS = VALUES | st.integers(0, 1000)
# Ids with a dot or colon are kept, and accepted where they come from, but not by our strict server.
IDS = st.sampled_from(["", "a", "a", "b", "call_\ud83d", "x" * 70]) | WORDS.map(
    lambda text: text.replace(".", "").replace(":", "")
)
NAMES = st.sampled_from(["look_up", "look_up", "nothing", "", "look\ud83d"])
WORD = [f'{{"word": "{word}"}}' for word in ("owl", "\\ud83d", "\\u0000")]
ARGUMENTS = st.sampled_from([*WORD, "", "{", "[]", "null", "[" * 99])


@st.composite
def openai_events(draw: st.DrawFn) -> list[Event]:
    """A response of chat completions."""

    def chunk(delta: Event, finish: object = None) -> Event:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {"id": "c", "object": "chat.completion.chunk", "created": 1, "choices": [choice]}

    events = []
    for kind in draw(st.lists(st.sampled_from(["text", "text", "thought", "call"]), max_size=5)):
        match kind:
            case "text":
                events.append(chunk({"role": "assistant", "content": draw(WORDS)}))
            case "thought":
                events.append(chunk({"reasoning_content": draw(WORDS)}))
            case _:
                function = {"name": draw(NAMES), "arguments": draw(ARGUMENTS)}
                call = {"index": draw(st.integers(0, 2)), "id": draw(IDS), "type": "function"}
                events.append(chunk({"tool_calls": [call | {"function": function}]}))
    finishes = ["stop", "stop", "tool_calls", "length", "content_filter", "odd", "", None]
    events.append(chunk({}, draw(st.sampled_from(finishes))))
    names = ["prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details"]
    usage = draw(st.dictionaries(st.sampled_from(names), COUNTS) | VALUES)
    events.append({"id": "c", "object": "chat.completion.chunk", "choices": [], "usage": usage})
    return events


@st.composite
def anthropic_events(draw: st.DrawFn) -> list[Event]:
    """A response of Anthropic's messages."""
    names = ["input_tokens", "output_tokens", "cache_read_input_tokens", "output_tokens_details"]
    names += ["cache_creation", "server_tool_use", "iterations", "speed"]
    usages: st.SearchStrategy[Any] = st.dictionaries(st.sampled_from(names), COUNTS) | VALUES
    message: Event = {"id": "m", "type": "message", "role": "assistant", "model": "x"}
    message |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": draw(usages)}
    events: list[Event] = [{"type": "message_start", "message": message}]
    kinds = draw(st.lists(st.sampled_from(["text", "text", "thinking", "tool_use"]), max_size=4))
    for index, kind in enumerate(kinds):
        block: Event = {"type": kind}
        match kind:
            case "text":
                block["text"] = ""
                texts = draw(st.lists(WORDS, max_size=4))
                deltas = [{"type": "text_delta", "text": text} for text in texts]
            case "thinking":
                block |= {"thinking": "", "signature": ""}
                deltas = [{"type": "thinking_delta", "thinking": draw(WORDS)}]
            case _:
                block |= {"id": draw(IDS), "name": draw(NAMES), "input": {}}
                deltas = [{"type": "input_json_delta", "partial_json": draw(ARGUMENTS)}]
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": one} for one in deltas]
        events.append({"type": "content_block_stop", "index": index})
    reasons = ["end_turn", "end_turn", "tool_use", "max_tokens", "refusal", "odd", "", None]
    delta = {"stop_reason": draw(st.sampled_from(reasons)), "stop_sequence": None}
    events.append({"type": "message_delta", "delta": delta, "usage": draw(usages)})
    return [*events, {"type": "message_stop"}]


def places(value: object) -> Iterator[tuple[Any, Any]]:
    """Each container with each of its keys, at any depth."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from places(value[key])


@st.composite
def streams(draw: st.DrawFn, provider: Provider) -> list[str]:
    """The bytes of a stream, damaged or not, in packets of any size."""
    events = draw(openai_events() if provider is Provider.OPENAI else anthropic_events())
    events = copy.deepcopy(events)
    damage = draw(st.sampled_from(["none", "none", "value", "missing", "order", "bytes", "end"]))
    if damage in {"value", "missing"}:
        container, key = draw(st.sampled_from(list(places(events))))
        if damage == "value":
            container[key] = draw(VALUES)
        else:
            del container[key]
    if damage == "order":
        events = draw(st.permutations(events))
    raw = b"".join(map(packed, events))
    raw += b"data: [DONE]\n\n" if provider is Provider.OPENAI else b""
    if damage == "end":
        raw = raw[: draw(st.integers(0, len(raw)))]
    if damage == "bytes":
        at = draw(st.integers(0, len(raw)))
        raw = raw[:at] + draw(st.binary(max_size=8)) + raw[at:]
    borders = sorted(draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    pieces = [raw[begin:end] for begin, end in pairwise([0, *borders, len(raw)]) if begin < end]
    return [piece.decode("latin-1") for piece in pieces]


def packed(event: object) -> bytes:
    kind = event.get("type") if isinstance(event, dict) else None
    name = b"event: " + json.dumps(kind)[1:-1].encode() + b"\n" if isinstance(kind, str) else b""
    return name + b"data: " + json.dumps(event).encode() + b"\n\n"


async def ends_and_is_followed(agents: ModelAgents, agent: ModelAgent, pieces: list[str]) -> None:
    """Run this stream, then send another message."""
    journal, tools = Journal(), Functions(look_up)
    agents.server.seen.clear()
    order = f"raw {orjson.dumps(pieces).decode()}"
    try:
        history = (await agent.run(request(order, tools=tools), journal)).entries
    except AgentError as error:
        storable(error.friendly).encode()
        history = journal.ended("[failed]")
    for entry in storable(history):
        entry.text.encode()
    for step in journal.steps:
        storable(step)
    later = await agent.run(request("say yes", history=history, tools=tools), Journal())
    assert later.text == "yes", (later.text, history)
    assert [seen.refused for seen in agents.server.seen if seen.refused] == []


START = {"type": "message_start", "message": {"id": "m", "model": "x", "usage": {}}}
BLOCK = {"type": "content_block_start", "index": 0}
ODD_CALL = {"type": "tool_use", "id": "a", "name": 1.5, "input": {}}
ODD_TEXT = {"type": "text", "text": ["no", "text"]}
USED = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}

UNREADABLE: dict[str, tuple[Provider, list[object]]] = {
    "no objects": (Provider.OPENAI, [None, 5]),
    "a choice that is a list": (Provider.OPENAI, [{"choices": [[]]}]),
    "a delta that is a number": (Provider.OPENAI, [{"choices": [{"index": 0, "delta": 5}]}]),
    "no beginning": (Provider.ANTHROPIC, [{"type": "message_stop"}]),
    "nothing at the end": (Provider.ANTHROPIC, [START, {"type": "message_delta", "delta": None}]),
    "a name that is a number": (Provider.ANTHROPIC, [START, BLOCK | {"content_block": ODD_CALL}]),
    "a text that is a list": (Provider.ANTHROPIC, [START, BLOCK | {"content_block": ODD_TEXT}]),
    "a model that is an object": (
        Provider.ANTHROPIC,
        [{"type": "message_start", "message": {"id": "m", "model": {}, "usage": {}}}, USED],
    ),
}


@pytest.mark.parametrize(("provider", "events"), UNREADABLE.values(), ids=list(UNREADABLE))
async def test_a_response_of_another_shape_is_a_failure_of_the_model(
    agents: ModelAgents, provider: Provider, events: list[object]
) -> None:
    sent = b"".join(map(packed, events)).decode()
    error = await fails(agents.make(provider), f"raw {json.dumps([sent])}")
    assert error.friendly == "The model gave an answer that I cannot use. Please try again."
    assert "cannot be read" in str(error)


@pytest.mark.parametrize("provider", BOTH)
def test_any_stream_ends_its_run_and_the_next_message_is_answered(provider: Provider) -> None:
    with asyncio.Runner() as runner:
        manager = model_agents()
        agents = runner.run(manager.__aenter__())
        agent = agents.make(provider)

        @given(streams(provider))
        def holds(pieces: list[str]) -> None:
            runner.run(ends_and_is_followed(agents, agent, pieces))

        try:
            holds()
        finally:
            runner.run(manager.__aexit__(None, None, None))


LISTENERS: dict[str, tuple[type[object], Exception]] = {
    "of a text": (TextDelta, TypeError("of the listener")),
    "of a usage": (ModelStep, ValueError("of the listener")),
    "of a request": (RequestSent, AssertionError("of the listener")),
}


@pytest.mark.parametrize("provider", BOTH)
@pytest.mark.parametrize(("kind", "error"), LISTENERS.values(), ids=list(LISTENERS))
async def test_an_error_of_a_listener_is_no_failure_of_the_model(
    agents: ModelAgents, provider: Provider, kind: type[object], error: Exception
) -> None:
    agent = agents.make(provider)
    events = Events()

    def listen(event: LoopEvent) -> None:
        events(event)
        # The first steps come before any request.
        if isinstance(event, kind) and agents.server.seen:
            raise error

    await agent.warm_up()
    agents.server.seen.clear()
    if kind is RequestSent:
        await agent.run(request("say a"), Events())
    with pytest.raises(type(error), match="of the listener"):
        await agent.run(request("say a"), listen)
    assert (await agent.run(request("say next"), Events())).text == "next"


async def test_a_response_that_is_nested_too_deep_is_a_failure_of_the_model(
    agents: ModelAgents,
) -> None:
    sent = 'data: {"choices": ' + "[" * 100_000
    error = await fails(agents.make(), f"raw {json.dumps([sent + chr(10) * 2])}")
    assert error.friendly == "The model gave an answer that I cannot use. Please try again."
