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

from goclaw_py.model.errors import ToolFailed
from goclaw_py.model.ids import AgentName, RunId, SessionKey
from goclaw_py.model.messages import OutFile, Target
from goclaw_py.model.outcomes import Trigger
from goclaw_py.ports.heartbeat import HeartbeatService
from goclaw_py.ports.jobs import JobService, Requester


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model sees it; ``parameters`` is the JSON schema of its arguments, an object.

    ``side_effects``: it may change something outside of the run, so that to do it again is not the
    same as to do it once (SPEC CRON-7).
    """

    name: str
    description: str
    parameters: Mapping[str, object] = field(compare=False)
    side_effects: bool = True


class Toolbox(Protocol):
    """The tools of one run."""

    @property
    def guidance(self) -> tuple[str, ...]:
        """What a loop that calls them tells its model about them; as a rule nothing."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What can be called. Names are unique."""

    async def call(self, name: str, arguments: Mapping[str, object]) -> str:
        """Call a tool and return what the model is to read.

        The arguments are checked here. Raises ``ToolFailed`` for an unknown tool, wrong arguments,
        and whatever else the model should know. Cancelling the call ends the tool's work.
        """


class _NoTools:
    """A toolbox with nothing in it."""

    @property
    def guidance(self) -> tuple[str, ...]:
        return ()

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return ()

    async def call(self, name: str, arguments: Mapping[str, object]) -> str:
        del arguments
        raise ToolFailed(f"there is no tool {name!r}")


NO_TOOLS: Toolbox = _NoTools()
"""Nothing can be called."""


class Children(Protocol):
    """Asks for other runs on behalf of one (SPEC LANE-8)."""

    async def subagent(self, prompt: str) -> str:
        """Let the same agent work on ``prompt`` in a conversation of its own; its reply.

        Works in the lane ``subagent``. Raises ``ToolFailed`` if it was not let in, or failed.
        """

    async def spawn(self, prompt: str, label: str) -> RunId | None:
        """The same without waiting: its reply comes into this conversation as a message.

        None if nothing can come into this conversation (it ends with this run): wait for the
        subagent instead. Raises ``ToolFailed`` if it was not let in.
        """

    async def delegate(self, agent: AgentName, prompt: str) -> str:
        """Let another agent work on ``prompt`` in the lane ``delegate``; its reply.

        Raises ``ToolFailed`` if there is no such agent, it was not let in, or failed.
        """


class Messenger(Protocol):
    """Sends messages to chats."""

    async def send(self, target: Target, text: str) -> None:
        """Put a message into the outbox, and into the history of that chat.

        It is sent at least once, whatever becomes of the run. Raises ``ToolFailed`` if the channel
        is not there, or the database is away.
        """


class Pins(Protocol):
    """Facts that a conversation keeps until ``/new`` (SPEC AGENT-4)."""

    async def change(self, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> tuple[str, ...]:
        """Store what ``change`` makes of the facts; returns it. Raises ``ToolFailed``."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Where tools are called from, and what the runtime does for them.

    ``target`` is the chat that the run answers, None if there is none. ``attach`` lets a file,
    which has to be in the workspace, be sent with the reply.

    Args:
        jobs: Where jobs are made and changed; None: this run may not.
        asker: As whom it asks there.
        heartbeats: Where its agent's checklist is kept; None: there are no heartbeats here.
        heartbeat_run_done: Takes whether people are to be told of this heartbeat, and what; None:
        it is no
            heartbeat.
        attaching: Held from the look at a file until it is attached: calls of a model run beside
            each other, and people read its files in the order of the calls.
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
    heartbeat_run_done: Callable[[bool, str], None] | None = None
    attaching: asyncio.Lock = field(default_factory=asyncio.Lock)


class ToolboxFactory(Protocol):
    """Creates the toolbox of a run from what its agent may use."""

    def toolbox(self, here: ToolContext) -> Toolbox:
        """The tools of one run."""
