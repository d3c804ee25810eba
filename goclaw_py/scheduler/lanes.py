"""Slots of lanes: a request uses its own, or that of a parent that waits for it."""

from __future__ import annotations

from typing import Protocol

from goclaw_py.core.ids import RunId
from goclaw_py.scheduler.child_runs import still_there
from goclaw_py.scheduler.effects import Effect, LaneWaitExceeded
from goclaw_py.scheduler.models import Family, LaneState, Request
from goclaw_py.scheduler.states import READY
from goclaw_py.scheduler.timeouts import SLOW_WAIT_S, TELL_AGAIN_S, LaneWaitTimeout, RequestTimeout
from goclaw_py.scheduler.timer_heap import Timers


class Starter(Protocol):
    """Starts the requests that got a slot."""

    requests: dict[RunId, Request]
    timers: Timers[RequestTimeout | LaneWaitTimeout]
    effects: list[Effect]
    has_less_room: bool

    def begin(self, request: Request, lane: LaneState, now: float) -> None:
        """Start a request that got a slot of a lane, or of a parent in it."""


class LaneQueues:
    """Assigns and releases the slots of lanes."""

    __slots__ = ("_starter",)

    def __init__(self, starter: Starter) -> None:
        self._starter = starter

    def enqueue_run(self, request: Request, now: float) -> None:
        """Give a ready request a slot, or queue it for one."""
        lane = request.place
        family = request.family
        if family is not None and family.host is not None:
            family.host = still_there(family.host)  # it may have ended meanwhile
        if family is not None and family.host is not None:
            self._seat(request, family.host, now)
        elif lane.waiting or lane.active >= lane.room:
            lane.line.append(request)
            lane.waiting += 1
            if lane.watched is None:
                self._watch(lane, max(now + SLOW_WAIT_S, lane.quiet_until))
        else:
            lane.active += 1
            self._starter.begin(request, lane, now)

    def leave(self, request: Request) -> None:
        """Remove a ready request from the queue in which it waits."""
        host = request.family.host if request.family else None
        if host is not None:
            _family(host).line.remove(request)
            return
        lane = request.place
        lane.leave()
        if lane.watched is not None and not lane.waiting:
            self._unwatch(lane)

    def free(self, request: Request, now: float) -> None:
        """Release the slot of an ended run, and give it to the next."""
        lane = request.place
        family = request.family
        if family is None:
            lane.vacate()
        else:
            self._pass_slot(family, lane, now)
        if lane.waiting:
            self.pump(lane, now)

    def pump(self, lane: LaneState, now: float) -> None:
        """Start waiting requests while the lane has free slots."""
        line, begin = lane.line, self._starter.begin
        while lane.waiting and lane.active < lane.room:
            request = line.popleft()
            # Some in the line have left it. This is asked for each run, so it is not a method.
            if request.state is READY and (request.family is None or request.waits_in(lane)):
                lane.waiting -= 1
                lane.active += 1
                begin(request, lane, now)
        if not lane.waiting:
            line.clear()
            if lane.watched is not None:
                self._unwatch(lane)

    # ------------------------------------------------------------------ guests (SPEC LANE-8)

    def nest(self, request: Request, host: Request, now: float) -> None:
        """Let a waiting request use the slot of a run that waits for it."""
        family = _family(request)
        if request.state is READY:
            self.leave(request)
            if family.host is None and request in request.place.line:
                request.place.line.remove(request)  # it may come back, but to the end
            family.host = host
            self._seat(request, host, now)
        else:
            family.host = host

    def _seat(self, request: Request, host: Request, now: float) -> None:
        family = _family(host)
        if family.guest is None:
            self._invite(request, host, now)
        else:
            family.line.append(request)

    def _invite(self, request: Request, host: Request, now: float) -> None:
        _family(host).guest = request
        request.place = host.place
        self._starter.begin(request, host.place, now)

    def _pass_slot(self, family: Family, lane: LaneState, now: float) -> None:
        """Decide which relative uses the slot of an ended run."""
        host, guest = family.host, family.guest
        if guest is not None:
            # It was not waited for. The slot is its own now, or it is the host's next guest.
            _family(guest).host = host
            self._starter.has_less_room = True  # the slot does not become free
            if host is not None:
                _family(host).guest = guest
        elif host is not None:
            _family(host).guest = None
            if _family(host).line:
                self._invite(_family(host).line.popleft(), host, now)
        else:
            lane.vacate()
        for other in family.line:
            _family(other).host = host
            self.enqueue_run(other, now)

    # ------------------------------------------------------------------ slow waits (SPEC LANE-7)

    def report_slow_wait(self, lane: LaneState, now: float) -> None:
        """Report the first request of a lane's queue, once, if it has waited too long."""
        first = lane.first()
        slow_at = max(first.since + SLOW_WAIT_S, lane.quiet_until)
        if now < slow_at:
            self._watch(lane, slow_at)
            return
        self._watch(lane, now + TELL_AGAIN_S)
        if first.seq != lane.told:
            lane.told = first.seq
            lane.quiet_until = now + TELL_AGAIN_S
            inside = tuple(r for r in self._starter.requests.values() if r.works_in(lane))
            self._starter.effects.append(LaneWaitExceeded(first, lane, now - first.since, inside))

    def _watch(self, lane: LaneState, at: float) -> None:
        lane.watched = LaneWaitTimeout(lane)
        self._starter.timers.add(at, lane.watched)

    def _unwatch(self, lane: LaneState) -> None:
        lane.watched = None
        self._starter.timers.retire(1)


def _family(request: Request) -> Family:
    assert request.family is not None
    return request.family
