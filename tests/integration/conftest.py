"""Model agents on a loopback server, for the tests whose names begin with ``test_models``."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from goclaw_py.agents.models import ModelAgent
from tests.support.model_agents import ModelAgents, model_agents
from tests.support.model_server import ModelServer


@pytest_asyncio.fixture
async def agents() -> AsyncIterator[ModelAgents]:
    async with model_agents() as made:
        yield made


@pytest.fixture
def server(agents: ModelAgents) -> ModelServer:
    return agents.server


@pytest.fixture
def agent(agents: ModelAgents) -> ModelAgent:
    return agents.make(model="gpt-4o", system_prompt="You are terse.")
