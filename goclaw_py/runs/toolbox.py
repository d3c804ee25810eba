"""The tools that an agent may call during a run (SPEC AGENT-6).

A *tool* is offered to agents; a *toolbox* holds the tools of one run. An agent loop sees only the
toolbox. Whoever makes toolboxes is given the place from which their tools are called
(``ToolContext``), and through it what the runtime does for tools: run other agents, send messages,
remember facts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from goclaw_py.core.errors import ToolFailed
from goclaw_py.core.ids import AgentName, RunId, SessionKey
from goclaw_py.core.messages import OutFile, Target
from goclaw_py.core.outcomes import Trigger
from goclaw_py.core.values import value
from goclaw_py.operations.heartbeats.operations import HeartbeatService
from goclaw_py.operations.jobs.models import Requester
from goclaw_py.operations.jobs.operations import JobService


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model sees it; ``parameters`` is the JSON schema of its arguments object.

    ``side_effects``: it may change something outside of the run, so that repeating a call may do
    harm (SPEC CRON-7).
    ``idempotent``: a repeated call has no further effect.
    ``acts_on_run``: its effect is on the run and is lost with it, so a run that continues an
    interrupted one calls it again (SPEC AGENT-10).
    """

    name: str
    description: str
    parameters: Mapping[str, object] = field(compare=False)
    side_effects: bool = True
    acts_on_run: bool = False
    idempotent: bool = False


class Toolbox(Protocol):
    """The tools of one run."""

    @property
    def guidance(self) -> tuple[str, ...]:
        """Texts about the tools for the system prompt; usually empty."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools. Names are unique."""

    async def call(self, name: str, arguments: Mapping[str, object], key: str = "") -> str:
        """Validate the arguments, call a tool, and return its result for the model.

        ``key`` is the idempotency key: the same for a repeated call, and for no other call; "" if
        there is none. Raises ``ToolFailed`` for an unknown tool, wrong arguments, and other
        failures that the model should know. Cancelling the call cancels the tool.
        """


class _NoTools:
    """An empty toolbox."""

    @property
    def guidance(self) -> tuple[str, ...]:
        return ()

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return ()

    async def call(self, name: str, arguments: Mapping[str, object], key: str = "") -> str:
        del arguments, key
        raise ToolFailed(f"there is no tool {name!r}")


NO_TOOLS: Toolbox = _NoTools()
"""The empty toolbox."""


class Children(Protocol):
    """Starts child runs of a run (SPEC LANE-8)."""

    async def subagent(self, prompt: str, key: str = "") -> str:
        """Run the same agent with ``prompt`` in a separate conversation; return its reply.

        It uses the lane ``subagent``. With the ``key`` of an earlier call it continues the run of
        that call. Raises ``ToolFailed`` if it was not admitted or failed.
        """

    async def spawn(self, prompt: str, label: str, key: str = "") -> RunId | None:
        """Start a subagent whose reply later comes into this conversation as a message.

        ``key`` is as in ``subagent``.

        Returns None if this conversation ends with its run and cannot receive it: use ``subagent``
        instead. Raises ``ToolFailed`` if it was not admitted.
        """

    async def delegate(self, agent: AgentName, prompt: str, key: str = "") -> str:
        """Run another agent with ``prompt`` in the lane ``delegate``; return its reply.

        ``key`` is as in ``subagent``. Raises ``ToolFailed`` if there is no such agent, or it was
        not admitted, or failed.
        """


class Messenger(Protocol):
    """Sends messages to chats."""

    async def send(self, target: Target, text: str) -> None:
        """Add a message to the outbox, and to the history of that chat.

        It is sent at least once, however the run ends. Raises ``ToolFailed`` if the channel does
        not exist or the database is unavailable.
        """


class Pins(Protocol):
    """The pinned facts of a conversation, kept until ``/new`` (SPEC AGENT-4)."""

    async def change(self, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> tuple[str, ...]:
        """Apply ``change`` to the facts, store and return the result. Raises ``ToolFailed``."""


@value(frozen=True, slots=True)
class ToolContext:
    """The run that calls tools, and the services that tools use.

    Args:
        target: The chat that the run answers, None if there is none.
        attach: Sends a file of the workspace with the reply.
        jobs: The job service; None if this run may not use it.
        asker: The requester for ``jobs``.
        heartbeats: The heartbeat service; None if there are no heartbeats.
        may_change_checklist: Whether the run may change the checklist of its agent.
        heartbeat_run_done: Takes whether the result of this heartbeat run is reported, and its
            text; None if this is no heartbeat run.
        key: The idempotency key of the call, "" if there is none.
        attaching: Locked while a file is checked and attached: tool calls run concurrently, but
            people get the files in the order of the calls.
    """

    run_id: RunId
    session: SessionKey
    agent: AgentName
    trigger: Trigger
    target: Target | None
    workspace: Path
    children: Children
    post: Messenger
    pins: Pins
    attach: Callable[[OutFile], None]
    jobs: JobService | None = None
    asker: Requester | None = None
    heartbeats: HeartbeatService | None = None
    may_change_checklist: bool = False
    heartbeat_run_done: Callable[[bool, str], None] | None = None
    key: str = ""
    attaching: asyncio.Lock = field(default_factory=asyncio.Lock)


class ToolboxFactory(Protocol):
    """Creates the toolboxes of runs."""

    def toolbox(self, here: ToolContext) -> Toolbox:
        """Return the tools that the agent of a run may use."""
