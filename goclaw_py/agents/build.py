"""From a setting to an agent loop."""

from __future__ import annotations

from goclaw_py.agents.callable import CallableAgent
from goclaw_py.agents.command import CommandAgent, OutputKind
from goclaw_py.agents.models import ModelAgent, Provider
from goclaw_py.agents.offline import OfflineAgent
from goclaw_py.agents.spec import AgentSpec
from goclaw_py.core.errors import SettingError
from goclaw_py.ports.agent import AgentLoop

_ALLOWED = "allowed are offline, command, python:module:callable, openai:NAME, anthropic:NAME"


def _command(spec: AgentSpec) -> CommandAgent:
    """A program. Raises ``SettingError`` if there is none, or its output would say nothing."""
    command, key = spec.command, f"agents.{spec.name}.command"
    if not command.run or not command.run[0]:
        raise SettingError(f"{key}.run", list(command.run), 'model = "command" needs a program')
    reads_json = command.output is OutputKind.JSONL
    if reads_json and not (command.text or command.result):
        raise SettingError(f"{key}.text", [], 'output = "jsonl" needs text, result or both')
    if not reads_json and (command.text or command.result or command.session):
        raise SettingError(f"{key}.output", "text", 'text, result and session need "jsonl"')
    return CommandAgent(spec.name, command)


def build_agent(spec: AgentSpec) -> AgentLoop:
    """Make the loop that ``spec.model`` names.

    Touches no network and needs no key, so that a gateway starts without one. Raises
    ``SettingError`` with the key ``agents.<name>.model``.
    """
    prefix, colon, name = spec.model.strip().partition(":")
    if not colon and prefix == "offline":
        return OfflineAgent()
    if not colon and prefix == "command":
        return _command(spec)
    if prefix == "python" and name:
        return CallableAgent.load(name, key=spec.model_key)
    if name and prefix in set(Provider):
        return ModelAgent(spec, Provider(prefix), name)
    raise SettingError(spec.model_key, spec.model, _ALLOWED)
