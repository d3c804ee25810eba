"""Lanes and session queues in front of any coroutine: the scheduler as a library.

No database, no channels. The rules are those of the gateway (SPEC sections 1 and 2), because both
are shells of the same state machine. ``docs/guide/library.md`` shows it in use.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from contextvars import copy_context
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Self, Unpack, cast

from goclaw_py.core import scheduler
from goclaw_py.core.effects import Cancel, Effect, Ended, Join, Offer, SlowWait, Start
from goclaw_py.core.ids import MAIN_AGENT, MAIN_LANE, AgentName, LaneName, RunId, SessionKey
from goclaw_py.core.machine import Stop
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.requests import DEFAULT_POLICY, QueuePolicy, Request, check_count
from goclaw_py.core.status import LaneView, RunView
from goclaw_py.ports.control import StopReport
from goclaw_py.runtime.dispatcher import tell_slow_wait
from goclaw_py.runtime.library.drivers import in_context
from goclaw_py.runtime.library.run import M, Options, R, Run, WouldDeadlock

log = logging.getLogger(__name__)

_COMPLETED, _FAILED, _CANCELLED = Outcome.COMPLETED, Outcome.FAILED, Outcome.CANCELLED
_A_DAY_S = 86_400.0

_TURN_S = 0.001
"""How long a task goes on with runs that never wait before it lets the loop do other things."""


@dataclass(frozen=True, slots=True)
class Lane:
    """A pool of runs: at most ``concurrency`` of them work at once (SPEC LANE-1)."""

    name: str
    concurrency: int

    def __post_init__(self) -> None:
        check_count(f"lane {self.name}: concurrency", self.concurrency)


Work = Callable[[Run[M, R]], Coroutine[Any, Any, R]]
"""The coroutine function behind the lanes. It is given its run, with session and messages."""


class Scheduler(Generic[M, R]):
    """Runs ``work`` for each message: in order within a session, in parallel within a lane.

    Use it as an asynchronous context manager: leaving the block waits for all that was submitted;
    leaving it by an exception cancels everything first. It lives in one event loop and is not safe
    for use by several threads.

    Args:
        work: Called with the run. What it returns is the result, what it raises is its failure.
            Cancelling its task is how a run is stopped. ``KeyboardInterrupt`` and ``SystemExit``
            fail the run and then end the loop, as in every task of asyncio.
        lanes: In addition to the default lanes, or in their place (SPEC LANE-1).
        policy: How sessions queue, unless a submission says otherwise (SPEC QUEUE-1 to QUEUE-6).
        agents: How many runs of an agent may work at once (SPEC AGENT-3).
        cancel_grace_s: How long a cancelled run may take to end before it is given up.

    Raises ``ValueError`` for sizes below 1 or two lanes of one name.
    """

    def __init__(
        self,
        work: Work[M, R],
        lanes: Iterable[Lane] = (),
        *,
        policy: QueuePolicy = DEFAULT_POLICY,
        agents: dict[str, int] | None = None,
        cancel_grace_s: float = 10.0,
    ) -> None:
        sizes: dict[LaneName, int] = {}
        for lane in lanes:
            if lane.name in sizes:
                raise ValueError(f"two lanes have the name {lane.name!r}")
            sizes[LaneName(lane.name)] = lane.concurrency
        self._work = work
        self._policy = policy
        self._core = scheduler.Scheduler(
            sizes,
            agents={AgentName(name): limit for name, limit in (agents or {}).items()},
            cancel_grace_s=cancel_grace_s,
        )
        self._loop = asyncio.get_running_loop()
        self._now = self._loop.time
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timers_seen = 0
        self._context = copy_context()
        self._driven: dict[asyncio.Task[None], Run[M, R]] = {}
        """What each task of this scheduler works on."""
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
                await self._until(lambda: not self._core.busy)
        finally:
            await self.drain(0)

    # ------------------------------------------------------------------ inputs

    def submit(
        self, session: str, message: M, lane: str = MAIN_LANE, **options: Unpack[Options]
    ) -> Run[M, R]:
        """Let ``work`` run for a message when its session and its lane have room.

        Never blocks. Whatever keeps the run from being done is its outcome, also when the lane or
        the scheduler is closed. Raises ``ValueError`` for options that make no sense.
        """
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

    def take_in(self, run: Run[M, R]) -> list[M]:
        """Give a run that works the messages that wait for it (mode ``steer``, SPEC QUEUE-4).

        They are its own from now on, in ``messages`` as well. Call it from within the run.
        """
        known = len(run.messages)
        offered, run.offered = run.offered, None
        for other in offered or ():
            self._carry_out(self._core.take_in(other.id, run.id, self._now()))
        return run.messages[known:]

    def stop(self, session: str) -> StopReport:
        """Cancel the oldest run of a session, or else the oldest that waits (SPEC QUEUE-8)."""
        return self._stopped(self._core.stop_oldest(SessionKey(session), self._now()))

    def stop_all(self, session: str) -> StopReport:
        """Cancel all of a session, waiting ones and children included (SPEC QUEUE-8)."""
        return self._stopped(self._core.stop_all(SessionKey(session), self._now()))

    def add_lane(self, lane: Lane) -> LaneView:
        """Make a lane; if there is one of this name, it keeps its size (SPEC LANE-2)."""
        return self._core.get_or_create(LaneName(lane.name), lane.concurrency)

    def resize_lane(self, name: str, concurrency: int) -> None:
        """Give a lane another size; what runs goes on (SPEC LANE-9). Raises ``UnknownLane``."""
        self._carry_out(self._core.resize(LaneName(name), concurrency, self._now()))

    def close_lane(self, name: str) -> None:
        """Reject what waits in a lane and all that comes later. Raises ``UnknownLane``."""
        self._carry_out(self._core.close_lane(LaneName(name), self._now()))

    def set_concurrency(self, session: str, concurrency: int) -> None:
        """Let so many runs of a session work at once, until its next submission."""
        key = SessionKey(session)
        self._carry_out(self._core.set_concurrency(key, concurrency, self._now()))

    async def drain(self, wait_s: float | None = 30.0) -> None:
        """Close: what waits ends ``interrupted``, what runs has ``wait_s`` seconds and is then cut.

        Returns when every run has ended or was given up. None waits for ever; a second call with 0
        cuts the wait of the first one short (SPEC QUEUE-11).
        """
        self._core.drain()
        self._carry_out(self._core.release_waiting(self._now()))
        try:
            async with asyncio.timeout(wait_s):
                await self._until(lambda: not self._core.busy)
        except TimeoutError:
            self._carry_out(self._core.interrupt_all(self._now()))
            await self._until(lambda: not self._core.busy)

    # ------------------------------------------------------------------ looking

    def lanes(self) -> tuple[LaneView, ...]:
        """All lanes with their numbers (SPEC LANE-7)."""
        return self._core.lanes()

    def runs(self) -> tuple[RunView, ...]:
        """All runs that are not done, in order of submission."""
        return self._core.runs(self._now())

    # ------------------------------------------------------------------ inside

    def _with_options(self, session: str, lane: str, options: Options) -> Run[M, R]:
        parent = options.get("parent")
        return Run(
            RunId(str(self._count)),
            SessionKey(session),
            LaneName(lane),
            AgentName(options.get("agent", MAIN_AGENT)),
            options.get("sender", ""),
            options.get("policy", self._policy),
            deadline_s=options.get("deadline_s"),
            run_timeout_s=options.get("run_timeout_s"),
            parent=None if parent is None else parent.id,
            awaited=options.get("awaited", False),
        )

    def _stopped(self, stop: Stop) -> StopReport:
        self._carry_out(stop.effects)
        return StopReport(tuple(stop.stopped), tuple(stop.dropped), stop.already_stopping)

    def _carry_out(self, effects: list[Effect], *, keep_one: bool = False) -> Run[M, R] | None:
        """Do what the state machine asks for.

        With ``keep_one`` the first run that starts is given back, for the caller to drive.
        """
        kept: Run[M, R] | None = None
        # The kinds are told apart by identity: a match statement takes three times as long, and
        # this is done for each run.
        for effect in effects:
            if type(effect) is Start:
                run: Run[M, R] = effect.request  # type: ignore[assignment]  # all requests are
                if keep_one and kept is None:
                    kept = run
                else:
                    run.task = self._loop.create_task(self._drive(run), name=f"run {run.id}")
            elif type(effect) is Ended:
                self._end(effect.request, effect)  # type: ignore[arg-type]  # runs here
            else:
                self._carry_out_rarer(effect)
        if self._core.timers_set != self._timers_seen:
            self._set_timer()
        return kept

    def _carry_out_rarer(self, effect: Effect) -> None:
        match effect:
            case Cancel(request):
                self._cancel(cast("Run[M, R]", effect.request))
            case Join(request, into):
                self._join(cast("Run[M, R]", request), cast("Run[M, R]", into))
            case Offer(request, run):
                working = cast("Run[M, R]", run)
                working.offered = [*(working.offered or ()), cast("Run[M, R]", request)]
            case SlowWait():
                tell_slow_wait(effect)

    async def _drive(self, first: Run[M, R]) -> None:
        """Drive a run to its end, and then others that may start in its place."""
        task = first.task
        assert task is not None
        now = self._now()
        turn_ends = now + _TURN_S
        run: Run[M, R] | None = first
        while run is not None:
            run.task = task
            run.entered = True
            self._driven[task] = run
            outcome = _CANCELLED
            try:
                if now > turn_ends:
                    await asyncio.sleep(0)
                    turn_ends = self._now() + _TURN_S
                run.value = await in_context(self._work(run), self._context.copy())
                outcome = _COMPLETED
            except asyncio.CancelledError:
                pass
            except GeneratorExit:
                raise  # the loop is gone
            except BaseException as error:
                run.error = error
                outcome = _FAILED
                if isinstance(error, KeyboardInterrupt | SystemExit):
                    del self._driven[task]
                    self._finish(run, outcome)
                    raise
            # A task that was cancelled could pass the rest of it on to the next run.
            fit = not task.cancelling()
            now = self._now()
            del self._driven[task]
            run = self._carry_out(self._core.finished(run.id, outcome, now), keep_one=fit)

    def _finish(self, run: Run[M, R], outcome: Outcome) -> None:
        self._carry_out(self._core.finished(run.id, outcome, self._now()))

    def _cancel(self, run: Run[M, R]) -> None:
        assert run.task is not None
        run.task.cancel()
        if not run.entered:
            # A task that is cancelled before its first step never gets to tell its end.
            self._loop.call_soon(self._finish, run, _CANCELLED)

    def _end(self, run: Run[M, R], ended: Ended) -> None:
        run.outcome = ended.outcome
        run.reason = ended.reason
        if run.waiters is not None:
            run.wake()
        elif ended.outcome is _FAILED:
            facts = {"run_id": run.id, "session": run.session}
            log.error("a run failed, and nobody awaits it", extra=facts, exc_info=run.error)
        if self._changed is not None:
            self._changed.set()

    def _join(self, run: Run[M, R], into: Run[M, R]) -> None:
        run.into = into
        into.more = [*(into.more or ()), *run.messages]
        run.wake()  # to wait for the other one

    def check_wait(self, run: Request) -> None:
        """Raise if the run of the current task can never see the end of this one."""
        task = asyncio.current_task()
        waiting = None if task is None else self._driven.get(task)
        if waiting is not None and self._core.would_wait_for(waiting.id, run.id):
            raise WouldDeadlock(
                f"run {waiting.id} awaits run {run.id}, which can start only when run {waiting.id} "
                "has ended; give it a session of its own, and parent=run, awaited=True"
            )

    def _set_timer(self) -> None:
        self._timers_seen = self._core.timers_set
        at = self._core.next_timer()
        if self._timer is not None:
            if at is not None and self._timer.when() <= at:
                return
            self._timer.cancel()
            self._timer = None
        if at is not None:
            # Loops do not take any number; an early look does no harm.
            self._timer = self._loop.call_at(min(at, self._now() + _A_DAY_S), self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._timers_seen = -1
        self._carry_out(self._core.tick(self._now()))

    async def _until(self, true: Callable[[], bool]) -> None:
        if self._changed is None:
            self._changed = asyncio.Event()
        while not true():
            self._changed.clear()
            await self._changed.wait()
