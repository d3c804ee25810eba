"""What the settings say about one agent, as far as its loop needs to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from goclaw_py.agents.command.spec import CommandSpec
from goclaw_py.core.ids import AgentName


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """One agent.

    ``model`` is ``offline``, ``command``, ``python:module:callable``, ``openai:NAME`` or
    ``anthropic:NAME`` (SPEC AGENT-2). ``command`` is for that; the rest is for the last two:
    ``base_url`` names another server that speaks the same protocol, ``api_key`` wins over the
    provider's environment variable, ``headers`` go with each request. Key and headers stay out of
    ``repr`` (SPEC SEC-2).
    """

    name: AgentName
    model: str = "offline"
    system_prompt: str = ""
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    command: CommandSpec = field(default_factory=CommandSpec)

    @property
    def model_key(self) -> str:
        """The path of the ``model`` setting, for error texts."""
        return f"agents.{self.name}.model"
