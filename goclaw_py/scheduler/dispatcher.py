"""The asyncio shell of the scheduler: it runs effects as tasks and reports their ends.

Everything except the tasks is synchronous. A ``/stop`` is one call chain to ``task.cancel()``,
without lock, queue or await.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Set
from contextvars import copy_context
from functools import partial
from typing import Protocol, assert_never

from goclaw_py.core.concurrency import work_on
from goclaw_py.core.errors import ApprovalNeeded
from goclaw_py.core.ids import AgentName, LaneName, RunId, SessionKey
from goclaw_py.core.outcomes import Ending, Outcome, Reason
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
from goclaw_py.scheduler.loop_timer import LoopTimer
from goclaw_py.scheduler.models import QueuePolicy, Request
from goclaw_py.scheduler.scheduler import RunScheduler
from goclaw_py.scheduler.state_machine import StopResult
from goclaw_py.scheduler.views import LaneLoad, LaneView, RunState, RunView, StopCandidate

log = logging.getLogger(__name__)

_NAMED = 10
"""The number of occupants of a lane in a log line."""


class RunHandler(Protocol):
    """The interface through which the dispatcher runs requests and stores their ends."""

    async def work(self, run_id: RunId) -> None:
        """Execute the run. Returning is completion, an exception is failure."""

    def record(self, ended: Ending, error: BaseException | None) -> Coroutine[None, None, None]:
        """Store how a request ended. The run keeps its slots until that returns.

        The call itself comes before anything else happens, the rest in a task.
        """

    def joined(self, request_id: RunId, into: RunId) -> None:
        """A request became part of another one, which waits or has just taken it."""

    def restarted(self, run_id: RunId, into: RunId) -> None:
        """A run ends as interrupted; its messages come first in a request that waits."""

    def offered(self, request_id: RunId, run_id: RunId) -> None:
        """A run may take a waiting request: see ``Dispatcher.steer_in``."""


class RunExited(Exception):
    """A run tried to exit the process, or cancelled itself; only the run fails."""


class Dispatcher:
    """Executes the decisions of the scheduler, in one event loop."""

    def __init__(self, scheduler: RunScheduler, host: RunHandler) -> None:
        self._scheduler = scheduler
        self._host = host
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[RunId, asyncio.Task[None]] = {}
        self._records: dict[RunId, asyncio.Task[None]] = {}
        self._alarm = LoopTimer(self._loop, self._on_alarm)
        self._changed = asyncio.Event()
        self._on_change: Callable[[], None] | None = None

    def notify_changes(self, on_change: Callable[[], None]) -> None:
        """Call ``on_change`` whenever requests may have started, ended or left."""
        self._on_change = on_change

    # ------------------------------------------------------------------ inputs

    def submit(self, request: Request) -> None:
        """Submit a request; see ``RunScheduler.submit``."""
        self._carry_out(self._scheduler.submit(request, self._loop.time()))

    def set_senders(self, run_id: RunId, senders: Set[str]) -> None:
        """Set the people who may stop a request as their own."""
        self._scheduler.set_senders(run_id, senders)

    def steer_in(self, request_id: RunId, run_id: RunId) -> None:
        """Let a run take a message that was offered to it.

        ``RunHandler.joined`` is called if it may.
        """
        self._carry_out(self._scheduler.steer_in(request_id, run_id, self._loop.time()))

    def had_effect(self, run_id: RunId) -> None:
        self._scheduler.had_effect(run_id)

    def resize_lane(self, name: LaneName, concurrency: int) -> None:
        """Resize a lane (SPEC LANE-9). Raises ``UnknownLane``."""
        self._carry_out(self._scheduler.resize(name, concurrency, self._loop.time()))

    def limit_agent(self, name: AgentName, limit: int | None) -> None:
        """Set the number of concurrent runs of an agent; None is no limit (SPEC AGENT-3)."""
        self._carry_out(self._scheduler.limit_agent(name, limit, self._loop.time()))

    def agent_limit(self, name: AgentName) -> int | None:
        """Return the number of concurrent runs of an agent, None for no limit."""
        return self._scheduler.agent_limit(name)

    def grant(self, name: LaneName, places: int, elsewhere: int) -> None:
        """Add slots of a shared lane, of which other nodes have ``elsewhere`` (SPEC NODE-2)."""
        self._carry_out(self._scheduler.grant(name, places, elsewhere, self._loop.time()))

    def set_concurrency(self, session: SessionKey, concurrency: int) -> None:
        """Set the number of concurrent runs of a session (SPEC QUEUE-7)."""
        self._carry_out(self._scheduler.set_concurrency(session, concurrency, self._loop.time()))

    def stop_one(self, run_id: RunId) -> StopResult:
        """Cancel one request with its children; takes effect before this returns."""
        return self._stopped(self._scheduler.stop_one(run_id, self._loop.time()))

    def stop_candidates(
        self, session: SessionKey, sender: str | None = None, besides: Iterable[RunId] = ()
    ) -> list[StopCandidate]:
        """Return the requests of a session; see ``RunScheduler.stop_candidates``."""
        return self._scheduler.stop_candidates(session, sender, besides)

    def stop_these(self, run_ids: Iterable[RunId], reason: Reason) -> StopResult:
        """Cancel some requests together; takes effect before this returns."""
        return self._stopped(self._scheduler.stop_these(run_ids, reason, self._loop.time()))

    def fail(self, run_id: RunId, reason: Reason) -> None:
        """Fail a run with the children that it waits for; takes effect before this returns."""
        self._carry_out(self._scheduler.fail(run_id, reason, self._loop.time()))

    def give_back(self, requests: Set[RunId]) -> list[RunId]:
        """End those of some requests that wait as interrupted; return them."""
        effects = self._scheduler.release_waiting(requests, self._loop.time())
        self._carry_out(effects)
        return [effect.request.id for effect in effects if isinstance(effect, Ended)]

    def interrupt(self) -> None:
        """Interrupt everything: this node owns nothing any more. New requests are accepted."""
        self._carry_out(self._scheduler.interrupt_all(self._loop.time()))

    async def drain(self, wait_s: float, hurry: asyncio.Event) -> None:
        """Refuse requests, give runs ``wait_s`` seconds to end, then interrupt them.

        Setting ``hurry`` ends the wait. Returns when every run has ended or been abandoned and
        every outcome is stored.
        """
        self._scheduler.drain()
        self._carry_out(self._scheduler.release_waiting(None, self._loop.time()))
        try:
            async with asyncio.timeout(wait_s):
                await self._until_idle_or(hurry)
        except TimeoutError:
            log.info("drain_timed_out", extra={"runs": len(self._tasks)})
        self._carry_out(self._scheduler.interrupt_all(self._loop.time()))
        while self._live_tasks() or self._records:
            self._changed.clear()
            await self._changed.wait()

    # ------------------------------------------------------------------ looking

    def is_running(self, run_id: RunId) -> bool:
        """Return whether a run is running and not stopped."""
        return self._scheduler.state(run_id) is RunState.RUNNING

    def state(self, run_id: RunId) -> RunState:
        """Return the state of a request; DONE if it is unknown."""
        return self._scheduler.state(run_id)

    def has_session(self, key: SessionKey) -> bool:
        """Return whether a session has a request that is running, waiting or debounced."""
        return self._scheduler.has_session(key)

    def lane_load(self, name: LaneName) -> LaneLoad:
        """Return the present load of a lane. Raises ``UnknownLane``."""
        return self._scheduler.lane_load(name)

    def lanes(self) -> tuple[LaneView, ...]:
        """Return all lanes."""
        return self._scheduler.lanes()

    def runs(self) -> tuple[RunView, ...]:
        """Return all unfinished requests."""
        return self._scheduler.runs(self._loop.time())

    def counts(self) -> tuple[int, int]:
        """Return the numbers of unfinished requests that have started and that wait."""
        return self._scheduler.counts()

    def policy(self, session: SessionKey) -> QueuePolicy | None:
        """Return the queue policy of a session's newest request, None without one."""
        return self._scheduler.policy(session)

    @property
    def draining(self) -> bool:
        """Return whether requests are refused."""
        return self._scheduler.draining

    # ------------------------------------------------------------------ inside

    def _stopped(self, stop: StopResult) -> StopResult:
        self._carry_out(stop.effects)
        return stop

    def _carry_out(self, effects: list[Effect], error: BaseException | None = None) -> None:
        for effect in effects:
            match effect:
                case Start(request):
                    self._start(request)
                case Cancel(request):
                    self._tasks[request.id].cancel()
                case MergeIntoRun(request, into):
                    self._host.joined(request.id, into.id)
                case Restart(request, into):
                    self._host.restarted(request.id, into.id)
                case OfferToRun(request, run):
                    self._host.offered(request.id, run.id)
                case Ended():
                    self._record(effect, error)
                case LaneWaitExceeded():
                    log_slow_wait(effect)
                case _:
                    assert_never(effect)
        self._alarm.set(self._scheduler.next_timer())
        if self._on_change is not None:
            self._on_change()

    def _start(self, request: Request) -> None:
        run_id = request.id
        task = self._loop.create_task(self._work(request), name=f"run {run_id}")
        self._tasks[run_id] = task
        # A task cancelled before its first step never enters its ``try``, so ``finally`` would
        # leak the slot. A done-callback always runs.
        task.add_done_callback(partial(self._on_done, run_id))

    async def _work(self, request: Request) -> None:
        work_on(run_id=request.id, session=request.session)
        try:
            await self._host.work(request.id)
        except (KeyboardInterrupt, SystemExit) as error:
            # asyncio would take the whole loop down with it.
            raise RunExited(repr(error)) from error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Nobody has stopped it: a library of an agent lets a cancellation of its own escape.
            raise RunExited(repr(error)) from error

    def _on_done(self, run_id: RunId, task: asyncio.Task[None]) -> None:
        del self._tasks[run_id]
        error: BaseException | None = None
        if task.cancelled():
            outcome = Outcome.CANCELLED
        else:
            error = task.exception()
            outcome = Outcome.COMPLETED if error is None else Outcome.FAILED
            if isinstance(error, ApprovalNeeded):
                outcome = Outcome.INTERRUPTED  # it has not failed: another run continues it
        self._carry_out(self._scheduler.finish(run_id, outcome, self._loop.time()), error)
        self._changed.set()

    def _record(self, effect: Ended, error: BaseException | None) -> None:
        request = effect.request
        ended = Ending(request.id, effect.outcome, effect.reason)
        recording = self._host.record(ended, error)
        context = copy_context()
        context.run(work_on, run_id=request.id, session=request.session)
        task = self._loop.create_task(recording, name=f"end {request.id}", context=context)
        self._records[request.id] = task
        task.add_done_callback(partial(self._on_recorded, request))

    def _on_recorded(self, request: Request, task: asyncio.Task[None]) -> None:
        run_id = request.id
        del self._records[run_id]
        if not task.cancelled() and (error := task.exception()) is not None:
            facts = {"run_id": run_id, "session": request.session}
            log.error("run_end_not_stored", extra=facts, exc_info=error)
        if self._scheduler.state(run_id) is RunState.FINISHING:
            self._carry_out(self._scheduler.release(run_id, self._loop.time()))
        self._changed.set()

    def _on_alarm(self) -> None:
        self._carry_out(self._scheduler.tick(self._loop.time()))

    def _live_tasks(self) -> bool:
        """Return whether a task is running that was not abandoned."""
        return any(
            self._scheduler.state(run_id) is not RunState.ABANDONED for run_id in self._tasks
        )

    async def _until_idle_or(self, hurry: asyncio.Event) -> None:
        cut = self._loop.create_task(hurry.wait())
        try:
            while (self._live_tasks() or self._records) and not hurry.is_set():
                self._changed.clear()
                change = self._loop.create_task(self._changed.wait())
                await asyncio.wait({cut, change}, return_when=asyncio.FIRST_COMPLETED)
                change.cancel()
        finally:
            cut.cancel()


def log_slow_wait(slow: LaneWaitExceeded) -> None:
    """Warn about a slow wait for a lane, with its occupants (SPEC LANE-7)."""
    # A lane may have hundreds of runs; ``active`` is their number.
    inside = [f"{run.id} ({run.session})" for run in slow.occupants[:_NAMED]]
    log.warning(
        "lane_wait_slow",
        extra={
            "run_id": slow.request.id,
            "session": slow.request.session,
            "lane": slow.lane.name,
            "waited_s": round(slow.waited_s, 1),
            "concurrency": slow.lane.concurrency,
            "active": slow.lane.active,
            **({"active_remote": slow.lane.elsewhere} if slow.lane.shared else {}),
            "waiting": slow.lane.waiting,
            "occupants": inside,
        },
    )
