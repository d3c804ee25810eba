"""A control whose heartbeats are real ones too."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

from goclaw_py.app.gateway_config import heartbeat_setup
from goclaw_py.config import load
from goclaw_py.core.ids import MAIN_AGENT, AgentName, HeartbeatRunId
from goclaw_py.core.run_events import Usage
from goclaw_py.core.time.clocks import new_id
from goclaw_py.operations.heartbeats.operations import HeartbeatService
from goclaw_py.records import NO_ACCOUNTS, Node
from goclaw_py.schedule.heartbeat.models import HeartbeatRunEnd, HeartbeatRunStatus
from goclaw_py.schedule.heartbeat.module import service_of
from tests.unit.cli.job_control import NODE, JobControl


class HeartbeatControl(JobControl):
    """With the agents and the checklists of a home folder."""

    def __init__(self, home: Path) -> None:
        super().__init__()
        self._home = home
        self.agents: tuple[AgentName, ...] | None = None
        """Those that it knows; None: those of the settings as they are now."""

    @property
    def heartbeats(self) -> HeartbeatService:
        setup = heartbeat_setup(load(env={"GOCLAW_HOME": str(self._home)}))
        names = setup.policies.keys() if self.agents is None else self.agents
        policies = {agent: setup.policies[agent] for agent in names}
        return service_of(self.store, self.clock, replace(setup, policies=policies), NO_ACCOUNTS)

    def checklist(self, text: str, agent: AgentName = MAIN_AGENT) -> None:
        asyncio.run(self.heartbeats.write_checklist(agent, text))

    def configure(self, text: str) -> None:
        (self._home / "goclaw.toml").write_text(text, "utf-8")

    def mute(self, duration: timedelta) -> None:
        """Keep the agent main silent for so long."""
        asyncio.run(self.heartbeats.mute(MAIN_AGENT, self.clock.at + duration))

    def switch(self, *, on: bool) -> None:
        asyncio.run(self.heartbeats.switch(MAIN_AGENT, on=on))

    def tell(self, event: str) -> None:
        asyncio.run(self.heartbeats.add_event(MAIN_AGENT, event, now=False))

    def heartbeat_rows(self) -> object:

        async def rows() -> object:
            found = await self.store.heartbeats()
            return found, await self.store.heartbeat_runs(), await self.store.events(MAIN_AGENT)

        return asyncio.run(rows())

    def heartbeat_run(self, seconds: float, usd: str, agent: AgentName = MAIN_AGENT) -> None:
        """Let an agent have been asked by a heartbeat run."""

        async def heartbeat_run() -> None:
            now = self.clock.now()
            await self.heartbeats.switch(agent, on=True)
            await self.store.join(Node(NODE, "host", 1, "0", now, now + timedelta(days=1)))
            claimed = await self.store.claim_heartbeat_now(
                NODE, agent, now=now, heartbeat_run=HeartbeatRunId(new_id(self.clock))
            )
            assert claimed is not None
            end = HeartbeatRunEnd(claimed.id, agent, HeartbeatRunStatus.OK, now, attempts=1)
            used = Usage(1, 700, 300, cost_usd=Decimal(usd))
            began = now - timedelta(seconds=seconds)
            end = replace(end, started_at=began, usage=used)
            await self.store.end_heartbeat_run(end, node=NODE)

        asyncio.run(heartbeat_run())
