"""The operator's view in a running gateway, which has lanes and runs in progress."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace

from goclaw_py.core.errors import NotFound
from goclaw_py.core.ids import SessionKey
from goclaw_py.core.time.clock import Clock
from goclaw_py.gateway.container import Container
from goclaw_py.gateway.store_control import StoreControl
from goclaw_py.gateway.why.sources import Sources
from goclaw_py.operations.deliveries.operations import Deliveries
from goclaw_py.operations.lanes.operations import Lanes, RunningGateway
from goclaw_py.operations.lookup import only
from goclaw_py.operations.nodes.operations import Nodes
from goclaw_py.operations.runs.operations import Runs
from goclaw_py.operations.sessions.live import LiveSessions
from goclaw_py.operations.sessions.lookup import find_session
from goclaw_py.operations.sessions.operations import Sessions
from goclaw_py.operations.settings.operations import SettingsService
from goclaw_py.records import Store
from goclaw_py.runs.events.live import LiveEvent, LiveNow
from goclaw_py.scheduler.views import GatewayStatus, RunView


class GatewayControl(StoreControl):
    """The same in a running gateway, which also has a state and can stop runs."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        container: Container,
        status: Callable[[], Awaitable[GatewayStatus]],
        settings: SettingsService | None = None,
    ) -> None:
        services = container.job_module.service, container.heartbeats.service
        accounts = lambda: container.policies.accounts  # noqa: E731
        super().__init__(store, clock, *services, chat_rules=accounts, settings=settings)
        self.runs = Runs(store, clock, container.runs)
        self.lanes = Lanes(clock, RunningGateway(container.dispatcher, status))
        self._container = container
        self._dispatcher = container.dispatcher
        self._children = container.children
        self._feed = container.feed
        self.nodes = Nodes(store, clock, container.calls)
        cancel = container.stops.local.cancel_requests_of
        self.deliveries = Deliveries(store, clock, container.meter, cancel)
        live = LiveSessions(store, clock, container)
        self.sessions = Sessions(store, clock, self._console_agent, live)

    async def _followed(self, part: str) -> SessionKey:
        """Return the session that is called so, otherwise that of the run."""
        sessions = {run.id: run.session for run in self._dispatcher.runs()}
        try:
            return await find_session(self._store, part, sessions.values())
        except NotFound:
            sessions |= {run.id: run.session for run in await self._store.find_run(part)}
            runs = [id_ for id_ in sessions if id_.startswith(part)]
            if not runs:
                raise
            return sessions[only(runs, part, str, f"run {part!r}", "runs list")]

    async def follow(
        self, session: str | None = None, *, after: str | None = None
    ) -> AsyncGenerator[LiveEvent]:
        key = None if session is None else await self._followed(session)
        with self._feed.subscribe(key, after) as events:
            while (missed := events.next_event()) is not None:
                yield missed
            runs = tuple(run for run in self._dispatcher.runs() if self._belongs(run, key))
            yield LiveNow(self._clock.now(), key, runs, id=events.place)
            async for event in events:
                yield event

    def _sources(self) -> Sources:
        return replace(super()._sources(), container=self._container)

    def _belongs(self, run: RunView, key: SessionKey | None) -> bool:
        return key is None or key in (run.session, self._children.payer(run.id))
