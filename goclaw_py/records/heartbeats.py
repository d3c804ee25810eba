"""Heartbeats and their runs (SPEC section 7)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from goclaw_py.core.ids import AgentName, HeartbeatRunId, NodeId
from goclaw_py.core.messages import OutboundMessage
from goclaw_py.core.outcomes import HeartbeatRunKind
from goclaw_py.core.pagination import Cursor
from goclaw_py.core.run_events import Usage
from goclaw_py.records.outbox import OutboxState
from goclaw_py.schedule.heartbeat.models import (
    Heartbeat,
    HeartbeatClaim,
    HeartbeatConfig,
    HeartbeatEvent,
    HeartbeatRun,
    HeartbeatRunEnd,
    PreconditionQuery,
    Undelivered,
)


class HeartbeatStore(Protocol):
    """Heartbeats, heartbeat runs, and the events that wait for them.

    A change of what is due sends ``Notice.CRON``. A heartbeat has at most one unfinished run.
    """

    async def plan_heartbeats(self, plans: Sequence[HeartbeatConfig], *, now: datetime) -> None:
        """Store the heartbeats that the settings configure; those of other agents stay.

        The grid of due times starts ``offset`` after the heartbeat was first enabled and never
        moves: ``anchor`` is written once. While the interval stays the same, ``next_at`` is kept,
        even if it is in the past. With another interval, and when the heartbeat is turned on
        again, it becomes the next point of the grid (``anchor`` included). It is None while the
        heartbeat is off, by the settings or by a person.
        """

    async def heartbeats(self, agents: Collection[AgentName] | None = None) -> list[Heartbeat]:
        """Return heartbeats, ordered by the names of their agents."""

    async def switch_heartbeat(self, agent: AgentName, *, on: bool | None, now: datetime) -> bool:
        """Turn a heartbeat on or off; None lets the settings decide.

        A run in progress finishes. Returns False if the agent has no heartbeat.
        """

    async def mute_heartbeat(self, agent: AgentName, until: datetime | None) -> bool:
        """Mute a heartbeat until then; None unmutes it. False if the agent has no heartbeat."""

    async def wake_heartbeat(
        self, agent: AgentName, kind: HeartbeatRunKind, *, now: datetime
    ) -> bool:
        """Request a heartbeat run now. Returns False if the agent has no heartbeat.

        If a request is waiting already, that one keeps its time and kind.
        """

    async def replan_heartbeats(self, plans: Sequence[HeartbeatConfig], *, now: datetime) -> None:
        """Replace times that only a clock which was ahead of ``now`` can have stored.

        ``next_at`` becomes the next point of the grid if it is further ahead than the interval. The
        last run, a waiting wake and the last checks of checklist items are not after ``now``.
        """

    # ---------------------------------------------------------------- claims

    async def next_heartbeat_due(
        self, agents: Collection[AgentName], *, wakes: bool = True
    ) -> datetime | None:
        """Return the earliest time at which a run can be claimed; it may be in the past.

        That is the release time of a released run, ``next_at``, or with ``wakes`` ``wake_at``, but
        at least ``WAKES_APART`` after ``began_at``. Agents with a run in progress do not count.
        """

    async def claim_heartbeats(
        self,
        node: NodeId,
        agents: Collection[AgentName],
        *,
        now: datetime,
        ids: Sequence[HeartbeatRunId],
        wakes: int,
    ) -> list[HeartbeatClaim]:
        """Claim due heartbeat runs, the longest due first: one per agent, at most ``wakes`` wakes.

        Released runs come first; they continue in their rows with their kinds, and also satisfy
        what became due on the grid since. A run that is due on the grid also satisfies a due wake;
        ``next_at`` becomes the next point of the grid after ``now``, and missed points are
        skipped. A wake does not move ``next_at``.

        Each claim of a new run sets ``began_at`` and creates a row with status ``RUNNING`` and one
        of ``ids``, whose number is the most that is claimed. Two nodes never claim the same run.
        Raises ``Fenced`` if ``node`` is not alive.
        """

    async def claim_heartbeat_now(
        self, node: NodeId, agent: AgentName, *, now: datetime, heartbeat_run: HeartbeatRunId
    ) -> HeartbeatClaim | None:
        """Claim a manual heartbeat run, also if nothing is due or the heartbeat is off.

        It also satisfies a waiting wake. May be repeated after an unknown outcome. Returns None if
        a run is unfinished or the agent has no heartbeat. Raises ``Fenced``.
        """

    async def defer_heartbeat(
        self, heartbeat_run: HeartbeatRunId, *, node: NodeId, detail: str
    ) -> None:
        """Store that a claimed run is ``DEFERRED``: its agent is busy. Raises ``Fenced``."""

    async def end_heartbeat_run(
        self, end: HeartbeatRunEnd, say: Sequence[OutboundMessage] = (), *, node: NodeId
    ) -> None:
        """End a heartbeat run without an agent run in progress, and add ``say`` to the outbox.

        If it has ended already, nothing changes and ``say`` is not stored. Raises ``Fenced`` if it
        belongs to another node. ``RunEnd.heartbeat_run`` does the same together with the end of an
        agent run. Of each agent the newest 1000 heartbeat runs are kept.
        """

    async def release_heartbeats(self, ids: Collection[HeartbeatRunId], *, node: NodeId) -> None:
        """Release claimed runs as ``DEFERRED``, so that any node can claim them.

        The runs of an expired node are released in the same way, except those whose agent run had
        started: they end ``LOST``. A node that shuts down releases all.
        """

    async def release_unclaimed_heartbeats(
        self, known: Collection[HeartbeatRunId], *, node: NodeId
    ) -> None:
        """Release all claims of a node that are not in ``known``.

        This frees claims whose response from ``claim_heartbeats`` was lost; no node would run them
        while this one is alive.
        """

    # ---------------------------------------------------------------- preconditions and events

    async def run_facts(self, agent: AgentName, *, spent_since: datetime) -> PreconditionQuery:
        """Return the facts that the preconditions of a heartbeat run need."""

    async def heartbeat_usage(self, agent: AgentName, *, since: datetime) -> Usage | None:
        """Return the usage of the heartbeat runs claimed since then; None if there is none."""

    async def alert_state(self, key: str, *, since: datetime) -> OutboxState | None:
        """Return whether an alert with this key was delivered since then, or waits (SPEC HB-7).

        ``SENT`` or ``WAITING``; None if there is none. An alert with a failed or dropped message
        does not count.
        """

    async def add_event(
        self, agent: AgentName, text: str, *, now: datetime, wake: bool
    ) -> HeartbeatEvent:
        """Store an event for the next heartbeat run; with ``wake``, request that run now.

        Raises ``TooManyEvents`` if ``MAX_EVENTS`` are waiting, and ``UnknownAgent`` if the agent
        has no heartbeat.
        """

    async def events(self, agent: AgentName) -> list[HeartbeatEvent]:
        """Return the waiting events, the oldest first."""

    # ---------------------------------------------------------------- results

    async def heartbeat_runs(
        self,
        agent: AgentName | None = None,
        *,
        limit: int = 50,
        outcome: str | None = None,
        since: datetime | None = None,
        before: Cursor | None = None,
    ) -> list[HeartbeatRun]:
        """Return heartbeat runs of an agent or of all, the newest first.

        ``outcome`` selects runs by their outcome as it is shown to people; with ``since`` those
        claimed then or later.
        """

    async def heartbeat_run(self, heartbeat_run: HeartbeatRunId) -> HeartbeatRun | None:
        """Return a heartbeat run, or None if it is not stored."""

    async def undelivered(
        self, agents: Collection[AgentName], *, since: datetime
    ) -> list[Undelivered]:
        """Return alerts that failed since then and were not reported yet, the oldest first."""

    async def notify_undelivered(
        self, heartbeat_run: HeartbeatRunId, say: Sequence[OutboundMessage], *, now: datetime
    ) -> bool:
        """Report an undelivered alert in another chat, once.

        Returns False and stores nothing if it was reported before. Without messages it counts as
        reported, and ``undelivered`` does not return it again.
        """

    async def sweep_heartbeat_runs(self, *, now: datetime) -> int:
        """Delete at most 250 heartbeat runs that ended more than 90 days ago; return how many."""
