"""The gateway service: connects the parts and runs them in one task group."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from importlib.metadata import version
from typing import Any

from goclaw_py.app.apply_settings import SettingsApplier
from goclaw_py.app.banner import banner
from goclaw_py.app.cluster_settings import settings_digest
from goclaw_py.app.database import Database
from goclaw_py.app.gateway_config import gateway_config
from goclaw_py.app.listeners import WebListener
from goclaw_py.app.loop import end, unless
from goclaw_py.app.parts import Parts, close_part
from goclaw_py.app.status import GatewayHealth, Snapshots
from goclaw_py.app.systemd import NO_MANAGER, Manager
from goclaw_py.chat.terminals import Terminals
from goclaw_py.cluster.membership import Membership
from goclaw_py.cluster.rpc import DRAIN, Facts
from goclaw_py.config.models import Settings
from goclaw_py.core.concurrency import WakeEvent
from goclaw_py.core.errors import StoreError, StoreUnavailable
from goclaw_py.core.ids import NodeId
from goclaw_py.core.retry import retry_until_available
from goclaw_py.core.session_keys import CONSOLE, DEFAULT_ACCOUNT
from goclaw_py.core.time.clocks import SharedClock
from goclaw_py.core.web_links import WEB_PLACE
from goclaw_py.gateway.container import Container
from goclaw_py.gateway.service import GatewayControl
from goclaw_py.observability.prometheus import Metrics
from goclaw_py.operations.control import Control
from goclaw_py.operations.settings.live import LiveSettings
from goclaw_py.operations.settings.operations import SettingsService
from goclaw_py.records import NodeState, Notice, RecoveryReport, Store
from goclaw_py.records.bound import bind
from goclaw_py.runs.tracing_port import NO_SPANS, Tracer
from goclaw_py.schedule.retention import delete_expired
from goclaw_py.web.command_line import from_commands
from goclaw_py.web.front import ApiOrDashboard, WebAccess, tcp_server
from goclaw_py.web.on_demand import AppsOnDemand, WebApps
from goclaw_py.web.server import HttpServer
from goclaw_py.web.sockets import UnixListener
from goclaw_py.web.tcp import url_of

log = logging.getLogger(__name__)

Front = Callable[[Control, Terminals], Awaitable[bool | None]]
"""What runs in the foreground; True: it has waited long enough for the runs in progress."""
"""A function that runs in the foreground of a gateway."""

RELEASE = version("goclaw_py")
_PENDING_POLL_S = 2.0
_HAND_OVER_S = 0.1
"""How often a process that shuts down looks for sessions to hand over to other nodes."""
_LAST_WORDS_S = 5.0
_GIVE_UP_S = 10.0
_RESTART_S = 5.0
_ANSWERED_S = 0.5


class Service:
    """One gateway over an open store."""

    def __init__(
        self,
        settings: Settings,
        parts: Parts,
        database: Database,
        store: Store,
        spans: Tracer = NO_SPANS,
        manager: Manager = NO_MANAGER,
    ) -> None:
        self._manager = manager
        self._settings = settings
        self._parts = parts
        self._database = database
        self._store = store
        self._clock = clock = SharedClock()
        self._audit_kept = timedelta(seconds=settings.audit.retention_s)
        self._pending = WakeEvent()
        self._people = WakeEvent()
        self._lost = asyncio.Event()
        self._ending = False
        self._apps: AppsOnDemand | None = None
        self._address = ""
        self._cluster = Membership(
            store,
            clock,
            RELEASE,
            on_recovery=self._on_recovery,
            on_lost=self._on_lost,
            state=self._state,
            before_release=lambda: self._container.release_former(),  # noqa: PLW0108 - built later
        )
        metrics = Metrics({name for name, _ in parts.channels}, settings.agents)
        scheduler, deps = gateway_config(settings, parts, store, clock)
        deps = replace(deps, spans=spans, meter=metrics)
        bound = bind(store, lambda: self._cluster.node.id, self._cluster.live)
        self._container = container = Container(bound, clock, scheduler, deps)
        self._applier = SettingsApplier(settings, deps, container)
        self._live_settings = live = LiveSettings(settings, store, self._applier)
        # Edits are the same on all nodes, as soon as these have read them.
        self._digest = settings_digest(live.listed)
        snapshots = Snapshots(
            clock,
            container,
            database,
            self._cluster,
            lambda: (*live.warnings(), *self._applier.warnings()),
            lambda: self._address,
        )
        self._health = GatewayHealth(container, parts.channels, database, snapshots, metrics)
        edits = SettingsService(live, store, clock, lambda: database.trouble)
        control = GatewayControl(store, clock, container, snapshots.full, edits)
        self.control: Control = container.audit.control(control)
        self._signing_in = container.audit.sign_ins(store)
        store.on_notice(self._on_notice)

    def name_of(self, session: str) -> str | None:
        """Return the display name of a session where this process has it; without a query."""
        return self._container.names.of(session)

    async def run(
        self,
        listener: UnixListener,
        stop: asyncio.Event,
        hurry: asyncio.Event,
        greet: Callable[[Iterable[str]], None],
        front: Front | None,
        web: WebListener | None = None,
    ) -> None:
        """Run until ``stop`` is set or ``front`` returns.

        ``greet`` is called once, with what to tell the person when the gateway is ready.
        ``web`` serves the webhooks of channels, and the API if the settings enable it.
        """
        try:
            if not await unless(stop, self._come_up()):
                return
            servers = self._servers(listener, web)
            on_ready = partial(self._on_ready, greet, web, chats_here=front is not None)
            await self._work(servers, stop, hurry, on_ready, front)
        finally:
            await self._leave()

    def _servers(self, listener: UnixListener, web: WebListener | None) -> list[HttpServer]:
        """Create the API server on the local socket and, with ``web``, the server on TCP."""
        access = None
        if web is not None and web.access is not None:
            access = web.access.with_store(self._signing_in)
            self._address = url_of(web.socket)
        self._apps = apps = AppsOnDemand(partial(self._make_apps, access))
        servers = [HttpServer(from_commands(apps.api), listener.socket, on_stop=apps.close)]
        if web is not None:
            pages, hooks = ApiOrDashboard(apps.api, apps.site), self._parts.hooks
            server = tcp_server(web.socket, hooks, pages, access, apps.guests, on_stop=apps.close)
            servers.append(server)
        return servers

    def _make_apps(self, access: WebAccess | None) -> WebApps:
        """Create the API and, with ``access``, the pages. Imports the web framework."""
        from goclaw_py.web import apps  # noqa: PLC0415 - takes 1 s

        parts, settings = self._parts, self._settings
        api = apps.make_api(
            self.control,
            parts.terminals,
            release=RELEASE,
            health=self._health,
            logs=parts.logs,
            agents=settings.agents,
        )
        closing = apps.closing_of(api)
        if access is None:
            return WebApps(api, closing)
        agents = self._applier.models
        given = apps.SiteParts(
            parts.read,
            agents,
            {name: settings.workspace(name) for name in agents},
            parts.uploads,
            parts.rules[CONSOLE, DEFAULT_ACCOUNT].agent,
        )
        guest = parts.rules[WEB_PLACE].agent
        guests = apps.make_guest_site(
            self.control,
            parts.guest_terminals,
            self._signing_in,
            access,
            parts=replace(given, uploads=parts.guest_uploads, default=guest),
        )
        site = apps.make_site(self.control, api, access, health=self._health, parts=given)
        return WebApps(api, closing, site, guests)

    async def _come_up(self) -> bool:
        """Join the cluster and claim waiting messages; waits while the database is unavailable."""
        await self._cluster.join()
        await retry_until_available(self._live_settings.refresh)
        await retry_until_available(self._container.roles.refresh)
        await retry_until_available(self._container.claim_pending)
        return True

    async def _work(
        self,
        servers: list[HttpServer],
        stop: asyncio.Event,
        hurry: asyncio.Event,
        on_ready: Callable[[], None],
        front: Front | None,
    ) -> None:
        failure: Exception | None = None

        async def drain(_: Facts) -> Facts:
            log.info("shutdown_requested")
            # Only after the reply to this call has been stored.
            asyncio.get_running_loop().call_later(_ANSWERED_S, stop.set)
            return {}

        self._container.calls.serve(DRAIN, drain)
        async with asyncio.TaskGroup() as group:
            background = [
                group.create_task(_always(work), name=_name(work)) for work in self._duties()
            ]
            background += [group.create_task(server.run(), name="server") for server in servers]
            receiving = group.create_task(self._receive(), name="receiving")
            on_ready()
            try:
                await self._until_end(stop, front)
            except Exception as error:
                # After any error in the foreground, still shut down gracefully.
                failure = error
            log.info("shutdown_started")
            self._manager.stopping()
            receiving.cancel()
            await self._wind_down(hurry)
            if stuck := await end([receiving, *background], every_s=_GIVE_UP_S, times=3):
                log.error("tasks_stuck", extra={"tasks": stuck})
        if failure is not None:
            raise failure

    def _on_ready(
        self,
        greet: Callable[[Iterable[str]], None],
        web: WebListener | None,
        *,
        chats_here: bool,
    ) -> None:
        facts: dict[str, object] = {"node": self._cluster.node.id, "pid": os.getpid()}
        url = None if web is None else url_of(web.socket)
        log.info("gateway_ready", extra=facts if url is None else facts | {"web": url})
        self._manager.ready()
        settings = self._live_settings.current
        unusable = self._applier.unusable
        greet(banner(settings, self._parts, RELEASE, unusable, url, chats_here=chats_here))

    def _duties(self) -> list[Callable[[], Awaitable[None]]]:
        """Return the background tasks, which run as long as the service."""
        return [
            *self._cluster.duties(),
            self._health.lag.watch,
            partial(self._database.watch, self._store),
            self._container.outbox.run,
            self._container.incidents.watch,
            self._container.calls.run,
            self._container.lane_permits.run,
            self._container.unattended.watch,
            self._container.job_module.run,
            self._container.job_module.run_retention,
            self._container.job_module.retry_notifications,
            self._container.heartbeats.run,
            self._container.heartbeats.retry_notifications,
            self._container.heartbeats.run_retention,
            partial(delete_expired, self._store, self._clock, self._audit_kept),
            self._claim_pending_regularly,
            self._refresh_people_regularly,
            self._live_settings.run,
        ]

    # ------------------------------------------------------------------ running

    async def _until_end(self, stop: asyncio.Event, front: Front | None) -> None:
        ends: list[asyncio.Future[Any]] = [asyncio.create_task(stop.wait())]
        if front is not None:
            ends.append(asyncio.ensure_future(front(self.control, self._parts.terminals)))
        try:
            done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in ends:
                task.cancel()
            await asyncio.gather(*ends, return_exceptions=True)

    async def _receive(self) -> None:
        """Receive from all channels; after the lease was lost, start again as a new node."""
        while True:
            self._lost.clear()
            receiving = asyncio.create_task(self._container.supervisor.run(self._container.gateway))
            lost = asyncio.create_task(self._lost.wait())
            try:
                await asyncio.wait({receiving, lost}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (receiving, lost):
                    task.cancel()
                await asyncio.gather(receiving, lost, return_exceptions=True)
            await (
                self._lost.wait()
            )  # all channels may have stopped permanently; the API is still served
            self._pending.call()

    async def _claim_pending_regularly(self) -> None:
        while True:
            is_due = self._pending.is_called
            self._pending.clear()
            async with _database_may_be_away():
                await self._container.claim_pending(is_due=is_due)
                await self._container.gateway.release_idle()
            await self._pending.wait(_HAND_OVER_S if self._ending else _PENDING_POLL_S)

    async def _refresh_people_regularly(self) -> None:
        while True:
            await self._people.wait(_GIVE_UP_S)
            self._people.clear()
            async with _database_may_be_away():
                await self._container.roles.refresh()
                if self._apps is not None:
                    await self._apps.recheck_guests()

    # ------------------------------------------------------------------ shutdown

    async def _wind_down(self, hurry: asyncio.Event) -> None:
        """Drain the runs, then close the parts, each within a time limit (SPEC QUEUE-11)."""
        runs = self._settings.runs
        wait_s = self._settings.shutdown.wait_s
        try:
            async with asyncio.timeout(wait_s + runs.cancel_grace_s + _GIVE_UP_S):
                self._ending = True
                self._pending.call()
                await self._container.drain(wait_s, hurry)
                await self._container.runner.notices.flush()
        except TimeoutError:
            log.warning(
                "run_ends_not_stored",
                extra={"hint": "the affected runs are recovered at the next start"},
            )
        await self._container.stop_answers.close()
        await self._container.audit.store_repeats(is_last=True)
        await self._container.outbox.close(_LAST_WORDS_S)
        self._container.feed.close()

    async def _leave(self) -> None:
        try:
            async with asyncio.timeout(_GIVE_UP_S):
                await self._cluster.leave()
        except (TimeoutError, StoreError) as error:
            log.warning("lease_not_released", extra={"error": str(error)})
        channels, agents = self._parts.channels.values(), self._parts.agents.values()
        await asyncio.gather(*map(close_part, channels), *map(close_part, agents))
        await self._applier.close()

    # ------------------------------------------------------------------ callbacks

    def _state(self) -> NodeState:
        return self._container.state(skew_s=self._clock.skew_s, settings=self._digest)

    def _on_notice(self, notice: Notice) -> None:
        match notice:
            case Notice.INBOX:
                self._pending.call()
            case Notice.OUTBOX:
                self._container.outbox.wake.call()
            case Notice.PEOPLE:
                self._people.call()
                self._container.forget_names()
            case Notice.CRON:
                self._container.poll_due()
            case Notice.SUBAGENTS:
                self._container.search_subagents()
                self._pending.call()
            case Notice.SETTINGS:
                self._live_settings.wake.call()
            case Notice.LANES:
                self._container.lane_permits.poll_soon()
            case Notice.NODES:
                self._cluster.check_others()
                self._container.calls.poll()
                self._container.supervisor.check_leases()

    def _on_lost(self, node: NodeId) -> None:
        """Forget claimed messages, which other nodes now own, before the channels have stopped."""
        self._container.forget(node)
        self._lost.set()

    def _on_recovery(self, recovery: RecoveryReport) -> None:
        """Update messages in channels that still show runs as running (SPEC CMD-3)."""
        self._container.close_interrupted_runs(recovery)
        self._pending.call()


async def _always(work: Callable[[], Awaitable[None]]) -> None:
    """Restart a background task after an unexpected error, which must not end the gateway."""
    while True:
        try:
            await work()
        except Exception:
            log.exception("background_task_crashed", extra={"task": str(work)})
        else:
            return
        await asyncio.sleep(_RESTART_S)


def _name(work: Callable[[], Awaitable[None]]) -> str:
    """Return a readable name of a background task."""
    return str(getattr(getattr(work, "func", work), "__qualname__", work))


@asynccontextmanager
async def _database_may_be_away() -> AsyncIterator[None]:
    try:
        yield
    except StoreUnavailable as error:
        log.debug("store_unavailable", extra={"error": str(error), "part": "people"})
