"""Creates agent loops from settings."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from goclaw_py.agents.callable import CallableAgent
from goclaw_py.agents.command import CommandAgent, OutputKind, UsagePaths
from goclaw_py.agents.command.spec import SESSION
from goclaw_py.agents.models import (
    ModelAgent,
    Provider,
    find_key,
    find_url,
    is_sendable,
    read_model,
    similar_model,
    unlisted,
)
from goclaw_py.agents.offline import OfflineAgent
from goclaw_py.agents.spec import AgentSpec
from goclaw_py.core.errors import SettingError
from goclaw_py.core.redaction import HIDDEN
from goclaw_py.runs.agent_loop import AgentLoop

_MODELS = "PROVIDER:NAME, such as openai:gpt-4o or anthropic:claude-sonnet-5-5"
_OTHERS = "or offline, command or python:MODULE:FUNCTION"


def _meant(model: str) -> str:
    similar = similar_model(model)
    return "" if similar is None else f"; did you mean {similar}?"


def _command(spec: AgentSpec) -> CommandAgent:
    """Create a program agent. Raises ``SettingError`` if the program or its output is missing."""
    command, key = spec.command, f"agents.{spec.name}.command"
    if not command.run or not command.run[0]:
        raise SettingError(f"{key}.run", list(command.run), 'model = "command" needs a program')
    if command.resume and not any(SESSION in argument for argument in command.resume):
        raise SettingError(f"{key}.resume_args", list(command.resume), "needs {session}")
    knows_session = command.session or any(
        SESSION in argument for argument in (*command.run, *command.first)
    )
    if command.resume and not knows_session:
        missing = "needs session, or {session} in run or first, to know the conversation"
        raise SettingError(f"{key}.resume_args", list(command.resume), missing)
    reads_json = command.output is OutputKind.JSONL
    if reads_json and not (command.text or command.result):
        raise SettingError(f"{key}.text", [], 'output = "jsonl" needs text, result or both')
    needs_json = command.text or command.result or command.session or command.usage != UsagePaths()
    if needs_json and not reads_json:
        raise SettingError(f"{key}.output", "text", 'text, result, session and usage need "jsonl"')
    return CommandAgent(spec.name, command)


def _model(spec: AgentSpec, provider: Provider, name: str) -> ModelAgent:
    """Create a model agent.

    Raises ``SettingError`` if its provider does not support a setting, or if the environment has a
    key or an address for it, or for a fallback, that cannot be used.
    """
    place = f"agents.{spec.name}"
    if spec.base_url and not provider.takes_url:
        raise SettingError(f"{place}.base_url", HIDDEN, f"{provider.value} takes no address")
    if spec.base_url and not _is_address(spec.base_url):
        raise SettingError(f"{place}.base_url", HIDDEN, "cannot be read as an address")
    if spec.headers and not provider.takes_headers:
        raise SettingError(f"{place}.headers", HIDDEN, f"{provider.value} takes no headers")
    _check_environment(spec.model_key, spec.model, provider, spec.api_key, spec.base_url)
    for other in spec.fallback:
        read = read_model(other)
        if read is None:
            must = f"each must be {_MODELS}{_meant(other)}"
            raise SettingError(f"{place}.fallback", other, must)
        _check_environment(f"{place}.fallback", other, read[0])
    return ModelAgent(spec, provider, name)


def _check_environment(
    key: str, model: str, provider: Provider, api_key: str | None = None, url: str | None = None
) -> None:
    """Raise ``SettingError`` if a variable of the provider, where it is used, is malformed."""
    if not (api_key or "").strip() and not is_sendable(find_key(provider, None, os.environ)):
        variable = next(one for one in provider.key_variables if os.environ.get(one, "").strip())
        must = "must be printable ASCII characters without line breaks"
        raise SettingError(key, model, f"the key in the variable {variable} {must}")
    address = find_url(provider, url, os.environ)
    if address and not _is_address(address):
        what = f"the address in the variable {provider.url_variable} cannot be read"
        raise SettingError(key, model, what)


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def is_model(model: str) -> bool:
    """Return whether this setting names a language model, which a run may replace."""
    return read_model(model) is not None


def run_model_problem(own: str, base_url: str | None, model: str) -> str:
    """Return why runs of an agent cannot use a model in place of the agent's own; "" if they can.

    ``own``, ``base_url``: the model of the agent, and the server of its settings, whose models are
    not known. Without a provider, ``model`` is another one of the agent's provider, and must be one
    that is listed: that is where a misspelt name would be found only by a failed run. With its
    provider any name is accepted, because lists are older than models.
    """
    read = read_model(own)
    if read is None:
        return 'allowed only for agents whose model is a language model such as "openai:gpt-4o"'
    name = model.strip()
    if ":" in name:
        return "" if read_model(name) else f'must be a model such as "openai:gpt-4o"{_meant(name)}'
    provider = read[0]
    near = None if find_url(provider, base_url, os.environ) else unlisted(provider, name)
    if near is None:
        return ""
    meant = ", ".join(near) or similar_model(name)
    hint = f"; did you mean {meant}?" if meant else "."
    where = f"{provider.value} lists no model {name!r}{hint}"
    return f'{where} To use one that is not listed, write "{provider.value}:{name}"'


def build_agent(spec: AgentSpec) -> AgentLoop:
    """Create the loop that ``spec.model`` names.

    Uses no network and needs no key, so that a gateway starts without one. Raises ``SettingError``
    with the key of the wrong setting, usually ``agents.<name>.model``.
    """
    if model := read_model(spec.model):
        return _model(spec, *model)
    if spec.fallback:
        only = 'only a model such as "openai:gpt-4o" has others to fall back on'
        raise SettingError(f"agents.{spec.name}.fallback", list(spec.fallback), only)
    prefix, colon, name = spec.model.strip().partition(":")
    if not colon and prefix == "offline":
        return OfflineAgent(approval=spec.approval)
    if not colon and prefix == "command":
        return _command(spec)
    if prefix == "python" and name:
        return CallableAgent.load(name, key=spec.model_key)
    must = f"must be {_MODELS}, {_OTHERS}{_meant(spec.model)}"
    raise SettingError(spec.model_key, spec.model, must)
