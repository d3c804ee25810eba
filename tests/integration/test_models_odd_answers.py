"""Answers of nearly compatible servers: what can be read is read, and errors with the status of a
success are errors (SPEC AGENT-8)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from goclaw_py.agents.models import Provider
from goclaw_py.core.errors import AgentError
from goclaw_py.core.outcomes import Trigger
from goclaw_py.schedule.models import is_transient
from tests.support.model_agents import ModelAgents, fails, look_up
from tests.support.toolbox import Functions
from tests.unit.agents.builders import Events, request

pytestmark = pytest.mark.real_time

OPENAI, ANTHROPIC = Provider.OPENAI, Provider.ANTHROPIC
Event = dict[str, object]


def chunk(delta: Event, finish: str | None = None) -> Event:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "choices": [choice]}


def call(name: str | None, arguments: object) -> Event:
    function = {"arguments": arguments} | ({} if name is None else {"name": name})
    made = {"index": 0, "function": function} | ({} if name is None else {"id": "a"})
    return chunk({"tool_calls": [made]})


def openai(*events: Event, finish: str = "stop") -> str:
    """A stream with these chunks."""
    packed = [f"data: {json.dumps(event)}\n\n" for event in [*events, chunk({}, finish)]]
    return "".join(packed)


def anthropic(block: Event, deltas: list[Event], stop_reason: str) -> str:
    """A stream with one block."""
    usage = {"input_tokens": 3, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": []}
    events: list[Event] = [
        {"type": "message_start", "message": message | {"usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop_reason}, "usage": usage},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


USE: Event = {"type": "tool_use", "id": "a", "name": "look_up", "input": {}}
OWL = {"word": "owl"}

ARGUMENTS: dict[str, tuple[Provider, str, str]] = {
    "an object": (OPENAI, openai(call("look_up", OWL), finish="tool_calls"), "of owl"),
    "behind the name": (
        OPENAI,
        openai(call("look_up", ""), call(None, OWL), finish="tool_calls"),
        "of owl",
    ),
    "before an empty object": (
        OPENAI,
        openai(call("look_up", OWL), call(None, {}), finish="tool_calls"),
        "of owl",
    ),
    "an empty object": (OPENAI, openai(call("look_up", {}), finish="tool_calls"), "missing"),
    "null": (OPENAI, openai(call("look_up", None), finish="tool_calls"), "missing"),
    "a list": (OPENAI, openai(call("look_up", ["owl"]), finish="tool_calls"), "an object"),
    "a number": (OPENAI, openai(call("look_up", 5), finish="tool_calls"), "an object"),
    "an object of anthropic": (
        ANTHROPIC,
        anthropic(USE, [{"type": "input_json_delta", "partial_json": OWL}], "tool_use"),
        "of owl",
    ),
    "whole at the beginning": (
        ANTHROPIC,
        anthropic(USE | {"input": OWL}, [], "tool_use"),
        "of owl",
    ),
}


@pytest.mark.parametrize(("provider", "sent", "words"), ARGUMENTS.values(), ids=list(ARGUMENTS))
async def test_arguments_that_are_no_text_are_read_or_corrected(
    agents: ModelAgents, provider: Provider, sent: str, words: str
) -> None:
    asked = request(f"raw {json.dumps([sent])}", tools=Functions(look_up))
    result = await agents.make(provider).run(asked, Events())
    assert words in result.text
    assert len(agents.server.seen) == 2
    assert not any(seen.refused for seen in agents.server.seen)


SAID: Event = {"role": "assistant", "content": "Well. "}
REFUSALS: dict[str, tuple[list[Event], str]] = {
    "alone": ([chunk({"refusal": "I cannot "}), chunk({"refusal": "help."})], "I cannot help."),
    "behind a text": ([chunk(SAID), chunk({"refusal": "I cannot."})], "Well. I cannot."),
    "none": ([chunk(SAID | {"refusal": None})], "Well. "),
    "empty": ([chunk(SAID | {"refusal": ""})], "Well. "),
}


@pytest.mark.parametrize(("events", "text"), REFUSALS.values(), ids=list(REFUSALS))
async def test_the_words_of_a_refusal_are_the_answer(
    agents: ModelAgents, events: list[Event], text: str
) -> None:
    heard = Events()
    asked = request(f"raw {json.dumps([openai(*events)])}")
    result = await agents.make().run(asked, heard)
    assert result.text == heard.text == text


async def test_a_paused_answer_goes_on(agents: ModelAgents) -> None:
    """Also where the server does not accept what it has said as the last message."""
    text: Event = {"type": "text", "text": ""}
    sent = anthropic(text, [{"type": "text_delta", "text": "First."}], "pause_turn")
    agent = agents.make(ANTHROPIC)
    result = await agent.run(request(f"raw {json.dumps([sent])}"), Events())
    assert result.text == "First.\n\nyou said: [Go on.]"
    later = await agent.run(request("say next", history=result.entries), Events())
    assert later.text == "next"


PLAIN, STREAM = "application/json", "text/event-stream"


def data(body: object) -> str:
    return f"data: {json.dumps(body)}\n\n"


PASSING: dict[str, tuple[str, str]] = {
    "a body": (PLAIN, '{"error": {"message": "boom"}}'),
    "a text": (PLAIN, '{"error": "boom"}'),
    "a list": (PLAIN, '[{"error": {"code": 503, "status": "UNAVAILABLE"}}]'),
    "a body that is called a stream": (STREAM, '{"error": {"code": 502}}\n'),
    "an event": (STREAM, data({"error": {"code": 503}})),
    "an event after comments": (STREAM, ": PROCESSING\n\n: PROCESSING\n\n" + data({"error": "x"})),
    "an event with a name": (STREAM, 'event: error\ndata: {"message": "boom"}\n\n'),
    "an event of anthropic": (
        STREAM,
        "event: error\n" + data({"type": "error", "error": {"type": "overloaded_error"}}),
    ),
    "a status in words": (STREAM, data({"error": {"code": "429"}})),
}


@pytest.mark.parametrize(("kind", "body"), PASSING.values(), ids=list(PASSING))
@pytest.mark.parametrize("provider", [OPENAI, ANTHROPIC])
async def test_an_error_with_the_status_of_a_success_is_retried(
    agents: ModelAgents, provider: Provider, kind: str, body: str
) -> None:
    agent = agents.make(provider)
    result = await agent.run(request(f"fake 2 {kind} {json.dumps(body)}"), Events())
    assert result.text == "ok"
    assert len(agents.server.seen) == 3
    error = await fails(agent, f"fake 9 {kind} {json.dumps(body)}")
    assert error.retryable


STAYING: dict[str, tuple[Mapping[str, object], str]] = {
    "a request": ({"code": 400}, "did not accept the request"),
    "a key": ({"type": "authentication_error"}, "does not accept my key"),
    "a model": ({"code": "model_not_found"}, "does not exist"),
    "a quota": ({"code": "insufficient_quota"}, "used up its quota"),
}


@pytest.mark.parametrize(("what", "words"), STAYING.values(), ids=list(STAYING))
async def test_an_error_that_stays_keeps_its_words(
    agents: ModelAgents, what: Mapping[str, object], words: str
) -> None:
    body = json.dumps({"error": {"message": "no", **what}})
    error = await fails(agents.make(), f"fake 9 {PLAIN} {json.dumps(body)}")
    assert words in error.friendly
    assert not error.retryable


@pytest.mark.parametrize("trigger", [Trigger.CRON, Trigger.HEARTBEAT])
async def test_an_error_after_an_empty_beginning_repeats_the_scheduled_run(
    agents: ModelAgents, trigger: Trigger
) -> None:
    """The request was not repeated, although nothing was said yet."""
    sent = data(chunk({"role": "assistant", "content": ""})) + data({"error": {"code": 503}})
    asked = replace(request(f"raw {json.dumps([sent])}"), trigger=trigger)
    with pytest.raises(AgentError) as caught:
        await agents.make().run(asked, Events())
    assert len(agents.server.seen) == 1
    assert is_transient(caught.value)


HOURS = {"an hour ago": -1, "in an hour": 1}
"""Times that are computed when the test runs: workers compare the names of all tests."""


def in_http(after: timedelta) -> str:
    return format_datetime(datetime.now(UTC) + after, usegmt=True).replace(" ", "_")


IGNORED = ["-5", "0", "soon", "1.5s", "", "nan", "inf", "1e99", "Mon,_99_Foo_2026", "-" * 50]
IGNORED += ["an hour ago", "Thu,_01_Jan_1970_00:00:00_GMT", "9" * 5000]
TOO_LATE = ["120", "9" * 30, "in an hour", "Fri,_31_Dec_9999_23:59:59_GMT"]


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("value", "requests"),
    [*((value, 2) for value in IGNORED if value), *((value, 1) for value in TOO_LATE)],
)
async def test_any_time_to_wait_is_read_or_ignored(
    agents: ModelAgents, status: int, value: str, requests: int
) -> None:
    if value in HOURS:
        value = in_http(timedelta(hours=HOURS[value]))
    order, agent = f"wait {status} {value} 1", agents.make()
    if requests == 1:
        assert "overloaded" in (await fails(agent, order)).friendly
    else:
        assert (await agent.run(request(order), Events())).text == "ok"
    assert len(agents.server.seen) == requests
