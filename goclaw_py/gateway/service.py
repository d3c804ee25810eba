"""The operator's view in a running gateway, which has lanes and runs in progress."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace

from goclaw_py.core.display_names import KnownNames
from goclaw_py.core.errors import NotFound
from goclaw_py.core.ids import LaneName, SessionKey
from goclaw_py.core.time.clock import Clock
from goclaw_py.gateway import conversations
from goclaw_py.gateway.container import Container
from goclaw_py.gateway.session_messages import Submissions
from goclaw_py.gateway.store_control import StoreControl
from goclaw_py.gateway.why.sources import Sources
from goclaw_py.operations.control import NodesView, QueueView, Resized, Submitted
from goclaw_py.operations.deliveries.operations import Deliveries
from goclaw_py.operations.runs.operations import Runs
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
    StopReport,
)

log = logging.getLogger(__name__)

_ENDS_WITHIN_S = 15.0
"""How long the deletion of a conversation waits for its runs: longer than ``cancel_grace``."""


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
        self._stops = container.stops
        self._feed = container.feed
        self._calls = container.calls
        self._deliveries = Deliveries(store, clock, container.meter)
        self._node = container.node
        self._submissions = Submissions(store, clock, container)
        self._look = look

    async def status(self) -> GatewayStatus:
        return await self._look()

    def _have_read(self, known: KnownNames) -> None:
        self._container.names.add(known)

    async def nodes(self) -> NodesView:
        return replace(await super().nodes(), here=self._node())

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

    async def queue(self, key: str) -> QueueView:
        found = await self._find(key)
        live = [run for run in self._dispatcher.runs() if run.session == found]
        return await self._queue(found, live, self._dispatcher.policy(found))

    async def follow(
        self, session: str | None = None, *, after: str | None = None
    ) -> AsyncGenerator[LiveEvent]:
        key = None if session is None else await self._find(session)
        with self._feed.subscribe(key, after) as events:
            while (missed := events.take()) is not None:
                yield missed
            runs = tuple(run for run in self._dispatcher.runs() if self._belongs(run, key))
            yield LiveNow(self._clock.now(), key, runs, id=events.place)
            async for event in events:
                yield event

    async def stop(self, session: SessionKey, *, everything: bool) -> StopReport:
        return await self._stops.stop_session(session, everything=everything)

    async def send_message(self, key: str, text: str, *, queue: bool) -> Submitted:
        return await self._submissions.send(key, text, queue=queue)

    async def reset(self, key: SessionKey) -> None:
        await self._stops.start_new_session(key)

    async def delete(self, key: SessionKey) -> None:
        session = await self.session(key)
        chat = conversations.deletable_chat(session.key)
        await self.reset(session.key)
        await conversations.delete(self._store, session.key, wait_s=_ENDS_WITHIN_S)
        self._container.gateway.forget_title(chat)

    def _sources(self) -> Sources:
        return replace(super()._sources(), container=self._container)

    async def _find(self, key: str) -> SessionKey:
        """Return a session's key; one whose first request waits is not stored yet."""
        keys = {run.session for run in self._dispatcher.runs()}
        if key in keys or await self._store.session(SessionKey(key)) is not None:
            return SessionKey(key)
        return await self.find_session(key, keys)

    def _belongs(self, run: RunView, key: SessionKey | None) -> bool:
        return key is None or key in (run.session, self._children.payer(run.id))

    def _lane(self, name: LaneName) -> LaneView:
        lanes = {lane.name: lane for lane in self._dispatcher.lanes()}
        if name not in lanes:
            raise NotFound(f"there is no lane {name!r}; there are: {', '.join(lanes)}")
        return lanes[name]
