"""Status, readiness and metrics of a gateway, collected from its parts."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import starmap
from typing import Final
from urllib.parse import urlencode

from goclaw_py.app.database import Database
from goclaw_py.chat.channel import Channel
from goclaw_py.chat.inbound.provider_outage import OutageView
from goclaw_py.cluster.membership import Membership
from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.ids import AgentName
from goclaw_py.core.text import count
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.time.texts import rough
from goclaw_py.gateway.container import Container
from goclaw_py.observability.loop_lag import LoopLag
from goclaw_py.observability.prometheus import Metrics
from goclaw_py.observability.readiness import Exposition, Readiness, Vitals, judge
from goclaw_py.records import Node, Place
from goclaw_py.scheduler.operator_warnings import OperatorWarning, names_text, refusals_text
from goclaw_py.scheduler.snapshots import slow_waits
from goclaw_py.scheduler.views import (
    Backlog,
    ChannelState,
    ChannelView,
    GatewayStatus,
    PeerView,
    ProviderView,
)

PATIENCE_S: Final = 1.0
"""How long a quick status waits for a database that was just reachable."""


class Snapshots:
    """Creates ``GatewayStatus`` objects.

    ``more`` returns warnings of other parts, ``address`` where the dashboard is served.
    """

    def __init__(
        self,
        clock: Clock,
        container: Container,
        database: Database,
        cluster: Membership,
        more: Callable[[], tuple[OperatorWarning, ...]] = tuple,
        address: Callable[[], str] = str,
    ) -> None:
        self._clock = clock
        self._container = container
        self._database = database
        self._cluster = cluster
        self._more = more
        self._address = address
        self._refusals: tuple[tuple[str, str], ...] = ()
        """Chats to which messages could not be delivered, and why."""
        self._unanswered: tuple[str, ...] = ()
        """Chats whose messages got no answer."""
        self._asking: asyncio.Task[Backlog | None] | None = None

    async def full(self) -> GatewayStatus:
        """Return the complete status; waits for the database up to its timeout."""
        return self._made(await self._ask())

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
            now = self._clock.now()
            live = (node for node in self._cluster.others() if node.is_live(now))
            backlog = await self._container.backlog(
                place for node in live for place in node.state.places
            )
            problems = self._container.problem_chats
            self._refusals = await problems.refusals(backlog.failed)
            self._unanswered = await problems.unanswered(backlog.unanswered)
            runs = self._container.runs()
            if slow_waits(self._container.dispatcher.lanes(), runs):
                await self._container.find_names({run.session for run in runs})
        except StoreUnavailable:
            return None
        return backlog

    def _made(self, backlog: Backlog | None) -> GatewayStatus:
        container, node = self._container, self._cluster.node
        trouble = self._database.trouble
        away = "" if backlog is not None else ", unreachable"
        channels = container.supervisor.views()
        lanes, runs = container.dispatcher.lanes(), container.runs()
        outages = {view.agent: view for view in container.outages.views()}
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
                *_stored(backlog, trouble),
                *_channels(channels),
                *(() if backlog is None else _backlog(backlog, self._refusals, self._unanswered)),
                *self._cluster.warnings(),
                *self._more(),
                *container.unattended.warnings(),
                *container.job_module.warnings(),
                *container.heartbeats.warnings(),
                *map(_outage, outages.values()),
                *starmap(_estimated, container.estimated.items()),
                *slow_waits(lanes, runs, container.names.of),
            ),
            peers=tuple(_peer(one, self._clock.now()) for one in self._cluster.others()),
            providers=tuple(
                ProviderView(agent, found.for_s, found.kept, found.cause)
                if (found := outages.get(agent))
                else ProviderView(agent)
                for agent in container.agents
            ),
            address=self._address(),
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


def _estimated(agent: AgentName, model: str) -> OperatorWarning:
    return OperatorWarning(
        "gateway.usage_estimated",
        f"Agent {agent}",
        f"has a provider that does not report how many tokens {model} uses, or reports impossible "
        "numbers; they are estimated, and so are its budgets",
        "/usage",
        "goclaw usage --by agent",
    )


def _outage(view: OutageView) -> OperatorWarning:
    down = rough(view.for_s)
    return OperatorWarning(
        "gateway.outage",
        f"Agent {view.agent}",
        f"cannot answer: its provider has been down for {down}, "
        f"{count(view.kept, 'message')} kept: {view.cause}",
        "/health#providers",
        "goclaw doctor",
    )


def _channels(channels: tuple[ChannelView, ...]) -> Iterator[OperatorWarning]:
    for view in channels:
        begin = f"channel.{view.state.value}", f"Channel {view.name}/{view.account}"
        if view.detail:
            words = f"is {_STATES.get(view.state, view.state.value)}: {view.detail}"
            yield OperatorWarning(*begin, words, "/health#channels", "goclaw doctor")
        if view.warning:
            begin = "channel.warning", begin[1]
            words = f"has a problem: {view.warning}"
            yield OperatorWarning(*begin, words, "/health#channels", "goclaw doctor")


_STATES: Final = {
    ChannelState.WAITING: "waiting for its turn",
    ChannelState.CONFLICT: "in conflict with another program",
    ChannelState.UNAUTHORIZED: "refused by its server",
}
"""The states of channels whose name is no word for people."""


def _stored(backlog: Backlog | None, trouble: str) -> Iterator[OperatorWarning]:
    if backlog is None or trouble:
        yield OperatorWarning(
            "gateway.database",
            "The database",
            "does not store messages, so channels do not acknowledge them: "
            f"{trouble or 'it cannot be reached'}",
            "/health#database",
            "goclaw doctor",
        )


def _backlog(
    backlog: Backlog, refusals: tuple[tuple[str, str], ...], unanswered: tuple[str, ...]
) -> Iterator[OperatorWarning]:
    for one in backlog.unserved:
        kinds = {"incoming": one.incoming, "outgoing": one.outgoing}
        parts = " and ".join(f"{number:,} {kind}" for kind, number in kinds.items() if number)
        number = one.incoming + one.outgoing
        query = {"show": "waiting", "channel": one.channel, "account": one.account}
        yield OperatorWarning(
            "gateway.unserved",
            count(number, "message"),
            f"({parts}) {_wait(number)} for {one.channel}/{one.account}, which no live node has",
            f"/deliveries?{urlencode(query)}",
            f"goclaw deliveries list --state waiting --channel {one.channel}",
        )
    if backlog.failed:
        reasons = f": {refusals_text(refusals)}" if refusals else ""
        yield OperatorWarning(
            "gateway.dead_deliveries",
            count(backlog.failed, "message"),
            f"could not be delivered{reasons}",
            "/deliveries?direction=outgoing",
            "goclaw deliveries list --state failed",
        )
    if backlog.unanswered:
        whose = f"of {names_text(unanswered)} " if unanswered else ""
        yield OperatorWarning(
            "gateway.unanswered",
            count(backlog.unanswered, "message"),
            f"{whose}got no answer, because the run failed",
            "/deliveries?direction=incoming",
            "goclaw deliveries incoming list",
        )
    if backlog.undecided:
        yield OperatorWarning(
            "gateway.undecided",
            count(backlog.undecided, "group"),
            f"{_wait(backlog.undecided)} for your decision: may the agent listen there?",
            "/people#groups",
            "goclaw people groups list",
        )
    if backlog.approvals:
        yield OperatorWarning(
            "gateway.approvals",
            count(backlog.approvals, "tool call"),
            f"{_wait(backlog.approvals)} for an approval",
            "/approvals",
            "goclaw approvals list",
        )


def _wait(number: int) -> str:
    return "waits" if number == 1 else "wait"
