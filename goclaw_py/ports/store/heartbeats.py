"""Heartbeats and their runs (SPEC section 7)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from goclaw_py.heartbeat.models import (
    Heartbeat,
    HeartbeatClaim,
    HeartbeatConfig,
    HeartbeatEvent,
    HeartbeatRun,
    HeartbeatRunEnd,
    PreconditionQuery,
    Undelivered,
)
from goclaw_py.model.ids import AgentName, HeartbeatRunId, NodeId
from goclaw_py.model.messages import OutboundMessage
from goclaw_py.model.outcomes import HeartbeatRunKind
from goclaw_py.model.pagination import Cursor
from goclaw_py.model.run_events import Usage
from goclaw_py.ports.store.outbox import OutboxState


class HeartbeatStore(Protocol):
    """Heartbeats, heartbeat runs, and the events that wait for them.

    A change that makes a run due, or due at another time, sends ``Notice.CRON``. A heartbeat has
    at most one heartbeat run that is not over.
    """

    async def plan_heartbeats(self, plans: Sequence[HeartbeatConfig], *, now: datetime) -> None:
        """Enter what the settings want; heartbeats of agents that it does not name stay.

        The grid begins ``offset`` after the first enabling and stays for ever: ``anchor`` is
        written once. ``next_at`` is kept while the interval stays the same, however long it is
        over; with another interval, and when the heartbeat comes back on, it is the first point of
        the grid that is not over (``anchor`` itself counts). None while it is off, be it by the
        settings or by people.
        """

    async def heartbeats(self, agents: Collection[AgentName] | None = None) -> list[Heartbeat]:
        """How they stand, by name."""

    async def switch_heartbeat(self, agent: AgentName, *, on: bool | None, now: datetime) -> bool:
        """Choose whether it is on; None: the settings decide. False: it is not planned.

        Choosing what holds already changes nothing. A heartbeat run that is in hand goes on.
        """

    async def mute_heartbeat(self, agent: AgentName, until: datetime | None) -> bool:
        """Let it be silent until then; None ends that. False: it is not planned."""

    async def wake_heartbeat(
        self, agent: AgentName, kind: HeartbeatRunKind, *, now: datetime
    ) -> bool:
        """Ask for a heartbeat run as soon as may be. False: it is not planned.

        A wake that waits already is enough: it keeps its time and kind.
        """

    # ---------------------------------------------------------------- when they are due

    async def next_heartbeat_due(
        self, agents: Collection[AgentName], *, wakes: bool = True
    ) -> datetime | None:
        """The earliest time at which a heartbeat run of these can be claimed; it may be over.

        That is one that was given back (when it was given back), ``next_at``, and with ``wakes``
        ``wake_at``, but not before ``WAKES_APART`` after ``began_at``; not of those of which a
        run is in hand.
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
        """Claim what is due, the longest due first, at most one of each agent and ``wakes`` wakes.

        First those that were given back: they go on in their rows, with their kinds, and answer
        what is due by the grid meanwhile. What is due by the grid takes a wake that is due along;
        its ``next_at`` becomes the first point of the grid after ``now``, however many are over. A
        wake moves nothing. Each claim sets ``began_at``,
        but for one that was given back, and makes a row of the log with the status ``RUNNING``; new
        rows get ``ids``, of which there are as many as are wanted. Two nodes never claim the same.
        Raises ``Fenced`` if ``node`` is not alive.
        """

    async def claim_heartbeat_now(
        self, node: NodeId, agent: AgentName, *, now: datetime, heartbeat_run: HeartbeatRunId
    ) -> HeartbeatClaim | None:
        """Claim a heartbeat run by hand (``MANUAL``), whatever is due; None if one is not over.

        Also of a heartbeat that is off. May be repeated after an unknown outcome. A wake that waits
        is answered by it. None if the agent is not planned either. Raises ``Fenced``.
        """

    async def defer_heartbeat(
        self, heartbeat_run: HeartbeatRunId, *, node: NodeId, detail: str
    ) -> None:
        """A heartbeat run in hand is ``DEFERRED``: its agent is busy. Raises ``Fenced``."""

    async def end_heartbeat_run(
        self, end: HeartbeatRunEnd, say: Sequence[OutboundMessage] = (), *, node: NodeId
    ) -> None:
        """End a run that had no run, or whose last run has ended before, and say something.

        One that has ended already stays as it is, and what is said about it falls out. Raises
        ``Fenced`` if it is another node's by now; then nothing happens. ``RunEnd.heartbeat_run``
        does the same together with the end of a run. Of each agent the log keeps the newest 1000.
        """

    async def release_heartbeats(self, ids: Collection[HeartbeatRunId], *, node: NodeId) -> None:
        """Let runs in hand be claimed again, by whoever comes first; they are ``DEFERRED``.

        What a dead node leaves is given back in the same way, but for a run a run of which had
        begun: that one ends ``LOST``. A node that leaves gives all back.
        """

    async def release_unclaimed_heartbeats(
        self, known: Collection[HeartbeatRunId], *, node: NodeId
    ) -> None:
        """Give back what a node has claimed but for what it knows of.

        For when the answer to ``claim_heartbeats`` was lost: nobody would run it while the node
        lives.
        """

    # ---------------------------------------------------------------- what a heartbeat run looks at

    async def look(self, agent: AgentName, *, spent_since: datetime) -> PreconditionQuery:
        """What the checks of a heartbeat run want to know."""

    async def heartbeat_usage(self, agent: AgentName, *, since: datetime) -> Usage | None:
        """What the heartbeat runs that were claimed since then have used; None: nothing."""

    async def alert_known(self, key: str, *, since: datetime) -> OutboxState | None:
        """``SENT`` if an alert with this key was confirmed since then, ``PENDING`` if one waits.

        One of which a message is dead or dropped does not count (SPEC HB-7).
        """

    async def add_event(
        self, agent: AgentName, text: str, *, now: datetime, wake: bool
    ) -> HeartbeatEvent:
        """Keep an event for the next heartbeat run, with ``wake`` one that comes soon.

        Raises ``TooManyEvents`` if ``MAX_EVENTS`` wait, and ``UnknownAgent`` if its heartbeat is
        not planned.
        """

    async def events(self, agent: AgentName) -> list[HeartbeatEvent]:
        """Those that wait, the oldest first."""

    # ---------------------------------------------------------------- what became of them

    async def heartbeat_runs(
        self,
        agent: AgentName | None = None,
        *,
        limit: int = 50,
        outcome: str | None = None,
        before: Cursor | None = None,
    ) -> list[HeartbeatRun]:
        """The log of an agent, or of all, the newest first; only one ``outcome`` as it is shown."""

    async def heartbeat_run(self, heartbeat_run: HeartbeatRunId) -> HeartbeatRun | None:
        """One of them."""

    async def undelivered(
        self, agents: Collection[AgentName], *, since: datetime
    ) -> list[Undelivered]:
        """Alerts that have died since then and of which nobody was told, the oldest first."""

    async def tell_undelivered(
        self, heartbeat_run: HeartbeatRunId, say: Sequence[OutboundMessage], *, now: datetime
    ) -> bool:
        """Tell it somewhere else, once. False: it was told already, and nothing is said.

        With nothing to say it is told to nobody, and not asked for any more.
        """

    async def sweep_heartbeat_runs(self, *, now: datetime) -> int:
        """Delete rows of the log that ended more than 90 days ago, at most 250; how many."""
