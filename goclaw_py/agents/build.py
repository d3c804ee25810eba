"""From a setting to an agent loop."""

from __future__ import annotations

from goclaw_py.agents.callable import CallableAgent
from goclaw_py.agents.models import ModelAgent, Provider
from goclaw_py.agents.offline import OfflineAgent
from goclaw_py.agents.spec import AgentSpec
from goclaw_py.core.errors import SettingError
from goclaw_py.ports.agent import AgentLoop

_ALLOWED = "allowed are offline, python:module:callable, openai:NAME, anthropic:NAME"


def build_agent(spec: AgentSpec) -> AgentLoop:
    """Make the loop that ``spec.model`` names.

    Touches no network and needs no key, so that a gateway starts without one. Raises
    ``SettingError`` with the key ``agents.<name>.model``.
    """
    prefix, colon, name = spec.model.strip().partition(":")
    if not colon and prefix == "offline":
        return OfflineAgent()
    if prefix == "python" and name:
        return CallableAgent.load(name, key=spec.model_key)
    if name and prefix in set(Provider):
        return ModelAgent(spec, Provider(prefix), name)
    raise SettingError(spec.model_key, spec.model, _ALLOWED)
