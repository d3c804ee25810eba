"""Model agents against a real HTTP server on loopback, through the providers' own clients."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
import traceback
from collections.abc import AsyncIterator, Callable
from decimal import Decimal
from typing import Any

import pytest
import pytest_asyncio

from goclaw_py.agents import AgentSpec
from goclaw_py.agents.models import ModelAgent, Provider, RetryPolicy
from goclaw_py.model.errors import AgentError, BudgetReached
from goclaw_py.model.ids import AgentName
from goclaw_py.model.run_events import TextDelta, ToolEnded, ToolStarted, Usage
from goclaw_py.ports.agent import AgentResult, HistoryEntry, LoopEvent, ModelStep, Role
from tests.support.model_server import ModelServer
from tests.support.toolbox import Function, Functions
from tests.unit.agents.builders import Events, request

pytestmark = pytest.mark.real_time

KEY = "sk-loopback-ABCDEFGHIJKLMNOP"
HANG_UP_S = 5
WAIT_S = 20
"""How long a test waits for something that should be there in milliseconds."""


async def look_up(word: str) -> str:
    """Look a word up."""
    return f"meaning of {word}"


async def fail_always() -> str:
    """Fail."""
    raise AgentError("The tool is out of order.", "tool raised")


@pytest_asyncio.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer() as running:
        yield running


Make = Callable[..., ModelAgent]


@pytest_asyncio.fixture
async def make(server: ModelServer) -> AsyncIterator[Make]:
    """Makes agents on the server, and closes them."""
    made: list[ModelAgent] = []

    def build(
        *,
        model: str = "gpt-4o",
        provider: Provider = Provider.OPENAI,
        api_key: str | None = KEY,
        tries: int = 3,
        **more: Any,
    ) -> ModelAgent:
        # Anthropic's client puts the version into the path on its own.
        is_openai = provider is Provider.OPENAI
        url = server.base_url if is_openai else server.base_url.removesuffix("/v1")
        spec = AgentSpec(
            AgentName("main"),
            base_url=url,
            api_key=api_key,
            system_prompt="You are terse.",
            headers={"X-Team": "blue"},
        )
        agent = ModelAgent(
            spec, provider, model, retry=RetryPolicy(tries, first_wait_s=0.001), environ={}, **more
        )
        made.append(agent)
        return agent

    yield build
    for agent in made:
        await agent.close()


@pytest.fixture
def agent(make: Make) -> ModelAgent:
    return make()


async def fails(agent: ModelAgent, order: str, *tools: Function) -> AgentError:
    with pytest.raises(AgentError) as caught:
        await agent.run(request(order, tools=Functions(*tools)), Events())
    return caught.value


# ---------------------------------------------------------------------------- answers


async def test_the_reply_is_what_was_streamed_in_order(agent: ModelAgent) -> None:
    events = Events()
    result = await agent.run(request("slow 5 0.01"), events)
    assert events == [TextDelta(piece) for piece in ("w1", " w2", " w3", " w4", " w5")]
    assert result.text == "w1 w2 w3 w4 w5"


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


async def test_prompt_system_lines_key_and_headers_reach_the_server(
    server: ModelServer, agent: ModelAgent
) -> None:
    await agent.run(request("hello", "you", system=("It is Monday.", " ")), Events())
    seen = server.seen[0]
    assert seen.roles == ["system", "user"]
    assert seen.texts == ["You are terse.\n\nIt is Monday.", "hello\nyou"]
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert seen.headers["x-team"] == "blue"
    assert seen.body["model"] == "gpt-4o"


async def test_tokens_and_cost_of_a_known_model_are_counted(agent: ModelAgent) -> None:
    result = await agent.run(request("say a b c"), Events())
    usage = result.usage
    assert (usage.requests, usage.input_tokens, usage.output_tokens) == (1, 20, 3)
    assert usage.cost_usd is not None
    assert Decimal(0) < usage.cost_usd < Decimal("0.01")


async def test_the_cost_of_an_unknown_model_is_not_guessed(make: Make) -> None:
    result = await make(model="my-own-model").run(request("say a"), Events())
    assert result.usage == Usage(requests=1, input_tokens=20, output_tokens=1, cost_usd=None)


async def test_a_tool_is_called_and_reported_and_all_text_is_the_reply(
    server: ModelServer, make: Make
) -> None:
    events = Events()
    order = 'tool look_up {"word":"owl"}'
    result = await make().run(request(order, tools=Functions(look_up)), events)
    assert [event for event in events if not isinstance(event, TextDelta)] == [
        ToolStarted("call_2", "look_up", '{"word":"owl"}'),
        ToolEnded("call_2", "look_up", ok=True, result="meaning of owl"),
    ]
    assert result.text == events.text == "looking\n\ntool gave: meaning of owl"
    assert result.usage.requests == 2
    assert server.seen[1].roles == ["system", "user", "assistant", "tool"]


async def test_a_call_of_a_tool_that_does_not_exist_ends_as_not_ok(agent: ModelAgent) -> None:
    events = Events()
    await agent.run(request("tool nothing {}"), events)
    ended = [event for event in events if isinstance(event, ToolEnded)]
    assert [(event.name, event.ok) for event in ended] == [("nothing", False)]
    assert "Unknown tool" in ended[0].result


async def test_an_agent_error_of_a_tool_keeps_its_own_words(agent: ModelAgent) -> None:
    error = await fails(agent, "tool fail_always {}", fail_always)
    assert error.friendly == "The tool is out of order."


async def test_an_agent_that_calls_tools_in_circles_is_stopped(
    server: ModelServer, make: Make
) -> None:
    async def again() -> str:
        return "again"

    error = await fails(make(), "many again", again)
    assert isinstance(error, BudgetReached)
    assert "50 model requests" in error.friendly
    assert len(server.seen) == 50


async def test_many_runs_share_one_agent(server: ModelServer, agent: ModelAgent) -> None:
    """The first runs come while the libraries are still being imported."""
    results = await asyncio.gather(
        *(agent.run(request(f"say number {n}"), Events()) for n in range(8))
    )
    assert [result.text for result in results] == [f"number {n}" for n in range(8)]


async def test_anthropic_answers_over_its_own_protocol(server: ModelServer, make: Make) -> None:
    events = Events()
    result = await make(provider=Provider.ANTHROPIC, model="claude-x").run(request("hi"), events)
    assert result.text == events.text == "you said: hi"
    assert server.seen[0].path == "/v1/messages"
    assert server.seen[0].headers["authorization"] == f"Bearer {KEY}"


# ---------------------------------------------------------------------------- history


async def next_run(agent: ModelAgent, history: list[HistoryEntry], order: str) -> AgentResult:
    asked = request(order, history=history, tools=Functions(look_up))
    result = await agent.run(asked, Events())
    history.extend(result.entries)
    return result


async def test_history_over_three_runs_gives_back_exactly_what_the_model_saw(
    server: ModelServer, make: Make
) -> None:
    agent = make()
    history: list[HistoryEntry] = []
    await next_run(agent, history, "say good morning")
    await next_run(agent, history, 'tool look_up {"word":"owl"}')
    await next_run(agent, history, "say good night")
    last = server.seen[-1].body["messages"]
    before = server.seen[-2].body["messages"]
    # All that the second run's last request held, then its answer, then the new prompt.
    assert last[: len(before)] == before
    assert last[len(before) :] == [
        {"role": "assistant", "content": "tool gave: meaning of owl"},
        {"role": "user", "content": "say good night"},
    ]
    assert server.seen[-1].roles == [
        "system", "user", "assistant", "user", "assistant", "tool", "assistant", "user",
    ]  # fmt: skip


async def test_the_native_form_reads_back_to_the_same_bytes(make: Make) -> None:
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    from goclaw_py.agents.models.history import to_entries, to_messages

    agent = make()
    history: list[HistoryEntry] = []
    result = await next_run(agent, history, 'tool look_up {"word":"owl"}')
    messages = to_messages(history)
    assert len(messages) == 4
    assert to_entries(history[0].text, result.text, messages) == result.entries
    assert ModelMessagesTypeAdapter.dump_json(messages).startswith(b"[{")


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
    assert server.seen[0].texts[1:] == ["count to 2", "1 2", "and now?", "now this", "hi"]
    assert server.seen[0].roles[1:] == ["user", "assistant", "user", "assistant", "user"]


# ---------------------------------------------------------------------------- cancelling


@pytest.mark.parametrize(("order", "pieces"), [("hang", 0), ("slow 1000 0.01", 3)])
async def test_the_server_sees_the_hang_up_at_once_when_a_run_is_cancelled(
    server: ModelServer, agent: ModelAgent, order: str, pieces: int
) -> None:
    """SPEC CMD-4: before the first byte, and in the middle of the stream."""
    enough = asyncio.Event()
    events = Events()

    def emit(event: LoopEvent | ModelStep) -> None:
        events(event)
        if len(events) >= pieces:
            enough.set()

    task = asyncio.create_task(agent.run(request(order), emit))
    await asyncio.wait_for(server.arrived.wait(), WAIT_S)
    if pieces:
        await asyncio.wait_for(enough.wait(), WAIT_S)
    cancelled_at = time.monotonic()
    task.cancel()
    await asyncio.wait([task], timeout=WAIT_S)
    assert task.cancelled()
    said = len(events)
    await asyncio.wait_for(server.hung_up.wait(), WAIT_S)
    hung_up_at = server.seen[0].hung_up_at
    assert hung_up_at is not None
    assert hung_up_at - cancelled_at < HANG_UP_S
    assert len(events) == said
    assert (await agent.run(request("say still here"), Events())).text == "still here"


async def test_cancelling_ends_a_wait_for_retry_after(
    server: ModelServer, agent: ModelAgent
) -> None:
    task = asyncio.create_task(agent.run(request("limit 50 1"), Events()))
    await asyncio.wait_for(server.arrived.wait(), WAIT_S)
    task.cancel()
    await asyncio.wait([task], timeout=WAIT_S)
    assert task.cancelled()
    assert len(server.seen) == 1


async def test_cancelling_the_first_run_leaves_the_import_to_the_others(make: Make) -> None:
    agent = make()
    first = asyncio.create_task(agent.run(request("say one"), Events()))
    second = asyncio.create_task(agent.run(request("say two"), Events()))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).text == "two"
    assert first.cancelled()


async def test_cancelling_reaches_a_tool_that_works(make: Make) -> None:
    """SPEC CMD-4."""
    working, cleaned = asyncio.Event(), asyncio.Event()

    async def work() -> str:
        working.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.set()
        return "never"

    asked = request("tool work {}", tools=Functions(work))
    task = asyncio.create_task(make().run(asked, Events()))
    await asyncio.wait_for(working.wait(), WAIT_S)
    task.cancel()
    await asyncio.wait([task], timeout=WAIT_S)
    assert task.cancelled()
    assert cleaned.is_set()


# ---------------------------------------------------------------------------- failures


async def test_retry_after_is_waited_for_once(server: ModelServer, agent: ModelAgent) -> None:
    """SPEC AGENT-8."""
    assert (await agent.run(request("limit 1 1"), Events())).text == "ok"
    first, second = server.seen
    assert 0.9 < second.at - first.at < 3


async def test_a_wait_longer_than_a_minute_is_not_begun(
    server: ModelServer, agent: ModelAgent
) -> None:
    """SPEC AGENT-8: ≤ 60 s."""
    error = await fails(agent, "limit 120 1")
    assert "overloaded" in error.friendly
    assert error.retryable
    assert len(server.seen) == 1


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503, 529])
async def test_two_transient_errors_are_overcome(
    server: ModelServer, agent: ModelAgent, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "goclaw_py"):
        assert (await agent.run(request(f"fail {status} 2"), Events())).text == "ok"
    assert len(server.seen) == 3
    notes = [vars(record) for record in caplog.records if record.name.startswith("goclaw_py")]
    assert [(note["status"], note["attempt"]) for note in notes] == [(status, 1), (status, 2)]
    assert KEY not in caplog.text


@pytest.mark.parametrize(
    ("order", "words", "retryable", "requests"),
    [
        ("status 500", "has a problem", True, 3),
        ("status 503", "overloaded", True, 3),
        ("status 429", "overloaded", True, 3),
        ("advise 500 false", "has a problem", True, 1),
        ("advise 400 true", "did not accept the request", False, 3),
        ("quota", "used up its quota", False, 3),
        ("status 401", "does not accept my key", False, 1),
        ("status 403", "does not accept my key", False, 1),
        ("status 404", "does not exist", False, 1),
        ("status 400", "did not accept the request", False, 1),
        ("status 418", "did not accept the request", False, 1),
        ("cut 3", "connection to the model broke", True, 1),
        ("half 3", "cut off", True, 1),
        ("halftool look_up", "cut off", True, 1),
    ],
)
async def test_a_failure_is_one_friendly_sentence_after_so_many_requests(
    server: ModelServer, make: Make, order: str, words: str, *, retryable: bool, requests: int
) -> None:
    """SPEC AGENT-8: transient errors three times; keys and requests that are wrong once.

    Unless the server itself says whether trying again may help.
    """
    error = await fails(make(), order, look_up)
    assert words in error.friendly
    assert error.retryable is retryable
    assert len(server.seen) == requests
    assert str(error)
    assert "status_code" not in error.friendly


async def test_a_key_that_the_server_quotes_back_is_nowhere_in_the_error(
    agent: ModelAgent,
) -> None:
    """SPEC SEC-2: neither in its texts nor in the tracebacks that a log may show."""
    error = await fails(agent, "status 401")
    shown = "".join(traceback.format_exception(error)) + error.friendly + repr(error)
    assert "Incorrect API key provided" in shown
    assert KEY not in shown
    assert KEY[:8] not in shown
    assert KEY[-4:] not in shown
    assert error.__cause__ is None
    assert error.__context__ is None


async def test_a_cut_call_of_a_tool_is_not_carried_out(make: Make) -> None:
    called: list[str] = []

    async def delete() -> str:
        called.append("deleted")
        return "deleted"

    await fails(make(), "halftool delete", delete)
    assert called == []


async def test_a_cut_answer_of_anthropic_is_a_failure_too(make: Make) -> None:
    error = await fails(make(provider=Provider.ANTHROPIC, model="claude-x"), "half")
    assert "cut off" in error.friendly
    assert error.retryable


async def test_a_server_that_is_not_there_is_tried_three_times_and_told(
    make: Make, server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    spec = AgentSpec(AgentName("main"), base_url="http://127.0.0.1:1/v1", api_key=KEY)
    agent = ModelAgent(spec, Provider.OPENAI, "gpt-4o", retry=RetryPolicy(first_wait_s=0.001))
    with caplog.at_level(logging.WARNING, "goclaw_py"):
        error = await fails(agent, "hi")
    await agent.close()
    assert "connection to the model broke" in error.friendly
    assert len([record for record in caplog.records if record.name.startswith("goclaw_py")]) == 2


# ---------------------------------------------------------------------------- keys, life cycle


async def test_a_server_of_ones_own_is_asked_without_a_key(server: ModelServer, make: Make) -> None:
    await make(api_key=None).run(request("hi"), Events())
    assert server.seen[0].headers["authorization"] == "Bearer none"


async def test_key_and_address_are_taken_from_the_environment(server: ModelServer) -> None:
    environ = {"OPENAI_API_KEY": "sk-from-env-123456\n", "OPENAI_BASE_URL": server.base_url}
    spec = AgentSpec(AgentName("main"))
    agent = ModelAgent(spec, Provider.OPENAI, "gpt-4o", environ=environ)
    assert (await agent.run(request("say hi"), Events())).text == "hi"
    await agent.close()
    assert server.seen[0].headers["authorization"] == "Bearer sk-from-env-123456"


async def test_closing_while_the_libraries_are_imported_waits_and_closes(make: Make) -> None:
    agent = make()
    warming = asyncio.create_task(agent.warm_up())
    await asyncio.sleep(0)
    await agent.close()
    assert warming.done()


async def test_warming_up_imports_what_the_first_run_needs(make: Make) -> None:
    agent = make()
    await agent.warm_up()
    assert "openai" in sys.modules
    known = set(sys.modules)
    await agent.run(request("say hi"), Events())
    assert not [name for name in set(sys.modules) - known if name.startswith("openai.resources")]


async def test_a_run_after_closing_connects_anew(agent: ModelAgent) -> None:
    await agent.run(request("say one"), Events())
    await agent.close()
    await agent.close()
    assert (await agent.run(request("say two"), Events())).text == "two"


async def test_a_failed_start_of_the_engine_is_tried_again(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library that was just being upgraded must not break the agent for ever."""
    agent = make()
    with monkeypatch.context() as upgrade:
        upgrade.setattr(Provider, "is_installed", False)
        await fails(agent, "say hi")
    assert (await agent.run(request("say hi"), Events())).text == "hi"


async def test_the_server_runs_as_a_process_of_its_own(server: ModelServer) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.model_server", "--port", "0",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), WAIT_S)
        spec = AgentSpec(AgentName("main"), base_url=line.decode().strip(), api_key=KEY)
        agent = ModelAgent(spec, Provider.OPENAI, "slow 3 0.01")
        assert (await agent.run(request("anything"), Events())).text == "w1 w2 w3"
        await agent.close()
    finally:
        process.stdin.close()
        await asyncio.wait_for(process.wait(), WAIT_S)
    assert process.returncode == 0


async def test_requests_seen_can_be_read_over_http(server: ModelServer, agent: ModelAgent) -> None:
    await agent.run(request("say hi"), Events())
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"GET /seen HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    answer = await asyncio.wait_for(reader.read(), WAIT_S)
    writer.close()
    await writer.wait_closed()
    assert json.loads(answer.split(b"\r\n\r\n", 1)[1])[0]["order"] == "say hi"
