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

This module has slots and queues; ``scheduler.scheduler`` has the interface. Effects for the shell
are collected in one list, which ``take`` returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import takewhile

from goclaw_py.core.ids import AgentName, RunId, SessionKey
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.scheduler.child_runs import Kin, bind, unbind, with_awaited
from goclaw_py.scheduler.debounce import Debouncer
from goclaw_py.scheduler.effects import (
    Cancel,
    Effect,
    Ended,
    MergeIntoRun,
    OfferToRun,
    Restart,
    Start,
)
from goclaw_py.scheduler.lanes import LaneQueues
from goclaw_py.scheduler.models import AgentSlots, Drop, LaneState, Mode, Request, SessionQueue
from goclaw_py.scheduler.states import (
    ABANDONED,
    COLLECTING,
    DONE,
    FINISHING,
    QUEUED,
    READY,
    RUNNING,
    STOPPING,
    TRANSITIONS,
    illegal,
)
from goclaw_py.scheduler.timeouts import (
    CancelTimeout,
    Deadline,
    LaneWaitTimeout,
    RequestTimeout,
    RunTimeout,
)
from goclaw_py.scheduler.timer_heap import Timers
from goclaw_py.scheduler.views import RunState

_COMPLETED, _FAILED = Outcome.COMPLETED, Outcome.FAILED


@dataclass(slots=True)
class StopResult:
    """The result of a stop. ``already_stopping``: the only run left had been stopped before."""

    effects: list[Effect] = field(default_factory=list)
    stopped: list[RunId] = field(default_factory=list)
    dropped: list[RunId] = field(default_factory=list)
    already_stopping: bool = False


class RequestStateMachine:
    """Sessions, agents and lanes, and the requests in them."""

    def __init__(
        self,
        lanes: Iterable[LaneState],
        agents: Mapping[AgentName, int | None],
        cancel_grace_s: float,
    ) -> None:
        self.requests: dict[RunId, Request] = {}
        self.aliases: dict[RunId, Request] = {}
        """Requests that joined another one, with that one, while it is not done."""
        self.sessions: dict[SessionKey, SessionQueue] = {}
        self.lanes = {lane.name: lane for lane in lanes}
        self.kin: Kin = {}
        """For each session, the live requests that its runs, also ended ones, have created."""
        self.awaited: dict[RunId, Request] = {}
        """The live requests whose parent waits for them."""
        self.has_less_room = False
        """An awaited request may be stuck; see ``Admission.unblock``."""
        self.collector = Debouncer()
        self.timers: Timers[RequestTimeout | LaneWaitTimeout] = Timers(lambda alarm: alarm.live)
        self.slots = LaneQueues(self)
        self.agents = {name: AgentSlots(limit) for name, limit in agents.items()}
        self.unlimited = AgentSlots(None)
        self._cancel_grace_s = cancel_grace_s
        self.effects: list[Effect] = []
        self._seq = 0
        self._starts = 0

    def pop_effects(self) -> list[Effect]:
        """Return the effects to carry out, in order, and forget them."""
        effects, self.effects = self.effects, []
        return effects

    # ------------------------------------------------------------------ coming in

    def enter(self, request: Request, lane: LaneState, now: float) -> None:
        """Add a request, which does not wait anywhere yet."""
        self._seq += 1
        request.seq = self._seq
        request.state = COLLECTING
        request.since = request.last_at = now
        request.place = lane
        request.slots = self.agents.get(request.agent, self.unlimited)
        self.requests[request.id] = request
        if request.deadline_s is not None:
            self._arm(request, Deadline(request), now + request.deadline_s)

    def adopt(self, request: Request, parent: Request) -> None:
        """Make a new request the child of a run."""
        bind(request, parent, self.kin)
        if request.awaited:
            self.awaited[request.id] = request

    def refuse(self, request: Request, reason: Reason | None) -> None:
        """End a request that is not admitted."""
        request.state = DONE
        self.effects.append(Ended(request, Outcome.REJECTED, reason))

    def enqueue(self, request: Request, now: float) -> None:
        """Add a request to its session: it becomes ready, waits, or drops another one."""
        policy = request.policy
        session = self.sessions.get(request.session)
        if session is None:
            session = self.sessions[request.session] = SessionQueue(request.session)
        if session.concurrency != policy.concurrency:
            self.set_concurrency(session, policy.concurrency, now)
        waiting = session.waiting
        room = not waiting and session.may_start(request)
        if room and request.slots.has_room:
            self._make_ready(request, session, now)
            return
        full = len(waiting) >= policy.capacity
        if full and policy.drop is Drop.NEW:
            self.end(request, Outcome.REJECTED, Reason.QUEUE_FULL, now)
            return
        request.state = QUEUED
        request.since = now
        waiting.append(request)
        if room:
            # Sessions share the agent in turns, so this one takes its place in that line.
            request.slots.line.setdefault(session.key)
        elif full:
            self.end(waiting[0], Outcome.DROPPED, Reason.QUEUE_DROPPED, now)
        if policy.mode is Mode.STEER:
            self._offer(request, session)

    def set_concurrency(self, session: SessionQueue, concurrency: int, now: float) -> None:
        """Set the number of concurrent runs of a session."""
        self.has_less_room |= concurrency < session.concurrency
        session.concurrency = concurrency
        if session.waiting:
            first = session.waiting[0]
            if not session.may_start(first):
                first.slots.line.pop(session.key, None)
            self.admit(session, now)

    def limit_agent(self, name: AgentName, limit: int | None, now: float) -> None:
        """Set the number of concurrent runs of an agent; its runs continue."""
        agent = self.agents[name]
        before, agent.limit = agent.limit, limit
        if limit is not None and (before is None or limit < before):
            self.has_less_room = True
        if limit is not None:
            self._serve(agent, now)
            return
        waiting, agent.line = agent.line, {}
        for key in waiting:
            if (session := self.sessions.get(key)) is not None:
                self.admit(session, now)

    def _offer(self, request: Request, session: SessionQueue) -> None:
        """Offer a message to the run of its session (SPEC QUEUE-4)."""
        if request.state is not QUEUED:
            return  # it moved up at once, because the oldest one was dropped for it
        runs = [r for r in session.active.values() if r.state is RUNNING and request.is_like(r)]
        if runs:
            run = max(runs, key=lambda run: run.started)
            if request in self._following(run, Mode.STEER):
                self.effects.append(OfferToRun(request, run))

    # ------------------------------------------------------------------ going on

    def admit(self, session: SessionQueue, now: float) -> None:
        """Make waiting requests of a session ready while session and agent have slots."""
        waiting, active = session.waiting, session.active
        # ``may_start``, written out: this is asked twice for each run.
        while waiting and len(active) < session.concurrency:
            first = waiting[0]
            if first.alone and active:
                return
            agent = first.slots
            if agent.limit is not None:
                agent.line.setdefault(session.key)
                self._serve(agent, now)
                return
            self._make_ready(waiting.popleft(), session, now)
        if not active and not waiting:
            # Forgotten, so that memory does not grow with sessions.
            self.sessions.pop(session.key, None)

    def _serve(self, agent: AgentSlots, now: float) -> None:
        """Give an agent's free slots to the sessions in its queue, one each in turn."""
        while agent.line and agent.has_room:
            key = next(iter(agent.line))
            del agent.line[key]
            session = self.sessions.get(key)
            if session is None or session.next_agent() is not agent:
                continue
            self._make_ready(session.waiting.popleft(), session, now)
            if session.next_agent() is agent:
                agent.line[key] = None
            else:
                self.admit(session, now)

    def _make_ready(self, request: Request, session: SessionQueue, now: float) -> None:
        request.state = READY
        request.since = now
        session.active[request.id] = request
        request.slots.active += 1
        self.slots.enqueue_run(request, now)
        if self.awaited and request.state is READY and request.slots.limit is not None:
            self.has_less_room = True  # it has the agent, but it may never get its lane

    def begin(self, request: Request, lane: LaneState, now: float) -> None:
        """Start a request that got a slot of a lane, or of a parent in it."""
        lane.started += 1
        lane.wait_times.add(now - request.since)
        request.state = RUNNING
        request.since = request.started_at = now
        self._starts += 1
        request.started = self._starts
        if request.run_timeout_s is not None:
            self._arm(request, RunTimeout(request), now + request.run_timeout_s)
        joined = request.policy.mode is Mode.COLLECT and self._collect(request)
        self.effects.append(Start(request))
        self.effects += [OfferToRun(r, request) for r in self._following(request, Mode.STEER)]
        if joined:
            self.admit(self.sessions[request.session], now)

    def _collect(self, request: Request) -> bool:
        """Take what waits in the session into a starting turn (QUEUE-4); return whether any was."""
        others = self._following(request, Mode.COLLECT)
        taken = list(takewhile(lambda other: self.absorb(other, request), others))
        return bool(taken)

    def _following(self, run: Request, mode: Mode) -> list[Request]:
        """Return the waiting requests that may become part of a run, without overtaking others."""
        alike = (r for r in self.sessions[run.session].waiting if r.is_like(run))
        return list(takewhile(lambda r: r.policy.mode is mode, alike))

    def absorb(self, request: Request, into: Request) -> bool:
        """Make a waiting request a part of another one if it has room; return whether it had."""
        if not into.has_room_for(request):
            return False
        self._leave(request)
        self.join(request, into)
        for run_id in request.joined or ():
            self.alias(run_id, into)
        return True

    def join(self, request: Request, into: Request) -> None:
        """Make a request that is not in the session's queue a part of another one."""
        request.state = DONE
        self._add(request, into)
        self.effects.append(MergeIntoRun(request, into))

    def restart(self, run: Request, into: Request, now: float) -> None:
        """Cancel a run, and make its messages a part of a new request."""
        joined, run.joined = run.joined or (), None
        self._add(run, into)
        for run_id in joined:
            self.alias(run_id, into)
        self.effects.append(Restart(run, into))
        self._cancel(run, Outcome.INTERRUPTED, Reason.MERGED, now)

    def _add(self, request: Request, into: Request) -> None:
        into.pieces += request.pieces
        into.chars += request.chars
        if request.senders or into.senders or request.sender != into.sender:
            mine, others = into.senders or {into.sender}, request.senders or {request.sender}
            into.senders = mine | others
        self.alias(request.id, into)

    def alias(self, run_id: RunId, into: Request) -> None:
        """Store that this request is a part of another one."""
        if into.joined is None:
            into.joined = []
        into.joined.append(run_id)
        self.aliases[run_id] = into

    # ------------------------------------------------------------------ ending

    def finish(self, request: Request, outcome: Outcome, now: float) -> None:
        """Handle the end of a run's task; a stopped run has the outcome of the stop."""
        state = request.state
        if state is ABANDONED:
            self._forget(request)
            return
        if state is STOPPING:
            outcome = request.stop_outcome or outcome
        elif state is not RUNNING:
            raise illegal(request, FINISHING)
        self._count_end(request, outcome, now)
        request.state = FINISHING
        request.since = now
        self.effects.append(Ended(request, outcome, request.reason))

    def release(self, request: Request, now: float) -> None:
        """Remove a finished run and release its slots."""
        if request.state is not FINISHING:
            raise illegal(request, DONE)
        self._forget(request)
        self._free(request, now)

    def end_all(
        self,
        requests: Iterable[Request],
        outcome: Outcome,
        reason: Reason,
        now: float,
    ) -> StopResult:
        """End waiting requests and cancel runs among ``requests``.

        Children that a run waits for end with it.
        """
        stop = StopResult()
        listed = list(dict.fromkeys(r for request in requests for r in with_awaited(request)))
        # All who wait leave before any slot is given away: none of them may move up.
        for request in [r for r in listed if r.waits]:
            stop.dropped.append(request.id)
            self._leave(request)
            self.effects.append(Ended(request, outcome, reason))
        for request in listed:
            if request.state is RUNNING:
                stop.stopped.append(request.id)
                self._cancel(request, outcome, reason, now)
            elif outcome is Outcome.CANCELLED and request.is_stoppable:
                # It is being interrupted: its messages would run again.
                stop.stopped.append(request.id)
                request.stop_outcome, request.reason = outcome, reason
        for key in dict.fromkeys(request.session for request in listed):
            if (session := self.sessions.get(key)) is not None:
                self.admit(session, now)
        for agent in dict.fromkeys(request.slots for request in listed):
            self._serve(agent, now)
        return stop

    def end(self, request: Request, outcome: Outcome, reason: Reason, now: float) -> None:
        """End a request, or cancel it if it is running."""
        self.end_all([request], outcome, reason, now)

    def ring(self, alarm: RequestTimeout | LaneWaitTimeout, now: float) -> None:
        """Handle a timer."""
        if isinstance(alarm, LaneWaitTimeout):
            self.slots.report_slow_wait(alarm.lane, now)
        elif isinstance(alarm, CancelTimeout):
            self._abandon(alarm.request, now)
        else:
            self.end(alarm.request, Outcome.TIMED_OUT, alarm.reason, now)

    def _leave(self, request: Request) -> None:
        """Remove a request that has not started from where it waits."""
        if request.state is READY:
            del self.sessions[request.session].active[request.id]
            request.slots.active -= 1
            self.slots.leave(request)
        elif request.state is QUEUED:
            session = self.sessions[request.session]
            session.waiting.remove(request)
            if session.next_agent() is not request.slots:
                request.slots.line.pop(request.session, None)
        else:
            burst = self.collector.find(request.session, request.sender)
            if burst is not None and burst.leader is request:
                self.collector.close(burst)
        self._forget(request)

    def _count_end(self, request: Request, outcome: Outcome, now: float) -> None:
        lane = request.place
        lane.finished += 1
        lane.run_times.add(now - request.started_at)
        if outcome is _FAILED:
            lane.failed += 1
        elif outcome not in (_COMPLETED, Outcome.INTERRUPTED):
            lane.cancelled += 1

    def _cancel(self, request: Request, outcome: Outcome, reason: Reason, now: float) -> None:
        self._move(request, STOPPING, now)
        request.stop_outcome = outcome
        request.reason = reason
        self._arm(request, CancelTimeout(request), now + self._cancel_grace_s)
        self.effects.append(Cancel(request, reason))

    def _abandon(self, request: Request, now: float) -> None:
        """Abandon a run that ignores its cancellation: its slots no longer count."""
        self._move(request, ABANDONED, now)
        self._count_end(request, Outcome.ABANDONED, now)
        self.effects.append(Ended(request, Outcome.ABANDONED, request.reason))
        self._free(request, now)

    def _free(self, request: Request, now: float) -> None:
        """Release all slots of an ended run."""
        session = self.sessions[request.session]
        del session.active[request.id]
        agent = request.slots
        agent.active -= 1
        # Those who wait in the lane's line came before anything that moves up now.
        self.slots.free(request, now)
        self.admit(session, now)
        if agent.line:
            self._serve(agent, now)

    def _forget(self, request: Request) -> None:
        request.state = DONE
        del self.requests[request.id]
        if request.timers:
            self.timers.retire(request.timers)
        if request.joined:
            for run_id in request.joined:
                del self.aliases[run_id]
        if request.parent is not None:
            unbind(request, self.kin)
            self.awaited.pop(request.id, None)

    # ------------------------------------------------------------------ small things

    def _arm(self, request: Request, alarm: RequestTimeout, at: float) -> None:
        request.timers += 1
        self.timers.add(at, alarm)

    def _move(self, request: Request, to: RunState, now: float) -> None:
        if to not in TRANSITIONS[request.state]:
            raise illegal(request, to)
        request.state = to
        request.since = now
