"""Every provider whose library is here, asked for real: it must reach the server it was told.

Run it once where all libraries are installed, too: see ``Provider.install``.
"""

from __future__ import annotations

import pytest

from goclaw_py.agents.models import ModelAgent, Provider
from goclaw_py.core.errors import AgentError
from goclaw_py.runs.agent_loop import AgentResult
from tests.support.model_agents import KEY, ModelAgents, fails
from tests.unit.agents.builders import Events, request

pytestmark = pytest.mark.real_time

# These refuse to send a key without TLS.
ONLY_TLS = {Provider.BEDROCK, Provider.GATEWAY_BEDROCK}
REACHABLE = [
    each for each in Provider if each.is_installed and each.takes_url and each not in ONLY_TLS
]

# Some read from the name what kind of model it is.
MODELS = {Provider.BEDROCK_MANTLE: "openai.gpt-oss-120b"}


@pytest.fixture(autouse=True)
def _places(monkeypatch: pytest.MonkeyPatch) -> None:
    """What some libraries want to know beside key and address."""
    monkeypatch.setenv("OPENAI_API_VERSION", "2025-01-01")
    monkeypatch.setenv("SNOWFLAKE_ACCOUNT", "acme")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "acme")


def agent_of(agents: ModelAgents, provider: Provider) -> ModelAgent:
    headers = {"X-Team": "blue"} if provider.takes_headers else {}
    return agents.make(provider, MODELS.get(provider, "some/model"), headers=headers)


async def outcome(agent: ModelAgent, order: str) -> AgentResult | AgentError:
    try:
        return await agent.run(request(order), Events())
    except AgentError as error:
        return error


@pytest.mark.parametrize("provider", REACHABLE)
async def test_a_provider_asks_the_server_it_was_told_with_key_and_headers(
    agents: ModelAgents, provider: Provider
) -> None:
    """SPEC AGENT-2a. The server speaks two protocols; from others it is asked, no more."""
    got = await outcome(agent_of(agents, provider), "say hi")
    seen = agents.server.seen[0]
    assert KEY in " ".join(seen.headers.values())
    if provider.takes_headers:
        assert seen.headers["x-team"] == "blue"
    if seen.is_spoken:
        assert isinstance(got, AgentResult)
        assert got.text == "hi"
    else:
        assert isinstance(got, AgentError)
        assert "does not exist" in got.friendly


@pytest.mark.parametrize("provider", [each for each in REACHABLE if each.takes_our_client])
async def test_only_our_transport_tries_again(agents: ModelAgents, provider: Provider) -> None:
    """SPEC AGENT-8: the libraries would make nine requests of three."""
    error = await fails(agent_of(agents, provider), "status 503")
    if agents.server.seen[0].is_spoken:
        assert error.retryable
        assert len(agents.server.seen) == 3
    else:
        assert len(agents.server.seen) == 1
