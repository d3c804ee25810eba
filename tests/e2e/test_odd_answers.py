"""Whatever a model or an agent in Python answers, its run ends, and the next one is answered.

In chats, jobs, heartbeats and subagents alike; the end says what happened (SPEC QUEUE-10).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.botapi.control import Control
from tests.e2e.loopback_model import Model
from tests.e2e.odd_gateway import FAILED, OTHER, Odd, OddGateway, settings
from tests.support.process import Home, wait_for


def raw(*texts: str) -> str:
    """A stream with these texts, each in a chunk of its own."""
    choices: list[dict[str, Any]] = [{"delta": {"content": text}} for text in texts]
    choices.append({"delta": {}, "finish_reason": "stop"})
    events = [{"id": "c", "choices": [{"index": 0, **choice}]} for choice in choices]
    return "raw " + json.dumps([f"data: {json.dumps(event)}\n\n" for event in events])


def call(arguments: str, tool: str = "list_files") -> str:
    """A call with these arguments, as they are; then it says what the tool gave."""
    return f"calls {json.dumps([['a', tool, arguments]])}"


def usage(given: object) -> str:
    return f"usage {json.dumps(given, separators=(',', ':'))} say fine"


def spawn(order: str, *, wait: bool) -> str:
    return f"tool spawn_subagent {json.dumps({'task': order, 'wait': wait, 'label': 'child'})}"


TWICE = '[["call_0","list_files",{}],["call_0","list_files",{}]]'
THOUGHT = "<think>If all is well I say HEARTBEAT_OK.</think>"
BOOM = json.dumps(json.dumps({"error": {"message": "boom"}}))

ODD = {
    "half of a pair": Odd(raw("the disk \ud83d is full"), "the disk \ufffd is full"),
    "a pair over two chunks": Odd(raw("party \ud83c", "\udf89 time"), "party 🎉 time"),
    "a call id twice": Odd(f"calls {TWICE}", "tool gave"),
    "a call without an end": Odd("halftool list_files", "was cut off", FAILED, attempts=2),
    "a tool without a name": Odd(call("{}", ""), "Unknown tool name"),
    "a tool without a name again": Odd('again [["",{}]]', "a tool without a name", FAILED),
    "an unknown tool again": Odd("many nothing", "a tool that does not exist", FAILED),
    "an answer that is cut": Odd("short HEARTBEAT_OK but the disk is", "limit of length"),
    "no finish reason": Odd("half 3", "was cut off", FAILED, attempts=2),
    "a lost connection": Odd("cut 3", "connection to the model broke", FAILED, attempts=2),
    "thoughts before an alert": Odd(raw(f"{THOUGHT}The disk is overfull"), "The disk is overfull"),
    "thoughts around the token": Odd(
        raw("<thi", "nk>full?</think>HEARTBEAT_OK<think>no</think>"), "", heartbeat="ok"
    ),
    "thoughts without an end": Odd(raw("<think>HEARTBEAT_OK"), "an empty answer", FAILED),
    "negative usage": Odd(usage({"prompt_tokens": -3, "completion_tokens": -4}), "fine"),
    "large usage": Odd(usage({"prompt_tokens": 2**63, "completion_tokens": 2**70}), "fine"),
    "half a token": Odd(usage({"prompt_tokens": 1.5, "completion_tokens": 2}), "fine"),
    "usage in words": Odd(usage({"prompt_tokens": "many"}), "fine"),
    "no usage": Odd(usage(None), "fine"),
    "nothing": Odd("say", "an empty answer", FAILED, heartbeat="ok"),
    "an error with the status of a success": Odd(
        f"fake 999 application/json {BOOM}", "has a problem", FAILED
    ),
    "status 500": Odd("status 500", "has a problem", FAILED),
    "status 400": Odd("status 400", "did not accept the request", FAILED),
    "refused words": Odd("say poison", "did not accept the request", FAILED),
    "a refused history": Odd(call('{"path": "curdled"}'), "looking"),
    "arguments that are no JSON": Odd(call("{"), "Invalid JSON"),
    "arguments with half of a pair": Odd(call('{"path": "\\ud83d"}'), "\ufffd: there is no such"),
    "arguments with NUL": Odd(call('{"path": "\\u0000"}'), "must not have control characters"),
    "arguments with large numbers": Odd(call(f'{{"path": {"9" * 999}}}'), "999"),
    "arguments without a number": Odd(call('{"path": NaN}'), "must be a valid string"),
    "nested arguments": Odd(call(f'{{"path": {"[" * 300}{"]" * 300}}}'), "Invalid JSON"),
    "the answer of a subagent": Odd(spawn(raw("a \ud83d", "\0 b"), wait=True), "a \ufffd\ufffd b"),
    "a subagent that fails": Odd(spawn("status 400", wait=True), "did not accept the request"),
    "a subagent that is cut": Odd(spawn("half 3", wait=True), "was cut off"),
    "a subagent without a history": Odd(spawn('again [["",{}]]', wait=True), "without a name"),
}
"""The subagents of scheduled runs are waited for in any case."""


def check(gateway: OddGateway, orders: Mapping[str, Odd]) -> None:
    """Give all orders at once, in all places; then a harmless one in each of these."""
    for number, odd in enumerate(orders.values()):
        gateway.order(number, odd.order, odd.agent)
    gateway.api.say(OTHER, "say meanwhile")
    wait_for(lambda: gateway.api.texts(OTHER), "the answer in another chat")
    gateway.until_idle()
    assert gateway.ends(orders) == {name: odd.expected for name, odd in orders.items()}
    assert gateway.untold(orders) == {}
    for number in range(len(orders)):
        gateway.order(number, "say next")
    gateway.until_idle()
    assert gateway.ends(orders) == dict.fromkeys(orders, Odd("say next", "next").expected)


def test_after_any_answer_of_a_model_the_next_is_given(
    bot: Home, api: Control, model: Model, postgres_url: str
) -> None:
    agent = f'model = "openai:a-model"\nbase_url = "{model.url}"\napi_key = "sk-loopback"\n'
    bot.env["GOCLAW_DATABASE_URL"] = postgres_url
    (bot.folder / "goclaw.toml").write_text(settings(ODD, {"main": agent}))
    with OddGateway.started(bot, api) as gateway:
        check(gateway, ODD)
        assert gateway.errors() == set()


AGENT = """
import asyncio, builtins
from goclaw_py.core.errors import AgentError
from goclaw_py.core.run_events import TextDelta, Usage
from goclaw_py.runs.agent_loop import AgentResult

RESULTS = {
    "half": AgentResult("x \\ud83d y"),
    "NUL": AgentResult("x \\0 y"),
    "used": AgentResult("fine", usage=Usage(2**63, -1, 10**30)),
    "number": 5,
    "nothing": None,
    "entries": AgentResult("fine", entries=(1, 2)),
}

def fail(name):
    match name:
        case "retryable":
            raise AgentError("The agent is away.", "away", retryable=True)
        case "cancelled":
            raise asyncio.CancelledError
        case "group":
            raise BaseExceptionGroup("several", [KeyboardInterrupt(), ValueError()])
        case "endless":
            fail(name)
        case _:
            raise getattr(builtins, name)("odd")

def plain(request, emit):
    verb, _, rest = request.prompt.partition(" ")
    if verb == "raise":
        fail(rest)
    if verb == "stream":
        for piece in ("party \\ud83c", "\\udf89 time"):
            emit(TextDelta(piece))
        return "party \\ud83c\\udf89 time"
    return RESULTS[rest] if verb == "return" else rest

async def run(request, emit):
    if request.prompt == "exit in a task":
        task = asyncio.create_task(exits())
        await task
    return plain(request, emit)

async def exits():
    raise SystemExit(3)
"""
"""An agent in Python; ``say X`` says X."""

WRONG = "Something went wrong"
RAISED = {
    name: Odd(f"raise {name}", WRONG, FAILED)
    for name in [
        "SystemExit",
        "KeyboardInterrupt",
        "GeneratorExit",
        "StopIteration",
        "MemoryError",
        "cancelled",
        "group",
        "endless",
    ]
}
PASSING = {
    name: Odd(f"raise {name}", words, FAILED, attempts=2)
    for name, words in {
        "ConnectionError": WRONG,
        "TimeoutError": WRONG,
        "retryable": "The agent is away.",
    }.items()
}
RETURNED = {
    "half of a pair": Odd("return half", "x \ufffd y"),
    "NUL": Odd("return NUL", "x \ufffd y"),
    "a pair over two pieces": Odd("stream", "party 🎉 time"),
    "impossible usage": Odd("return used", "fine"),
    "a number": Odd("return number", "no answer that I can read", FAILED),
    "None": Odd("return nothing", "no answer that I can read", FAILED),
    "entries that are none": Odd("return entries", WRONG, FAILED),
}


def test_after_anything_that_an_agent_in_python_does_the_next_is_answered(
    bot: Home, api: Control, postgres_url: str
) -> None:
    both = RAISED | PASSING | RETURNED
    plain = {f"plain: {name}": replace(odd, agent="plain") for name, odd in both.items()}
    orders = both | plain | {"exit in a task": Odd("exit in a task", WRONG, FAILED)}
    (bot.folder / "odd_agent.py").write_text(AGENT)
    bot.env |= {"GOCLAW_DATABASE_URL": postgres_url, "PYTHONPATH": str(bot.folder)}
    agents = {"main": 'model = "python:odd_agent:run"', "plain": 'model = "python:odd_agent:plain"'}
    (bot.folder / "goclaw.toml").write_text(settings(orders, agents))
    with OddGateway.started(bot, api) as gateway:
        check(gateway, orders)
        # The entries that are none, and the task.
        assert gateway.errors() == {"run_end_not_stored", "task_tried_to_exit"}
