"""Stopping on request: at once in this process, and for good in the database (SPEC CMD-1…3)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from goclaw_py.core.ids import NodeId, RunId, SessionKey
from goclaw_py.core.machine import Stop
from goclaw_py.core.messages import Target
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.status import RunView, StopReport
from goclaw_py.core.wording import Work
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.store import InboxStore
from goclaw_py.runtime.dispatcher import Dispatcher
from goclaw_py.runtime.outages import Outages
from goclaw_py.runtime.turn import Turn

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Stopped:
    """What a stop did, with the turns that it met.

    ``jobs``: the runs of jobs that it has stopped besides. ``session`` and ``run`` are what was
    meant; no ``run``: the oldest, or all.
    """

    report: StopReport
    reason: Reason
    running: Sequence[Turn] = ()
    waiting: Sequence[Turn] = ()
    jobs: tuple[RunId, ...] = ()
    session: SessionKey | None = None
    run: RunId | None = None

    @property
    def nothing(self) -> bool:
        """Whether there was nothing to stop."""
        return self.report == StopReport() and not self.jobs

    @property
    def dropped(self) -> int:
        """How many messages that waited are not worked on: a burst is one request."""
        return sum(len(turn.texts) for turn in self.waiting)

    @property
    def messages(self) -> tuple[str, ...]:
        """The external ids of all messages that get no answer."""
        turns = (*self.running, *self.waiting)
        return tuple(row.message.external_id for turn in turns for row in turn.rows)


class JobStops(Protocol):
    """Stops runs of jobs."""

    def delivering_to(self, target: Target) -> list[RunId]:
        """The runs of jobs that tell their results in a chat, the first one first."""

    def stop_run(self, run_id: RunId) -> Stop:
        """Stop one of them; takes effect before this returns."""

    async def stop_waiting(
        self, target: Target, *, everything: bool, run: RunId | None = None
    ) -> int:
        """Stop those that wait for a session and are claimed by no node; how many.

        Raises ``StoreUnavailable``.
        """


class Stopper:
    """Stops runs of chats, and of jobs that tell their results there.

    Args:
        node: Which node this process is now.
        turns: The turns of some requests, as far as they are turns of chats.
    """

    def __init__(
        self,
        store: InboxStore,
        clock: Clock,
        node: Callable[[], NodeId],
        dispatcher: Dispatcher,
        turns: Callable[[Collection[RunId]], Sequence[Turn]],
        outages: Outages,
    ) -> None:
        self._outages = outages
        self._node = node
        self._store = store
        self._clock = clock
        self._dispatcher = dispatcher
        self._turns = turns
        self._unkept: dict[int, Reason] = {}
        """Inbox rows that were stopped, by this process, and are not known to be stored so."""

    def connect(self, job_runs: JobStops) -> None:
        """Give it the runs of jobs. Call it once, before anything is stopped."""
        self._job_runs = job_runs

    def runs(self, session: SessionKey) -> list[RunView]:
        """What runs or waits in a session."""
        return [run for run in self._dispatcher.runs() if run.session == session]

    def works(self, session: SessionKey) -> dict[RunId, Work]:
        """What the runs of a session do now."""
        turns = self._turns([run.id for run in self.runs(session)])
        return {turn.id: Work(" ".join(turn.texts), turn.progress.tools_in_use) for turn in turns}

    def stop(self, session: SessionKey, *, everything: bool, run: RunId | None = None) -> Stopped:
        """Stop one thing, this ``run`` or everything of a session, at once.

        A run that has ended, or is of another session, is nothing to stop: nobody who presses a
        button means whatever else works, and what a button brings can be made up.
        """
        kept: list[Turn] = []
        if everything:
            done = self._dispatcher.stop_all(session)
            kept = self._outages.take(session, everything=True)
        elif run is not None:
            live = any(view.id == run for view in self.runs(session))
            done = self._dispatcher.stop_one(run) if live else Stop()
            kept = [] if live else self._outages.take_run(session, run)
        else:
            done = self._dispatcher.stop_oldest(session)
            if not (done.stopped or done.dropped or done.already_stopping):
                kept = self._outages.take(session, everything=False)
        done.dropped += [turn.id for turn in kept]
        # At once: nobody else has them in hand, and a look at the database would take them up.
        reason = self.reason(everything=everything)
        self._unkept |= {row.id: reason for turn in kept for row in turn.rows}
        log.info(
            "runs_stopped",
            extra={"session": session, "runs": len(done.stopped), "dropped": len(done.dropped)},
        )
        return Stopped(
            StopReport(tuple(done.stopped), tuple(done.dropped), done.already_stopping),
            reason,
            # Their ends are not stored yet, so all of them are known.
            self._turns(done.stopped),
            [*self._turns(done.dropped), *kept],
            session=session,
            run=run,
        )

    @staticmethod
    def reason(*, everything: bool) -> Reason:
        """Why what a stop meets has ended."""
        return Reason.STOPPED_ALL if everything else Reason.STOPPED

    def stop_jobs(
        self, chat: Target, stopped: Stopped, *, everything: bool, run: RunId | None = None
    ) -> Stopped:
        """Stop runs of jobs that tell their results in ``chat``, after what was ``stopped`` there.

        One of them: this ``run``, else the oldest, but only if there was nothing else to stop; or
        ``everything`` (SPEC CMD-2).
        """
        if not everything and not stopped.nothing:
            return stopped
        jobs: list[RunId] = []
        stopping = False
        for job_run in self._job_runs.delivering_to(chat):
            if run not in (None, job_run):
                continue
            done = self._job_runs.stop_run(job_run)
            stopping |= done.already_stopping
            if done.stopped or done.dropped:
                jobs.append(job_run)
                if not everything:
                    break
        if jobs:
            log.info("jobs_stopped", extra={"runs": len(jobs), "chat": chat.chat})
        elif stopping:
            stopped = replace(stopped, report=replace(stopped.report, already_stopping=True))
        return replace(stopped, jobs=tuple(jobs))

    async def stop_waiting_jobs(
        self, chat: Target, *, everything: bool, run: RunId | None = None
    ) -> int:
        """The same of those that no node has in hand. Raises ``StoreUnavailable``."""
        return await self._job_runs.stop_waiting(chat, everything=everything, run=run)

    async def keep(self, stopped: Stopped | None = None) -> None:
        """Store that these messages get no answer: no crash may bring back what people stopped.

        Their runs may take a while to end, and their ends are stored after that. Raises
        ``StoreUnavailable``; then the next call stores them too.
        """
        if stopped is not None:
            turns = (*stopped.running, *stopped.waiting)
            self._unkept |= {row.id: stopped.reason for turn in turns for row in turn.rows}
        for reason in set(self._unkept.values()):
            rows = [row for row, why in self._unkept.items() if why is reason]
            now, node = self._clock.now(), self._node()
            await self._store.settle(rows, Outcome.CANCELLED, now=now, reason=reason, node=node)
            for row in rows:
                self._unkept.pop(row, None)

    def rows(self) -> set[int]:
        """Inbox rows that were stopped and may be pending in the database."""
        return set(self._unkept)

    def forget(self) -> None:
        """What was stopped belongs to another process now."""
        self._unkept.clear()
