"""Books that a test keeps about a scheduler, and the laws that must hold in them.

They are kept from the effects and from what the scheduler was told; they look inside only for what
no effect shows: the states of those who wait, and whether anything is left at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from goclaw_py.model.ids import MAIN_LANE, AgentName, LaneName, RunId, SessionKey
from goclaw_py.model.outcomes import Outcome, Reason
from goclaw_py.scheduler.effects import (
    Cancel,
    Effect,
    Ended,
    LaneWaitExceeded,
    MergeIntoRun,
    OfferToRun,
    Start,
)
from goclaw_py.scheduler.models import Mode, Request
from goclaw_py.scheduler.scheduler import RunScheduler
from goclaw_py.scheduler.views import RunState

WAITING = (RunState.COLLECTING, RunState.QUEUED, RunState.READY)


@dataclass(slots=True)
class Known:
    """What the test knows about one request that did not join another."""

    request: Request
    lane: LaneName
    arrived: int | None = None
    """The step after which it was no more in the debounce buffer."""
    ready: int | None = None
    """The step after which it was first seen waiting for its lane."""
    works: bool = False
    """Its task has not ended yet."""
    holds: bool = False
    """It has slots."""
    started: bool = False
    cancelled: bool = False
    interrupted: tuple[RunId, ...] = ()
    """What it has cancelled: it starts when all these have given their slots back."""
    interrupts: bool = False
    ended: Outcome | None = None


class Books:
    """A scheduler under observation.

    ``sessions`` maps to their concurrency; ``capacity`` is the largest that any request has.
    """

    def __init__(
        self,
        lanes: Mapping[LaneName, int],
        agents: Mapping[AgentName, int],
        sessions: Mapping[SessionKey, int],
        *,
        capacity: int,
        grace_s: float,
    ) -> None:
        self.lanes = lanes
        self.agents = agents
        self.sessions = sessions
        self.capacity = capacity
        self.scheduler = RunScheduler(lanes, agents=agents, cancel_grace_s=grace_s)
        self.now = 0.0
        self.step = 0
        self.count = 0
        self.known: dict[RunId, Known] = {}
        self.past: set[RunId] = set()
        self.joined: dict[RunId, RunId] = {}

    # ------------------------------------------------------------------ what may happen

    def submit(self, request: Request) -> None:
        self.count += 1
        lane = request.lane if request.lane in self.lanes else MAIN_LANE
        self.known[request.id] = Known(request, lane)
        effects = self.scheduler.submit(request, self.now)
        is_message = request.parent is None
        if is_message and request.policy.mode is Mode.INTERRUPT and not self.scheduler.draining:
            self.interrupts(request.id, effects)
        else:
            self.take(effects)

    def interrupts(self, run_id: RunId, effects: list[Effect]) -> None:
        leader_id = next(
            (effect.into.id for effect in effects if isinstance(effect, MergeIntoRun)), run_id
        )
        leader = self.known[leader_id]
        rest_of_a_text, leader.interrupts = leader.interrupts, True
        others = {
            other_id: other
            for other_id, other in self.known.items()
            if other is not leader and other.request.session == leader.request.session
        }
        if not rest_of_a_text:
            leader.interrupted = tuple(other_id for other_id in others if others[other_id].holds)
        self.take(effects)
        if not rest_of_a_text:
            for other_id, other in others.items():
                assert other.cancelled or not other.works
                assert self.scheduler.state(other_id) not in (RunState.QUEUED, RunState.READY)

    def task_ends(self, run_id: RunId, outcome: Outcome) -> None:
        self.known[run_id].works = False
        self.take(self.scheduler.finish(run_id, outcome, self.now))

    def outcome_is_stored(self, run_id: RunId) -> None:
        self.known[run_id].holds = False
        self.take(self.scheduler.release(run_id, self.now))

    def stop(self, session: SessionKey) -> None:
        stop = self.scheduler.stop_oldest(session, self.now)
        assert all(self.known[run].started for run in stop.stopped)
        assert not any(self.known[run].started for run in stop.dropped)
        self.take(stop.effects)

    def stop_all(self, session: SessionKey) -> None:
        self.take(self.scheduler.stop_all(session, self.now).effects)
        for run_id, known in self.known.items():
            if known.request.session == session:
                assert known.cancelled or not known.works
                assert self.scheduler.state(run_id) not in WAITING

    def time_passes(self, seconds: float) -> None:
        until = self.now + seconds
        while (at := self.scheduler.next_timer()) is not None and at <= until:
            self.now = max(self.now, at)
            self.take(self.scheduler.tick(self.now))
            again = self.scheduler.next_timer()
            assert again is None or again > self.now, "a shell that obeys would spin"
            self.check()
        self.now = until

    def shell_is_late(self, seconds: float) -> None:
        self.now += seconds
        self.take(self.scheduler.tick(self.now))

    def release_waiting(self) -> None:
        self.take(self.scheduler.release_waiting(None, self.now))
        assert not any(self.scheduler.state(run_id) in WAITING for run_id in self.known)

    def all_ends(self) -> None:
        """Drain, let all tasks end, and look for what is left."""
        self.scheduler.drain()
        while not self.scheduler.idle:
            self.time_passes(1.0)
            for run_id in self.working():
                self.task_ends(run_id, Outcome.COMPLETED)
            for run_id in self.unstored():
                self.outcome_is_stored(run_id)
            self.check()
        assert self.known == {}, "submitted and never ended"
        assert len(self.past) + len(self.joined) == self.count
        assert all(into in self.past for into in self.joined.values())
        nothing_is_left(self.scheduler)

    # ------------------------------------------------------------------ what is so

    def working(self) -> list[RunId]:
        return [run_id for run_id, known in self.known.items() if known.works]

    def unstored(self) -> list[RunId]:
        return [run_id for run_id, known in self.known.items() if known.holds and not known.works]

    # ------------------------------------------------------------------ keeping them

    def take(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Start(request):
                    self.note_start(request.id)
                case Cancel(request, _):
                    known = self.known[request.id]
                    assert known.works
                    assert not known.cancelled
                    known.cancelled = True
                case MergeIntoRun(request, into):
                    assert self.known[into.id].ended is None
                    assert not self.known[into.id].started
                    assert request.id not in self.joined
                    self.joined[request.id] = into.id
                    del self.known[request.id]
                case OfferToRun() | LaneWaitExceeded():
                    pass
                case Ended(request, outcome, reason):
                    self.note_end(request.id, outcome, reason)
                case _:
                    assert_never(effect)

    def note_start(self, run_id: RunId) -> None:
        known = self.known[run_id]
        assert not known.started, "started twice"
        assert known.ended is None, "started after its end"
        known.started = known.works = known.holds = True
        if known.arrived is None:
            known.arrived = self.step
        self.check_room(known)
        self.check_order(known)

    def check_order(self, new: Known) -> None:
        """Whoever was seen to arrive in an earlier step starts earlier."""
        for other_id, other in self.known.items():
            if other.started or other.ended or other.arrived is None or other.lane != new.lane:
                continue
            if other.request.session == new.request.session:
                assert new.arrived is not None
                assert other.arrived >= new.arrived, f"{new.request.id} overtook {other_id}"
            if other.ready is not None and self.scheduler.state(other_id) is RunState.READY:
                assert new.ready is not None, f"{new.request.id} overtook {other_id} in the lane"
                assert new.ready <= other.ready

    def check_room(self, new: Known) -> None:
        """No limit is exceeded, counted by this test alone."""
        holding = [k for k in self.known.values() if k.holds]
        assert sum(k.lane == new.lane for k in holding) <= self.lanes[new.lane]
        session, agent = new.request.session, new.request.agent
        assert sum(k.request.session == session for k in holding) <= self.sessions[session]
        interrupted = [self.known.get(run_id) for run_id in new.interrupted]
        assert not any(known.holds for known in interrupted if known)
        mine = sum(k.request.agent == agent for k in holding)
        assert mine <= self.agents.get(agent, len(self.known))

    def note_end(self, run_id: RunId, outcome: Outcome, reason: Reason | None) -> None:
        known = self.known[run_id]
        assert known.ended is None, "ended twice"
        known.ended = outcome
        if not known.started:
            assert outcome not in (Outcome.COMPLETED, Outcome.FAILED, Outcome.ABANDONED)
        if outcome is Outcome.ABANDONED:
            assert known.works
            assert known.cancelled
            known.holds = False
        elif known.started:
            assert not known.works, "an outcome before the task has ended"
        assert (reason is None) == (outcome in (Outcome.COMPLETED, Outcome.FAILED))

    def after_a_step(self) -> None:
        self.step += 1
        for run_id, known in list(self.known.items()):
            state = self.scheduler.state(run_id)
            if known.ended and not known.works and not known.holds:
                assert state is RunState.DONE
                self.past.add(run_id)
                del self.known[run_id]
            if known.arrived is None and state is not RunState.COLLECTING:
                known.arrived = self.step
            if known.ready is None and state is RunState.READY:
                known.ready = self.step

    # ------------------------------------------------------------------ laws

    def check(self) -> None:
        """Hold the laws that are true between any two steps."""
        self.after_a_step()
        self.books_and_scheduler_agree()
        self.nobody_waits_for_a_lane_that_has_room()
        self.nobody_waits_for_a_session_and_an_agent_that_have_room()
        self.nobody_queues_beyond_capacity()
        self.the_next_timer_is_not_too_late()
        self.sessions_with_nothing_in_them_are_forgotten()

    def books_and_scheduler_agree(self) -> None:
        for run_id, known in self.known.items():
            state = self.scheduler.state(run_id)
            assert (state in WAITING) == (not known.started and known.ended is None)
            assert (state is RunState.RUNNING) == (known.works and not known.cancelled)
            assert (state is RunState.FINISHING) == (known.holds and not known.works)
            abandoned = known.works and known.ended is Outcome.ABANDONED
            assert (state is RunState.ABANDONED) == abandoned
        for lane in self.scheduler.lanes():
            of_lane = [(r, k) for r, k in self.known.items() if k.lane == lane.name]
            assert lane.active == sum(k.holds for _, k in of_lane)
            ready = [r for r, _ in of_lane if self.scheduler.state(r) is RunState.READY]
            assert lane.waiting == len(ready)

    def nobody_waits_for_a_lane_that_has_room(self) -> None:
        for lane in self.scheduler.lanes():
            assert lane.waiting == 0 or lane.active == lane.concurrency

    def nobody_waits_for_a_session_and_an_agent_that_have_room(self) -> None:
        machine = self.scheduler._machine
        for session in machine.sessions.values():
            if not session.waiting:
                continue
            first = session.waiting[0]
            slots = [k for k in self.known.values() if self.has_slot(k)]
            in_session = sum(k.request.session == session.key for k in slots)
            of_agent = sum(k.request.agent == first.agent for k in slots)
            room = 0 if session.waiting[0].alone else self.sessions[session.key] - 1
            agent_room = self.agents.get(first.agent, len(self.known) + 1) - 1
            assert in_session > room or of_agent > agent_room

    def nobody_queues_beyond_capacity(self) -> None:
        for session in self.scheduler._machine.sessions.values():
            assert len(session.waiting) <= self.capacity

    def the_next_timer_is_not_too_late(self) -> None:
        ends = [burst.ends_at for burst in self.scheduler._machine.collector.all()]
        at = self.scheduler.next_timer()
        assert not ends or (at is not None and at <= min(ends))

    def sessions_with_nothing_in_them_are_forgotten(self) -> None:
        for session in self.scheduler._machine.sessions.values():
            assert session.active or session.waiting

    def has_slot(self, known: Known) -> bool:
        state = self.scheduler.state(known.request.id)
        return known.holds or state is RunState.READY


def nothing_is_left(scheduler: RunScheduler) -> None:
    """Hold that a scheduler remembers nothing of what it was told."""
    machine = scheduler._machine
    assert scheduler.idle
    assert scheduler.next_timer() is None
    assert (machine.sessions, machine.kin, machine.collector._sessions) == ({}, {}, {})
    assert (len(machine.timers), len(machine.collector.timers)) == (0, 0)
    for lane in machine.lanes.values():
        assert (lane.active, lane.waiting, len(lane.line)) == (0, 0, 0)
    for agent in machine.agents.values():
        assert (agent.active, agent.line) == (0, {})
