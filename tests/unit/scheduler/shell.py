"""A shell around the scheduler that does nothing: it keeps a clock and notes what it is told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, assert_never

from goclaw_py.core.ids import AgentName, LaneName, RunId, SessionKey
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.scheduler.child_runs import DEFAULT_NESTING, NestingLimits
from goclaw_py.scheduler.effects import (
    Cancel,
    Effect,
    Ended,
    LaneWaitExceeded,
    MergeIntoRun,
    OfferToRun,
    Restart,
    Start,
)
from goclaw_py.scheduler.models import Drop, Mode, QueuePolicy, Request
from goclaw_py.scheduler.scheduler import RunScheduler
from goclaw_py.scheduler.state_machine import StopResult
from goclaw_py.scheduler.views import LaneView, RunState, RunView

CHAT = "chat"
WINDOW_S = 0.8
TYPING = QueuePolicy(debounce_s=WINDOW_S)
GROUP = QueuePolicy(concurrency=3)
INTERRUPT = QueuePolicy(mode=Mode.INTERRUPT)
INTERRUPT_GROUP = QueuePolicy(mode=Mode.INTERRUPT, concurrency=3)
FIVE_S = 5.0


def small(capacity: int, drop: Drop = Drop.OLD) -> QueuePolicy:
    return QueuePolicy(capacity=capacity, drop=drop)


def told(effects: Iterable[Effect]) -> list[str]:
    """Effects as a line each: what, whom, and why or into whom."""
    lines = []
    for effect in effects:
        match effect:
            case Start(request):
                lines.append(f"start {request.id}")
            case Cancel(request, reason):
                lines.append(f"cancel {request.id}: {reason}")
            case MergeIntoRun(request, into):
                lines.append(f"{request.id} joins {into.id}")
            case Restart(request, into):
                lines.append(f"{request.id} again in {into.id}")
            case OfferToRun(request, run):
                lines.append(f"offer {request.id} to {run.id}")
            case LaneWaitExceeded(request, lane, _, occupants):
                inside = " ".join(other.id for other in occupants)
                lines.append(f"{request.id} waits for {lane.name}: {inside}")
            case Ended(request, outcome, None):
                lines.append(f"end {request.id}: {outcome}")
            case Ended(request, outcome, reason):
                lines.append(f"end {request.id}: {outcome}, {reason}")
            case _:
                assert_never(effect)
    return lines


def nothing_is_left(scheduler: RunScheduler) -> None:
    """Hold that a scheduler remembers nothing of what it was told."""
    machine = scheduler._machine
    assert scheduler.idle
    assert scheduler.next_timer() is None
    assert (machine.sessions, machine.kin, machine.aliases) == ({}, {}, {})
    assert (len(machine.timers), len(machine.collector.timers)) == (0, 0)
    assert machine.collector._sessions == {}
    for lane in machine.lanes.values():
        assert (lane.active, lane.waiting, len(lane.line)) == (0, 0, 0)
    for agent in machine.agents.values():
        assert (agent.active, agent.line) == (0, {})


class Shell:
    """Ids, sessions and lanes are plain strings here, so that tests read like a story."""

    def __init__(
        self,
        lanes: Mapping[str, int] | None = None,
        *,
        agents: Mapping[str, int] | None = None,
        grace_s: float = 10.0,
        nesting: NestingLimits = DEFAULT_NESTING,
    ) -> None:
        self.scheduler = RunScheduler(
            {LaneName(name): size for name, size in (lanes or {}).items()},
            agents={AgentName(name): limit for name, limit in (agents or {}).items()},
            cancel_grace_s=grace_s,
            nesting=nesting,
        )
        self.now = 0.0
        self.awaited: set[str] = set()
        self.started: list[str] = []
        self.cancelled: dict[str, Reason] = {}
        self.joined: dict[str, str] = {}
        self.restarted: dict[str, str] = {}
        self.offered: list[tuple[str, str]] = []
        self.slow: list[tuple[str, str, list[str]]] = []
        self.ended: dict[str, tuple[Outcome, Reason | None]] = {}

    def submit(self, run_id: str, session: str = CHAT, **fields: Any) -> list[Effect]:
        request = Request(RunId(run_id), SessionKey(session), **fields)
        if request.awaited:
            self.awaited.add(run_id)
        return self._note(self.scheduler.submit(request, self.now))

    def submit_all(self, *run_ids: str, session: str = CHAT, **fields: Any) -> None:
        for run_id in run_ids:
            self.submit(run_id, session, **fields)

    def finish(self, run_id: str, outcome: Outcome = Outcome.COMPLETED) -> list[Effect]:
        return self._note(self.scheduler.finish(RunId(run_id), outcome, self.now))

    def release(self, run_id: str) -> list[Effect]:
        return self._note(self.scheduler.release(RunId(run_id), self.now))

    def done(self, run_id: str, outcome: Outcome = Outcome.COMPLETED) -> list[Effect]:
        return self._note(self.scheduler.finished(RunId(run_id), outcome, self.now))

    def done_all(self, *run_ids: str) -> None:
        for run_id in run_ids:
            self.done(run_id)

    def stop(self, session: str = CHAT) -> StopResult:
        return self._noted(self.scheduler.stop_oldest(SessionKey(session), self.now))

    def stop_all(self, session: str = CHAT) -> StopResult:
        return self._noted(self.scheduler.stop_all(SessionKey(session), self.now))

    def candidates(self, sender: str, session: str = CHAT) -> dict[str, frozenset[str]]:
        """What a stop of a sender finds, in its order, and whose that is."""
        found = self.scheduler.stop_candidates(SessionKey(session), sender)
        return {one.id: one.people for one in found}

    def release_waiting(self, *among: str) -> list[Effect]:
        chosen = frozenset(map(RunId, among)) or None
        return self._note(self.scheduler.release_waiting(chosen, self.now))

    def interrupt_all(self) -> list[Effect]:
        return self._note(self.scheduler.interrupt_all(self.now))

    def close_lane(self, name: str) -> list[Effect]:
        return self._note(self.scheduler.close_lane(LaneName(name), self.now))

    def take_in(self, request_id: str, run_id: str) -> list[Effect]:
        taken = self.scheduler.steer_in(RunId(request_id), RunId(run_id), self.now)
        return self._note(taken)

    def get_or_create(self, name: str, concurrency: int) -> LaneView:
        return self.scheduler.get_or_create(LaneName(name), concurrency)

    def resize(self, name: str, concurrency: int) -> list[Effect]:
        return self._note(self.scheduler.resize(LaneName(name), concurrency, self.now))

    def limit_agent(self, name: str, limit: int | None) -> list[Effect]:
        return self._note(self.scheduler.limit_agent(AgentName(name), limit, self.now))

    def set_concurrency(self, concurrency: int, session: str = CHAT) -> list[Effect]:
        key = SessionKey(session)
        return self._note(self.scheduler.set_concurrency(key, concurrency, self.now))

    def wait(self, seconds: float) -> None:
        """Let time pass, ringing each timer at the instant that the scheduler asked for."""
        until = self.now + seconds
        while (at := self.scheduler.next_timer()) is not None and at <= until:
            self.now = max(self.now, at)
            self._note(self.scheduler.tick(self.now))
            again = self.scheduler.next_timer()
            assert again is None or again > self.now, "a shell that obeys would spin"
        self.now = until

    @property
    def working(self) -> list[str]:
        """Who has started and not ended, in the order of their starts."""
        return [run_id for run_id in self.started if run_id not in self.ended]

    def view(self, run_id: str) -> RunView:
        return next(run for run in self.scheduler.runs(self.now) if run.id == run_id)

    def occupants(self, name: str = "main") -> list[str]:
        return list(self.scheduler.occupants(LaneName(name)))

    def state(self, run_id: str) -> RunState:
        return self.scheduler.state(RunId(run_id))

    def lane(self, name: str = "main") -> LaneView:
        return next(lane for lane in self.scheduler.lanes() if lane.name == name)

    def assert_nothing_left(self) -> None:
        nothing_is_left(self.scheduler)

    def _noted(self, stop: StopResult) -> StopResult:
        self._note(stop.effects)
        return stop

    def _note(self, effects: list[Effect]) -> list[Effect]:
        for effect in effects:
            match effect:
                case Start(request):
                    assert request.id not in self.started
                    self.started.append(request.id)
                case Cancel(request, reason):
                    assert request.id not in self.cancelled
                    self.cancelled[request.id] = reason
                case MergeIntoRun(request, into):
                    assert request.id not in self.joined
                    self.joined[request.id] = into.id
                case Restart(request, into):
                    self.restarted[request.id] = into.id
                case OfferToRun(request, run):
                    self.offered.append((request.id, run.id))
                case LaneWaitExceeded(request, lane, _, occupants):
                    self.slow.append((request.id, lane.name, [other.id for other in occupants]))
                case Ended(request, outcome, why):
                    assert request.id not in self.ended
                    self.ended[request.id] = (outcome, why)
                case _:
                    assert_never(effect)
        return effects


def one_slot(**fields: object) -> Shell:
    """A run in the only slot of lane ``main``."""
    shell = Shell({"main": 1})
    shell.submit("run", "chat", **fields)
    return shell


def ask(shell: Shell, run_id: str, parent: str, session: str = "", **fields: object) -> list[str]:
    """A run asks for another one and waits for it, in a session of its own if none is named."""
    session = session or f"session of {run_id}"
    return told(shell.submit(run_id, session, parent=parent, awaited=True, **fields))
