"""Which request runs when: lanes, session queues, bursts, stops.

Pure: no I/O, no clock, no asyncio. ``now`` is any clock in seconds that never goes back. Methods
return effects, in the order in which the shell must carry them out; ``next_timer`` tells when to
call ``tick``. The transitions themselves are in ``core.machine``.
"""

from __future__ import annotations

from collections.abc import Mapping

from goclaw_py.core.collector import CUT_WINDOW_S, Burst
from goclaw_py.core.effects import Effect, Ended, Join
from goclaw_py.core.errors import GoclawError
from goclaw_py.core.ids import MAIN_LANE, AgentName, LaneName, RunId, SessionKey
from goclaw_py.core.machine import Machine, Stop
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.queues import Entry, Lane, SessionQueue
from goclaw_py.core.requests import Mode, Request
from goclaw_py.core.status import LaneView, RunState, RunView

DEFAULT_LANES: Mapping[LaneName, int] = {
    MAIN_LANE: 2,
    LaneName("subagent"): 4,
    LaneName("delegate"): 100,
    LaneName("cron"): 1,
}


class DuplicateRequest(GoclawError):
    """A live request has this id already; the second one was not taken."""


class Scheduler:
    """Decides which request runs when.

    Args:
        lanes: Concurrency by lane name; the default lanes are always there.
        agents: How many runs of an agent may work at once; agents not named have no limit.
        cancel_grace_s: How long a cancelled run may take to end before it is abandoned.
    """

    def __init__(
        self,
        lanes: Mapping[LaneName, int] | None = None,
        *,
        agents: Mapping[AgentName, int] | None = None,
        cancel_grace_s: float = 10.0,
    ) -> None:
        sizes = {**DEFAULT_LANES, **(lanes or {})}
        made = [Lane(name, size) for name, size in sizes.items()]
        self._machine = Machine(made, agents or {}, cancel_grace_s)
        self._draining = False

    # ------------------------------------------------------------------ requests

    def submit(self, request: Request, now: float) -> list[Effect]:
        """Take a request.

        It joins one that waits, goes into the debounce buffer, queues or starts. Raises
        ``DuplicateRequest`` if a live request has its id.
        """
        machine = self._machine
        if request.id in machine.entries:
            raise DuplicateRequest(f"request {request.id} was submitted before and is still live")
        if self._draining:
            return [Ended(request.id, Outcome.REJECTED, Reason.DRAINING)]
        lane = machine.lanes.get(request.lane) or machine.lanes[MAIN_LANE]
        if lane.closed:
            return [Ended(request.id, Outcome.REJECTED, Reason.LANE_CLOSED)]
        burst = machine.collector.find(request.session, request.sender)
        if request.policy.mode is Mode.INTERRUPT:
            return self._interrupt(request, lane, burst, now)
        if burst is not None:
            return self._prolong(request, burst, now)
        session = machine.sessions.get(request.session)
        if session is not None:
            into = _joinable(session, request, lane, now)
            if into is not None:
                return _join(request, into, now)
        entry = machine.enter(request, lane, now)
        window_s = _window_s(request)
        if window_s and (session is None or request.cut):
            machine.collector.begin(entry, window_s, now)
            return []
        return machine.enqueue(entry, now)

    def finish(self, run_id: RunId, outcome: Outcome, now: float) -> list[Effect]:
        """The run's task has ended. Decides its outcome; the slots stay taken until ``release``.

        A run that was stopped ends as what stopped it says, whatever its task returned.
        """
        entry = self._machine.entries.get(run_id)
        return [] if entry is None else self._machine.finish(entry, outcome, now)

    def release(self, run_id: RunId, now: float) -> list[Effect]:
        """The outcome is stored: the run's slots go to those who wait."""
        entry = self._machine.entries.get(run_id)
        return [] if entry is None else self._machine.release(entry, now)

    def finished(self, run_id: RunId, outcome: Outcome, now: float) -> list[Effect]:
        """``finish`` and ``release`` in one, for shells that store nothing."""
        return self.finish(run_id, outcome, now) + self.release(run_id, now)

    # ------------------------------------------------------------------ stopping

    def stop_oldest(self, session_key: SessionKey, now: float) -> Stop:
        """Cancel the oldest run, or else the oldest that waits (SPEC QUEUE-8, ``cancel_one``)."""
        machine = self._machine
        session = machine.sessions.get(session_key)
        target: Entry | None = None
        if session is not None:
            target = session.oldest_running() or session.oldest_ready()
            if target is None and session.is_stopping():
                return Stop(already_stopping=True)
        if target is None:
            waiting = [burst.leader for burst in machine.collector.of(session_key)]
            if session is not None and session.waiting:
                waiting.append(session.waiting[0])
            target = min(waiting, key=_seq, default=None)
        if target is None:
            return Stop()
        family = machine.with_descendants(target)
        return machine.cut(family, Outcome.CANCELLED, Reason.STOPPED, now)

    def stop_all(self, session_key: SessionKey, now: float) -> Stop:
        """Cancel all of a session: runs, queue, debounce buffer, children (``cancel_all``)."""
        machine = self._machine
        entries = [burst.leader for burst in machine.collector.of(session_key)]
        session = machine.sessions.get(session_key)
        stopping = False
        if session is not None:
            entries += [*session.waiting, *session.active.values()]
            stopping = session.is_stopping()
        entries += machine.kin.get(session_key, {}).values()
        entries.sort(key=_seq)
        stop = machine.cut(entries, Outcome.CANCELLED, Reason.STOPPED_ALL, now)
        stop.already_stopping = stopping and not stop.stopped
        return stop

    # ------------------------------------------------------------------ time

    def next_timer(self) -> float | None:
        """When to call ``tick`` next. It may be early, never late."""
        alarm, burst = self._machine.timers.next_at(), self._machine.collector.next_at()
        if alarm is None or burst is None:
            return burst if alarm is None else alarm
        return min(alarm, burst)

    def tick(self, now: float) -> list[Effect]:
        """Let pass what is due: debounce windows, deadlines, time limits, grace periods."""
        machine = self._machine
        effects: list[Effect] = []
        while (leader := machine.collector.pop_due(now)) is not None:
            effects += machine.enqueue(leader, now)
        while (alarm := machine.timers.pop_due(now)) is not None:
            effects += machine.ring(alarm, now)
        return effects

    # ------------------------------------------------------------------ shutdown

    def drain(self) -> None:
        """Take no more requests. What was taken goes on."""
        self._draining = True

    @property
    def draining(self) -> bool:
        """Whether ``drain`` was called."""
        return self._draining

    def release_waiting(self, now: float) -> list[Effect]:
        """End everything that has not started as ``interrupted``."""
        waiting = [entry for entry in self._machine.entries.values() if entry.waits]
        return self._machine.cut(waiting, Outcome.INTERRUPTED, Reason.SHUTDOWN, now).effects

    def interrupt_all(self, now: float) -> list[Effect]:
        """End everything as ``interrupted``; runs are cancelled and get their grace period."""
        entries = list(self._machine.entries.values())
        return self._machine.cut(entries, Outcome.INTERRUPTED, Reason.SHUTDOWN, now).effects

    def close_lane(self, name: LaneName, now: float) -> list[Effect]:
        """Reject what waits in a lane and all that comes later. Runs in it go on."""
        lane = self._machine.lanes[name]
        lane.closed = True
        waiting = [e for e in self._machine.entries.values() if e.waits and e.lane is lane]
        return self._machine.cut(waiting, Outcome.REJECTED, Reason.LANE_CLOSED, now).effects

    # ------------------------------------------------------------------ looking

    def get_or_create(self, name: LaneName, concurrency: int) -> LaneView:
        """Make a lane; if it is there already, it keeps its size (SPEC LANE-2)."""
        lane = self._machine.lanes.get(name)
        if lane is None:
            lane = self._machine.lanes[name] = Lane(name, concurrency)
        return lane.view()

    def lanes(self) -> tuple[LaneView, ...]:
        """All lanes."""
        return tuple(lane.view() for lane in self._machine.lanes.values())

    def runs(self, now: float) -> tuple[RunView, ...]:
        """All requests that are not done, in order of submission."""
        return tuple(e.view(now) for e in sorted(self._machine.entries.values(), key=_seq))

    def state(self, run_id: RunId) -> RunState:
        """Where a request is; DONE if it is not known."""
        entry = self._machine.entries.get(run_id)
        return RunState.DONE if entry is None else entry.state

    @property
    def idle(self) -> bool:
        """Whether nothing is left, abandoned runs included."""
        return not self._machine.entries

    def has_session(self, key: SessionKey) -> bool:
        """Whether anything of this session runs, waits or is being collected."""
        return key in self._machine.sessions or bool(self._machine.collector.of(key))

    # ------------------------------------------------------------------ inside

    def _prolong(self, request: Request, burst: Burst, now: float) -> list[Effect]:
        """One more message of an open burst."""
        machine = self._machine
        was_cut = burst.leader.cut
        effects = _join(request, burst.leader, now)
        if was_cut and not request.cut and not request.policy.debounce_s:
            # Only the rest of a text was waited for, and here it is.
            return effects + machine.enqueue(machine.collector.close(burst), now)
        machine.collector.prolong(burst, now)
        return effects

    def _interrupt(
        self, request: Request, lane: Lane, burst: Burst | None, now: float
    ) -> list[Effect]:
        """A message that goes before all others of its session (SPEC QUEUE-3).

        The rest of a cut text belongs to the message that has interrupted already.
        """
        machine = self._machine
        effects: list[Effect] = []
        session = machine.sessions.get(request.session)
        if session is not None and not (burst is not None and burst.leader.alone):
            effects += self._make_way(session, now)
        if burst is None:
            entry = machine.enter(request, lane, now)
            if request.cut:
                machine.collector.begin(entry, _window_s(request), now)
        else:
            entry = burst.leader
            effects += _join(request, entry, now)
            if request.cut:
                machine.collector.prolong(burst, now)
            else:
                machine.collector.close(burst)
        entry.alone = True
        return effects if request.cut else effects + machine.enqueue(entry, now)

    def _make_way(self, session: SessionQueue, now: float) -> list[Effect]:
        """Drop what waits in a session and cancel what runs."""
        cut, reason = self._machine.cut, Reason.NEWER_MESSAGE
        active = list(session.active.values())
        waiting = [*session.waiting, *(e for e in active if e.waits)]
        effects = cut(waiting, Outcome.DROPPED, reason, now).effects
        return effects + cut(active, Outcome.CANCELLED, reason, now).effects


def _joinable(session: SessionQueue, request: Request, lane: Lane, now: float) -> Entry | None:
    """The sender's last waiting entry, if this message belongs to it (SPEC QUEUE-6)."""
    if not request.sender:
        return None
    into = session.last_waiting_of(request.sender)
    if into is None or into.lane is not lane:
        return None
    window_s = request.policy.debounce_s
    return into if into.cut or (window_s and now - into.last_at <= window_s) else None


def _join(request: Request, into: Entry, now: float) -> list[Effect]:
    into.last_at = now
    into.cut = request.cut
    return [Join(request.id, into.id)]


def _window_s(request: Request) -> float:
    """How long to wait for more of the same sender; 0 is not at all."""
    if not request.sender:
        return 0.0
    if request.cut:
        return max(request.policy.debounce_s, CUT_WINDOW_S)
    return request.policy.debounce_s


def _seq(entry: Entry) -> int:
    return entry.seq
