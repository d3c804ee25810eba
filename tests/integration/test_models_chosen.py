"""Runs that ask for another model than their agent's own (SPEC CRON-0)."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace

import pytest

from goclaw_py.agents import McpServer, Thinking
from goclaw_py.agents.models import ModelAgent, Provider
from goclaw_py.agents.models.engine import Engine
from goclaw_py.agents.models.engines import MOST_OTHERS
from goclaw_py.core.errors import AgentError
from goclaw_py.runs.agent_loop import AgentResult
from tests.integration.conftest import OTHER_KEY
from tests.support.model_agents import BOTH, KEY, WAIT_S, ModelAgents
from tests.support.model_server import ModelServer
from tests.unit.agents.builders import Events, request

pytestmark = pytest.mark.real_time

OPENAI, ANTHROPIC = BOTH


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[Engine]:
    """The engines that were closed."""
    engines: list[Engine] = []
    close = Engine.close

    async def noted(engine: Engine) -> None:
        engines.append(engine)
        await close(engine)

    monkeypatch.setattr(Engine, "close", noted)
    return engines


async def ask(agent: ModelAgent, text: str, model: str = "") -> AgentResult:
    return await agent.run(replace(request(text), model=model), Events())


async def refused(agent: ModelAgent, model: str) -> AgentError:
    with pytest.raises(AgentError) as caught:
        await ask(agent, "say a", model)
    return caught.value


def models(server: ModelServer) -> list[str]:
    return [seen.body["model"] for seen in server.seen]


@pytest.mark.parametrize("written", ["openai:large", "large", " openai: large "])
async def test_another_model_of_the_same_provider_answers_once(
    agents: ModelAgents, written: str
) -> None:
    agent = agents.make(model="small")
    asked = [(await ask(agent, "say a")).model]
    asked.append((await ask(agent, "say a", written)).model)
    asked.append((await ask(agent, "say a")).model)
    assert asked == models(agents.server) == ["small", "large", "small"]


async def test_it_works_with_the_settings_of_the_agent(agents: ModelAgents) -> None:
    agent = agents.make(
        model="small", headers={"X-Team": "blue"}, temperature=0.25, system_prompt="You are terse."
    )
    await ask(agent, "say a", "big")
    (seen,) = agents.server.seen
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert seen.headers["x-team"] == "blue"
    assert seen.body["temperature"] == 0.25
    assert seen.texts[0] == "You are terse."


async def test_another_provider_gets_neither_the_key_nor_the_headers_of_the_agents_own(
    agents: ModelAgents, other: ModelServer
) -> None:
    """SPEC SEC-2."""
    agent = agents.make(headers={"X-Team": "blue"}, thinking=Thinking.OFF)
    assert (await ask(agent, "say a", "anthropic:claude-x")).text == "a"
    (seen,) = other.seen
    assert seen.body["model"] == "claude-x"
    assert OTHER_KEY in str(seen.headers)
    assert "x-team" not in seen.headers
    assert KEY not in str(seen.headers)
    assert agents.server.seen == []


async def test_an_agent_without_a_key_of_its_own_can_ask_another_provider(
    agents: ModelAgents, other: ModelServer
) -> None:
    del agents.environ["OPENAI_API_KEY"], agents.environ["OPENAI_BASE_URL"]
    agent = agents.make(api_key=None, base_url=None)
    assert (await ask(agent, "say a", "anthropic:claude-x")).text == "a"
    assert "set OPENAI_API_KEY" in (await refused(agent, "")).friendly


@pytest.mark.parametrize("written", ["nobody:gpt", "openai:", ":x", "x" * 9000 + ":y"])
async def test_a_model_that_nobody_knows_is_told_in_friendly_words(
    agents: ModelAgents, written: str
) -> None:
    error = await refused(agents.make(), written)
    assert error.friendly.startswith("I know no model “")
    assert "openai:gpt-4o" in error.friendly
    assert not error.retryable
    assert len(error.friendly) < 200
    assert len(str(error)) < 300
    assert agents.server.seen == []


async def test_what_waiting_does_not_cure_is_told(agents: ModelAgents) -> None:
    for model, words in (("groq:llama", "set GROQ_API_KEY"), ("status 404", "does not exist")):
        error = await refused(agents.make(), model)
        assert words in error.friendly
        assert not error.retryable


async def test_the_models_to_fall_back_on_stay_the_same(
    agents: ModelAgents, other: ModelServer
) -> None:
    agent = agents.make(fallback=("anthropic:claude-x",))
    assert (await ask(agent, "say a", "status 503")).model == "claude-x"
    other.seen.clear()
    error = await refused(agents.make(fallback=("anthropic:status 503",)), "anthropic:status 503")
    assert error.retryable
    # Three tries and no more: it does not stand in for itself.
    assert models(other) == ["status 503"] * 3


async def test_so_many_models_are_kept_and_the_agents_own_is_always_among_them(
    agents: ModelAgents, closed: list[Engine]
) -> None:
    agent = agents.make(model="own")
    await ask(agent, "say a")
    for number in range(MOST_OTHERS):
        await ask(agent, "say a", f"model {number}")
    await ask(agent, "say a", "model 0")
    assert closed == []
    await ask(agent, "say a", "one more")
    await agent.close()
    # Of those before, only the one that was not used for longest has gone; now all have.
    assert len(closed) == MOST_OTHERS + 2


async def test_the_one_that_was_not_used_for_longest_goes(
    agents: ModelAgents, closed: list[Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    make = Engine.__init__

    def noted(engine: Engine, *given: object) -> None:
        made.append(given[0].model)  # type: ignore[attr-defined]
        make(engine, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Engine, "__init__", noted)
    agent = agents.make(model="own")
    order = [*(f"model {number}" for number in range(MOST_OTHERS)), "model 0", "one more"]
    for name in [*order, "model 0", "model 1"]:
        await ask(agent, "say a", name)
    assert made[-2:] == ["one more", "model 1"]


async def test_what_a_run_uses_is_not_closed_under_it(
    agents: ModelAgents, closed: list[Engine]
) -> None:
    agent = agents.make()
    slow = asyncio.create_task(ask(agent, "slow 5 0.2", "model x"))
    await asyncio.wait_for(agents.server.arrived.wait(), WAIT_S)
    for number in range(MOST_OTHERS + 2):
        await ask(agent, "say a", f"model {number}")
    assert (await slow).text == "w1 w2 w3 w4 w5"
    assert len(closed) <= 3


async def test_many_runs_at_once_share_what_they_have_in_common(agents: ModelAgents) -> None:
    agent = agents.make(Provider.OPENAI, "own")
    names = ["", "a", "b", "a", "", "b"]
    results = await asyncio.gather(*(ask(agent, "say hi", name) for name in names))
    assert [result.model for result in results] == [name or "own" for name in names]


@pytest.mark.slow
async def test_the_mcp_servers_of_an_agent_are_started_once_for_all_models(
    agents: ModelAgents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goclaw_py.agents.models.mcp.PATIENCE_S", 60.0)
    calc = McpServer(command=(sys.executable, "-m", "tests.support.mcp_server"))
    agent = agents.make(mcp={"calc": calc})
    pids = {(await ask(agent, "tool calc_pid {}", model)).text for model in ("", "a", "b")}
    assert len(pids) == 1
