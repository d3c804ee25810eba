"""What an operator can see and do: offered by the gateway, used by CLI and HTTP API.

Three things implement it: the gateway itself, a client that reaches the gateway over its socket,
and, when no gateway runs, the database alone. A command needs to know none of that.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

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
from goclaw_py.operations.sessions.operations import Sessions
from goclaw_py.operations.settings.operations import SettingsService
from goclaw_py.operations.usage.operations import UsageReports
from goclaw_py.runs.events.live import LiveEvent


class Control(Protocol):
    """The operator's view. Every method may raise ``StoreUnavailable``.

    The next page of a list starts after the row ``before``: its ``cursor``, or its id where rows
    have numbers.
    """

    @property
    def access(self) -> Access:
        """Browsers that are signed in to the dashboard, and tokens of programs."""

    @property
    def audit(self) -> AuditEntries:
        """Who has changed what."""

    @property
    def jobs(self) -> JobService:
        """The job service."""

    @property
    def heartbeats(self) -> HeartbeatService:
        """The heartbeat service."""

    @property
    def settings(self) -> SettingsService:
        """The service that shows and edits settings."""

    @property
    def approvals(self) -> Approvals:
        """The questions of runs about their tool calls, and what their answers allow."""

    @property
    def sessions(self) -> Sessions:
        """Sessions, with their queue and history."""

    @property
    def people(self) -> People:
        """People, groups, and guests of the web chat."""

    @property
    def lanes(self) -> Lanes:
        """The lanes of the gateway, and its state."""

    @property
    def runs(self) -> Runs:
        """The runs of agents, in progress and stored."""

    @property
    def deliveries(self) -> Deliveries:
        """Outgoing messages, and incoming ones that failed."""

    @property
    def nodes(self) -> Nodes:
        """The gateways that share the database."""

    @property
    def usage(self) -> UsageReports:
        """What runs have used, and how many messages there were."""

    async def why(self, about: str | None = None, *, zone: str = "") -> Explanation:
        """Explain why something did or did not happen (SPEC OPS-4).

        ``about`` is an id, key or name of a session, chat, person, run, message, job, agent or
        node; None is the whole gateway. Times are in ``zone``; without one they name theirs.
        Raises ``UnknownZone``, and ``NotFound``, with the candidates if it is ambiguous.
        """

    def follow(
        self, session: str | None = None, *, after: str | None = None
    ) -> AsyncGenerator[LiveEvent]:
        """Yield the events of runs from now on, starting with ``LiveNow``. Close the iterator.

        With ``after``, the id of an event, the stored events since then come first, or
        ``LiveMissed`` if some are no longer stored; then ``LiveNow``.

        ``session`` (a key or unique part of a key, or the beginning of the id of one of its runs)
        selects the runs of a session and those that are charged to it. A slow reader gets
        ``LiveMissed``; runs do not wait for readers. Ends with its gateway. Raises ``NoGateway``
        if a gateway in another process is or becomes unreachable, and ``NotFound`` at the first
        step.
        """
