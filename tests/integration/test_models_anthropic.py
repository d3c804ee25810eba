"""What a model does, in Anthropic's protocol and in OpenAI's: it must make no difference."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from goclaw_py.agents import Thinking
from goclaw_py.agents.models import Provider, RetryPolicy
from goclaw_py.core.messages import HistoryEntry
from goclaw_py.core.run_events import TextDelta, ToolEnded, ToolStarted
from goclaw_py.runs.agent_loop import LoopEvent
from tests.support.model_agents import KEY, WAIT_S, ModelAgents, look_up
from tests.support.model_server_orders import long_text
from tests.support.toolbox import Functions
from tests.unit.agents.builders import Coming, Events, request

pytestmark = pytest.mark.real_time

LONG = 900_000
HANG_UP_S = 5


async def add(left: int, right: int) -> str:
    """Add two numbers."""
    return str(int(left) + int(right))


def tools_order(*calls: tuple[str, object]) -> str:
    return f"tools {orjson.dumps(calls).decode()}"


# ---------------------------------------------------------------------------- words


async def test_the_reply_is_streamed_word_by_word_and_counted(
    agents: ModelAgents, provider: Provider
) -> None:
    events = Events()
    result = await agents.make(provider, "some-model").run(request("slow 4 0.01"), events)
    assert events == [TextDelta(piece) for piece in ("w1", " w2", " w3", " w4")]
    assert (result.text, result.model) == ("w1 w2 w3 w4", "some-model")
    usage = result.usage
    assert (usage.requests, usage.input_tokens, usage.output_tokens) == (1, 10, 4)


async def test_prompt_system_lines_key_and_headers_reach_the_server(
    agents: ModelAgents, provider: Provider
) -> None:
    agent = agents.make(provider, system_prompt="Be terse.", headers={"X-Team": "blue"})
    await agent.run(request("say hello", "you", system=("It is Monday.", " ")), Events())
    seen = agents.server.seen[0]
    assert seen.order == "say hello\nyou"
    assert r'"Be terse.\n\nIt is Monday."' in orjson.dumps(seen.body).decode()
    assert seen.body["model"] == "some-model"
    assert seen.headers["x-team"] == "blue"
    assert KEY in seen.headers.get("x-api-key", seen.headers["authorization"])


async def test_thoughts_are_no_part_of_the_reply(agents: ModelAgents, provider: Provider) -> None:
    events = Events()
    agent = agents.make(provider)
    result = await agent.run(request("think of a secret plan"), events)
    assert result.text == events.text == "thought about it"
    # And what was thought can be told again without an error.
    again = await agent.run(request("say well", history=result.entries), Events())
    assert again.text == "well"


@pytest.mark.parametrize("piece", [16_384, LONG])
async def test_an_answer_of_nearly_a_million_characters_arrives_whole(
    agents: ModelAgents, provider: Provider, piece: int
) -> None:
    events = Events()
    result = await agents.make(provider).run(request(f"big {LONG} {piece}"), events)
    assert result.text == events.text == long_text(LONG)


@pytest.mark.slow
async def test_more_than_a_hundred_runs_ask_at_once(agents: ModelAgents) -> None:
    """No run waits for a connection that another one holds."""
    agent = agents.make()
    await agent.warm_up()
    runs = [asyncio.create_task(agent.run(request("hang"), Events())) for _ in range(105)]
    async with asyncio.timeout(3 * WAIT_S):
        while len(agents.server.seen) < len(runs):
            agents.server.arrived.clear()
            await agents.server.arrived.wait()
    for run in runs:
        run.cancel()
    await asyncio.wait(runs, timeout=WAIT_S)
    assert all(run.cancelled() for run in runs)


# ---------------------------------------------------------------------------- tools


async def test_several_tools_are_called_at_once(agents: ModelAgents, provider: Provider) -> None:
    tools = Functions(look_up, add)
    order = tools_order(
        ("look_up", {"word": "owl"}), ("add", {"left": 1, "right": 2}), ("look_up", {"word": "ox"})
    )
    events = Events()
    result = await agents.make(provider).run(request(order, tools=tools), events)
    assert sorted(call[0] for call in tools.calls) == ["add", "look_up", "look_up"]
    assert result.text == "looking\n\ntool gave: meaning of owl 3 meaning of ox"
    started = [event for event in events if isinstance(event, ToolStarted)]
    ended = [event for event in events if isinstance(event, ToolEnded)]
    assert len({event.call_id for event in started}) == 3
    assert {event.call_id for event in ended} == {event.call_id for event in started}
    assert all(event.ok for event in ended)
    assert result.usage.requests == 2


@pytest.mark.parametrize(
    "arguments",
    [
        '{"word": "ow',
        '{"word" "owl"}',
        "owl",
        '["owl"]',
        '{"wort": "owl"}',
        '{"word": "owl", "more": 1}',
        "{}",
        '{"word": "owl"}}',
    ],
)
async def test_malformed_arguments_call_nothing_and_go_back_to_the_model(
    agents: ModelAgents, provider: Provider, arguments: str
) -> None:
    tools, events = Functions(look_up), Events()
    order = tools_order(("look_up", arguments))
    result = await agents.make(provider).run(request(order, tools=tools), events)
    assert tools.calls == []
    assert result.text.startswith("looking\n\ntool gave: ")
    assert [event.ok for event in events if isinstance(event, ToolEnded)] == [False]
    assert len(agents.server.seen) == 2
    # It is a valid history all the same.
    again = await agents.make(provider).run(request("say on", history=result.entries), Events())
    assert again.text == "on"


async def test_good_calls_beside_a_malformed_one_are_carried_out(
    agents: ModelAgents, provider: Provider
) -> None:
    tools = Functions(look_up)
    order = tools_order(("look_up", {"word": "owl"}), ("look_up", '{"word"'))
    result = await agents.make(provider).run(request(order, tools=tools), Events())
    assert tools.calls == [("look_up", {"word": "owl"})]
    assert "meaning of owl" in result.text


async def test_a_history_with_tools_gives_back_what_the_model_saw(
    agents: ModelAgents, provider: Provider
) -> None:
    agent = agents.make(provider)
    history: list[HistoryEntry] = []
    for order in ("say good morning", tools_order(("look_up", {"word": "owl"})), "say bye"):
        asked = request(order, history=history, tools=Functions(look_up))
        history.extend((await agent.run(asked, Events())).entries)
    before, last = (bare(seen.body["messages"]) for seen in agents.server.seen[-2:])
    assert last[: len(before)] == before
    assert len(last) == len(before) + 2


def bare(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without the marks by which Anthropic caches, which move with the end of a conversation."""
    text = orjson.dumps(messages)
    for mark in (b',"cache_control":{"type":"ephemeral"}', b',"cache_control":null'):
        text = text.replace(mark, b"")
    read: list[dict[str, Any]] = orjson.loads(text)
    return read


async def test_a_message_that_comes_while_a_tool_works_is_in_the_next_request(
    agents: ModelAgents, provider: Provider
) -> None:
    """SPEC QUEUE-4."""
    order = tools_order(("look_up", {"word": "owl"}))
    asked = request(order, tools=Functions(look_up), take=Coming("say the rest"))
    result = await agents.make(provider).run(asked, Events())
    assert agents.server.seen[1].order == "say the rest"
    assert result.text == "looking\n\nthe rest"


# ---------------------------------------------------------------------------- cancelling


@pytest.mark.parametrize(
    ("order", "pieces"), [("hang", 0), ("pause 2", 2), ("slow 1000 0.01", 3), ("limit 50 1", 0)]
)
async def test_cancelling_ends_a_run_at_once(
    agents: ModelAgents, provider: Provider, order: str, pieces: int
) -> None:
    """SPEC CMD-4: before the first byte, in silence, in mid-stream, and in a wait to try again."""
    enough, heard = asyncio.Event(), Events()
    agent = agents.make(provider, retry=RetryPolicy())
    await agent.warm_up()

    def emit(event: LoopEvent) -> None:
        heard(event)
        if sum(isinstance(each, TextDelta) for each in heard) >= pieces:
            enough.set()

    task = asyncio.create_task(agent.run(request(order), emit))
    await asyncio.wait_for(agents.server.arrived.wait(), WAIT_S)
    if pieces:
        await asyncio.wait_for(enough.wait(), WAIT_S)
    # The server has answered the one that is to be tried again; let that answer arrive.
    await asyncio.sleep(0.05)
    cancelled_at = time.monotonic()
    task.cancel()
    await asyncio.wait([task], timeout=WAIT_S)
    assert task.cancelled()
    assert time.monotonic() - cancelled_at < HANG_UP_S
    if not order.startswith("limit"):
        await asyncio.wait_for(agents.server.hung_up.wait(), WAIT_S)
        hung_up_at = agents.server.seen[0].hung_up_at
        assert hung_up_at is not None
        assert hung_up_at - cancelled_at < HANG_UP_S
    assert len(agents.server.seen) == 1
    assert (await agent.run(request("say still here"), Events())).text == "still here"


# ---------------------------------------------------------------------------- options


async def test_the_temperature_goes_with_each_request_if_it_is_set(
    agents: ModelAgents, provider: Provider
) -> None:
    await agents.make(provider).run(request("say a"), Events())
    assert not agents.server.seen[0].body.keys() & {"temperature", "thinking", "reasoning_effort"}
    await agents.make(provider, temperature=0.25).run(request("say a"), Events())
    assert agents.server.seen[1].body["temperature"] == 0.25


EFFORTS = {Thinking.LOW: "low", Thinking.MEDIUM: "medium", Thinking.HIGH: "high"}


@pytest.mark.parametrize("thinking", EFFORTS)
async def test_how_much_a_model_thinks_goes_with_each_request(
    agents: ModelAgents, thinking: Thinking
) -> None:
    for provider, model in ((Provider.OPENAI, "gpt-5"), (Provider.ANTHROPIC, "claude-opus-4-8")):
        await agents.make(provider, model, thinking=thinking).run(request("say a"), Events())
    gpt, claude = (seen.body for seen in agents.server.seen)
    assert gpt["reasoning_effort"] == EFFORTS[thinking]
    assert claude["output_config"] == {"effort": EFFORTS[thinking]}


async def test_a_model_can_be_told_not_to_think(agents: ModelAgents) -> None:
    for provider, model in ((Provider.OPENAI, "my-own"), (Provider.ANTHROPIC, "claude-sonnet-5")):
        await agents.make(provider, model, thinking=Thinking.OFF).run(request("say a"), Events())
    own, claude = (seen.body for seen in agents.server.seen)
    assert own["reasoning_effort"] == "none"
    assert claude["thinking"] == {"type": "disabled"}


async def test_claude_is_given_no_temperature_while_it_thinks(agents: ModelAgents) -> None:
    """The real server refuses both at once."""
    for thinking in (Thinking.OFF, Thinking.LOW):
        agent = agents.make(
            Provider.ANTHROPIC, "claude-haiku-4-5", thinking=thinking, temperature=0.5
        )
        await agent.run(request("say a"), Events())
    calm, thinking_hard = (seen.body for seen in agents.server.seen)
    assert calm["temperature"] == 0.5
    assert "temperature" not in thinking_hard


async def test_a_model_that_cannot_think_is_told_to_the_operator(
    agents: ModelAgents, caplog: pytest.LogCaptureFixture
) -> None:
    await agents.make(model="gpt-4o", base_url=None, thinking=Thinking.LOW).warm_up()
    notes = [vars(record) for record in caplog.records if record.message == "model_setting_ignored"]
    assert [note["setting"] for note in notes] == ["thinking"]
