"""What a running gateway knows of sessions, and what only it can do with them."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence

from goclaw_py.core.display_names import KnownNames
from goclaw_py.core.errors import NotAChat, NotFound, SessionBusy
from goclaw_py.core.ids import RunId, SessionKey
from goclaw_py.core.messages import InboundMessage, Sender, Target
from goclaw_py.core.session_keys import job_of, peer_of
from goclaw_py.core.targets import Route
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.time.clocks import new_id
from goclaw_py.gateway.container import Container
from goclaw_py.operations.sessions.operations import Submitted
from goclaw_py.records import NewInbox, RunQuery, Session, Store
from goclaw_py.runs import history_only
from goclaw_py.schedule.jobs.targets import route_of
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.scheduler.views import RunView, StopReport

log = logging.getLogger(__name__)

_SENDER = Sender("api", "API")


class LiveSessions:
    """The part of ``Sessions`` that needs the scheduler of this gateway."""

    def __init__(self, store: Store, clock: Clock, container: Container) -> None:
        self._store = store
        self._clock = clock
        self._dispatcher = container.dispatcher
        self._stops = container.stops
        self._names = container.names
        self.forget_title = container.gateway.forget_title
        self._turns = container.turns
        self._accounts = container.policies
        self._deliver = container.gateway.deliver
        self._coming: Counter[SessionKey] = Counter()
        """The number of messages being stored now, by session."""

    def requests(self) -> Sequence[RunView]:
        """Return the unfinished requests of this gateway."""
        return self._dispatcher.runs()

    def policy(self, session: SessionKey) -> QueuePolicy | None:
        """Return the queue policy of a session's newest request, None without one."""
        return self._dispatcher.policy(session)

    def remember(self, names: KnownNames) -> None:
        """Remember names that were read."""
        self._names.add(names)

    async def reset(self, session: SessionKey) -> None:
        """Cancel the runs of a session, on whatever node, and start a new history."""
        await self._stops.start_new_session(session)

    async def stop(self, session: SessionKey, *, everything: bool, run: RunId | None) -> StopReport:
        """Stop the runs of a session, on whatever node, then what waits; see ``Sessions.stop``."""
        return await self._stops.stop_session(session, everything=everything, run=run)

    async def send(self, key: str, text: str, *, queue: bool) -> Submitted:
        """Store a message as an inbox row, so that a crash does not lose it (SPEC CRON-19)."""
        session = await self._store.session(SessionKey(key))
        if session is None:
            raise NotFound(f"there is no session {key!r}", hint="; see: goclaw sessions list")
        target = await self._target_of(session)
        if not queue and await self._is_busy(session):
            raise SessionBusy
        self._coming[session.key] += 1
        try:
            runs = await self._deliver([self._row(session, target, text)])
        finally:
            self._coming[session.key] -= 1
            # Only those that are being brought are worth the memory.
            self._coming = +self._coming
        log.info("message_submitted", extra={"session": session.key})
        return Submitted(session.key, next(iter(runs), None))

    async def _target_of(self, session: Session) -> Target:
        """Return the target of the answer; for a job's session, the job's target."""
        job_id = job_of(session.key)
        if job_id is None:
            return self._chat_of(session)
        job = await self._store.job(job_id)
        route = Route(None) if job is None else await route_of(self._store, self._accounts, job)
        if route.target is None or route.problem:
            return history_only.target_in(session.key)
        return route.target

    def _chat_of(self, session: Session) -> Target:
        target = session.target
        if target is None:
            raise NotAChat(
                f"session {session.key} belongs to no chat, so there is nowhere to answer"
            )
        if (target.channel, target.account) not in self._accounts.places:
            raise NotAChat(
                f"channel {target.channel}/{target.account} does not run here, "
                f"so session {session.key} cannot be answered"
            )
        return target

    async def _is_busy(self, session: Session) -> bool:
        """Return whether it has a run that waits or is in progress, on any node."""
        key = session.key
        if session.waiting or await self._store.runs(RunQuery(limit=1, session=key, active=True)):
            return True
        # Last, and without a turn of the loop after it: of two at once only one finds it free.
        return key in self._coming or self._dispatcher.has_session(key) or self._turns.has_held(key)

    def _row(self, session: Session, target: Target, text: str) -> NewInbox:
        message = InboundMessage(
            external_id=f"api:{new_id(self._clock)}",
            target=target,
            peer=peer_of(session.key),
            sender=_SENDER,
            text=text,
            sent_at=self._clock.now(),
            source="api",
        )
        return NewInbox(message, session.key, session.agent)
