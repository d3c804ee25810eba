"""Decides which request runs when: lanes, session queues, bursts, stops.

Pure: no I/O, no clock, no asyncio. ``now`` is any monotonic clock in seconds. Methods return
effects, which the shell must carry out in order; ``next_timer`` tells when to call ``tick``.
``scheduler.state_machine`` has the transitions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import replace

from goclaw_py.core.errors import GoclawError
from goclaw_py.core.ids import MAIN_LANE, AgentName, LaneName, RunId, SessionKey
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.scheduler.admission import Admission
from goclaw_py.scheduler.child_runs import (
    DEFAULT_NESTING,
    NestingLimits,
    with_descendants,
    would_wait,
)
from goclaw_py.scheduler.debounce import RestartLimit
from goclaw_py.scheduler.effects import Effect
from goclaw_py.scheduler.models import (
    LaneState,
    Mode,
    QueuePolicy,
    Request,
    check_count,
    check_type,
)
from goclaw_py.scheduler.run_views import run_view, stop_candidate
from goclaw_py.scheduler.state_machine import RequestStateMachine, StopResult
from goclaw_py.scheduler.states import ABANDONED, FINISHING, QUEUED, RUNNING, STOPPING
from goclaw_py.scheduler.views import LaneLoad, LaneView, RunState, RunView, StopCandidate

DEFAULT_LANES: Mapping[LaneName, int] = {
    MAIN_LANE: 2,
    LaneName("subagent"): 4,
    LaneName("delegate"): 100,
    LaneName("cron"): 1,
}


MAX_LIMIT_S = 1e308
"""The longest time limit: adding it to a clock does not overflow."""


class DuplicateRequest(GoclawError):
    """A live request has this id already; the new one was not accepted."""


class UnknownLane(GoclawError):
    """No lane has this name."""


_WAITING = (RunState.COLLECTING, RunState.QUEUED, RunState.READY)


class RunScheduler:
    """Decides which request runs when.

    Args:
        lanes: Sizes by lane name; the default lanes always exist.
        agents: The number of concurrent runs of an agent, None for no limit; other agents have
            none, and cannot get one later.
        cancel_grace_s: How long a cancelled run may take to end before it is abandoned.
        nesting: The limits of child runs.
        shared: Lanes whose size counts for all nodes together: see ``grant``.
        restarts: How often runs are restarted for a further message; None is the default.
    """

    def __init__(
        self,
        lanes: Mapping[LaneName, int] | None = None,
        *,
        agents: Mapping[AgentName, int | None] | None = None,
        cancel_grace_s: float = 10.0,
        nesting: NestingLimits = DEFAULT_NESTING,
        shared: Collection[LaneName] = (),
        restarts: RestartLimit | None = None,
    ) -> None:
        check_type("cancel_grace_s", cancel_grace_s, float | int)
        if not 0 <= cancel_grace_s <= MAX_LIMIT_S:
            raise ValueError(f"cancel_grace_s is a number of seconds: {cancel_grace_s!r}")
        sizes = {**DEFAULT_LANES, **(lanes or {})}
        made = [LaneState(name, size, shared=name in shared) for name, size in sizes.items()]
        self._machine = RequestStateMachine(made, agents or {}, cancel_grace_s)
        self._intake = Admission(self._machine, nesting, restarts or RestartLimit())
        self._draining = False

    # ------------------------------------------------------------------ requests

    def submit(self, request: Request, now: float) -> list[Effect]:
        """Submit a request.

        It joins a waiting one, is debounced, waits or starts. Raises ``DuplicateRequest`` if a live
        request has its id or it was submitted before, and ``ValueError`` for an invalid time limit.
        """
        machine = self._machine
        if request.seq:
            raise DuplicateRequest(f"request {request.id} is an object that was submitted before")
        if request.id in machine.requests or request.id in machine.aliases:
            raise DuplicateRequest(f"request {request.id} was submitted before and is still live")
        if request.deadline_s is not None or request.run_timeout_s is not None:
            _check_limits(request)
        lane = machine.lanes.get(request.lane) or machine.lanes[MAIN_LANE]
        if self._draining and request.parent is None:  # what runs may end as it would
            machine.refuse(request, Reason.DRAINING)
        elif lane.closed:
            machine.refuse(request, Reason.LANE_CLOSED)
        elif request.parent is not None:
            self._intake.child(request, request.parent, lane, now)
        elif request.sender or request.policy.mode is Mode.INTERRUPT:
            self._intake.message(request, lane, now)
        else:
            machine.enter(request, lane, now)
            machine.enqueue(request, now)
        return self._pop_effects(now)

    def set_senders(self, request_id: RunId, senders: Set[str]) -> None:
        """Set the people who may stop a request as their own; nothing happens after its end."""
        if (request := self._machine.requests.get(request_id)) is not None:
            request.senders = senders

    def steer_in(self, request_id: RunId, run_id: RunId, now: float) -> list[Effect]:
        """Let a run take a message that was offered to it (mode ``steer``, SPEC QUEUE-4).

        Nothing happens, and there is no ``MergeIntoRun``, if the message no longer waits, the turn
        has no room for it, or the run was stopped: then the run must not use it.
        """
        machine = self._machine
        request, run = machine.requests.get(request_id), machine.requests.get(run_id)
        if request is None or run is None or run.state is not RUNNING:
            return []
        session = machine.sessions.get(run.session)
        if request.state is not QUEUED or session is None or request not in session.waiting:
            return []
        if machine.absorb(request, run):
            machine.admit(session, now)
        return self._pop_effects(now)

    def had_effect(self, run_id: RunId) -> None:
        """Note that a run did something that cannot be undone: no message cancels it to join it."""
        request = self._machine.requests.get(run_id)
        if request is not None:
            request.speculative = False

    def finish(self, run_id: RunId, outcome: Outcome, now: float) -> list[Effect]:
        """Decide the outcome of a run whose task has ended; it keeps its slots until ``release``.

        A stopped run has the outcome of the stop, whatever its task returned.
        """
        request = self._machine.requests.get(run_id)
        if request is not None:
            self._machine.finish(request, outcome, now)
        return self._pop_effects(now)

    def release(self, run_id: RunId, now: float) -> list[Effect]:
        """Release the slots of a run whose outcome is stored."""
        request = self._machine.requests.get(run_id)
        if request is not None:
            self._machine.release(request, now)
        return self._pop_effects(now)

    def finished(self, run_id: RunId, outcome: Outcome, now: float) -> list[Effect]:
        """Call ``finish`` and ``release``, for shells that store nothing."""
        machine = self._machine
        request = machine.requests.get(run_id)
        if request is not None:
            machine.finish(request, outcome, now)
            if request.state is FINISHING:  # not if it had been given up
                machine.release(request, now)
        return self._pop_effects(now)

    # ------------------------------------------------------------------ stopping

    def stop_oldest(self, session_key: SessionKey, now: float) -> StopResult:
        """Cancel the oldest run, otherwise the oldest waiting request (QUEUE-8, ``cancel_one``)."""
        machine = self._machine
        target = self._oldest(session_key, None)
        if target is not None:
            family = with_descendants(target, machine.kin)
            return self._end_all(family, Outcome.CANCELLED, Reason.STOPPED, now)
        session = machine.sessions.get(session_key)
        is_stopping = session is not None and session.is_stopping(None)
        return StopResult(already_stopping=is_stopping)

    def _oldest(self, session_key: SessionKey, sender: str | None) -> Request | None:
        """Return the request that a stop of one cancels; None if the sender has none."""
        machine = self._machine
        session = machine.sessions.get(session_key)
        waiting = [burst.leader for burst in machine.collector.of(session_key)]
        waiting = [request for request in waiting if request.is_of(sender)]
        if session is not None:
            active = session.oldest_active(sender)
            if active is not None or session.is_stopping(sender):
                return active
            waiting += [request for request in session.waiting if request.is_of(sender)][:1]
        return min(waiting, key=_seq, default=None)

    def stop_one(self, run_id: RunId, now: float) -> StopResult:
        """Cancel a request in any state, with its descendants (SPEC CMD-2)."""
        machine = self._machine
        # A run that was cancelled for a further message has the other request as its alias.
        request = machine.aliases.get(run_id) or machine.requests.get(run_id)
        if request is None:
            return StopResult()
        if request.state in (STOPPING, ABANDONED) and not request.is_stoppable:
            return StopResult(already_stopping=True)
        family = with_descendants(request, machine.kin)
        return self._end_all(family, Outcome.CANCELLED, Reason.STOPPED, now)

    def fail(self, run_id: RunId, reason: Reason, now: float) -> list[Effect]:
        """Fail a request with the children that it waits for (SPEC AGENT-5).

        Nothing happens if it has ended or is being stopped.
        """
        request = self._machine.requests.get(run_id)
        if request is None or not (request.waits or request.state is RUNNING):
            return []
        return self._end_all([request], Outcome.FAILED, reason, now).effects

    def stop_all(self, session_key: SessionKey, now: float) -> StopResult:
        """Cancel all of a session: runs, queue, debounce buffer, children (``cancel_all``)."""
        machine = self._machine
        requests = [burst.leader for burst in machine.collector.of(session_key)]
        session = machine.sessions.get(session_key)
        stopping = False
        if session is not None:
            requests += [*session.waiting, *session.active.values()]
            stopping = session.is_stopping(None)
        requests += machine.kin.get(session_key, {}).values()
        requests.sort(key=_seq)
        stop = self._end_all(requests, Outcome.CANCELLED, Reason.STOPPED_ALL, now)
        stop.already_stopping = stopping and not stop.stopped
        return stop

    def stop_candidates(
        self, session_key: SessionKey, sender: str | None = None, besides: Iterable[RunId] = ()
    ) -> list[StopCandidate]:
        """Return the requests of a session, and some ``besides``, with all their children.

        What ``stop_oldest`` cancels for this sender comes first, then what it cancels for anybody;
        then what is stopping, and the rest in the order of submission.
        """
        machine = self._machine
        session = machine.sessions.get(session_key)
        active = () if session is None else session.active.values()
        own = [r for r in machine.requests.values() if r.session == session_key]
        first = [self._oldest(session_key, one) for one in {sender: None, None: None}]
        stopping = [r for r in active if r.was_stopped]
        kin = machine.kin.get(session_key, {}).values()
        more = [machine.requests[run_id] for run_id in besides if run_id in machine.requests]
        rest = [one for request in more for one in with_descendants(request, machine.kin)]
        return [
            stop_candidate(request, machine.requests.keys(), is_stopping=request in stopping)
            for request in dict.fromkeys((*filter(None, first), *stopping, *own, *kin, *rest))
        ]

    def stop_these(self, run_ids: Iterable[RunId], reason: Reason, now: float) -> StopResult:
        """Cancel some requests together: none of those that wait starts meanwhile."""
        machine = self._machine
        requests = [machine.requests[run_id] for run_id in run_ids if run_id in machine.requests]
        return self._end_all(sorted(requests, key=_seq), Outcome.CANCELLED, reason, now)

    # ------------------------------------------------------------------ time

    def next_timer(self) -> float | None:
        """Return when to call ``tick`` next; may be early, never late."""
        machine = self._machine
        alarm, burst = machine.timers.next_at(), machine.collector.next_at()
        if alarm is None or burst is None:
            return burst if alarm is None else alarm
        return min(alarm, burst)

    @property
    def timers_set(self) -> int:
        """Return a counter of timers; ``next_timer`` can become earlier only if it changes."""
        return self._machine.timers.added + self._machine.collector.timers.added

    def tick(self, now: float) -> list[Effect]:
        """Handle what is due: debounce windows, deadlines, time limits, grace periods."""
        machine = self._machine
        while True:
            # Time limits first: what has expired does not start, however late the call.
            if (alarm := machine.timers.pop_due(now)) is not None:
                machine.ring(alarm, now)
            elif (leader := machine.collector.pop_due(now)) is not None:
                leader.speculative = False
                machine.enqueue(leader, now)
            else:
                return self._pop_effects(now)

    # ------------------------------------------------------------------ shutdown

    def drain(self) -> None:
        """Refuse new requests. Accepted ones continue."""
        self._draining = True

    @property
    def draining(self) -> bool:
        """Return whether ``drain`` was called."""
        return self._draining

    def release_waiting(self, among: Set[RunId] | None, now: float) -> list[Effect]:
        """End waiting requests as ``interrupted``: all, or those ``among`` some."""
        requests = self._machine.requests.values()
        waiting = [r for r in requests if r.waits and (among is None or r.id in among)]
        return self._end_all(waiting, Outcome.INTERRUPTED, Reason.SHUTDOWN, now).effects

    def interrupt_all(self, now: float) -> list[Effect]:
        """End everything as ``interrupted``; runs are cancelled and get their grace period."""
        requests = list(self._machine.requests.values())
        return self._end_all(requests, Outcome.INTERRUPTED, Reason.SHUTDOWN, now).effects

    def close_lane(self, name: LaneName, now: float) -> list[Effect]:
        """Reject what waits in a lane, and all later requests. Its runs continue.

        Raises ``UnknownLane``.
        """
        lane = self._lane(name)
        lane.closed = True
        waiting = [r for r in self._machine.requests.values() if r.waits and r.place is lane]
        return self._end_all(waiting, Outcome.REJECTED, Reason.LANE_CLOSED, now).effects

    # ------------------------------------------------------------------ sizes

    def get_or_create(self, name: LaneName, concurrency: int) -> LaneView:
        """Return a lane; create it if it does not exist (SPEC LANE-2)."""
        lane = self._machine.lanes.get(name)
        if lane is None:
            lane = self._machine.lanes[name] = LaneState(name, concurrency)
        return lane.view()

    def resize(self, name: LaneName, concurrency: int, now: float) -> list[Effect]:
        """Resize a lane; its runs continue (SPEC LANE-9).

        Raises ``UnknownLane``, and ``ValueError`` for a size below 1.
        """
        check_count("concurrency", concurrency)
        lane = self._lane(name)
        self._machine.has_less_room |= concurrency < lane.concurrency
        lane.resize(concurrency)
        self._machine.slots.pump(lane, now)
        return self._pop_effects(now)

    def limit_agent(self, name: AgentName, limit: int | None, now: float) -> list[Effect]:
        """Set the number of concurrent runs of an agent, None for no limit; its runs continue.

        Raises ``ValueError`` for a limit below 1, and for an agent that the constructor did not
        get.
        """
        if limit is not None:
            check_count("max_concurrent", limit)
        if name not in self._machine.agents:
            raise ValueError(f"agent {name} is not known")
        self._machine.limit_agent(name, limit, now)
        return self._pop_effects(now)

    def agent_limit(self, name: AgentName) -> int | None:
        """Return the number of concurrent runs of an agent, None for no limit."""
        slots = self._machine.agents.get(name)
        return None if slots is None else slots.limit

    def grant(self, name: LaneName, places: int, elsewhere: int, now: float) -> list[Effect]:
        """Add slots of a shared lane; each run returns its slot at its end.

        ``elsewhere`` is the number of slots of other nodes. Raises ``UnknownLane``, and
        ``ValueError`` for a lane that is not shared.
        """
        lane = self._lane(name)
        if not lane.shared:
            raise ValueError(f"lane {name} is not shared")
        lane.elsewhere = elsewhere
        lane.room += places
        self._machine.slots.pump(lane, now)
        # The waiting runs may have left: an unused slot belongs to other nodes.
        lane.room = lane.active
        return self._pop_effects(now)

    def set_concurrency(self, key: SessionKey, concurrency: int, now: float) -> list[Effect]:
        """Set the number of concurrent runs of a session, until its next request.

        Its runs continue (SPEC QUEUE-7). Raises ``ValueError`` for a number below 1.
        """
        check_count("concurrency", concurrency)
        machine = self._machine
        for burst in machine.collector.of(key):  # they were submitted before
            burst.leader.policy = replace(burst.leader.policy, concurrency=concurrency)
        session = machine.sessions.get(key)
        if session is not None:
            machine.set_concurrency(session, concurrency, now)
        return self._pop_effects(now)

    # ------------------------------------------------------------------ looking

    def lanes(self) -> tuple[LaneView, ...]:
        """Return all lanes."""
        return tuple(lane.view() for lane in self._machine.lanes.values())

    def lane_load(self, name: LaneName) -> LaneLoad:
        """Return the present load of a lane. Raises ``UnknownLane``."""
        lane = self._lane(name)
        return LaneLoad(lane.concurrency, lane.active, lane.waiting)

    def runs(self, now: float) -> tuple[RunView, ...]:
        """Return all unfinished requests in the order of submission."""
        machine = self._machine
        return tuple(run_view(r, machine.sessions, now) for r in machine.requests.values())

    def counts(self) -> tuple[int, int]:
        """Return the numbers of unfinished requests that have started and that wait."""
        requests = self._machine.requests.values()
        waiting = [request for request in requests if request.state in _WAITING]
        return len(requests) - len(waiting), len(waiting)

    def policy(self, key: SessionKey) -> QueuePolicy | None:
        """Return the queue policy of a session's newest request, None without one."""
        requests = [r for r in self._machine.requests.values() if r.session == key]
        return max(requests, key=_seq).policy if requests else None

    def occupants(self, name: LaneName) -> tuple[RunId, ...]:
        """Return the runs in a lane's slots, including those in the slot of a parent."""
        lane = self._lane(name)
        return tuple(r.id for r in self._machine.requests.values() if r.works_in(lane))

    def state(self, run_id: RunId) -> RunState:
        """Return the state of a request; DONE if it is unknown."""
        request = self._machine.requests.get(run_id)
        return RunState.DONE if request is None else request.state

    def would_wait_for(self, run_id: RunId, request_id: RunId) -> bool:
        """Return whether a request cannot end before a run, which then must not wait for it."""
        machine = self._machine
        run, request = machine.requests.get(run_id), machine.requests.get(request_id)
        if run is None or request is None:
            return False
        return would_wait(request, run, machine.requests.values(), machine.sessions)

    @property
    def busy(self) -> bool:
        """Return whether anything is unfinished and not abandoned."""
        return any(r.state is not ABANDONED for r in self._machine.requests.values())

    @property
    def idle(self) -> bool:
        """Return whether nothing is left, including abandoned runs."""
        return not self._machine.requests

    def has_session(self, key: SessionKey) -> bool:
        """Return whether a session has a request that is running, waiting or debounced."""
        return key in self._machine.sessions or bool(self._machine.collector.of(key))

    # ------------------------------------------------------------------ inside

    def _end_all(
        self, requests: Iterable[Request], outcome: Outcome, reason: Reason, now: float
    ) -> StopResult:
        stop = self._machine.end_all(requests, outcome, reason, now)
        stop.effects = self._pop_effects(now)
        return stop

    def _pop_effects(self, now: float) -> list[Effect]:
        machine = self._machine
        if machine.has_less_room:
            self._intake.unblock(now)
        return machine.pop_effects()

    def _lane(self, name: LaneName) -> LaneState:
        lane = self._machine.lanes.get(name)
        if lane is None:
            known = ", ".join(self._machine.lanes)
            raise UnknownLane(f"there is no lane {name!r}; there are: {known}")
        return lane


def _check_limits(request: Request) -> None:
    for name in ("deadline_s", "run_timeout_s"):
        limit_s = getattr(request, name)
        check_type(name, limit_s, float | int | None)
        if limit_s is not None and not 0 <= limit_s <= MAX_LIMIT_S:
            raise ValueError(f"{name} is a number of seconds, at least 0: {limit_s!r}")


def _seq(request: Request) -> int:
    return request.seq
