"""Cancellation on request: immediately here, and stored in the database (SPEC CMD-1…3)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from goclaw_py.chat.inbound.mailbox import Mailboxes
from goclaw_py.chat.inbound.provider_outage import ProviderOutageBuffer
from goclaw_py.chat.outbound.texts import RunActivity
from goclaw_py.chat.stop.rights import StopRights
from goclaw_py.core.ids import NodeId, OccurrenceId, RunId, SessionKey
from goclaw_py.core.messages import InboundMessage, Target, person_at
from goclaw_py.core.outcomes import Outcome, Reason, stop_reason
from goclaw_py.core.time.clock import Clock
from goclaw_py.records import DroppedMessage, InboxRow, Stops, Store
from goclaw_py.runs.turn import Turn
from goclaw_py.scheduler.dispatcher import Dispatcher
from goclaw_py.scheduler.state_machine import StopResult
from goclaw_py.scheduler.views import RunState, RunView, StopReport

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CancelResult:
    """The result of a stop, with the turns that it cancelled.

    Args:
        jobs: The job runs that it stopped too.

    ending: After a stop of everything, all turns that are being interrupted, also for another
    reason. A crash before their end is stored must not begin them again.

    session, run: What was to be stopped; no ``run``: the oldest, or all.

    by: The sender to whose runs it was limited.

    spared, spared_jobs, of_others: Runs, job runs and messages that a stop without limit would have
    stopped too.
    """

    report: StopReport
    reason: Reason
    running: Sequence[Turn] = ()
    waiting: Sequence[Turn] = ()
    ending: Sequence[Turn] = ()
    jobs: tuple[RunId, ...] = ()
    session: SessionKey | None = None
    run: RunId | None = None
    by: str | None = None
    spared: tuple[RunId, ...] = ()
    spared_jobs: tuple[RunId, ...] = ()
    of_others: tuple[InboundMessage, ...] = ()

    @property
    def has_spared(self) -> bool:
        """Return whether there was something that its sender may not stop."""
        return bool(self.spared or self.spared_jobs or self.of_others)

    @property
    def nothing(self) -> bool:
        """Return whether there was nothing to stop."""
        return self.report == StopReport() and not self.jobs

    @property
    def dropped(self) -> int:
        """Return the number of waiting messages that are cancelled; a burst is one request."""
        return sum(len(turn.texts) for turn in self.waiting)

    @property
    def messages(self) -> tuple[str, ...]:
        """Return the external ids of all cancelled messages, each once."""
        turns = (*self.running, *self.waiting, *self.ending)
        names = (row.message.external_id for turn in turns for row in turn.rows)
        return tuple(dict.fromkeys(names))


class JobStops(Protocol):
    """Stops runs of jobs."""

    def delivering_to(self, target: Target, creator: str | None = None) -> list[RunId]:
        """Return the runs of jobs with a chat as target, the first one first.

        ``creator`` selects the jobs that this person requested.
        """

    def occurrence_of(self, run_id: RunId) -> OccurrenceId | None:
        """Return the occurrence of a job run, which may not have started."""

    def stop_run(self, run_id: RunId) -> StopResult:
        """Stop a job run; takes effect before this returns."""

    async def stop_waiting(
        self,
        where: Target | SessionKey,
        *,
        everything: bool,
        run: RunId | None = None,
        creator: str | None = None,
        reached: Collection[NodeId] = (),
    ) -> int:
        """Stop unclaimed occurrences that wait; return their number.

        ``where`` is their target, or the session of the run that waits for an answer. ``reached``
        are the nodes that have stopped theirs: all of other nodes are stopped too. Raises
        ``StoreUnavailable``.
        """


class RunCanceller:
    """Cancels runs of chats, and of jobs that deliver their results there.

    Args:
        node: Returns the present id of this node.
        turns: Returns the turns of some requests, as far as they are chat turns.
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
        self._unstored: set[str] = set()
        """Stopped runs, and occurrences of jobs, whose stop is not stored."""

    def connect(
        self,
        job_runs: JobStops,
        rights: StopRights,
        mailboxes: Mailboxes,
        subagents: Callable[[SessionKey], Sequence[RunId]],
        silence: Callable[[SessionKey, str | None], Collection[RunId]],
        dropped: Callable[[SessionKey], tuple[DroppedMessage, ...]],
    ) -> None:
        """Set the dependencies. Call it once, before any stop.

        ``subagents`` returns the background subagents that a session has started, ``dropped`` its
        dropped messages that wait for their notice. ``silence`` lets no result of subagents that a
        sender has requested, or of all, come into a session.
        """
        self.dropped = dropped
        self.subagents = subagents
        self._silence = silence
        self._job_runs = job_runs
        self.rights = rights
        self._mailboxes = mailboxes

    def runs(self, session: SessionKey) -> list[RunView]:
        """Return the running and waiting runs of a session."""
        return [run for run in self._dispatcher.runs() if run.session == session]

    def is_busy(self, session: SessionKey) -> bool:
        """Return whether something runs or waits in a session, also for a provider."""
        return bool(self.runs(session)) or self._outages.has_session(session)

    async def has_messages_elsewhere(self, session: SessionKey) -> bool:
        """Return whether messages of a session wait that this process does not have."""
        waiting = await self._store.unanswered(session, ended=False)
        return not self._mailboxes.has_all({one.id for one in waiting if not one.asking_run})

    def of_others(self, session: SessionKey, by: str) -> tuple[InboundMessage, ...]:
        """Return the messages of running and waiting runs, except this sender's."""
        turns = self._turns([run.id for run in self.runs(session)])
        return tuple(row.message for turn in turns if by not in turn.senders for row in turn.rows)

    def activity(self, session: SessionKey) -> dict[RunId, RunActivity]:
        """Return the activity of the runs of a session."""
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
        """Stop a run, this ``run`` or everything of a session, before this returns.

        ``by`` limits it to runs that answer this sender (SPEC CMD-6). If ``run`` has ended or
        belongs to another session, nothing is stopped: a button press never means another run, and
        its data can be forged.
        """
        if everything:
            done = self._dispatcher.stop_all(session, by)
            self._stop_subagents(session, done, everything=True, by=by)
        elif run is None:
            done = self._dispatcher.stop_oldest(session, by)
        elif any(view.id == run for view in self.runs(session)):
            done = self._dispatcher.stop_one(run, by)
        else:
            done = StopResult()
        self._note_stopped(done.stopped)
        stopped = [*self._turns(done.stopped), *self._again(session, done.stopped)]
        met = done.stopped or done.dropped or done.already_stopping
        kept = [] if met and not everything else self._kept(session, run)
        mine = [turn for turn in kept if by is None or by in turn.senders]
        others = [turn for turn in kept if turn not in mine] if everything or not mine else []
        taken = mine if everything else mine[:1]
        self._outages.take(taken)
        done.dropped += [turn.id for turn in taken]
        # Immediately: they have no owner, and a reload would claim them.
        reason = stop_reason(everything=everything)
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
            stopped,
            [*self._turns(done.dropped), *taken],
            ending=self._stopping(session, by) if everything else (),
            session=session,
            run=run,
            by=by,
            spared=tuple(spared),
            of_others=tuple(row.message for turn in others for row in turn.rows),
        )

    def _stopping(self, session: SessionKey, by: str | None) -> list[Turn]:
        views = [view.id for view in self.runs(session) if view.state is RunState.STOPPING]
        return [turn for turn in self._turns(views) if by is None or by in turn.senders]

    def _note_stopped(self, runs: Collection[RunId]) -> None:
        """Note what is to be marked as stopped: runs without messages, whose ends are stored."""
        answering = {turn.id for turn in self._turns(list(runs))}
        self._unstored.update(run for run in runs if run not in answering)

    def _again(self, session: SessionKey, stopped: Collection[RunId]) -> list[Turn]:
        """Stop the turns that begin again what interrupted runs among ``stopped`` have left."""
        names = {row.id for turn in self._turns(stopped) for row in turn.rows}
        waiting = self._turns([run.id for run in self.runs(session) if run.id not in stopped])
        again = [turn for turn in waiting if any(row.id in names for row in turn.rows)]
        for turn in again:
            self._dispatcher.stop_one(turn.id)
        return again

    def stop_subagents(self, stopped: CancelResult, *, everything: bool) -> CancelResult:
        """Stop background subagents of a session, after what was ``stopped`` in it: all, or one."""
        if stopped.session is None:
            return stopped
        done = StopResult([], [*stopped.report.stopped], spared=[*stopped.spared])
        self._stop_subagents(stopped.session, done, everything=everything, by=stopped.by)
        report = replace(stopped.report, stopped=tuple(done.stopped))
        return replace(stopped, report=report, spared=tuple(done.spared))

    def _stop_subagents(
        self, session: SessionKey, done: StopResult, *, everything: bool, by: str | None
    ) -> None:
        """Stop background subagents, also of runs that have ended; add them to ``done``."""
        if everything:  # also those that have ended, but whose results are not here yet
            self._unstored.update(self._silence(session, by))
        for subagent in self.subagents(session):
            one = self._dispatcher.stop_one(subagent, by)
            done.stopped += [*one.stopped, *one.dropped]
            self._unstored.update(one.stopped)
            done.spared += [run for run in one.spared if run not in done.spared]
            if not everything and (one.stopped or one.dropped):
                return

    def _kept(self, session: SessionKey, run: RunId | None) -> list[Turn]:
        """Return the turns of a session that wait for a provider, or only ``run``."""
        kept = self._outages.of(session)
        return kept if run is None else [t for t in kept if run in (t.id, t.former)][:1]

    def stop_spared(self, chat: Target, stopped: CancelResult, *, everything: bool) -> CancelResult:
        """Stop what was spared, after its sender turned out to be an administrator (SPEC CMD-6).

        Requests that came after the stop are not stopped.
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
            self._note_stopped(one.stopped)
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

    def stop_jobs(
        self, chat: Target, stopped: CancelResult, *, everything: bool, run: RunId | None = None
    ) -> CancelResult:
        """Stop background work for ``chat``, after what was ``stopped`` in its session.

        With ``everything``, all job runs with this target; ``stop`` has met the subagents of the
        session. Otherwise this job ``run``, or the oldest subagent or job run if there was nothing
        else to stop (SPEC CMD-2).
        """
        if not everything:
            if stopped.nothing and run is None:
                stopped = self.stop_subagents(stopped, everything=False)
            if not stopped.nothing:
                return stopped
        creator = None if stopped.by is None else person_at(chat, stopped.by)
        jobs: list[RunId] = []
        stopping = False
        mine = self._job_runs.delivering_to(chat, creator)
        for job_run in mine:
            if run not in (None, job_run):
                continue
            occurrence = self._job_runs.occurrence_of(job_run)
            done = self._job_runs.stop_run(job_run)
            self._unstored.update(filter(None, (job_run, occurrence)))
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
        """Drop waiting parts of answers (SPEC CMD-2); return the number of messages.

        ``by`` limits it to answers to that sender. Raises ``StoreUnavailable``.
        """
        now, sender = self._clock.now(), None if by is None else person_at(chat, by)
        return await self._store.cut_answers(
            session, chat, everything=everything, run=run, sender=sender, now=now
        )

    async def stop_approvals(
        self,
        session: SessionKey,
        *,
        everything: bool,
        chat: Target | None = None,
        by: str | None = None,
    ) -> int:
        """Stop the oldest turn that waits for the answer of a person, or all; return the number.

        After turns come jobs whose run in this session has asked. ``by`` limits it to what that
        sender in ``chat`` has requested. Raises ``StoreUnavailable``.
        """
        sender = None if by is None or chat is None else person_at(chat, by)
        stopped = await self._store.stop_approvals(
            session, everything=everything, sender=sender, now=self._clock.now()
        )
        if everything or not stopped:
            stopped += await self._job_runs.stop_waiting(
                session, everything=everything, creator=sender
            )
        return stopped

    async def stop_waiting_jobs(
        self,
        chat: Target,
        *,
        everything: bool,
        run: RunId | None = None,
        by: str | None = None,
        reached: Collection[NodeId] = (),
    ) -> int:
        """Stop unclaimed occurrences with this target, as ``JobStops.stop_waiting``."""
        creator = None if by is None else person_at(chat, by)
        return await self._job_runs.stop_waiting(
            chat, everything=everything, run=run, creator=creator, reached=reached
        )

    async def stop_subagents_elsewhere(
        self, chat: Target, stopped: CancelResult, reached: Collection[NodeId]
    ) -> int:
        """Let no node continue the background subagents of nodes that were not ``reached``.

        It has the limits of what was ``stopped`` here. Raises ``StoreUnavailable``.
        """
        if stopped.session is None:
            return 0
        sender = None if stopped.by is None else person_at(chat, stopped.by)
        left = await self._store.subagents_elsewhere(stopped.session, reached, sender=sender)
        if left:
            await self._store.mark_stopped(left)
        return len(left)

    async def keep(self, stopped: CancelResult | None = None) -> None:
        """Store that stopped messages get no answer, so that they do not run after a crash.

        The ends of their runs may be stored much later. Raises ``StoreUnavailable``; then the next
        call stores them too.
        """
        if stopped is not None:
            turns = (*stopped.running, *stopped.waiting, *stopped.ending)
            self._mailboxes.stopped(turns, stopped.reason)
        await self.store_as_former()
        await self._mark_stopped()
        for reason, rows in self._mailboxes.unstored_stops().items():
            now, node = self._clock.now(), self._node()
            await self._store.settle(rows, Outcome.CANCELLED, now=now, reason=reason, node=node)
            self._mailboxes.stop_stored(rows)

    async def store_stop_of_session(
        self, session: SessionKey, *, before: InboxRow | None = None, by: str | None = None
    ) -> None:
        """Store that everything was stopped in a session, or all that came ``before`` a row.

        Also what is just ending, of which a crash would lose the end, and what other nodes have
        stored. ``by`` as in ``stop``. Raises ``StoreUnavailable``.
        """
        reason, dropped = stop_reason(everything=True), self.dropped(session)
        stops = Stops((), reason, everything=True, by=by, dropped=dropped)
        node, now = self._node(), self._clock.now()
        await self._store.stop_session(session, stops, node=node, now=now, before=before)

    async def store_as_former(self) -> None:
        """Store the stops that this process has answered as a node that has expired since.

        Under that node's id, while the sessions are still its: afterwards any node may start what
        was stopped. Raises ``StoreUnavailable``.
        """
        former = self._mailboxes.former
        if former is None:
            return
        await self._mark_stopped()
        rows_by_reason, decided = self._mailboxes.owed()
        now = self._clock.now()
        for reason, rows in rows_by_reason.items():
            await self._store.settle(rows, Outcome.CANCELLED, now=now, reason=reason, node=former)
        if decided:
            await self._store.accept(decided, node=former, now=now)

    async def _mark_stopped(self) -> None:
        """Store that runs were stopped: a lost lease or a crash must not continue them."""
        if stopped := frozenset(self._unstored):
            await self._store.mark_stopped(stopped)
            self._unstored -= stopped

    async def release_former(self) -> None:
        """Store these stops for the last time: the sessions of that node are released now."""
        await self.store_as_former()
        self._mailboxes.forget_former()
