"""Status, readiness and metrics of a gateway, collected from its parts."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import starmap
from typing import Final

from goclaw_py.app.database import Database
from goclaw_py.chat.channel import Channel
from goclaw_py.chat.inbound.provider_outage import OutageView
from goclaw_py.cluster.membership import Membership
from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.ids import AgentName
from goclaw_py.core.text import count
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.time.texts import lasting
from goclaw_py.gateway.container import Container
from goclaw_py.observability.loop_lag import LoopLag
from goclaw_py.observability.prometheus import Metrics
from goclaw_py.observability.readiness import Exposition, Readiness, Vitals, judge
from goclaw_py.records import Node, Place
from goclaw_py.scheduler.snapshots import slow_waits
from goclaw_py.scheduler.views import Backlog, ChannelState, ChannelView, GatewayStatus, PeerView

PATIENCE_S: Final = 1.0
"""How long a quick status waits for a database that was just reachable."""


class Snapshots:
    """Creates ``GatewayStatus`` objects; ``more`` returns warnings of other parts."""

    def __init__(
        self,
        clock: Clock,
        container: Container,
        database: Database,
        cluster: Membership,
        more: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        self._clock = clock
        self._container = container
        self._database = database
        self._cluster = cluster
        self._more = more
        self._asking: asyncio.Task[Backlog | None] | None = None

    async def full(self) -> GatewayStatus:
        """Return the complete status; waits for the database up to its timeout."""
        try:
            return self._made(await self._container.backlog())
        except StoreUnavailable:
            return self._made(None)

    async def quick(self) -> GatewayStatus:
        """Return the status without waiting for an unavailable database; then without backlog.

        At most one such database query runs at a time.
        """
        if not self._database.reachable:
            return self._made(None)
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask(), name="backlog")
            self._asking.add_done_callback(self._on_answer)
        asking = self._asking
        # Not cancelled when it is slow: releasing the connection may take even longer.
        await asyncio.wait({asking}, timeout=PATIENCE_S)
        return self._made(asking.result() if asking.done() else None)

    def _on_answer(self, _task: asyncio.Task[Backlog | None]) -> None:
        self._asking = None

    async def _ask(self) -> Backlog | None:
        try:
            return await self._container.backlog()
        except StoreUnavailable:
            return None

    def _made(self, backlog: Backlog | None) -> GatewayStatus:
        container, node = self._container, self._cluster.node
        trouble = self._database.trouble
        away = "" if backlog is not None else ", unreachable"
        channels = container.supervisor.views()
        lanes, runs = container.dispatcher.lanes(), container.runs()
        return GatewayStatus(
            node=node.id,
            release=node.release,
            pid=os.getpid(),
            started_at=node.started_at,
            now=self._clock.now(),
            database=f"{self._database.kind}{away}",
            draining=container.dispatcher.draining,
            lanes=lanes,
            runs=runs,
            channels=tuple(_seen_with(trouble, view) for view in channels),
            backlog=backlog,
            warnings=(
                *_warnings(backlog, channels, trouble),
                *self._cluster.warnings(),
                *self._more(),
                *container.unattended.warnings(),
                *container.job_module.warnings(),
                *container.heartbeats.warnings(),
                *(_outage(view) for view in container.outages.views()),
                *starmap(_estimated, container.estimated.items()),
                *slow_waits(lanes, runs),
            ),
            peers=tuple(_peer(one, self._clock.now()) for one in self._cluster.others()),
        )


class GatewayHealth:
    """Implements ``Health``."""

    def __init__(
        self,
        container: Container,
        channels: Mapping[Place, Channel],
        database: Database,
        snapshots: Snapshots,
        metrics: Metrics,
    ) -> None:
        self._container = container
        self._channels = channels
        self._database = database
        self._snapshots = snapshots
        self._metrics = metrics
        self.lag = LoopLag()

    def readiness(self) -> Readiness:
        """Return the readiness without a database query, because anyone may poll it often."""
        views = self._container.supervisor.views()
        return judge(
            Vitals(
                database=self._database.reachable,
                channels=[
                    view for view in views if not self._channels[view.name, view.account].trusted
                ],
                lag_s=self.lag.worst_s,
                draining=self._container.dispatcher.draining,
            )
        )

    async def metrics(self, *, openmetrics: bool) -> Exposition:
        status = await self._snapshots.quick()
        return self._metrics.exposition(status, openmetrics=openmetrics)


def _peer(node: Node, now: datetime) -> PeerView:
    return PeerView(
        id=node.id,
        machine=node.machine,
        pid=node.pid,
        release=node.release,
        health=node.health(now),
        running=node.state.running,
        waiting=node.state.waiting,
        receives=tuple(node.state.places),
    )


def _seen_with(trouble: str, view: ChannelView) -> ChannelView:
    """Return a channel's status with the database problem, which idle channels do not notice."""
    if not trouble or view.state is not ChannelState.CONNECTED:
        return view
    detail = f"messages cannot be committed: {trouble}"
    return replace(view, state=ChannelState.RECONNECTING, detail=detail)


def _estimated(agent: AgentName, model: str) -> str:
    return (
        f"agent {agent}: the provider of {model} does not report how many tokens it uses, or "
        "reports impossible numbers; they are estimated, and so are its budgets"
    )


def _outage(view: OutageView) -> str:
    kept = f"{count(view.kept, 'message')} kept"
    down = f"its provider has been down for {lasting(timedelta(seconds=view.for_s))}"
    return f"agent {view.agent}: {down}, {kept}: {view.cause}"


def _warnings(
    backlog: Backlog | None, channels: tuple[ChannelView, ...], trouble: str
) -> tuple[str, ...]:
    warnings = [
        f"{view.name}/{view.account}: {text}"
        for view in channels
        for text in (view.detail, view.warning)
        if text
    ]
    if backlog is None or trouble:
        why = trouble or "the database cannot be reached"
        warnings.append(f"received messages cannot be stored and acknowledged: {why}")
    if backlog is None:
        return tuple(warnings)
    undecided, asking = backlog.undecided, backlog.approvals
    for number, noun, what, command in (
        (backlog.dead, "message", "could not be delivered", "outbox list --state dead"),
        (backlog.unanswered, "message", "got no answer", "inbox list"),
        (undecided, "group", f"{_wait(undecided)} for your decision", "groups list"),
        (asking, "tool call", f"{_wait(asking)} for an approval", "approvals list"),
    ):
        if number:
            warnings.append(f"{count(number, noun)} {what}; see: goclaw {command}")
    return tuple(warnings)


def _wait(number: int) -> str:
    return "waits" if number == 1 else "wait"
