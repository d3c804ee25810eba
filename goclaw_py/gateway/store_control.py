"""The operator's view of the database, which needs no gateway."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import replace

from goclaw_py.core.errors import NoGateway
from goclaw_py.core.ids import MAIN_AGENT, AgentName
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.time.zones import zone as zone_named
from goclaw_py.gateway.why.sources import Sources
from goclaw_py.gateway.why.subjects import explain
from goclaw_py.operations.access.operations import Access
from goclaw_py.operations.approvals.operations import Approvals
from goclaw_py.operations.audit.operations import AuditEntries
from goclaw_py.operations.deliveries.operations import Deliveries
from goclaw_py.operations.explanation import Explanation
from goclaw_py.operations.heartbeats.operations import HeartbeatService
from goclaw_py.operations.jobs.operations import JobService
from goclaw_py.operations.lanes.operations import Lanes
from goclaw_py.operations.nodes.operations import Nodes
from goclaw_py.operations.people.operations import People
from goclaw_py.operations.runs.operations import Runs
from goclaw_py.operations.sessions.operations import CONSOLE, Sessions
from goclaw_py.operations.settings.operations import SettingsService
from goclaw_py.operations.usage.operations import UsageReports
from goclaw_py.records import NO_ACCOUNTS, Place, Store
from goclaw_py.runs.events.live import LiveEvent
from goclaw_py.runs.session_settings import ChatRules
from goclaw_py.schedule.heartbeat.module import HeartbeatSetup, service_of
from goclaw_py.schedule.jobs.creation import JobCreationRules
from goclaw_py.schedule.jobs.policy import DEFAULT_PROFILE


class StoreControl:
    """The operations that need only the database. See ``operations.control.Control``."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        jobs: JobService | None = None,
        heartbeats: HeartbeatService | None = None,
        chat_rules: Callable[[], Mapping[Place, ChatRules]] = dict,
        settings: SettingsService | None = None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._chat_rules = chat_rules
        self._clock = clock
        self.jobs = jobs or JobService(store, clock, JobCreationRules(DEFAULT_PROFILE))
        self.heartbeats = heartbeats or service_of(store, clock, HeartbeatSetup(), NO_ACCOUNTS)
        self.access = Access(store, clock)
        self.approvals = Approvals(store, clock)
        self.audit = AuditEntries(store)
        self.deliveries = Deliveries(store, clock)
        self.people = People(store, clock, chat_rules)
        self.runs = Runs(store, clock)
        self.lanes = Lanes(clock)
        self.sessions = Sessions(store, clock, self._console_agent)
        self.nodes = Nodes(store, clock)
        self.usage = UsageReports(store, clock)

    @property
    def settings(self) -> SettingsService:
        """See ``Control``. Raises ``NoGateway`` if this was made without settings."""
        if self._settings is None:
            raise NoGateway("the settings are not known here")
        return self._settings

    def _console_agent(self) -> AgentName:
        console = self._chat_rules().get(CONSOLE)
        return MAIN_AGENT if console is None else console.agent

    async def why(self, about: str | None = None, *, zone: str = "") -> Explanation:
        if zone:
            zone_named(zone)  # a text with a time in UTC must not look like one in this zone
        return await explain(replace(self._sources(), zone=zone), about)

    def _sources(self) -> Sources:
        return Sources(self, self._store, self._clock, self._chat_rules)

    def follow(
        self, session: str | None = None, *, after: str | None = None
    ) -> AsyncGenerator[LiveEvent]:
        """Raise ``NoGateway``: there are no events without one."""
        del session, after
        raise NoGateway("no gateway is running here, so there is nothing to follow")
