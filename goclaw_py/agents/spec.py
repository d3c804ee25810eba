"""What the settings say about one agent, as far as its loop needs to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from goclaw_py.agents.command.spec import CommandSpec
from goclaw_py.model.ids import AgentName


class Thinking(StrEnum):
    """How much a model thinks before it answers."""

    OFF = "off"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


@dataclass(frozen=True, slots=True)
class McpServer:
    """A server that offers tools: a program (``command``), or an address (``url``).

    All of these may hold secrets. ``tools`` are the names of those that may be called;
    empty: all of them.
    """

    command: tuple[str, ...] = field(default=(), repr=False)
    url: str = field(default="", repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """One agent.

    ``model`` is ``offline``, ``command``, ``python:module:callable`` or ``PROVIDER:NAME`` (SPEC
    AGENT-2). ``command`` is for that; the rest is for the last: ``base_url`` names another server
    that speaks the same protocol, ``api_key`` wins over the provider's environment variable,
    ``headers`` go with each request. Keys and headers stay out of ``repr`` (SPEC SEC-2).

    Args:
        fallback: Models that are asked, in this order, where the one before cannot answer. They
            have keys from the environment, and no ``base_url``.
        temperature: What the model gets of that name; None: what the provider does by itself.
        thinking: How much it thinks before it answers; None: what the provider does by itself.
        context_window: Tokens that the model can take; before they are used up, the older part of
            a conversation becomes a summary.
        mcp: Servers whose tools it may call, by name (Model Context Protocol).
    """

    name: AgentName
    model: str = "offline"
    system_prompt: str = ""
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    command: CommandSpec = field(default_factory=CommandSpec)
    fallback: tuple[str, ...] = ()
    temperature: float | None = None
    thinking: Thinking | None = None
    context_window: int = 128_000
    mcp: Mapping[str, McpServer] = field(default_factory=dict)

    @property
    def model_key(self) -> str:
        """The path of the ``model`` setting, for error texts."""
        return f"agents.{self.name}.model"
