"""What the runtime does for tools, recorded; and toolboxes to call them from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from goclaw_py.agents.tools import Permissions, Registry
from goclaw_py.core.errors import ToolFailed
from goclaw_py.core.ids import AgentName, RunId, SessionKey
from goclaw_py.core.messages import OutFile, Target
from goclaw_py.core.outcomes import Trigger
from goclaw_py.operations.heartbeats.operations import HeartbeatService
from goclaw_py.operations.jobs.models import Requester
from goclaw_py.operations.jobs.operations import JobService
from goclaw_py.runs.toolbox import Toolbox, ToolContext

MAIN = AgentName("main")

SCHEDULING = frozenset({"schedule_create", "schedule_search", "schedule_edit", "schedule_delete"})
"""The tools that are there only where there is a desk for jobs."""

SERVICE_TOOLS = SCHEDULING | {"heartbeat", "heartbeat_done"}
"""Those, and the one that is there only where there are heartbeats."""


@dataclass
class RecordingChildren:
    """Notes who was asked for what; answers ``did: <prompt>``."""

    can_announce: bool = True
    refusal: str = ""
    answer: str | None = None
    asked: list[tuple[str, ...]] = field(default_factory=list)

    async def subagent(self, prompt: str, key: str = "") -> str:
        return self._ask("subagent", prompt)

    async def spawn(self, prompt: str, label: str, key: str = "") -> RunId | None:
        if not self.can_announce:
            return None
        self._ask("spawn", prompt, label)
        return RunId("child")

    async def delegate(self, agent: AgentName, prompt: str, key: str = "") -> str:
        return self._ask("delegate", prompt, agent)

    def _ask(self, how: str, prompt: str, *more: str) -> str:
        if self.refusal:
            raise ToolFailed(self.refusal)
        self.asked.append((how, prompt, *more))
        return f"did: {prompt}" if self.answer is None else self.answer


@dataclass
class RecordingSender:
    """Notes what was sent."""

    sent: list[tuple[Target, str]] = field(default_factory=list)

    async def send(self, target: Target, text: str) -> None:
        self.sent.append((target, text))


@dataclass
class StoredPins:
    """Keeps facts."""

    facts: tuple[str, ...] = ()

    async def change(self, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> tuple[str, ...]:
        self.facts = change(self.facts)
        return self.facts


@dataclass
class ToolHost:
    """What tools are called with: a workspace, services and recorded effects."""

    workspace: Path
    children: RecordingChildren = field(default_factory=RecordingChildren)
    post: RecordingSender = field(default_factory=RecordingSender)
    pins: StoredPins = field(default_factory=StoredPins)
    attached: list[OutFile] = field(default_factory=list)
    jobs: JobService | None = None
    asker: Requester | None = None
    heartbeats: HeartbeatService | None = None
    may_change_checklist: bool = True
    trigger: Trigger = Trigger.CHAT

    def here(self, agent: AgentName = MAIN) -> ToolContext:
        return ToolContext(
            run_id=RunId("run-1"),
            session=SessionKey(f"agent:{agent}:console:direct:me"),
            agent=agent,
            trigger=self.trigger,
            target=Target("console", "default", "me"),
            workspace=self.workspace,
            children=self.children,
            post=self.post,
            pins=self.pins,
            attach=self.attached.append,
            jobs=self.jobs,
            asker=self.asker,
            heartbeats=self.heartbeats,
            may_change_checklist=self.may_change_checklist,
        )

    def tools(self, permissions: Permissions | None = None, agent: AgentName = MAIN) -> Toolbox:
        """What an agent with these permissions may call."""
        return Registry({agent: permissions or Permissions()}).toolbox(self.here(agent))

    async def call(self, name: str, /, **arguments: object) -> str:
        """Call one of the tools that every agent has."""
        return await self.tools().call(name, arguments)
