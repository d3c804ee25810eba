"""Cancellation on request: immediately here, and stored in the database (SPEC CMD-1…3)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from goclaw_py.delivery.texts import RunActivity
from goclaw_py.messages.mailbox import Mailboxes
from goclaw_py.messages.provider_outage import ProviderOutageBuffer
from goclaw_py.messages.stop_rights import StopRights
from goclaw_py.model.ids import NodeId, RunId, SessionKey
from goclaw_py.model.messages import InboundMessage, Target, person_at
from goclaw_py.model.outcomes import Outcome, Reason
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.store import Store
from goclaw_py.runs.turn import Turn
from goclaw_py.scheduler.dispatcher import Dispatcher
from goclaw_py.scheduler.state_machine import StopResult
from goclaw_py.scheduler.views import RunView, StopReport

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CancelResult:
    """The result of a stop, with the turns that it cancelled.

    ``jobs``: the runs of jobs that it has stopped besides. ``session`` and ``run`` are what was
    meant; no ``run``: the oldest, or all. ``by``: the sender to whose own work it was limited; then
    ``spared`` and ``spared_jobs``, runs, and the messages ``of_others`` are what it would have met
    else.
    """

    report: StopReport
    reason: Reason
    running: Sequence[Turn] = ()
    waiting: Sequence[Turn] = ()
    jobs: tuple[RunId, ...] = ()
    session: SessionKey | None = None
    run: RunId | None = None
    by: str | None = None
    spared: tuple[RunId, ...] = ()
    spared_jobs: tuple[RunId, ...] = ()
    of_others: tuple[InboundMessage, ...] = ()

    @property
    def has_spared(self) -> bool:
        """Whether there was something that its sender may not stop."""
        return bool(self.spared or self.spared_jobs or self.of_others)

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

    def delivering_to(self, target: Target, creator: str | None = None) -> list[RunId]:
        """The runs of jobs that tell their results in a chat, the first one first.

        With a ``creator`` only of the jobs that this person has asked for.
        """

    def stop_run(self, run_id: RunId) -> StopResult:
        """Stop one of them; takes effect before this returns."""

    async def stop_waiting(
        self,
        target: Target,
        *,
        everything: bool,
        run: RunId | None = None,
        creator: str | None = None,
    ) -> int:
        """Stop those that wait for a session and are claimed by no node; how many.

        Raises ``StoreUnavailable``.
        """


class RunCanceller:
    """Cancels runs of chats, and of jobs that deliver their results there.

    Args:
        node: Which node this process is now.
        turns: The turns of some requests, as far as they are turns of chats.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        node: Callable[[], NodeId],
        dispatcher: Dispatcher,
        turns: Callable[[Collection[RunId]], Sequence[Turn]],
        outages: ProviderOutageBuffer,
    ) -> None:
        self._outages = outages
        self._node = node
        self._store = store
        self._clock = clock
        self._dispatcher = dispatcher
        self._turns = turns

    def connect(self, job_runs: JobStops, rights: StopRights, mailboxes: Mailboxes) -> None:
        """Give it what it stops, and who may stop what. Call it once, before any stop."""
        self._job_runs = job_runs
        self.rights = rights
        self._mailboxes = mailboxes

    def runs(self, session: SessionKey) -> list[RunView]:
        """What runs or waits in a session."""
        return [run for run in self._dispatcher.runs() if run.session == session]

    def of_others(self, session: SessionKey, by: str) -> tuple[InboundMessage, ...]:
        """What runs or waits in a session, but for what answers this sender."""
        turns = self._turns([run.id for run in self.runs(session)])
        return tuple(row.message for turn in turns if by not in turn.senders for row in turn.rows)

    def works(self, session: SessionKey) -> dict[RunId, RunActivity]:
        """What the runs of a session do now."""
        turns = self._turns([run.id for run in self.runs(session)])
        return {
            turn.id: RunActivity(" ".join(turn.texts), turn.progress.tools_in_use) for turn in turns
        }

    def stop(
        self,
        session: SessionKey,
        *,
        everything: bool,
        run: RunId | None = None,
        by: str | None = None,
    ) -> CancelResult:
        """Stop one thing, this ``run`` or everything of a session, at once.

        With ``by`` only what answers messages of that sender (SPEC CMD-6). A run that has ended, or
        is of another session, is nothing to stop: nobody who presses a button means whatever else
        works, and what a button brings can be made up.
        """
        if everything:
            done = self._dispatcher.stop_all(session, by)
        elif run is None:
            done = self._dispatcher.stop_oldest(session, by)
        elif any(view.id == run for view in self.runs(session)):
            done = self._dispatcher.stop_one(run, by)
        else:
            done = StopResult()
        met = done.stopped or done.dropped or done.already_stopping
        kept = [] if met and not everything else self._kept(session, run)
        mine = [turn for turn in kept if by is None or by in turn.senders]
        others = [turn for turn in kept if turn not in mine] if everything or not mine else []
        taken = mine if everything else mine[:1]
        self._outages.take(taken)
        done.dropped += [turn.id for turn in taken]
        # At once: nobody else has them in hand, and a look at the database would take them up.
        reason = self.reason(everything=everything)
        self._mailboxes.stopped(taken, reason)
        spared = [] if taken and not everything else done.spared
        log.info(
            "runs_stopped",
            extra={"session": session, "runs": len(done.stopped), "dropped": len(done.dropped)},
        )
        others += self._turns(spared)
        return CancelResult(
            StopReport(tuple(done.stopped), tuple(done.dropped), done.already_stopping),
            reason,
            # Their ends are not stored yet, so all of them are known.
            self._turns(done.stopped),
            [*self._turns(done.dropped), *taken],
            session=session,
            run=run,
            by=by,
            spared=tuple(spared),
            of_others=tuple(row.message for turn in others for row in turn.rows),
        )

    def _kept(self, session: SessionKey, run: RunId | None) -> list[Turn]:
        """What waits in a session for a provider to come back, or only this ``run`` of it."""
        kept = self._outages.of(session)
        return kept if run is None else [t for t in kept if run in (t.id, t.former)][:1]

    def stop_spared(self, chat: Target, stopped: CancelResult, *, everything: bool) -> CancelResult:
        """Stop what was spared: its sender may stop everything (SPEC CMD-6).

        That is what was there then, and nothing that came after it.
        """
        session = stopped.session
        assert session is not None
        turns = [*self._turns([run.id for run in self.runs(session)]), *self._outages.of(session)]
        waiting = [turn for turn in turns if any(map(turn.has, stopped.of_others))]
        runs = list(dict.fromkeys((*stopped.spared, *(turn.id for turn in waiting))))
        done = StopResult()
        for run in runs if everything else runs[:1]:
            one = self._dispatcher.stop_one(run)
            done.stopped += one.stopped
            done.dropped += one.dropped
        kept = [turn for turn in self._outages.of(session) if turn.id in runs]
        kept = kept if everything or done.stopped or done.dropped else kept[:1]
        self._outages.take(kept)
        report = stopped.report
        stopped = replace(
            stopped,
            report=replace(
                report,
                stopped=(*report.stopped, *done.stopped),
                dropped=(*report.dropped, *done.dropped, *(turn.id for turn in kept)),
            ),
            running=[*stopped.running, *self._turns(done.stopped)],
            waiting=[*stopped.waiting, *self._turns(done.dropped), *kept],
            by=None,
            spared=(),
            of_others=(),
        )
        return self.stop_jobs(chat, stopped, everything=everything, run=stopped.run)

    @staticmethod
    def reason(*, everything: bool) -> Reason:
        """Why what a stop meets has ended."""
        return Reason.STOPPED_ALL if everything else Reason.STOPPED

    def stop_jobs(
        self, chat: Target, stopped: CancelResult, *, everything: bool, run: RunId | None = None
    ) -> CancelResult:
        """Stop runs of jobs that tell their results in ``chat``, after what was ``stopped`` there.

        One of them: this ``run``, else the oldest, but only if there was nothing else to stop; or
        ``everything`` (SPEC CMD-2).
        """
        if not everything and not stopped.nothing:
            return stopped
        creator = None if stopped.by is None else person_at(chat, stopped.by)
        jobs: list[RunId] = []
        stopping = False
        mine = self._job_runs.delivering_to(chat, creator)
        for job_run in mine:
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
        others = [one for one in self._job_runs.delivering_to(chat) if one not in mine]
        others = [one for one in others if run in (None, one)] if everything or not jobs else []
        return replace(stopped, jobs=(*stopped.jobs, *jobs), spared_jobs=tuple(others))

    async def cut_answers(
        self,
        session: SessionKey,
        chat: Target,
        *,
        everything: bool,
        run: RunId | None = None,
        by: str | None = None,
    ) -> int:
        """Give up what waits to be sent of answers that are written already (SPEC CMD-2).

        With ``by`` only of answers to that sender. Returns how many messages there were. Raises
        ``StoreUnavailable``.
        """
        now, sender = self._clock.now(), None if by is None else person_at(chat, by)
        return await self._store.cut_answers(
            session, chat, everything=everything, run=run, sender=sender, now=now
        )

    async def stop_waiting_jobs(
        self, chat: Target, *, everything: bool, run: RunId | None = None, by: str | None = None
    ) -> int:
        """The same of those that no node has claimed. Raises ``StoreUnavailable``."""
        creator = None if by is None else person_at(chat, by)
        return await self._job_runs.stop_waiting(
            chat, everything=everything, run=run, creator=creator
        )

    async def keep(self, stopped: CancelResult | None = None) -> None:
        """Store that these messages get no answer: no crash may bring back what people stopped.

        Their runs may take a while to end, and their ends are stored after that. Raises
        ``StoreUnavailable``; then the next call stores them too.
        """
        if stopped is not None:
            self._mailboxes.stopped((*stopped.running, *stopped.waiting), stopped.reason)
        for reason, rows in self._mailboxes.unstored_stops().items():
            now, node = self._clock.now(), self._node()
            await self._store.settle(rows, Outcome.CANCELLED, now=now, reason=reason, node=node)
            self._mailboxes.stop_stored(rows)
