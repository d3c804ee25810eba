"""The heartbeat service, as API, CLI, chats and tools see it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from goclaw_py.core.ids import AgentName, HeartbeatRunId
from goclaw_py.core.pagination import Cursor
from goclaw_py.schedule.heartbeat.checklist.checklist import Checklist
from goclaw_py.schedule.heartbeat.models import HeartbeatEvent, HeartbeatRun
from goclaw_py.schedule.heartbeat.views import DryRunReport, HeartbeatView


class NoHeartbeat(StrEnum):
    """The reason why a requested heartbeat run did not start."""

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
        """Return the state of a heartbeat."""

    async def log(
        self,
        agent: AgentName | None,
        *,
        limit: int = 50,
        outcome: str | None = None,
        since: datetime | None = None,
        before: Cursor | None = None,
    ) -> list[HeartbeatRun]:
        """Return heartbeat runs of an agent or of all, the newest first.

        ``outcome`` is a ``HeartbeatRun.outcome``; with ``since`` those claimed then or later.
        """

    async def heartbeat_run(self, heartbeat_run: HeartbeatRunId) -> HeartbeatRun | None:
        """Return a heartbeat run, or None if it is not stored."""

    async def run_now(self, agent: AgentName) -> HeartbeatStarted | NoHeartbeat:
        """Run a heartbeat now, whatever its interval and quiet hours; budgets apply (HB-11)."""

    async def dry_run(self, agent: AgentName) -> DryRunReport:
        """Return what ``run_now`` would do."""

    async def switch(self, agent: AgentName, *, on: bool | None) -> HeartbeatView:
        """Turn a heartbeat on or off permanently; None lets the settings decide."""

    async def mute(self, agent: AgentName, until: datetime | None) -> HeartbeatView:
        """Mute a heartbeat until then; None unmutes it."""

    async def add_event(self, agent: AgentName, text: str, *, wake: bool) -> HeartbeatEvent:
        """Add an event to the next heartbeat run; with ``wake``, request that run now.

        Raises ``TooManyEvents``, and ``HeartbeatError`` for a text that is blank or too long.
        """

    async def events(self, agent: AgentName) -> list[HeartbeatEvent]:
        """Return the events for the next heartbeat run, the oldest first."""

    async def checklist(self, agent: AgentName) -> Checklist:
        """Return the checklist in HEARTBEAT.md; an empty one if there is no file."""

    async def add_item(self, agent: AgentName, text: str) -> Checklist:
        """Append an item to the checklist."""

    async def complete_item(
        self, agent: AgentName, number: int, *, expected: str | None = None
    ) -> Checklist:
        """Check off an item.

        Raises ``ChecklistChanged`` if ``expected`` is given and is not the ``Checklist.version``.
        """

    async def write_checklist(
        self, agent: AgentName, text: str, *, expected: str | None = None
    ) -> Checklist:
        """Replace the whole file.

        Raises ``ChecklistChanged`` if ``expected`` is given and is not the ``Checklist.version``.
        """
