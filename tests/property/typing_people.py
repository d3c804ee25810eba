"""People who type, a scheduler, and runs that take time: which messages each answer is for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heappop, heappush
from itertools import count
from math import log
from random import Random

from goclaw_py.core.ids import RunId, SessionKey
from goclaw_py.core.outcomes import Outcome
from goclaw_py.scheduler.effects import Cancel, Effect, Ended, MergeIntoRun, Restart, Start
from goclaw_py.scheduler.models import Debounce, QueuePolicy, Request
from goclaw_py.scheduler.scheduler import RunScheduler

UNWINDS_S = 1 / 64
"""How long a cancelled run takes to end, and each end to be stored."""


@dataclass(frozen=True, slots=True)
class Said:
    """A message, so many seconds after the one before."""

    gap_s: float
    sender: str = "ann"


@dataclass(frozen=True, slots=True)
class Work:
    """How long a run takes, and when it has an effect."""

    lasts_s: float
    effect_s: float


def stream(
    follow_ups: float, after_s: float, messages: int = 4_000
) -> tuple[list[Said], list[Work]]:
    """A long chat and the runs in it, always the same.

    Such a share of the messages are follow-ups, after a median of ``after_s``. The others begin a
    new subject minutes later. Runs take a median of 3 s, and show text somewhere in between.
    """
    random = Random(1)

    def gap_s() -> float:
        if random.random() < follow_ups:
            return random.lognormvariate(log(after_s), 0.8)
        return random.uniform(30, 300)

    lasts_s = [random.lognormvariate(log(3), 0.6) for _ in range(messages)]
    work = [Work(each, each * random.uniform(0.2, 0.8)) for each in lasts_s]
    return [Said(gap_s()) for _ in range(messages)], work


@dataclass(slots=True)
class Played:
    """One history of a chat. The ids of messages are their numbers."""

    policy: QueuePolicy
    said: Sequence[Said]
    work: Sequence[Work]
    """Of the runs by the number of their first message."""
    answers: list[tuple[int, ...]] = field(default_factory=list)
    """The messages that each completed run answers, in the order of starts."""
    wasted: list[tuple[int, ...]] = field(default_factory=list)
    """Those of each run that was cancelled after it had begun."""
    said_at: list[float] = field(default_factory=list)
    begun_at: dict[int, float] = field(default_factory=dict)
    """When the run that answered began, by its first message."""
    _now: float = 0.0
    _turns: dict[RunId, list[int]] = field(default_factory=dict)
    _started: dict[RunId, float] = field(default_factory=dict)
    _events: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _order: count[int] = field(default_factory=count)
    _core: RunScheduler = field(default_factory=RunScheduler)

    def play(self) -> Played:
        at = 0.0
        for number, one in enumerate(self.said):
            at += one.gap_s
            self.said_at.append(at)
            self._at(at, partial(self._say, number, one))
        while self._events or not self._core.idle:
            timer = self._core.next_timer()
            if self._events and (timer is None or self._events[0][0] < timer):
                self._now, _, happen = heappop(self._events)
                happen()
            else:
                assert timer is not None, "deadlock"
                self._now = timer
                self._carry_out(self._core.tick(timer))
        return self

    def _at(self, at: float, happen: Callable[[], None]) -> None:
        heappush(self._events, (at, next(self._order), happen))

    def _say(self, number: int, one: Said) -> None:
        run_id = RunId(str(number))
        self._turns[run_id] = [number]
        request = Request(run_id, SessionKey("chat"), sender=one.sender, policy=self.policy)
        self._carry_out(self._core.submit(request, self._now))

    def _carry_out(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            run_id = effect.request.id
            match effect:
                case Start():
                    self._start(run_id)
                case Cancel():
                    if self._now > self._started[run_id]:
                        self.wasted.append(tuple(self._turns[run_id]))
                    self._at(self._now + UNWINDS_S, partial(self._end, run_id))
                case MergeIntoRun(_, into):
                    self._turns[into.id] += self._turns.pop(run_id)
                case Restart(_, into):
                    self._turns[into.id] = [*self._turns[run_id], *self._turns[into.id]]
                case Ended(_, outcome):
                    self._at(self._now + UNWINDS_S, partial(self._store, run_id))
                    if outcome is Outcome.COMPLETED:
                        turn = tuple(self._turns[run_id])
                        self.answers.append(turn)
                        self.begun_at[turn[0]] = self._started[run_id]

    def _start(self, run_id: RunId) -> None:
        work = self.work[self._turns[run_id][0] % len(self.work)]
        self._started[run_id] = self._now
        self._at(self._now + work.effect_s, partial(self._core.had_effect, run_id))
        self._at(self._now + work.lasts_s, partial(self._end, run_id))

    def _end(self, run_id: RunId) -> None:
        if self._core.state(run_id) in ("running", "stopping"):
            self._carry_out(self._core.finish(run_id, Outcome.COMPLETED, self._now))

    def _store(self, run_id: RunId) -> None:
        self._carry_out(self._core.release(run_id, self._now))


def both(policy: QueuePolicy, said: Sequence[Said], work: Sequence[Work]) -> tuple[Played, Played]:
    """The same history with a fixed window and with speculative runs."""
    fixed, eager = (
        replace(policy, debounce=each) for each in (Debounce.FIXED, Debounce.SPECULATIVE)
    )
    return Played(fixed, said, work).play(), Played(eager, said, work).play()
