"""Lanes and session queues in front of any coroutine: the scheduler as a library.

No database, no channels. The rules are those of the gateway (SPEC sections 1 and 2), because both
are shells of the same state machine. See ``docs/guide/library.md``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Self, Unpack, cast

from goclaw_py.core.ids import MAIN_AGENT, MAIN_LANE, AgentName, LaneName, RunId, SessionKey
from goclaw_py.core.outcomes import Outcome
from goclaw_py.scheduler import scheduler
from goclaw_py.scheduler.child_runs import DEFAULT_NESTING, NestingLimits
from goclaw_py.scheduler.dispatcher import log_slow_wait
from goclaw_py.scheduler.effects import (
    Cancel,
    Effect,
    Ended,
    LaneWaitExceeded,
    MergeIntoRun,
    OfferToRun,
    Start,
)
from goclaw_py.scheduler.embedded.drivers import Drivers, Work
from goclaw_py.scheduler.embedded.failures import Failures, RunFailure
from goclaw_py.scheduler.embedded.run import M, More, R, Run, SubmitOptions, WouldDeadlock
from goclaw_py.scheduler.embedded.waits import InnerWait
from goclaw_py.scheduler.loop_timer import LoopTimer
from goclaw_py.scheduler.models import (
    DEFAULT_POLICY,
    Debounce,
    QueuePolicy,
    check_count,
    check_type,
)
from goclaw_py.scheduler.state_machine import StopResult
from goclaw_py.scheduler.views import LaneView, RunView, StopReport

_COMPLETED, _FAILED = Outcome.COMPLETED, Outcome.FAILED
_OPTIONS = frozenset(SubmitOptions.__annotations__)
_A_DAY_S = 86_400.0
_A_YEAR_S = 365 * _A_DAY_S


@dataclass(frozen=True, slots=True)
class Lane:
    """A pool of runs: at most ``concurrency`` of them are in progress at once (SPEC LANE-1)."""

    name: str
    concurrency: int

    def __post_init__(self) -> None:
        check_type("the name of a lane", self.name, str)
        check_count(f"lane {self.name}: concurrency", self.concurrency)


class Scheduler(Generic[M, R]):
    """Runs ``work`` for each message: in order within a session, in parallel within a lane.

    Use it as an asynchronous context manager: leaving the block waits for all submissions; leaving
    it by an exception cancels everything first. It belongs to the event loop in which it was
    created and is not thread-safe.

    Args:
        work: Called with the run. Its return value is the result, an exception is a failure. A stop
            cancels its task. ``KeyboardInterrupt`` and ``SystemExit`` fail the run and then end the
            loop, as in every asyncio task. Each run has a copy of the context in which the
            scheduler was created, or of its own ``context``.
        lanes: Lanes in addition to, or in place of, the default lanes (SPEC LANE-1).
        policy: The default queue policy of sessions (SPEC QUEUE-1 to QUEUE-6).
        agents: The number of concurrent runs of an agent (SPEC AGENT-3).
        cancel_grace_s: How long a cancelled run may take to end before it is abandoned.
        nesting: The limits of child runs (SPEC LANE-8).

    Raises ``TypeError`` for arguments of another type, ``ValueError`` for sizes below 1 or two
    lanes of one name, and ``RuntimeError`` without a running event loop.
    """

    def __init__(
        self,
        work: Work[M, R],
        lanes: Iterable[Lane] = (),
        *,
        policy: QueuePolicy = DEFAULT_POLICY,
        agents: Mapping[str, int] | None = None,
        cancel_grace_s: float = 10.0,
        nesting: NestingLimits = DEFAULT_NESTING,
    ) -> None:
        check_type("work", work, Callable)  # type: ignore[arg-type]
        check_type("lanes", lanes, Iterable)
        _check_policy(policy)
        check_type("agents", agents, Mapping | None)
        check_type("nesting", nesting, NestingLimits)
        sizes: dict[LaneName, int] = {}
        for lane in lanes:
            check_type("each of lanes", lane, Lane)
            if lane.name in sizes:
                raise ValueError(f"two lanes have the name {lane.name!r}")
            sizes[LaneName(lane.name)] = lane.concurrency
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError as error:
            raise RuntimeError("make a Scheduler in a coroutine: it needs the loop") from error
        self._policy = policy
        self._core = scheduler.RunScheduler(
            sizes,
            agents={AgentName(name): limit for name, limit in (agents or {}).items()},
            cancel_grace_s=cancel_grace_s,
            nesting=nesting,
        )
        self._drivers = Drivers(work, self._finish)
        self._failures = Failures()
        self._now = self._loop.time
        self._count = 0
        self._alarm = LoopTimer(self._loop, self._on_alarm)
        self._timers_seen = 0
        self._changed: asyncio.Event | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                await self._until_idle()
        finally:
            await self.drain(0)

    # ------------------------------------------------------------------ inputs

    def submit(
        self, session: str, message: M, lane: str = MAIN_LANE, **options: Unpack[SubmitOptions]
    ) -> Run[M, R]:
        """Run ``work`` for a message once its session and its lane have a slot.

        Never blocks. A closed lane or scheduler is an outcome of the run, not an error. Raises
        ``TypeError`` or ``ValueError`` for invalid arguments.
        """
        check_type("session", session, str)
        check_type("lane", lane, str)
        self._count += 1
        run: Run[M, R]
        if options:
            run = self._with_options(session, lane, options)
        else:
            # Plain strings: calling a NewType costs as much as looking up a session.
            run = Run(str(self._count), session, lane, MAIN_AGENT, "", self._policy)  # type: ignore[arg-type]
        run.message = message
        run.keeper = self
        effects = self._core.submit(run, self._now())
        if effects or self._core.timers_set != self._timers_seen:
            self._carry_out(effects)
        return run

    def steer_in(self, run: Run[M, R]) -> list[M]:
        """Give a run the messages that wait for it (mode ``steer``, SPEC QUEUE-4).

        They then belong to it, also in ``messages``. Call it from within the run.
        """
        if run.more is None:
            return []
        known = len(run.more.messages)
        offered, run.more.offered = run.more.offered, []
        for other in offered:
            self._carry_out(self._core.steer_in(other.id, run.id, self._now()))
        return run.more.messages[known:]

    def stop(self, session: str) -> StopReport:
        """Cancel the oldest run of a session, otherwise the oldest waiting one (SPEC QUEUE-8)."""
        check_type("session", session, str)
        return self._stopped(self._core.stop_oldest(SessionKey(session), self._now()))

    def stop_all(self, session: str) -> StopReport:
        """Cancel everything of a session, including waiting runs and children (SPEC QUEUE-8)."""
        check_type("session", session, str)
        return self._stopped(self._core.stop_all(SessionKey(session), self._now()))

    def add_lane(self, lane: Lane) -> LaneView:
        """Add a lane; one that exists keeps its size (SPEC LANE-2)."""
        check_type("lane", lane, Lane)
        return self._core.get_or_create(LaneName(lane.name), lane.concurrency)

    def resize_lane(self, name: str, concurrency: int) -> None:
        """Resize a lane; its runs continue (SPEC LANE-9). Raises ``UnknownLane``."""
        self._carry_out(self._core.resize(LaneName(name), concurrency, self._now()))

    def close_lane(self, name: str) -> None:
        """Reject what waits in a lane, and all later submissions. Raises ``UnknownLane``."""
        self._carry_out(self._core.close_lane(LaneName(name), self._now()))

    def set_concurrency(self, session: str, concurrency: int) -> None:
        """Set the number of concurrent runs of a session, until its next submission."""
        key = SessionKey(session)
        self._carry_out(self._core.set_concurrency(key, concurrency, self._now()))

    async def drain(self, wait_s: float | None = 30.0) -> None:
        """Close: waiting runs end ``interrupted``, others have ``wait_s`` seconds to end.

        Returns when every run has ended or was abandoned. None waits forever; a second call with 0
        ends the wait of the first one (SPEC QUEUE-11). Raises ``WouldDeadlock`` in a run of this
        scheduler, and ``ValueError`` for an invalid time.
        """
        if wait_s is not None and not wait_s >= 0:
            raise ValueError(f"wait_s is a number of seconds, at least 0, or None: {wait_s!r}")
        self._refuse_inside()
        self._core.drain()
        self._carry_out(self._core.release_waiting(None, self._now()))
        limit = asyncio.timeout(None if wait_s is None else min(wait_s, _A_YEAR_S))
        try:
            async with limit:
                await self._until_idle()
        except (TimeoutError, asyncio.CancelledError):
            # Python before 3.11.4 lets a task that was cancelled before see its own cancellation.
            if not limit.expired():
                raise
            self._carry_out(self._core.interrupt_all(self._now()))
            await self._until_idle()
        # So that the loop keeps nothing of this scheduler.
        self._set_alarm()
        self._failures.forget()

    # ------------------------------------------------------------------ looking

    def lanes(self) -> tuple[LaneView, ...]:
        """Return all lanes with their counters (SPEC LANE-7)."""
        return self._core.lanes()

    def runs(self) -> tuple[RunView, ...]:
        """Return all unfinished runs in the order of submission."""
        return self._core.runs(self._now())

    # ------------------------------------------------------------------ inside

    def _with_options(self, session: str, lane: str, options: SubmitOptions) -> Run[M, R]:
        if unknown := options.keys() - _OPTIONS:
            names = ", ".join(sorted(unknown))
            raise TypeError(f"no such option: {names}; there are {', '.join(sorted(_OPTIONS))}")
        parent = options.get("parent")
        check_type("parent", parent, Run | None)
        _check_policy(policy := options.get("policy", self._policy))
        if parent is not None and parent.keeper is not self:
            raise ValueError(f"{parent!r} cannot be a parent here: it has another scheduler")
        if parent is None and "awaited" in options:
            raise ValueError("awaited says that a parent waits: name it, parent=run")
        run: Run[M, R] = Run(
            RunId(str(self._count)),
            SessionKey(session),
            LaneName(lane),
            AgentName(options.get("agent", MAIN_AGENT)),
            options.get("sender", ""),
            policy,
            deadline_s=options.get("deadline_s"),
            run_timeout_s=options.get("run_timeout_s"),
            parent=None if parent is None else parent.id,
            awaited=options.get("awaited", False),
        )
        run.context = options.get("context")
        return run

    def _stopped(self, stop: StopResult) -> StopReport:
        self._carry_out(stop.effects)
        return StopReport(tuple(stop.stopped), tuple(stop.dropped), stop.already_stopping)

    def _finish(self, run: Run[M, R], outcome: Outcome) -> None:
        self._carry_out(self._core.finished(run.id, outcome, self._now()))

    def _carry_out(self, effects: list[Effect]) -> None:
        """Carry out effects."""
        # The kinds are compared by identity: a match statement takes three times as long, and this
        # is done for each run.
        for effect in effects:
            if type(effect) is Start:
                self._drivers.start(effect.request)  # type: ignore[arg-type]  # all are runs here
            elif type(effect) is Ended:
                self._end(effect.request, effect)  # type: ignore[arg-type]  # as above
            else:
                self._carry_out_rarer(effect)
        if self._core.timers_set != self._timers_seen:
            self._set_alarm()

    def _carry_out_rarer(self, effect: Effect) -> None:
        match effect:
            case Cancel(request):
                self._drivers.cancel(cast("Run[M, R]", request))
            case MergeIntoRun(request, into):
                self._join(cast("Run[M, R]", request), cast("Run[M, R]", into))
            case OfferToRun(request, working):
                run = cast("Run[M, R]", working)
                run.more = run.more or More()
                run.more.offered.append(cast("Run[M, R]", request))
            case LaneWaitExceeded():
                log_slow_wait(effect)

    def _end(self, run: Run[M, R], ended: Ended) -> None:
        outcome = run.ended = ended.outcome
        if outcome is not _COMPLETED:
            run.reason = ended.reason
            if outcome is _FAILED and not run.waiters:
                self._failures.add(cast("RunFailure", run.result))
        run.context = None
        if run.waiters:
            run.wake()
        if self._changed is not None:
            self._changed.set()

    def _join(self, run: Run[M, R], into: Run[M, R]) -> None:
        run.into = into
        run.context = None
        into.more = into.more or More()
        into.more.messages += run.messages
        run.wake()  # to wait for the other one

    def begin_wait(self, run: Run[Any, Any], waiter: asyncio.Future[None]) -> InnerWait | None:
        if waiter.get_loop() is not self._loop:
            raise RuntimeError(f"{run!r} can be awaited only in the loop of its scheduler")
        current = self._drivers.current()
        if current is None:
            return None
        return InnerWait(current, run, waiter, self._core.would_wait_for)

    def _refuse_inside(self) -> None:
        run = self._drivers.current()
        if run is not None and run.ended is None:
            raise WouldDeadlock(f"run {run.id} cannot wait for the end of all runs, its own too")

    def _set_alarm(self) -> None:
        self._timers_seen = self._core.timers_set
        self._alarm.set(self._core.next_timer())

    def _on_alarm(self) -> None:
        self._timers_seen = -1
        self._carry_out(self._core.tick(self._now()))

    async def _until_idle(self) -> None:
        """Wait until only abandoned runs are left."""
        self._refuse_inside()
        if self._changed is None:
            self._changed = asyncio.Event()
        while self._core.busy:
            self._changed.clear()
            await self._changed.wait()


def _check_policy(policy: QueuePolicy) -> None:
    check_type("policy", policy, QueuePolicy)
    if policy.debounce is Debounce.SPECULATIVE:
        # Only a gateway knows which runs have had an effect.
        raise ValueError('debounce "speculative" is for chats of the gateway; use "fixed"')
