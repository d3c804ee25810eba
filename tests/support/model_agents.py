"""Model agents on the loopback server, in both of the protocols that it speaks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from goclaw_py.agents import AgentSpec
from goclaw_py.agents.models import ModelAgent, Provider, RetryPolicy
from goclaw_py.core.errors import AgentError
from goclaw_py.core.ids import AgentName
from tests.support.model_server import ModelServer
from tests.support.toolbox import Function, Functions
from tests.unit.agents.builders import Events, request

KEY = "sk-loopback-ABCDEFGHIJKLMNOP"
WAIT_S = 20
"""How long a test waits for something that should be there in milliseconds."""

BOTH = [Provider.OPENAI, Provider.ANTHROPIC]


@dataclass(slots=True)
class ModelAgents:
    """Makes agents on a server. ``environ`` is where their keys and addresses may stand."""

    server: ModelServer
    environ: dict[str, str] = field(default_factory=dict)
    made: list[ModelAgent] = field(default_factory=list)

    def make(
        self,
        provider: Provider = Provider.OPENAI,
        model: str = "some-model",
        *,
        retry: RetryPolicy | None = None,
        **spec: Any,
    ) -> ModelAgent:
        settings: dict[str, Any] = {"base_url": url(self.server, provider), "api_key": KEY} | spec
        agent = ModelAgent(
            AgentSpec(AgentName("main"), **settings),
            provider,
            model,
            retry=retry or RetryPolicy(first_wait_s=0.001),
            environ=self.environ,
        )
        self.made.append(agent)
        return agent


def url(server: ModelServer, provider: Provider) -> str:
    return server.root_url if provider is Provider.ANTHROPIC else server.base_url


@asynccontextmanager
async def model_agents() -> AsyncIterator[ModelAgents]:
    """A server, and agents on it, which are closed at the end."""
    async with ModelServer() as server:
        agents = ModelAgents(server)
        yield agents
        for agent in agents.made:
            await agent.close()


async def fails(agent: ModelAgent, order: str, *tools: Function) -> AgentError:
    """Run an order that has to fail."""
    with pytest.raises(AgentError) as caught:
        await agent.run(request(order, tools=Functions(*tools)), Events())
    return caught.value


async def look_up(word: str) -> str:
    """Look a word up."""
    return f"meaning of {word}"
