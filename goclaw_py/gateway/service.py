"""The operator's view in a running gateway, which has lanes and runs in progress."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace

from goclaw_py.core.errors import NotFound
from goclaw_py.core.ids import LaneName, SessionKey
from goclaw_py.core.time.clock import Clock
from goclaw_py.gateway.container import Container
from goclaw_py.gateway.store_control import StoreControl
from goclaw_py.gateway.why.sources import Sources
from goclaw_py.operations.control import Resized
from goclaw_py.operations.deliveries.operations import Deliveries
from goclaw_py.operations.nodes.operations import Nodes
from goclaw_py.operations.runs.operations import Runs
from goclaw_py.operations.sessions.live import LiveSessions
from goclaw_py.operations.sessions.lookup import find_session
from goclaw_py.operations.sessions.operations import Sessions
from goclaw_py.operations.settings.operations import SettingsService
from goclaw_py.records import Store
from goclaw_py.runs.events.live import LiveEvent, LiveNow
from goclaw_py.scheduler.snapshots import lane_uses
from goclaw_py.scheduler.views import (
    MAX_LANE_SIZE,
    GatewayStatus,
    LanesView,
    LaneView,
    RunView,
)

log = logging.getLogger(__name__)


class GatewayControl(StoreControl):
    """The same in a running gateway, which also has a state and can stop runs."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        container: Container,
        look: Callable[[], Awaitable[GatewayStatus]],
        settings: SettingsService | None = None,
    ) -> None:
        services = container.job_module.service, container.heartbeats.service
        accounts = lambda: container.policies.accounts  # noqa: E731
        super().__init__(store, clock, *services, chat_rules=accounts, settings=settings)
        self._runs = Runs(store, clock, container.runs)
        self._container = container
        self._dispatcher = container.dispatcher
        self._children = container.children
        self._feed = container.feed
        self._nodes = Nodes(store, clock, container.calls)
        self._deliveries = Deliveries(store, clock, container.meter)
        live = LiveSessions(store, clock, container)
        self._sessions = Sessions(store, clock, self._console_agent, live)
        self._look = look

    async def status(self) -> GatewayStatus:
        return await self._look()

    async def lanes(self) -> LanesView:
        uses = lane_uses(self._dispatcher.lanes(), self._dispatcher.runs())
        return LanesView(self._clock.now(), uses)

    async def resize_lane(self, name: LaneName, concurrency: int) -> Resized:
        if not 1 <= concurrency <= MAX_LANE_SIZE:
            raise ValueError(f"the size of a lane is from 1 to {MAX_LANE_SIZE}: {concurrency}")
        before = self._lane(name).concurrency
        self._dispatcher.resize_lane(name, concurrency)
        log.info("lane_resized", extra={"lane": name, "from": before, "to": concurrency})
        return Resized(before, self._lane(name))

    async def _key(self, session: str) -> SessionKey:
        return await find_session(
            self._store, session, (run.session for run in self._dispatcher.runs())
        )

    async def follow(
        self, session: str | None = None, *, after: str | None = None
    ) -> AsyncGenerator[LiveEvent]:
        key = None if session is None else await self._key(session)
        with self._feed.subscribe(key, after) as events:
            while (missed := events.take()) is not None:
                yield missed
            runs = tuple(run for run in self._dispatcher.runs() if self._belongs(run, key))
            yield LiveNow(self._clock.now(), key, runs, id=events.place)
            async for event in events:
                yield event

    def _sources(self) -> Sources:
        return replace(super()._sources(), container=self._container)

    def _belongs(self, run: RunView, key: SessionKey | None) -> bool:
        return key is None or key in (run.session, self._children.payer(run.id))

    def _lane(self, name: LaneName) -> LaneView:
        lanes = {lane.name: lane for lane in self._dispatcher.lanes()}
        if name not in lanes:
            raise NotFound(f"there is no lane {name!r}; there are: {', '.join(lanes)}")
        return lanes[name]
