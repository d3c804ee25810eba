"""The state machine of requests: every transition is made here, and nowhere else.

::

    COLLECTING --window over--> QUEUED --admit--> READY --start--> RUNNING --finish--> FINISHING
        |                         |                 |                | stop               | release
        | leave                   | leave           | leave          v                    v
        +-----------> DONE <------+-----------------+            STOPPING --finish--> FINISHING
                                                                     | give up
                                                                     v
                                                                 ABANDONED --finish--> DONE

COLLECTING waits for the sender to finish typing, QUEUED for session and agent, READY for the lane.
STOPPING and FINISHING keep session slot, agent slot and lane slot: a slot is free only when the
task has really ended and its outcome is stored (SPEC QUEUE-2).

This module knows slots and lines; ``core.scheduler`` knows what people may ask for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from goclaw_py.core.collector import Collector
from goclaw_py.core.effects import Cancel, Effect, Ended, Start
from goclaw_py.core.ids import AgentName, RunId, SessionKey
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.queues import AgentSlots, Entry, Lane, SessionQueue
from goclaw_py.core.requests import Drop, Request
from goclaw_py.core.status import RunState
from goclaw_py.core.timers import Timers

_S = RunState
TRANSITIONS: Mapping[RunState, tuple[RunState, ...]] = {
    _S.COLLECTING: (_S.QUEUED, _S.READY, _S.DONE),
    _S.QUEUED: (_S.READY, _S.DONE),
    _S.READY: (_S.RUNNING, _S.DONE),
    _S.RUNNING: (_S.STOPPING, _S.FINISHING),
    _S.STOPPING: (_S.FINISHING, _S.ABANDONED),
    _S.FINISHING: (_S.DONE,),
    _S.ABANDONED: (_S.DONE,),
    _S.DONE: (),
}
"""Every permitted change of state. A new entry is COLLECTING until it is put somewhere."""


class IllegalTransition(AssertionError):
    """The machine was asked for a change of state that does not exist: a bug of the caller."""


@dataclass(slots=True)
class Stop:
    """What a stop did. ``already_stopping``: the only run left had been stopped before."""

    effects: list[Effect] = field(default_factory=list)
    stopped: list[RunId] = field(default_factory=list)
    dropped: list[RunId] = field(default_factory=list)
    already_stopping: bool = False


class Machine:
    """Sessions, agents and lanes, and the entries in them."""

    def __init__(
        self, lanes: Iterable[Lane], agents: Mapping[AgentName, int], cancel_grace_s: float
    ) -> None:
        self.entries: dict[RunId, Entry] = {}
        self.sessions: dict[SessionKey, SessionQueue] = {}
        self.lanes = {lane.name: lane for lane in lanes}
        self.kin: dict[SessionKey, dict[RunId, Entry]] = {}
        """For each session the live entries that its runs, ended ones too, have asked for."""
        self.collector = Collector()
        self.timers: Timers[Alarm] = Timers(_is_live)
        self._agents = {name: AgentSlots(limit) for name, limit in agents.items()}
        self._cancel_grace_s = cancel_grace_s
        self._seq = 0
        self._starts = 0

    # ------------------------------------------------------------------ coming in

    def enter(self, request: Request, lane: Lane, now: float) -> Entry:
        """Make an entry for a request. It waits nowhere yet."""
        self._seq += 1
        entry = Entry(request, lane, self._seq, now)
        self.entries[entry.id] = entry
        if request.deadline_s is not None:
            self._arm(entry, Deadline(entry), now + request.deadline_s)
        parent = self.entries.get(request.parent) if request.parent else None
        if parent is not None:
            entry.lineage = ((parent.id, parent.request.session), *parent.lineage)
            for _, session in entry.lineage:
                self.kin.setdefault(session, {})[entry.id] = entry
        return entry

    def enqueue(self, entry: Entry, now: float) -> list[Effect]:
        """Put an entry into its session: it becomes ready at once, or waits, or costs a place."""
        policy = entry.request.policy
        key = entry.request.session
        session = self.sessions.get(key)
        if session is None:
            session = self.sessions[key] = SessionQueue(key)
        session.concurrency = policy.concurrency
        if not session.waiting and session.may_start(entry) and self._agent(entry).has_room:
            return self._make_ready(entry, session, now)
        full = len(session.waiting) >= policy.capacity
        if full and policy.drop is Drop.NEW:
            return self.end(entry, Outcome.REJECTED, Reason.QUEUE_FULL, now)
        self._move(entry, RunState.QUEUED, now)
        session.waiting.append(entry)
        if full:
            oldest = session.waiting[0]
            return self.end(oldest, Outcome.DROPPED, Reason.QUEUE_DROPPED, now)
        return self._admit(session, now)

    # ------------------------------------------------------------------ going on

    def _admit(self, session: SessionQueue, now: float) -> list[Effect]:
        """Let a session's waiting entries move on while session and agent have room."""
        effects: list[Effect] = []
        while (agent := self._next_agent(session)) is not None:
            if agent.limit is not None:
                # Sessions share the agent in turns, so this one takes its place in that line.
                agent.line.setdefault(session.key)
                return effects + self._serve(agent, now)
            effects += self._make_ready(session.waiting.popleft(), session, now)
        self._evict(session)
        return effects

    def _serve(self, agent: AgentSlots, now: float) -> list[Effect]:
        """Give an agent's free slots to the sessions in its line, one each in turn."""
        effects: list[Effect] = []
        while agent.line and agent.has_room:
            key = next(iter(agent.line))
            del agent.line[key]
            session = self.sessions.get(key)
            if session is None or self._next_agent(session) is not agent:
                continue
            effects += self._make_ready(session.waiting.popleft(), session, now)
            if self._next_agent(session) is agent:
                agent.line[key] = None
            else:
                effects += self._admit(session, now)
        return effects

    def _next_agent(self, session: SessionQueue) -> AgentSlots | None:
        """Whom the session's next entry is for, if the session has room for it."""
        if not session.waiting or not session.may_start(session.waiting[0]):
            return None
        return self._agent(session.waiting[0])

    def _make_ready(self, entry: Entry, session: SessionQueue, now: float) -> list[Effect]:
        self._move(entry, RunState.READY, now)
        session.active[entry.id] = entry
        self._agent(entry).active += 1
        entry.lane.line.append(entry)
        entry.lane.waiting += 1
        return self._pump(entry.lane, now)

    def _pump(self, lane: Lane, now: float) -> list[Effect]:
        """Start those who wait for a lane while it has room."""
        effects: list[Effect] = []
        while lane.line and lane.active < lane.concurrency:
            entry = lane.line.popleft()
            if entry.state is not RunState.READY:
                continue  # it left while it waited
            self._move(entry, RunState.RUNNING, now)
            self._starts += 1
            entry.started = self._starts
            lane.waiting -= 1
            lane.active += 1
            lane.started += 1
            timeout_s = entry.request.run_timeout_s
            if timeout_s is not None:
                self._arm(entry, RunTimeout(entry), now + timeout_s)
            effects.append(Start(entry.id))
        return effects

    # ------------------------------------------------------------------ ending

    def finish(self, entry: Entry, outcome: Outcome, now: float) -> list[Effect]:
        """The task of a run has ended; a run that was stopped ends as what stopped it says."""
        if entry.state is RunState.ABANDONED:
            self._forget(entry, now)
            return []
        final = entry.stop_outcome or outcome
        self._move(entry, RunState.FINISHING, now)
        entry.lane.count(final)
        return [Ended(entry.id, final, entry.reason)]

    def release(self, entry: Entry, now: float) -> list[Effect]:
        """Put a finished run away and give its slots to those who wait."""
        self._forget(entry, now)
        return self._free(entry, now)

    def cut(
        self,
        entries: Iterable[Entry],
        outcome: Outcome,
        reason: Reason,
        now: float,
    ) -> Stop:
        """End what waits among ``entries`` and cancel what runs; the rest is left alone."""
        stop = Stop()
        listed = list(dict.fromkeys(entries))
        # All who wait leave before any slot is given away: none of them may move up.
        for entry in [e for e in listed if e.waits]:
            stop.dropped.append(entry.id)
            self._leave(entry, now)
            stop.effects.append(Ended(entry.id, outcome, reason))
        for entry in listed:
            if entry.state is RunState.RUNNING:
                stop.stopped.append(entry.id)
                stop.effects += self._cancel(entry, outcome, reason, now)
        for key in dict.fromkeys(entry.request.session for entry in listed):
            if (session := self.sessions.get(key)) is not None:
                stop.effects += self._admit(session, now)
        for agent in dict.fromkeys(self._agent(entry) for entry in listed):
            stop.effects += self._serve(agent, now)
        return stop

    def end(self, entry: Entry, outcome: Outcome, reason: Reason, now: float) -> list[Effect]:
        """End one entry, or cancel it if it runs."""
        return self.cut([entry], outcome, reason, now).effects

    def ring(self, alarm: Alarm, now: float) -> list[Effect]:
        """A timer has come."""
        entry = alarm.entry
        if isinstance(alarm, Grace):
            return self._abandon(entry, now)
        return self.end(entry, Outcome.TIMED_OUT, alarm.reason, now)

    def with_descendants(self, entry: Entry) -> list[Entry]:
        """The entry, and those that it or a run below it has asked for."""
        kin = self.kin.get(entry.request.session, {}).values()
        return [entry, *(e for e in kin if any(run == entry.id for run, _ in e.lineage))]

    def _leave(self, entry: Entry, now: float) -> None:
        """Take an entry that has not started out of wherever it waits."""
        request = entry.request
        if entry.state is RunState.READY:
            del self.sessions[request.session].active[entry.id]
            self._agent(entry).active -= 1
            entry.lane.waiting -= 1
        elif entry.state is RunState.QUEUED:
            waiting = self.sessions[request.session].waiting
            waiting.remove(entry)
            if not waiting:
                self._agent(entry).line.pop(request.session, None)
        else:
            burst = self.collector.find(request.session, request.sender)
            if burst is not None and burst.leader is entry:
                self.collector.close(burst)
        self._forget(entry, now)

    def _cancel(self, entry: Entry, outcome: Outcome, reason: Reason, now: float) -> list[Effect]:
        self._move(entry, RunState.STOPPING, now)
        entry.stop_outcome = outcome
        entry.reason = reason
        self._arm(entry, Grace(entry), now + self._cancel_grace_s)
        return [Cancel(entry.id, reason)]

    def _abandon(self, entry: Entry, now: float) -> list[Effect]:
        """Give up on a run that ignores its cancellation: its slots count no more."""
        self._move(entry, RunState.ABANDONED, now)
        entry.lane.count(Outcome.ABANDONED)
        ended = Ended(entry.id, Outcome.ABANDONED, entry.reason)
        return [ended, *self._free(entry, now)]

    def _free(self, entry: Entry, now: float) -> list[Effect]:
        """Give back all slots of a run that works no more."""
        session = self.sessions[entry.request.session]
        del session.active[entry.id]
        entry.lane.active -= 1
        agent = self._agent(entry)
        agent.active -= 1
        # Those who wait in the lane's line came before anything that moves up now.
        effects = self._pump(entry.lane, now)
        effects += self._admit(session, now)
        return effects + self._serve(agent, now)

    def _forget(self, entry: Entry, now: float) -> None:
        self._move(entry, RunState.DONE, now)
        del self.entries[entry.id]
        for _ in range(entry.timers):
            self.timers.retire()
        for session in {session for _, session in entry.lineage}:  # ancestors may share one
            kin = self.kin[session]
            del kin[entry.id]
            if not kin:
                del self.kin[session]

    # ------------------------------------------------------------------ small things

    def _evict(self, session: SessionQueue) -> None:
        """Forget a session in which nothing is left, so that memory does not grow with them."""
        if not session.active and not session.waiting:
            self.sessions.pop(session.key, None)

    def _agent(self, entry: Entry) -> AgentSlots:
        name = entry.request.agent
        slots = self._agents.get(name)
        if slots is None:
            slots = self._agents[name] = AgentSlots(None)
        return slots

    def _arm(self, entry: Entry, alarm: Alarm, at: float) -> None:
        entry.timers += 1
        self.timers.add(at, alarm)

    def _move(self, entry: Entry, to: RunState, now: float) -> None:
        if to not in TRANSITIONS[entry.state]:
            raise IllegalTransition(f"{entry.id}: {entry.state} cannot become {to}")
        entry.state = to
        entry.since = now


class Alarm:
    """A timer of one entry; live in the states in which it means something."""

    __slots__ = ("entry",)
    states: tuple[RunState, ...] = ()
    reason = Reason.DEADLINE

    def __init__(self, entry: Entry) -> None:
        self.entry = entry


class Deadline(Alarm):
    """Counts from submission, waiting included (SPEC QUEUE-9)."""

    __slots__ = ()
    states = (_S.COLLECTING, _S.QUEUED, _S.READY, _S.RUNNING)


class RunTimeout(Alarm):
    """Counts from the start of the run (SPEC QUEUE-9)."""

    __slots__ = ()
    states = (_S.RUNNING,)
    reason = Reason.RUN_TIMEOUT


class Grace(Alarm):
    """How long a cancelled run may take to end (SPEC QUEUE-2)."""

    __slots__ = ()
    states = (_S.STOPPING,)


def _is_live(alarm: Alarm) -> bool:
    return alarm.entry.state in alarm.states
