"""The heartbeat service, as API, CLI, chats and tools see it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from goclaw_py.heartbeat.checklist.checklist import Checklist
from goclaw_py.heartbeat.models import HeartbeatEvent, HeartbeatRun
from goclaw_py.heartbeat.views import DryRunReport, HeartbeatView
from goclaw_py.model.ids import AgentName, HeartbeatRunId
from goclaw_py.model.pagination import Cursor


class NoHeartbeat(StrEnum):
    """Why a heartbeat was not run on request."""

    ALREADY_RUNNING = "already_running"
    OFF = "off"
    """No process runs heartbeats: there is no gateway."""


@dataclass(frozen=True, slots=True)
class HeartbeatStarted:
    """A heartbeat run was started on request."""

    heartbeat_run: HeartbeatRunId


class HeartbeatService(Protocol):
    """Heartbeats by the names of their agents.

    Each method may raise ``StoreUnavailable``, and ``UnknownAgent`` for an agent that is not in the
    settings; those about the checklist ``BadChecklist``, also for a file that cannot be read.
    """

    @property
    def agents(self) -> tuple[AgentName, ...]:
        """All agents, in the order of the settings."""

    async def view(self, agent: AgentName) -> HeartbeatView:
        """How it stands."""

    async def log(
        self,
        agent: AgentName | None,
        *,
        limit: int = 50,
        outcome: str | None = None,
        before: Cursor | None = None,
    ) -> list[HeartbeatRun]:
        """Its runs, or those of all agents, the newest first; see ``HeartbeatRun.outcome``."""

    async def heartbeat_run(self, heartbeat_run: HeartbeatRunId) -> HeartbeatRun | None:
        """One of them."""

    async def run_now(self, agent: AgentName) -> HeartbeatStarted | NoHeartbeat:
        """Let it run now (SPEC HB-11): neither interval nor quiet hours count, the budget does."""

    async def dry_run(self, agent: AgentName) -> DryRunReport:
        """What that would do."""

    async def switch(self, agent: AgentName, *, on: bool | None) -> HeartbeatView:
        """Switch it on or off, over restarts; None: the settings decide again."""

    async def mute(self, agent: AgentName, until: datetime | None) -> HeartbeatView:
        """Let it be silent until then; None ends that."""

    async def add_event(self, agent: AgentName, text: str, *, wake: bool) -> HeartbeatEvent:
        """Tell it something with its next heartbeat run, with ``wake`` as soon as may be.

        Raises ``TooManyEvents``, and ``HeartbeatError`` for a text that is blank or too long.
        """

    async def events(self, agent: AgentName) -> list[HeartbeatEvent]:
        """What it will be told, the oldest first."""

    async def checklist(self, agent: AgentName) -> Checklist:
        """Its HEARTBEAT.md; an empty one if there is no file."""

    async def add_item(self, agent: AgentName, text: str) -> Checklist:
        """Write one more item into it."""

    async def complete_item(
        self, agent: AgentName, number: int, *, expected: str | None = None
    ) -> Checklist:
        """Tick an item off; only in the ``Checklist.version`` that is ``expected``, if one is.

        Raises ``ChecklistChanged`` if it is another one by now.
        """

    async def write_checklist(
        self, agent: AgentName, text: str, *, expected: str | None = None
    ) -> Checklist:
        """Write the whole file anew; only over the version that is ``expected``, if one is.

        Raises ``ChecklistChanged`` if it is another one by now.
        """
