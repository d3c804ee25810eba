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
from goclaw_py.model.errors import AgentError
from goclaw_py.model.run_events import TextDelta, Usage
from goclaw_py.ports.agent import HistoryEntry, LoopEvent, ModelStep, Role
from tests.support.model_agents import ModelAgents, fails
from tests.support.model_server import ModelServer
from tests.unit.agents.builders import Events, request

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
    assert server.seen[0].texts[1:] == ["count to 2", "1 2", "and now?", "now this", "hi"]
    assert server.seen[0].roles[1:] == ["user", "assistant", "user", "assistant", "user"]


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


async def test_a_run_after_closing_connects_anew(agent: ModelAgent) -> None:
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
