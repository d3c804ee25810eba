"""A desk for heartbeats that only keeps what it is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from goclaw_py.core.errors import (
    BadChecklist,
    ChecklistChanged,
    GoclawError,
    NotFound,
    UnknownAgent,
)
from goclaw_py.core.ids import MAIN_AGENT, AgentName, HeartbeatRunId
from goclaw_py.core.messages import Target
from goclaw_py.core.outcomes import HeartbeatRunKind
from goclaw_py.core.pagination import Cursor
from goclaw_py.core.targets import Route
from goclaw_py.core.time.clock import Clock
from goclaw_py.operations.heartbeats.operations import HeartbeatService
from goclaw_py.schedule.heartbeat.checklist.checklist import Checklist, parse, with_item
from goclaw_py.schedule.heartbeat.checklist.lines import escaped
from goclaw_py.schedule.heartbeat.decisions import HeartbeatPolicy
from goclaw_py.schedule.heartbeat.models import (
    Heartbeat,
    HeartbeatEvent,
    HeartbeatRun,
    HeartbeatRunStatus,
    HeartbeatStarted,
    NoHeartbeat,
)
from goclaw_py.schedule.heartbeat.views import DryRunReport, HeartbeatView
from goclaw_py.testing.clock import LoopClock

HALF_HOUR = timedelta(minutes=30)


@dataclass
class FakeHeartbeats(HeartbeatService):
    """Heartbeats that never beat by themselves.

    ``items`` are the open items of each agent; ``ticked`` what was ticked off; ``broken`` is
    raised by each method, ``breaks_after`` by those that change something, when it is done.
    """

    clock: Clock = field(default_factory=LoopClock)
    items: dict[AgentName, list[str]] = field(default_factory=lambda: {MAIN_AGENT: []})
    ticked: list[str] = field(default_factory=list)
    prose: str = ""
    interval: timedelta | None = HALF_HOUR
    zone: str = "UTC"
    route: Route = field(default_factory=lambda: Route(Target("telegram", "default", "ann")))
    no_heartbeat_run: NoHeartbeat | None = None
    current: HeartbeatRun | None = None
    is_busy: bool = False
    ran: list[AgentName] = field(default_factory=list)
    broken: GoclawError | None = None
    breaks_after: GoclawError | None = None
    last: HeartbeatRun | None = None
    _hearts: dict[AgentName, Heartbeat] = field(default_factory=dict)

    async def agents(self) -> tuple[AgentName, ...]:
        return tuple(self.items)

    def heart(self, agent: AgentName = MAIN_AGENT) -> Heartbeat:
        """How one stands. Raises ``UnknownAgent``."""
        if self.broken is not None:
            raise self.broken
        if agent not in self.items:
            raise UnknownAgent(agent)
        next_at = None if self.interval is None else self.clock.now() + self.interval
        usual = Heartbeat(agent, self.interval, next_at=next_at)
        return self._hearts.get(agent, usual)

    def change(self, agent: AgentName = MAIN_AGENT, **facts: object) -> None:
        """Store something about one."""
        self._hearts[agent] = replace(self.heart(agent), **facts)  # type: ignore[arg-type]

    async def view(self, agent: AgentName) -> HeartbeatView:
        policy = HeartbeatPolicy(interval=self.interval, zone=self.zone)
        heart, now = self.heart(agent), self.clock.now()
        return HeartbeatView(heart, policy, self.route, now, last=self.last, current=self.current)

    async def log(
        self,
        agent: AgentName | None,
        *,
        limit: int = 50,
        outcome: str | None = None,
        since: datetime | None = None,
        before: Cursor | None = None,
    ) -> list[HeartbeatRun]:
        if self.last is None or limit < 1 or agent not in (None, self.last.agent):
            return []
        if before is not None and self.last.cursor >= before:
            return []
        if since is not None and self.last.claimed_at < since:
            return []
        return [self.last] if outcome in (None, self.last.outcome) else []

    async def heartbeat_run(self, heartbeat_run: HeartbeatRunId) -> HeartbeatRun:
        if self.last is None or self.last.id != heartbeat_run:
            raise NotFound(heartbeat_run)
        return self.last

    async def run_now(self, agent: AgentName) -> HeartbeatStarted | NoHeartbeat:
        self.heart(agent)
        if self.no_heartbeat_run is not None:
            return self.no_heartbeat_run
        self.ran.append(agent)
        now, heartbeat_run = self.clock.now(), HeartbeatRunId(f"beat-{len(self.ran)}")
        self.last = HeartbeatRun(
            heartbeat_run,
            agent,
            HeartbeatRunKind.MANUAL,
            now,
            now,
            HeartbeatRunStatus.OK,
            finished_at=now,
        )
        self._after()
        return HeartbeatStarted(heartbeat_run)

    async def dry_run(self, agent: AgentName) -> DryRunReport:
        self.heart(agent)
        status = HeartbeatRunStatus.DEFERRED if self.is_busy else HeartbeatRunStatus.RUNNING
        return DryRunReport(status, None, "", "\n".join(self.items[agent]), self.route)

    async def switch(self, agent: AgentName, *, on: bool | None) -> HeartbeatView:
        self.change(agent, switched=on)
        self._after()
        return await self.view(agent)

    async def mute(self, agent: AgentName, until: datetime | None) -> HeartbeatView:
        self.change(agent, muted_until=until)
        self._after()
        return await self.view(agent)

    async def add_event(self, agent: AgentName, text: str, *, now: bool) -> HeartbeatEvent:
        raise AssertionError("neither a chat nor an agent tells events")

    async def events(self, agent: AgentName) -> list[HeartbeatEvent]:
        self.heart(agent)
        return []

    async def checklist(self, agent: AgentName) -> Checklist:
        self.heart(agent)
        return checklist(self.items[agent], prose=self.prose)

    async def add_item(self, agent: AgentName, text: str) -> Checklist:
        self.heart(agent)
        self.items[agent].append(parse(with_item("", text)).items[0].text)
        self._after()
        return await self.checklist(agent)

    async def complete_item(
        self, agent: AgentName, number: int, *, version: str | None = None
    ) -> Checklist:
        self.heart(agent)
        if version not in (None, (await self.checklist(agent)).version):
            raise ChecklistChanged
        if not 1 <= number <= len(self.items[agent]):
            raise BadChecklist(f"there is no item {number}")
        self.ticked.append(self.items[agent].pop(number - 1))
        self._after()
        return await self.checklist(agent)

    async def write_checklist(
        self, agent: AgentName, text: str, *, version: str | None = None
    ) -> Checklist:
        raise AssertionError("neither a chat nor an agent writes the whole list")

    def _after(self) -> None:
        error, self.breaks_after = self.breaks_after, None
        if error is not None:
            raise error


def checklist(items: Sequence[str], *, prose: str = "") -> Checklist:
    """A list with these open items below other text."""
    return parse("\n".join([prose, "", *(f"- [ ] {escaped(text)}" for text in items)]))
