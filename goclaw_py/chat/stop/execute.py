"""Carries out a whole stop: in this process, on other nodes, in the database."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from goclaw_py.chat.stop.local import LocalStops, Stopped
from goclaw_py.chat.stop.plan import Stop, StopOrigin, WorkKind
from goclaw_py.chat.stop.remote import RemoteStops
from goclaw_py.chat.stop.rights import StopRights
from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.ids import RunId, SessionKey
from goclaw_py.core.messages import Target
from goclaw_py.records import Store
from goclaw_py.scheduler.views import StopReport

log = logging.getLogger(__name__)

_NOTHING = StopReport()


@dataclass(frozen=True, slots=True)
class StopCounts:
    """How much was stopped on other nodes and in the database.

    Args:
        runs: Subagents of other nodes.
        jobs: Job runs of other nodes, and occurrences that no node has claimed.
        approvals: Turns, and jobs, that waited for the answer of a person.
        answers: Unsent messages of answers.
    """

    runs: int = 0
    jobs: int = 0
    approvals: int = 0
    answers: int = 0


class StopExecutor:
    """Carries out stops, by ``local`` what is here and by ``remote`` what is not."""

    def __init__(
        self,
        store: Store,
        local: LocalStops,
        remote: RemoteStops,
        rights: StopRights,
    ) -> None:
        self._store = store
        self.local = local
        self._remote = remote
        self.rights = rights

    async def ask(
        self, chat: Target, stopped: Stopped, counts: StopCounts, kinds: Sequence[WorkKind]
    ) -> StopCounts:
        """Stop in kinds that are asked, after what was ``stopped`` here and ``counts`` before.

        A kind that is not available is skipped and logged.
        """
        stop = stopped.stop
        for kind in kinds:
            found = not stopped.nothing or counts != StopCounts()
            if not stop.goes_on(kind, found=found):
                continue
            try:
                counts = await self._ask(kind, chat, stop, counts)
            except StoreUnavailable as error:
                _log_skipped(kind, error)
        return counts

    async def _ask(
        self, kind: WorkKind, chat: Target, stop: Stop, counts: StopCounts
    ) -> StopCounts:
        if kind is WorkKind.ELSEWHERE:
            runs, jobs = await self._remote.stop_background(chat, stop)
            return replace(counts, runs=runs, jobs=jobs)
        if kind is WorkKind.APPROVALS:
            return replace(counts, approvals=await self.local.database.stop_approvals(stop, chat))
        return replace(counts, answers=await self.local.database.stop_answers(stop, chat))

    async def stop_session(
        self, session: SessionKey, *, everything: bool, run: RunId | None = None
    ) -> StopReport:
        """Stop in a session for an operator, on the node that owns it; with ``run`` only that run.

        Raises ``NodeSilent``, and ``StoreUnavailable`` if its owner cannot be found.
        """
        stop = Stop(session, everything, run, origin=StopOrigin.OUTSIDE)
        stopped = self.local.stop(stop)
        report = stopped.report
        if stopped.nothing:
            remote = await self._remote.stop(stop)
            if remote is None:  # this node may have taken it over meanwhile
                stopped = self.local.stop(stop)
            report = stopped.report if remote is None else remote
        try:
            await self.local.store(stopped)
            if everything:
                await self.local.database.store_session(session)
            approvals = answers = 0
            if stop.goes_on(WorkKind.APPROVALS, found=report != _NOTHING):
                approvals = await self.local.database.stop_approvals(stop, None)
            if stop.goes_on(WorkKind.ANSWERS, found=report != _NOTHING or approvals > 0):
                found = await self._store.session(session)
                if found is not None and found.target is not None:
                    answers = await self.local.database.stop_answers(stop, found.target)
        except StoreUnavailable as error:
            # It has stopped. It is stored as soon as the database is back.
            log.warning("stop_not_stored", extra={"session": session, "error": str(error)})
            return report
        return replace(report, unsent=answers, asking=approvals)

    async def start_new_session(self, session: SessionKey) -> None:
        """Stop everything and start a new history, on the node that owns a session.

        Raises ``NodeSilent`` and ``StoreUnavailable``.
        """
        if not await self._remote.reset(session):
            await self.local.start_new_session(session)


def _log_skipped(kind: WorkKind, error: StoreUnavailable) -> None:
    facts = {"error": str(error)}
    match kind:
        case WorkKind.ELSEWHERE:
            log.warning("remote_jobs_not_stopped", extra=facts)
        case WorkKind.APPROVALS:
            log.warning("waiting_approvals_not_stopped", extra=facts)
        case _:
            log.warning("queued_answers_not_cancelled", extra=facts)
