"""The settings of an agent, as far as its loop needs them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from goclaw_py.agents.command.spec import CommandSpec
from goclaw_py.core.approvals import NO_APPROVALS, ApprovalPolicy
from goclaw_py.core.ids import AgentName


class Thinking(StrEnum):
    """How much a model thinks before it answers."""

    OFF = "off"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


@dataclass(frozen=True, slots=True)
class McpServer:
    """An MCP server: a program (``command``), or an address (``url``).

    All texts may contain secrets. ``tools`` are the names of the allowed tools; empty: all. A call
    that takes longer than ``call_timeout_s`` fails. What a server says about the effects of its
    tools counts only if it is ``trusted``.
    """

    command: tuple[str, ...] = field(default=(), repr=False)
    url: str = field(default="", repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    tools: tuple[str, ...] = ()
    call_timeout_s: float = 300.0
    trusted: bool = False


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """The settings of an agent.

    Keys and headers are not part of ``repr`` (SPEC SEC-2).

    Args:
        model: ``offline``, ``command``, ``python:module:callable`` or ``PROVIDER:NAME`` (SPEC
            AGENT-2).
        command: The program, for ``command``. The other fields are for models.
        base_url: Another server with the provider's protocol.
        api_key: Used in place of the provider's environment variable.
        headers: Added to each request.
        fallback: Models that are asked in this order if the one before fails. Their keys come from
            the environment, and they have no ``base_url``.
        temperature: The model's temperature; None: the provider's default.
        thinking: How much it thinks before it answers; None: the provider's default.
        context_window: The model's limit in tokens; before it is reached, the older part of a
            conversation is replaced by a summary.
        mcp: MCP servers whose tools it may call, by name.
        approval: The tools whose calls people must approve.
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
    approval: ApprovalPolicy = NO_APPROVALS

    @property
    def model_key(self) -> str:
        """The path of the ``model`` setting, for errors."""
        return f"agents.{self.name}.model"
