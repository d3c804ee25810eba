"""Stops in the database: what is stored of those here, and what only it knows (SPEC CMD-1, 2)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol

from goclaw_py.chat.inbound.mailbox import Mailboxes
from goclaw_py.chat.stop.plan import Stop
from goclaw_py.core.ids import NodeId, RunId, SessionKey
from goclaw_py.core.messages import Target, person_at
from goclaw_py.core.outcomes import Outcome, Reason, stop_reason
from goclaw_py.core.time.clock import Clock
from goclaw_py.records import DroppedMessage, InboxRow, Stops
from goclaw_py.records.bound import BoundStore
from goclaw_py.runs.turn import Turn
from goclaw_py.schedule.jobs.execution_models import StoppableJob
from goclaw_py.scheduler.state_machine import StopResult


class JobStops(Protocol):
    """Stops runs of jobs."""

    def stoppable(self, target: Target) -> Sequence[StoppableJob]:
        """Return the occurrences in progress with a chat as target, the first claimed first."""

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


class DatabaseStops:
    """Stores what stops have cancelled in this process, and cancels what no process has.

    Coroutines raise ``StoreUnavailable``; what was not stored then, the next call stores too.

    Args:
        dropped: Returns the dropped messages of a session that wait for their notice.
    """

    def __init__(
        self,
        store: BoundStore,
        clock: Clock,
        mailboxes: Mailboxes,
        jobs: JobStops,
        dropped: Callable[[SessionKey], tuple[DroppedMessage, ...]],
    ) -> None:
        self._store = store
        self._clock = clock
        self._mailboxes = mailboxes
        self.jobs = jobs
        self.dropped = dropped
        self._runs: set[str] = set()
        """Stopped runs, and occurrences of jobs, whose stop is not stored."""

    def add_runs(self, runs: Iterable[str]) -> None:
        """Note runs and occurrences that are to be marked as stopped."""
        self._runs.update(runs)

    def add_turns(self, turns: Iterable[Turn], reason: Reason) -> None:
        """Note turns whose messages end with this stop."""
        self._mailboxes.stopped(turns, reason)

    async def store(self) -> None:
        """Store that stopped messages get no answer, so that they do not run after a crash.

        The ends of their runs may be stored much later.
        """
        await self.store_as_former()
        await self._mark_stopped()
        for reason, rows in self._mailboxes.unstored_stops().items():
            now, node = self._clock.now(), self._store.node()
            await self._store.settle(rows, Outcome.CANCELLED, now=now, reason=reason, node=node)
            self._mailboxes.stop_stored(rows)

    async def store_session(
        self, session: SessionKey, *, before: InboxRow | None = None, by: str | None = None
    ) -> None:
        """Store that everything was stopped in a session, or all that came ``before`` a row.

        Also what is just ending, of which a crash would lose the end, and what other nodes have
        stored. ``by`` limits it to the messages of one sender.
        """
        reason, dropped = stop_reason(everything=True), self.dropped(session)
        stops = Stops((), reason, everything=True, by=by, dropped=dropped)
        node, now = self._store.node(), self._clock.now()
        await self._store.stop_session(session, stops, node=node, now=now, before=before)

    async def store_as_former(self) -> None:
        """Store the stops that this process has answered as a node that has expired since.

        Under that node's id, while the sessions are still its: afterwards any node may start what
        was stopped.
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

    async def release_former(self) -> None:
        """Store these stops for the last time: the sessions of that node are released now."""
        await self.store_as_former()
        self._mailboxes.forget_former()

    async def _mark_stopped(self) -> None:
        """Store that runs were stopped: a lost lease or a crash must not continue them."""
        if stopped := frozenset(self._runs):
            await self._store.mark_stopped(stopped)
            self._runs -= stopped

    # ------------------------------------------------------------------ cancelling

    async def stop_approvals(self, stop: Stop, chat: Target | None) -> int:
        """Stop the oldest turn that waits for the answer of a person, or all; return the number.

        After turns come jobs whose run in this session has asked.
        """
        if stop.session is None:
            return 0
        everything, sender = stop.everything, _person(stop, chat)
        stopped = await self._store.stop_approvals(
            stop.session, everything=everything, sender=sender, now=self._clock.now()
        )
        if everything or not stopped:
            stopped += await self.jobs.stop_waiting(
                stop.session, everything=everything, creator=sender
            )
        return stopped

    async def stop_answers(self, stop: Stop, chat: Target) -> int:
        """Drop waiting parts of answers; return their number."""
        if stop.session is None:
            return 0
        return await self._store.drop_answers(
            stop.session,
            chat,
            everything=stop.everything,
            run=stop.run,
            sender=_person(stop, chat),
            now=self._clock.now(),
        )

    async def stop_unclaimed(
        self, chat: Target, stop: Stop, reached: Collection[NodeId]
    ) -> tuple[int, int]:
        """Stop what no node has claimed, and all of nodes that were not ``reached``.

        Returns the numbers of subagents and of jobs.
        """
        sender, subagents = _person(stop, chat), 0
        if stop.everything and stop.session is not None:
            left = await self._store.subagents_elsewhere(stop.session, reached, sender=sender)
            if left:
                await self._store.mark_stopped(left)
            subagents = len(left)
        return subagents, await self.jobs.stop_waiting(
            chat, everything=stop.everything, run=stop.run, creator=sender, reached=reached
        )

    async def has_messages_elsewhere(self, session: SessionKey) -> bool:
        """Return whether messages of a session wait that this process does not have."""
        waiting = await self._store.unanswered(session, ended=False)
        return not self._mailboxes.has_all({one.id for one in waiting if not one.asking_run})

    async def reset(self, session: SessionKey) -> None:
        """Start a new history."""
        await self._store.reset_session(session, now=self._clock.now())


def _person(stop: Stop, chat: Target | None) -> str | None:
    """Return the sender to whom a stop is limited, as the database knows people."""
    return None if stop.by is None or chat is None else person_at(chat, stop.by)
