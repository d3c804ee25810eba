"""The schedule tools at work on the real desk for jobs, over a store in memory."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from goclaw_py.agents.tools import Permissions
from goclaw_py.core.ids import AgentName, Owner
from goclaw_py.core.messages import Target
from goclaw_py.core.targets import Maker
from goclaw_py.operations.jobs.models import Requester
from goclaw_py.operations.jobs.operations import JobService
from goclaw_py.records import JobQuery
from goclaw_py.runs.toolbox import Toolbox
from goclaw_py.schedule.jobs.creation import JobCreationRules
from goclaw_py.schedule.jobs.policy import PROFILES, Profile
from goclaw_py.testing.clock import LoopClock
from tests.support.memory_store import MemoryStore
from tests.support.tools import MAIN, ToolHost

ANN = Owner("console:direct:me")
BOB = Owner("console:direct:bob")
KOLKATA = replace(PROFILES["goclaw"], zone="Asia/Kolkata")


def asker(owner: Owner = ANN, maker: Maker = Maker.MODEL) -> Requester:
    chat = owner.rpartition(":")[2]
    return Requester(owner, maker, AgentName("main"), Target("console", "default", chat))


OPERATORS = Requester(None)


@dataclass
class Schedules:
    """A store, and toolboxes for anybody. Virtual time begins at ``testing.clock.START``."""

    workspace: Path
    profile: Profile = KOLKATA
    most: int = 50
    enabled: bool = True
    store: MemoryStore = field(default_factory=MemoryStore)
    service: JobService = field(init=False)

    def __post_init__(self) -> None:
        rules = JobCreationRules(self.profile, enabled=self.enabled, most=self.most)
        self.service = JobService(self.store, LoopClock(), rules)

    def place(self, owner: Owner = ANN) -> ToolHost:
        """From where an owner's runs call tools."""
        return ToolHost(self.workspace, jobs=self.service, asker=asker(owner))

    def tools(self, permissions: Permissions | None = None, owner: Owner = ANN) -> Toolbox:
        return self.place(owner).tools(permissions, MAIN)

    async def call(self, tool: str, /, owner: Owner = ANN, **arguments: Any) -> dict[str, Any]:
        """Call one of the four; ``schedule_`` is omitted of its name."""
        said = await self.tools(owner=owner).call(f"schedule_{tool}", arguments)
        result: dict[str, Any] = json.loads(said)
        return result

    async def create(self, **arguments: Any) -> dict[str, Any]:
        """Make one every hour, if nothing else is said."""
        usual = {"goal": "Look.", "cadence_type": "interval", "cadence_value": "3600"}
        return await self.call("create", **usual | arguments)

    async def stored(self) -> int:
        """How many jobs there are, of all owners."""
        return (await self.service.search(JobQuery(), OPERATORS)).total
