"""A fake of the heartbeat service: answers from lists, remembers what it was asked.

Texts are such as somebody would choose who wants to fool an operator.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from goclaw_py.core.errors import (
    BadChecklist,
    ChecklistChanged,
    HeartbeatError,
    NotFound,
    TooManyEvents,
    UnknownAgent,
)
from goclaw_py.core.ids import AgentName, HeartbeatRunId, NodeId, RunId
from goclaw_py.core.messages import Target
from goclaw_py.core.outcomes import HeartbeatRunKind
from goclaw_py.core.pagination import Cursor
from goclaw_py.core.run_events import Usage
from goclaw_py.core.targets import Route
from goclaw_py.operations.heartbeats.operations import HeartbeatService
from goclaw_py.schedule.heartbeat.active_hours import ActiveHours
from goclaw_py.schedule.heartbeat.checklist.checklist import Checklist, parse
from goclaw_py.schedule.heartbeat.decisions import HeartbeatPolicy
from goclaw_py.schedule.heartbeat.models import (
    EVENT_CHARS,
    MAX_EVENTS,
    Heartbeat,
    HeartbeatEvent,
    HeartbeatRun,
    HeartbeatRunStatus,
    HeartbeatStarted,
    NoHeartbeat,
    Skip,
)
from goclaw_py.schedule.heartbeat.views import DryRunReport, HeartbeatView
from tests.unit.web.fake_names import behind

AT = datetime(2026, 3, 3, 8, 0, tzinfo=UTC)
"""09:00 in Berlin, a Tuesday."""
MAIN = AgentName("main")
HELPER = AgentName("helper")
CHAT = Target("telegram", "work", "-1005", "7")
USED = Usage(2, 1000, 200, 50, Decimal("0.0123"))

OK = HeartbeatRun(
    id=HeartbeatRunId("019b-ok"), agent=MAIN, kind=HeartbeatRunKind.INTERVAL,
    due_at=AT - timedelta(minutes=30), claimed_at=AT - timedelta(minutes=30),
    status=HeartbeatRunStatus.OK, started_at=AT - timedelta(minutes=30),
    finished_at=AT - timedelta(minutes=29), reply="HEARTBEAT_OK", attempts=1, node=NodeId("node-1"),
    usage=USED, runs=(RunId("run-1"),),
)  # fmt: skip
SKIPPED = replace(
    OK, id=HeartbeatRunId("019b-skipped"), status=HeartbeatRunStatus.SKIPPED, skip=Skip.UNREADABLE,
    detail="it is a folder\n2  ok\x1b[2J\u202e", started_at=None, reply="", attempts=0, usage=None,
    runs=(),
)  # fmt: skip
DEAD = replace(
    OK, id=HeartbeatRunId("019b-dead"), agent=HELPER, kind=HeartbeatRunKind.EVENT,
    status=HeartbeatRunStatus.ALERTED, target=CHAT, delivery="failed",
    undelivered="bot was blocked by the user\x1b[2J",
)  # fmt: skip
RUNNING = replace(
    OK, id=HeartbeatRunId("019b-now"), status=HeartbeatRunStatus.RUNNING, finished_at=None
)
HOURS = ActiveHours(8 * 60, 22 * 60, "Europe/Berlin")
POLICY = HeartbeatPolicy(hours=HOURS, zone="Europe/Berlin")


def view(agent: AgentName, last: HeartbeatRun | None = OK) -> HeartbeatView:
    """A heartbeat that beats every half an hour in Berlin."""
    return HeartbeatView(
        heartbeat=Heartbeat(
            agent,
            timedelta(minutes=30),
            anchor=AT - timedelta(days=1, minutes=3),
            next_at=AT + timedelta(minutes=27),
            began_at=AT - timedelta(minutes=30),
        ),
        policy=POLICY,
        route=Route(CHAT, "the chat used last\x1b[2J"),
        now=AT,
        last=last,
        today=USED,
        month=USED.plus(USED),
    )


class FakeHeartbeats(HeartbeatService):
    """Implements ``HeartbeatService``. Set ``failure`` to make every method raise it."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []
        self.failure: Exception | None = None
        self.views = {MAIN: view(MAIN), HELPER: view(HELPER, DEAD)}
        self.heartbeat_runs = [SKIPPED, OK, DEAD]
        self.told: dict[AgentName, list[HeartbeatEvent]] = {MAIN: [], HELPER: []}
        self.texts: dict[AgentName, list[str]] = {MAIN: ["look at the mail\x1b[2J"], HELPER: []}
        self.hand: HeartbeatStarted | NoHeartbeat = HeartbeatStarted(RUNNING.id)
        self.coming: list[HeartbeatRun] = [RUNNING, replace(OK, id=RUNNING.id)]
        """What a heartbeat run by hand looks like, look after look; the last one stays."""
        self.report = DryRunReport(
            HeartbeatRunStatus.RUNNING, None, "", "- look at the mail\n- \x1b[2J", Route(CHAT)
        )

    async def agents(self) -> tuple[AgentName, ...]:
        return tuple(self.views)

    async def view(self, agent: AgentName) -> HeartbeatView:
        self._called("view", agent)
        return replace(self.views[agent], events=len(self.told[agent]))

    async def log(
        self,
        agent: AgentName | None,
        *,
        limit: int = 50,
        outcome: str | None = None,
        since: datetime | None = None,
        before: Cursor | None = None,
    ) -> list[HeartbeatRun]:
        self._called("log", agent, limit, outcome, *([since] if since else []), known=agent)
        runs = [run for run in behind(self.heartbeat_runs, before) if agent in (None, run.agent)]
        return [run for run in runs if outcome in (None, run.outcome)][:limit]

    async def heartbeat_run(self, heartbeat_run: HeartbeatRunId) -> HeartbeatRun:
        self._called("heartbeat_run", heartbeat_run, known=None)
        if heartbeat_run == RUNNING.id and self.coming:
            return self.coming.pop(0) if len(self.coming) > 1 else self.coming[0]
        for one in self.heartbeat_runs:
            if one.id == heartbeat_run:
                return one
        raise NotFound(f"there is no heartbeat run {heartbeat_run!r}")

    async def run_now(self, agent: AgentName) -> HeartbeatStarted | NoHeartbeat:
        self._called("run_now", agent)
        return self.hand

    async def dry_run(self, agent: AgentName) -> DryRunReport:
        self._called("dry_run", agent)
        return self.report

    async def switch(self, agent: AgentName, *, on: bool | None) -> HeartbeatView:
        self._called("switch", agent, on)
        next_at = None if on is False else AT + timedelta(minutes=27)
        return self._change(agent, switched=on, next_at=next_at)

    async def mute(self, agent: AgentName, until: datetime | None) -> HeartbeatView:
        self._called("mute", agent, until)
        return self._change(agent, muted_until=until)

    async def add_event(self, agent: AgentName, text: str, *, now: bool) -> HeartbeatEvent:
        self._called("add_event", agent, text, now)
        if not text.strip():
            raise HeartbeatError("an event needs a text")
        if len(text) > EVENT_CHARS:
            raise HeartbeatError(f"an event has at most {EVENT_CHARS} characters")
        if len(self.told[agent]) >= MAX_EVENTS:
            raise TooManyEvents(agent, MAX_EVENTS)
        event = HeartbeatEvent(len(self.told[agent]) + 1, agent, text.strip(), AT)
        self.told[agent].append(event)
        return event

    async def events(self, agent: AgentName) -> list[HeartbeatEvent]:
        self._called("events", agent)
        return list(self.told[agent])

    async def checklist(self, agent: AgentName) -> Checklist:
        self._called("checklist", agent)
        return parse("".join(f"- [ ] {text}\n" for text in self.texts[agent]))

    async def add_item(self, agent: AgentName, text: str) -> Checklist:
        self._called("add_item", agent, text)
        if not text.strip():
            raise BadChecklist("an item needs a text")
        self.texts[agent].append(text)
        return await self.checklist(agent)

    async def complete_item(
        self, agent: AgentName, number: int, *, version: str | None = None
    ) -> Checklist:
        self._called("complete_item", agent, number, version)
        await self._as_expected(agent, version)
        if not 1 <= number <= len(self.texts[agent]):
            raise BadChecklist(f"there is no item {number}")
        del self.texts[agent][number - 1]
        return await self.checklist(agent)

    async def write_checklist(
        self, agent: AgentName, text: str, *, version: str | None = None
    ) -> Checklist:
        self._called("write_checklist", agent, text, version)
        await self._as_expected(agent, version)
        self.texts[agent] = [line.removeprefix("- [ ] ") for line in text.splitlines()]
        return await self.checklist(agent)

    async def _as_expected(self, agent: AgentName, version: str | None) -> None:
        if version not in (None, (await self.checklist(agent)).version):
            raise ChecklistChanged

    def _change(self, agent: AgentName, **changes: object) -> HeartbeatView:
        seen = self.views[agent]
        heartbeat = replace(seen.heartbeat, **changes)  # type: ignore[arg-type]
        self.views[agent] = replace(seen, heartbeat=heartbeat)
        return self.views[agent]

    def _called(self, *call: object, known: object = MAIN) -> None:
        self.calls.append(call)
        if self.failure is not None:
            raise self.failure
        agent = call[1] if known is not None else None
        if agent is not None and agent not in self.views:
            raise UnknownAgent(str(agent))
