"""What stops cancel in this process and in its database; before ``stop`` returns."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from goclaw_py.chat.inbound.provider_outage import ProviderOutageBuffer
from goclaw_py.chat.inbound.turns import Turns
from goclaw_py.chat.stop.database import DatabaseStops
from goclaw_py.chat.stop.plan import (
    Plan,
    Stop,
    StopOrigin,
    Work,
    WorkKind,
    messages_among,
    plan,
    request_fact,
)
from goclaw_py.core.ids import OccurrenceId, RunId, SessionKey
from goclaw_py.core.messages import InboundMessage, Target, person_at
from goclaw_py.core.session_keys import chat_of
from goclaw_py.records import InboxRow
from goclaw_py.runs.context_usage import ContextUsage
from goclaw_py.runs.turn import Turn
from goclaw_py.runs.turn_state import HELD, QUEUED
from goclaw_py.scheduler.dispatcher import Dispatcher
from goclaw_py.scheduler.state_machine import StopResult
from goclaw_py.scheduler.views import RunState, RunView, StopReport

log = logging.getLogger(__name__)

_AT_ONCE = (
    WorkKind.SESSION,
    WorkKind.CHILDREN,
    WorkKind.PROVIDER,
    WorkKind.MAILBOX,
    WorkKind.UNCONFIRMED,
)
_LATER = (WorkKind.SUBAGENTS, WorkKind.JOBS)
BACKGROUND = (WorkKind.CHILDREN, *_LATER)
"""What one node has of a chat whose session another node has."""


_NOTHING = StopReport()


@dataclass(frozen=True, slots=True)
class Stopped:
    """The result of a stop in this process.

    Args:
        running: The cancelled turns that have begun, with those that would begin them again.
        waiting: The cancelled turns that have not.
        ending: After a stop of everything, all turns that are being interrupted, also for another
            reason. A crash before their end is stored must not begin them again.
        jobs: The job runs that it cancelled.
        messages: The cancelled messages without a turn.
        spared: What it would have cancelled without its limit.
    """

    stop: Stop
    report: StopReport = _NOTHING
    running: tuple[Turn, ...] = ()
    waiting: tuple[Turn, ...] = ()
    ending: tuple[Turn, ...] = ()
    jobs: tuple[RunId, ...] = ()
    messages: tuple[Work, ...] = ()
    spared: tuple[Work, ...] = ()

    @property
    def nothing(self) -> bool:
        """Return whether there was nothing to stop."""
        return self.report == _NOTHING and not self.jobs and not self.uncommitted

    @property
    def dropped(self) -> int:
        """Return the number of cancelled messages that waited; a burst is one request."""
        return sum(len(turn.texts) for turn in self.waiting) + self.uncommitted

    @property
    def uncommitted(self) -> int:
        """Return the number of cancelled messages without a turn of which people are notified."""
        return messages_among([one for one in self.messages if one.kind is WorkKind.MAILBOX])

    @property
    def message_ids(self) -> tuple[str, ...]:
        """Return the external ids of all cancelled messages, each once."""
        turns = (*self.running, *self.waiting, *self.ending)
        ids = (row.message.external_id for turn in turns for row in turn.rows)
        return tuple(dict.fromkeys((*ids, *(one.id for one in self.messages))))


@dataclass(frozen=True, slots=True)
class ChatTask:
    """A running or waiting run of a chat: the turn, the task of the child, or the job."""

    run: RunView
    turn: Turn | None = None
    child: str = ""
    job: str = ""


class BackgroundRuns(Protocol):
    """Child runs."""

    def in_background(self, session: SessionKey) -> list[RunId]:
        """Return those that a session pays for and nobody waits for, the first one first."""

    def tasks(self, session: SessionKey) -> Mapping[RunId, str]:
        """Return all that a session pays for, with what each does, for people."""

    def silence(self, session: SessionKey, by: str | None) -> list[RunId]:
        """Let no result of them, or of those of one sender, come into a session; return them."""


class LocalStops:
    """Reads what there is, makes the plan, and cancels what it lists."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        turns: Turns,
        outages: ProviderOutageBuffer,
        children: BackgroundRuns,
        database: DatabaseStops,
        contexts: ContextUsage,
    ) -> None:
        self._dispatcher = dispatcher
        self._turns = turns
        self._outages = outages
        self._children = children
        self.database = database
        self._contexts = contexts

    # ------------------------------------------------------------------ what there is

    def runs(self, session: SessionKey) -> list[RunView]:
        """Return the running and waiting runs of a session."""
        return [run for run in self._dispatcher.runs() if run.session == session]

    def tasks(self, session: SessionKey, chat: Target) -> list[ChatTask]:
        """Return what runs and waits for a chat: in its session, its child runs, and its jobs."""
        children = self._children.tasks(session)
        jobs = {job.run: job.title for job in self.database.jobs.stoppable(chat)}
        runs = [
            run
            for run in self._dispatcher.runs()
            if run.session == session or run.id in children or run.id in jobs
        ]
        turns = {turn.id: turn for turn in self._turns.of_runs([run.id for run in runs])}
        return [
            ChatTask(run, turns.get(run.id), children.get(run.id, ""), jobs.get(run.id, ""))
            for run in runs
        ]

    def in_outage(self, session: SessionKey) -> list[Turn]:
        """Return the turns of a session that wait for the provider of their agent."""
        return self._turns.held_or_undone(session)

    def is_busy(self, session: SessionKey) -> bool:
        """Return whether something runs or waits in a session, also for a provider."""
        return bool(self.runs(session)) or self._turns.has_held(session)

    def has_subagents(self, session: SessionKey) -> bool:
        """Return whether background subagents of a session run or wait."""
        return bool(self._children.in_background(session))

    def of_others(self, session: SessionKey, by: str) -> tuple[InboundMessage, ...]:
        """Return the messages of running and waiting runs, except this sender's."""
        others = [turn for turn in self.turns(session) if by not in turn.senders]
        return tuple(row.message for turn in others for row in turn.rows)

    def turns(self, session: SessionKey) -> Sequence[Turn]:
        """Return the turns of the running and waiting runs of a session."""
        return self._turns.of_runs([run.id for run in self.runs(session)])

    def _facts(self, stop: Stop, chat: Target | None) -> list[Work]:
        """Return all work that this process knows, except messages without a turn."""
        facts: list[Work] = []
        if stop.session is not None:
            background = self._children.in_background(stop.session)
            found = self._dispatcher.stop_candidates(stop.session, stop.by, background)
            turns = {turn.id: turn for turn in self._turns.of_runs([one.id for one in found])}
            for one in found:
                messages = _messages_of(turns.get(one.id))
                facts.append(request_fact(one, stop.session, background, messages))
            facts += [
                Work(
                    WorkKind.PROVIDER,
                    turn.id,
                    turn.senders,
                    frozenset(filter(None, (turn.id, turn.former))),
                    messages=_messages_of(turn),
                )
                for turn in self._turns.held_or_undone(stop.session)
            ]
        if chat is not None:
            here = person_at(chat, "")
            facts += [
                Work(
                    WorkKind.JOBS,
                    job.run,
                    frozenset((job.creator.removeprefix(here),)),
                    frozenset((job.run,)),
                    is_live=not job.was_stopped,
                    is_stopping=job.is_stopping,
                )
                for job in self.database.jobs.stoppable(chat)
            ]
        return facts

    # ------------------------------------------------------------------ cancelling

    def stop(self, stop: Stop, messages: Sequence[Work] = ()) -> Stopped:
        """Cancel what is in the session, before this returns.

        ``messages`` are those without a turn. A stop of everything also cancels subagents: those
        that start later are not meant.
        """
        kinds = (*_AT_ONCE, WorkKind.SUBAGENTS) if stop.everything else _AT_ONCE
        stopped = self._visit(kinds, Stopped(stop), [*self._facts(stop, None), *messages])
        report = stopped.report
        log.info(
            "runs_stopped",
            extra={
                "session": stop.session,
                "runs": len(report.stopped),
                "dropped": len(report.dropped),
            },
        )
        return stopped

    def cancel_requests_of(self, rows: Collection[int]) -> None:
        """Cancel requests that have not begun, and whose messages are all among these rows.

        For messages that were ended in the database: their request would have nothing to do.
        """
        found = {turn.id: turn for row in rows if (turn := self._turns.of_row(row))}
        for turn in found.values():
            has_waited = turn.state in (QUEUED, HELD)
            if has_waited and all(row.id in rows for row in turn.rows):
                self.stop(
                    Stop(turn.session, everything=False, run=turn.id, origin=StopOrigin.OUTSIDE)
                )

    def stop_background(
        self, chat: Target, stopped: Stopped, kinds: Collection[WorkKind] = ()
    ) -> Stopped:
        """Cancel subagents and job runs of a chat, after what was ``stopped`` in its session.

        ``kinds``: those to visit; by default what ``stop`` has not visited.
        """
        stop = stopped.stop
        if not stop.goes_on(WorkKind.JOBS, found=not stopped.nothing):
            return stopped
        kinds = kinds or ((WorkKind.JOBS,) if stop.everything else _LATER)
        return self._visit(kinds, stopped, self._facts(stop, chat), chat)

    def stop_spared(self, chat: Target, stopped: Stopped) -> Stopped:
        """Stop what was spared, after its sender turned out to be an administrator (SPEC CMD-6).

        What came after the stop is not stopped.
        """
        stop, spared = replace(stopped.stop, by=None), stopped.spared
        runs = {work.id for work in spared}
        facts = [
            work
            for work in self._facts(stop, chat)
            if not runs.isdisjoint((work.id, *work.ancestors)) or work.shares_message_with(spared)
        ]
        stopped = replace(stopped, stop=stop, spared=())
        return self._visit((*_AT_ONCE, *_LATER), stopped, facts, chat)

    def _visit(
        self,
        kinds: Collection[WorkKind],
        stopped: Stopped,
        facts: Sequence[Work],
        chat: Target | None = None,
    ) -> Stopped:
        """Make the plan for some kinds, and carry it out."""
        stop = stopped.stop
        chosen = plan(facts, stop, kinds)
        jobs_here = self._jobs_in(stop.session)
        done = self._cancel_requests(chosen, stop)
        # A run that waits is not stored: only its occurrence can be marked.
        self.database.add_runs(jobs_here[run] for run in done.stopped if run in jobs_here)
        if stop.everything and stop.session is not None and WorkKind.SUBAGENTS in kinds:
            # Also those that have ended, but whose results are not here yet.
            self.database.add_runs(self._children.silence(stop.session, stop.by))
        running = list(self._turns.of_runs(done.stopped))
        answering = {turn.id for turn in running}
        self.database.add_runs(run for run in done.stopped if run not in answering)
        if again := [RunId(work.id) for work in chosen.again]:
            running += self._turns.of_runs(again)
            self._dispatcher.stop_these(again, stop.reason)
        held = self._cancel_held(chosen, stop)
        before = stopped.report
        counted = chosen.jobs(tasks=(*before.stopped, *done.stopped))
        jobs = [] if chat is None else self._cancel_jobs(chosen, chat)
        jobs = [run for run in jobs if run in counted]
        is_stopping = chosen.already_stopping and not (done.stopped or jobs)
        spares = stop.everything or not chosen.cancel
        return replace(
            stopped,
            report=replace(
                before,
                stopped=(*before.stopped, *done.stopped),
                dropped=(*before.dropped, *done.dropped, *(turn.id for turn in held)),
                already_stopping=before.already_stopping or is_stopping,
            ),
            # Their ends are not stored yet, so all of them are known.
            running=(*stopped.running, *running),
            waiting=(*stopped.waiting, *self._turns.of_runs(done.dropped), *held),
            ending=(*stopped.ending, *self._ending(facts, stop, kinds)),
            jobs=(*stopped.jobs, *jobs),
            messages=(
                *stopped.messages,
                *chosen.of_kind(WorkKind.MAILBOX, WorkKind.UNCONFIRMED),
            ),
            spared=(*stopped.spared, *chosen.spared) if spares else (),
        )

    def _jobs_in(self, session: SessionKey | None) -> dict[RunId, OccurrenceId]:
        """Return the occurrences of jobs that run or wait in the session of a chat, by run."""
        chat = None if session is None else chat_of(session)
        if chat is None:
            return {}
        return {job.run: job.occurrence for job in self.database.jobs.stoppable(chat)}

    def _cancel_requests(self, chosen: Plan, stop: Stop) -> StopResult:
        requests = chosen.of_kind(WorkKind.SESSION, WorkKind.CHILDREN, WorkKind.SUBAGENTS)
        if not requests:
            return StopResult()
        done = self._dispatcher.stop_these([RunId(work.id) for work in requests], stop.reason)
        done.stopped += [run for run in done.dropped if run in chosen.tasks]
        done.dropped = [run for run in done.dropped if run not in chosen.tasks]
        return done

    def _cancel_held(self, chosen: Plan, stop: Stop) -> list[Turn]:
        ids = {work.id for work in chosen.of_kind(WorkKind.PROVIDER)}
        if not ids or stop.session is None:
            return []
        held = [turn for turn in self._turns.held_or_undone(stop.session) if turn.id in ids]
        self._outages.remove(held)
        # Immediately: they have no owner, and a reload would claim them.
        self.database.add_turns(held, stop.reason)
        return held

    def _cancel_jobs(self, chosen: Plan, chat: Target) -> list[RunId]:
        wanted = [RunId(work.id) for work in chosen.of_kind(WorkKind.JOBS)]
        if not wanted:
            return []
        occurrences = {job.run: job.occurrence for job in self.database.jobs.stoppable(chat)}
        jobs: list[RunId] = []
        for run in wanted:
            done = self.database.jobs.stop_run(run)
            self.database.add_runs((run, occurrences[run]))
            if done.stopped or done.dropped:
                jobs.append(run)
        if jobs:
            log.info("jobs_stopped", extra={"runs": len(jobs), "chat": chat.chat})
        return jobs

    def _ending(
        self, facts: Sequence[Work], stop: Stop, kinds: Collection[WorkKind]
    ) -> Sequence[Turn]:
        if not stop.everything or WorkKind.SESSION not in kinds:
            return ()
        requests = [
            RunId(w.id) for w in facts if w.kind is WorkKind.SESSION and w.belongs_to(stop.by)
        ]
        return self._turns.of_runs(
            [run for run in requests if self._dispatcher.state(run) is RunState.STOPPING]
        )

    # ------------------------------------------------------------------ storing

    async def store(self, stopped: Stopped) -> None:
        """Store that what was stopped gets no answer. Raises ``StoreUnavailable``."""
        turns = (*stopped.running, *stopped.waiting, *stopped.ending)
        self.database.add_turns(turns, stopped.stop.reason)
        await self.database.store()

    async def start_new_session(
        self, session: SessionKey, *, before: InboxRow | None = None
    ) -> None:
        """Stop everything of a session that came ``before`` a row, and start a new history.

        Raises ``StoreUnavailable``; then it has stopped, and the history is unchanged.
        """
        stop = Stop(session, everything=True, origin=StopOrigin.NEW_SESSION)
        await self.store(self.stop(stop))
        await self.database.store_session(session, before=before)
        await self.database.stop_approvals(stop, None)
        await self.database.reset(session)
        self._contexts.forget(session)


def _messages_of(turn: Turn | None) -> tuple[InboundMessage, ...]:
    return () if turn is None else tuple(row.message for row in turn.rows)
