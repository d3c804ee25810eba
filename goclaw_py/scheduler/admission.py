"""Admission of new requests: into another one, the debounce buffer, a session, or rejected."""

from __future__ import annotations

from collections.abc import Iterable

from goclaw_py.core.ids import RunId
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.scheduler.child_runs import NestingLimits, host_of, patient, refusal, where_stuck
from goclaw_py.scheduler.debounce import CUT_WINDOW_S, DebounceBuffer, RestartLimit
from goclaw_py.scheduler.models import Debounce, LaneState, Mode, QueuePolicy, Request, SessionQueue
from goclaw_py.scheduler.state_machine import RequestStateMachine
from goclaw_py.scheduler.states import QUEUED, READY
from goclaw_py.scheduler.views import RunState


class Admission:
    """Admits requests whose lane is open and whose id is new."""

    __slots__ = ("_machine", "_nesting", "_restarts")

    def __init__(
        self, machine: RequestStateMachine, nesting: NestingLimits, restarts: RestartLimit
    ) -> None:
        self._machine = machine
        self._nesting = nesting
        self._restarts = restarts

    # ------------------------------------------------------------------ messages

    def message(self, request: Request, lane: LaneState, now: float) -> None:
        """Admit a message, which may join a waiting one."""
        machine = self._machine
        burst = machine.collector.find(request.session, request.sender)
        if burst is not None and not burst.leader.has_room_for(request):
            # A full turn waits for nothing more; the message begins the next one.
            request.overflowed, request.alone = True, burst.leader.alone
            burst.leader.speculative = False
            machine.enqueue(machine.collector.close(burst), now)
            burst = None
        if request.policy.mode is Mode.INTERRUPT:
            self._interrupt(request, lane, burst, now)
            return
        if burst is not None:
            self._prolong(request, burst, now)
            return
        session = machine.sessions.get(request.session)
        if session is not None:
            into = _joinable(session, request, lane, now)
            if into is not None and into.has_room_for(request):
                self._join(request, into, now)
                return
            run = None if into is not None else _speculative(session, request, lane, now)
            if run is not None and run.has_room_for(request):
                self._restart(run, request, lane, now)
                return
            if run is not None:
                run.speculative = False
            request.overflowed |= into is not None or run is not None
        machine.enter(request, lane, now)
        window_s = _window_s(request)
        if _is_speculative(request.policy):
            request.speculative = self._restarts.count_turn(request)
        if window_s and _waits_for_more(session, request, now):
            machine.collector.begin(request, window_s, now)
        else:
            machine.enqueue(request, now)

    def _restart(self, run: Request, request: Request, lane: LaneState, now: float) -> None:
        """Cancel a speculative run, and collect its messages with those that may follow.

        From now on the window is fixed, so a burst wastes one request at most.
        """
        machine = self._machine
        self._restarts.count_restart(request)
        machine.enter(request, lane, now)
        machine.restart(run, request, now)
        machine.collector.begin(request, _window_s(request), now, since=run.started_at)

    def _prolong(self, request: Request, burst: DebounceBuffer, now: float) -> None:
        """Add a message to an open burst."""
        machine = self._machine
        leader = burst.leader
        was_cut = leader.cut
        self._join(request, leader, now)
        if was_cut and not request.cut and (leader.speculative or not request.policy.debounce_s):
            # Only the rest of a text was waited for, and here it is.
            machine.enqueue(machine.collector.close(burst), now)
        else:
            machine.collector.extend(burst, now)

    def _interrupt(
        self, request: Request, lane: LaneState, burst: DebounceBuffer | None, now: float
    ) -> None:
        """Admit a message that goes before all others of its session (SPEC QUEUE-3).

        The rest of a split text belongs to the message that has interrupted already.
        """
        machine = self._machine
        session = machine.sessions.get(request.session)
        goes_on = request.cut and bool(request.sender)
        follows = request.alone or (burst is not None and burst.leader.alone)
        if session is not None and not follows:
            self._make_way(session, now)
        if burst is None:
            leader = request
            machine.enter(request, lane, now)
            if goes_on:
                machine.collector.begin(request, _window_s(request), now)
        else:
            leader = burst.leader
            self._join(request, leader, now)
            if goes_on:
                machine.collector.extend(burst, now)
            else:
                machine.collector.close(burst)
        leader.alone, leader.speculative = True, False
        if not goes_on:
            machine.enqueue(leader, now)

    def _make_way(self, session: SessionQueue, now: float) -> None:
        """Drop what waits in a session and cancel its runs."""
        cut, reason = self._machine.end_all, Reason.NEWER_MESSAGE
        active = list(session.active.values())
        waiting = [*session.waiting, *(r for r in active if r.waits)]
        cut(waiting, Outcome.DROPPED, reason, now)
        cut(active, Outcome.CANCELLED, reason, now)

    def _join(self, request: Request, into: Request, now: float) -> None:
        into.last_at = now
        into.cut = request.cut
        self._machine.join(request, into)

    # ------------------------------------------------------------------ children

    def child(self, request: Request, parent_id: RunId, lane: LaneState, now: float) -> None:
        """Admit a child run (SPEC LANE-8). It neither joins another request nor is joined."""
        machine = self._machine
        parent = machine.requests.get(parent_id)
        reason = refusal(parent, self._nesting)
        if parent is None or reason is not None:
            machine.refuse(request, reason)
            return
        machine.enter(request, lane, now)
        machine.adopt(request, parent)
        if request.awaited and not self._find_slot(request, parent):
            machine.end(request, Outcome.REJECTED, Reason.WAITS_FOR_ITSELF, now)
        else:
            machine.enqueue(request, now)

    def _find_slot(self, request: Request, parent: Request) -> bool:
        """Decide which slot an awaited child uses; False if it could never start."""
        machine = self._machine
        assert request.family is not None
        waiting = patient(request)
        if any(ancestor.agent == request.agent for ancestor in waiting):
            request.slots = machine.unlimited  # that one does nothing meanwhile
        request.family.host = host_of(request)
        where = self._where_stuck(request)
        if where is READY:
            machine.has_less_room = True  # its parent's guest may be the one that is stuck
            request.family.host = parent
        return where is not QUEUED

    def unblock(self, now: float) -> None:
        """After a reduction of slots, make sure that no child waits for a run that waits for it."""
        machine = self._machine
        while stuck := [r for r in machine.awaited.values() if self._is_stuck(r)]:
            # First one that would start if its family ended: the others may wait for that one.
            stuck.sort(key=lambda request: self._where_stuck(request, patient(request)) is not None)
            if not any(self._get_unstuck(request, now) for request in stuck):
                break
        machine.has_less_room = False

    def _is_stuck(self, request: Request) -> bool:
        """Return whether a request can never start although its parent waits for it."""
        waited_for = request.waits and bool(patient(request))
        return waited_for and self._where_stuck(request) is not None

    def _where_stuck(self, request: Request, ends: Iterable[Request] = ()) -> RunState | None:
        machine = self._machine
        return where_stuck(request, machine.requests.values(), machine.sessions, ends)

    def _get_unstuck(self, request: Request, now: float) -> bool:
        """Fail a stuck child, or let it use its parent's slot; return whether that helped."""
        machine = self._machine
        assert request.family is not None
        parent = request.family.ancestors[0]
        if self._where_stuck(request) is QUEUED:
            machine.end(request, Outcome.REJECTED, Reason.WAITS_FOR_ITSELF, now)
        elif request.family.host is not parent:
            machine.slots.nest(request, parent, now)
        else:
            return False
        return True


def _joinable(
    session: SessionQueue, request: Request, lane: LaneState, now: float
) -> Request | None:
    """Return the sender's last waiting request if this message belongs to it (QUEUE-6)."""
    into = session.last_waiting_of(request.sender)
    if into is None or into.place is not lane:
        return None
    window_s = request.policy.debounce_s
    return into if into.cut or (window_s and now - into.last_at <= window_s) else None


def _speculative(
    session: SessionQueue, request: Request, lane: LaneState, now: float
) -> Request | None:
    """Return the sender's run that this message cancels and joins (QUEUE-6)."""
    run = session.speculative_of(request.sender)
    if run is None or run.place is not lane or not request.policy.debounce_s:
        return None
    return run if now - run.last_at <= request.policy.debounce_s else None


def _is_speculative(policy: QueuePolicy) -> bool:
    return policy.debounce is Debounce.SPECULATIVE and policy.debounce_s > 0


def _waits_for_more(session: SessionQueue | None, request: Request, now: float) -> bool:
    """Return whether a message is debounced before it goes to its session (SPEC QUEUE-6).

    In a busy session only what continues its sender's messages is. Otherwise each short run would
    be followed by another run for the few messages that came during it.
    """
    if request.cut or request.overflowed:
        return True
    if request.speculative:
        return False
    if session is None:
        return True
    last_at = session.last_active_at(request.sender)
    return last_at is not None and now - last_at <= request.policy.debounce_s


def _window_s(request: Request) -> float:
    """Return the debounce time in seconds, 0 for none."""
    if request.cut:
        return max(request.policy.debounce_s, CUT_WINDOW_S)
    return request.policy.debounce_s
