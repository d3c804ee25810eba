"""Claimed work from its claim to its end, in this process (SPEC CRON-5 to CRON-8, HB-1 to HB-4).

A claim is a row that names this node as its holder. Jobs and heartbeats derive from
``ExecutionEngine`` and supply the decisions and the stored form of an end. The life of a claim:

=========  =====================================================  ================================
state      what happens                                           next state
=========  =====================================================  ================================
claimed    ``take`` adds it to this process                       starting, waiting, ending
waiting    for a timer or for room; ``waits`` is set              starting; ``stop``: ending;
                                                                  ``close``: released
starting   ``perform`` checks that it is wanted, starts a run     running, waiting, ending;
                                                                  ``close``: released
running    an attempt is running; ``ended`` gets its result,      retry: waiting; shutdown:
           and ``after`` decides                                  released; question: parked;
                                                                  otherwise ending
ending     ``written``, then one transaction stores the end of    (over)
           the run and of the claim, and the notifications
released   the row has no holder: any node claims it again        (over)
parked     the row has no holder until its question is answered   (over)
forgotten  this node has expired: other nodes have the claim      (over)
=========  =====================================================  ================================

Everything is stored in the name of ``Execution.node``. If the row has another holder by then, the
store raises ``Fenced``, and neither end nor notifications are stored.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Generic, Protocol, TypeVar

from goclaw_py.core.concurrency import BackgroundTasks, work_on
from goclaw_py.core.errors import Fenced, RunNotStarted
from goclaw_py.core.ids import NodeId
from goclaw_py.core.messages import OutboundMessage
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.retry import attempt_delay_s, retry_until_available, until_stored
from goclaw_py.core.time.clock import Clock
from goclaw_py.records import RunEnd
from goclaw_py.runs.run_persistence import RunEndStore, store_attempt, store_end
from goclaw_py.schedule.models import NOTHING, Attempt, Execution, Next, Superseded, failed_by

log = logging.getLogger(__name__)

Messages = tuple[OutboundMessage, ...]


class ClaimedWork(Protocol):
    """Work that a store has claimed for this process."""

    @property
    def id(self) -> str:
        """The id of its row."""


ClaimT = TypeVar("ClaimT", bound=ClaimedWork)
ExecutionT = TypeVar("ExecutionT", bound=Execution)
FinishT = TypeVar("FinishT")
EndT = TypeVar("EndT")


class ExecutionEngine(ABC, Generic[ClaimT, ExecutionT, FinishT, EndT]):
    """The claims of this process.

    ``FinishT`` is the decided end of an execution, ``EndT`` its stored form.

    Args:
        what: What is claimed, for the log.
        runs: Stores the ends of runs.
    """

    def __init__(self, what: str, runs: RunEndStore, clock: Clock) -> None:
        self._what = what
        self._run_ends = runs
        self._clock = clock
        self.node = runs.node
        self._held: dict[str, ExecutionT] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._starting: dict[str, asyncio.Task[None]] = {}
        """Executions that are about to start an attempt."""
        self._side = BackgroundTasks(what)
        self._closing = False

    # ------------------------------------------------------------------ what a feature supplies

    @abstractmethod
    def execution_of(self, claimed: ClaimT) -> ExecutionT:
        """Create the execution of a claim. Raises nothing."""

    @abstractmethod
    async def perform(self, held: ExecutionT) -> None:
        """Start an attempt, wait, or end; the result of an attempt is passed to ``ended``.

        If cancelled, the attempt has not started. Raises ``Superseded``.
        """

    @abstractmethod
    async def is_wanted(self, held: ExecutionT) -> bool:
        """Return whether its run is still to start; waits for the database."""

    def decide_again(self, held: ExecutionT) -> bool:
        """Decide again whether to run an execution that is not wanted; False: it ends."""
        del held
        return False

    @abstractmethod
    async def after(self, held: ExecutionT, attempt: Attempt) -> Next | FinishT:
        """Decide what follows an attempt."""

    @abstractmethod
    def stopped(self) -> FinishT:
        """Return the end of a stopped execution."""

    @abstractmethod
    def failed(self, attempt: Attempt) -> FinishT:
        """Return the end of an execution that a bug has ended."""

    @abstractmethod
    async def written(
        self, held: ExecutionT, finish: FinishT, attempt: Attempt
    ) -> tuple[EndT, Messages]:
        """Return the stored form of an end, and its notifications."""

    @abstractmethod
    def bare(self, end: EndT) -> EndT:
        """Return a minimal end, for one that cannot be stored because of a bug."""

    @abstractmethod
    def run_end(self, run: RunEnd, end: EndT) -> RunEnd:
        """Return the end of a run that also ends its execution."""

    @abstractmethod
    async def store(self, end: EndT, say: Messages, node: NodeId | None) -> None:
        """Store an end without a run."""

    @abstractmethod
    def finished(
        self, held: ExecutionT, finish: FinishT, end: EndT, say: Messages | None, attempt: Attempt
    ) -> None:
        """Called when an end was stored with ``say``; None: without, or another node has it."""

    @abstractmethod
    def count(self, held: ExecutionT, end: EndT) -> None:
        """Count a stored end, for metrics."""

    @abstractmethod
    async def release(self, ids: Collection[str], node: NodeId) -> None:
        """Release claims of this node."""

    @abstractmethod
    async def release_unknown(self) -> None:
        """Release claims of this node that are not in this process."""

    # ------------------------------------------------------------------ looking

    def all(self) -> Iterable[ExecutionT]:
        """Return the executions, the first claimed first."""
        return tuple(self._held.values())

    def holds(self, held: ExecutionT) -> bool:
        """Return whether an execution is still in this process."""
        return self._held.get(held.id) is held

    def attended(self, runs: Collection[str]) -> set[str]:
        """Return the ids of the executions that wait for their turn or have a task.

        ``runs`` are the unfinished runs of this process.
        """
        return {
            held.id
            for held in self._held.values()
            if held.waits or held.is_over or held.id in self._starting or held.run in runs
        }

    def forget_some(self, ids: Collection[str]) -> None:
        """Forget executions that have no task any more: the store ends them."""
        for held in self.all():
            if held.id in ids:
                self._drop(held)

    # ------------------------------------------------------------------ beginning

    def start_claimed(self, claimed: Sequence[ClaimT]) -> None:
        """Start claims, or end those that do not run. Does not wait."""
        for one in claimed:
            self.begin(self.add(one))

    def add(self, claimed: ClaimT) -> ExecutionT:
        """Add a claim."""
        held = self.execution_of(claimed)
        self._held[held.id] = held
        return held

    def begin(self, held: ExecutionT) -> None:
        """Start an execution whose turn has come."""
        self.start(held)

    def start(self, held: ExecutionT) -> None:
        """Start its next attempt."""
        held.waits = False
        task = self._side.go(self._start(held))
        self._starting[held.id] = task
        task.add_done_callback(lambda _: self._starting.pop(held.id, None))

    async def _start(self, held: ExecutionT) -> None:
        work_on(**held.context)
        try:
            if self.holds(held) and not held.is_over:
                await self.perform(held)
        except Superseded:
            if self.holds(held) and not held.is_over:
                await self.end(held, self.stopped())
        except Fenced as error:
            log.debug("claim_lost", extra={**held.facts, "error": str(error)})
            self._drop(held)
        except Exception as bug:
            # A boundary: what one execution meets must not stop the others.
            log.exception("execution_crashed", extra=held.facts)
            await self.ended(held, failed_by(bug), None)

    def wait_until(self, held: ExecutionT, at: float) -> None:
        """Wait until a time of the loop's clock."""
        held.waits = True
        self._timers[held.id] = asyncio.get_running_loop().call_at(at, self._on_timer, held)

    def _on_timer(self, held: ExecutionT) -> None:
        self._timers.pop(held.id, None)
        if self.holds(held):
            self.begin(held)

    # ------------------------------------------------------------------ ending

    async def ended(
        self,
        held: ExecutionT,
        attempt: Attempt,
        run: RunEnd | None,
        bare: Callable[[Exception], RunEnd | None] | None = None,
    ) -> None:
        """Store the end of an attempt, and do what follows. Returns when it is stored.

        ``run`` is the end of its run, None without one; ``bare`` replaces it after a bug.
        """
        verdict = await self.after(held, attempt)
        if not isinstance(verdict, Next):
            await self._finish(held, verdict, attempt, run, bare)
            return
        is_stored = await store_attempt(self._run_ends, run, held.node)
        if verdict is Next.PARK and is_stored:
            self._drop(held)
            await self.parked(held)
        elif verdict is not Next.RETRY or self._closing:
            await self.give_back(held)
        elif held.stopped:
            await self.end(held, self.stopped())
        elif self.holds(held):
            delay_s = attempt_delay_s(held.attempt)
            facts = {**held.facts, "retry_in_s": delay_s, "error": attempt.error}
            log.info("attempt_retry", extra=facts)
            self.wait_until(held, asyncio.get_running_loop().time() + delay_s)
            self.freed(held)

    async def end(self, held: ExecutionT, finish: FinishT, attempt: Attempt = NOTHING) -> None:
        """End an execution that has not started, or starts no more attempts."""
        await self._finish(held, finish, attempt, None)

    async def crashed(self, held: ExecutionT, bug: Exception, run: RunEnd | None) -> None:
        """End an execution whose attempt has ended, and met a bug then."""
        if self.holds(held):
            attempt = failed_by(bug)
            await self._finish(held, self.failed(attempt), attempt, run)

    async def _finish(
        self,
        held: ExecutionT,
        finish: FinishT,
        attempt: Attempt,
        run: RunEnd | None,
        bare: Callable[[Exception], RunEnd | None] | None = None,
    ) -> None:
        held.is_over = True
        try:
            try:
                end, say = await self.written(held, finish, attempt)
                whole = partial(self._store_end, held, end, say, run)
                is_mine = await store_end(self._what, whole, held.facts)
            except Exception as bug:
                # A boundary: what met the bug may be what was said.
                log.exception("claim_end_not_stored", extra={**held.facts, "claim": self._what})
                if attempt.outcome in (Outcome.COMPLETED, Outcome.FAILED):
                    attempt = failed_by(bug)
                    finish = self.failed(attempt)
                run = bare(bug) if run is not None and bare is not None else run
                end, stored = await self._finish_bare(held, finish, attempt, run)
            else:
                stored = say if is_mine else None
        finally:
            self._drop(held)
        self.finished(held, finish, end, stored, attempt)

    async def _finish_bare(
        self, held: ExecutionT, finish: FinishT, attempt: Attempt, run: RunEnd | None
    ) -> tuple[EndT, Messages | None]:
        """Store an end without what the agent gave back, and if need be without any text.

        Returns the end with its notifications, None if they are not stored.
        """
        end, say = await self.written(held, finish, attempt)
        whole = partial(self._store_end, held, end, say, run)
        try:
            is_mine = await store_end(self._what, whole, held.facts)
        except Exception:
            log.exception("claim_end_not_stored", extra={**held.facts, "claim": self._what})
        else:
            return end, say if is_mine else None
        end, run = self.bare(end), None if run is None else replace(run, history=())
        least = partial(until_stored, partial(self._store_end, held, end, (), run), held.facts)
        await store_end(self._what, least, held.facts)
        return end, None

    async def _store_end(
        self, held: ExecutionT, end: EndT, say: Messages, run: RunEnd | None
    ) -> None:
        if run is not None:
            try:
                # Nobody is asked any more.
                ending = replace(self.run_end(run, end), say=say, approvals=())
                await self._run_ends.finish_run(ending, node=held.node)
            except RunNotStarted:
                run = None
        if run is None:
            await self.store(end, say, held.node)
        self.count(held, end)

    async def parked(self, held: ExecutionT) -> None:
        """Called when an execution waits for the answer of a person, and is not here any more."""

    async def give_back(self, held: ExecutionT) -> None:
        """Release an execution; waits for the database."""
        held.is_over = True
        try:
            await retry_until_available(lambda: self.release([held.id], held.node))
        except Fenced as error:
            log.debug("claim_lost", extra={"error": str(error)})
        finally:
            self._drop(held)

    def stop(self, held: ExecutionT) -> None:
        """Stop an execution on request: no more attempts; one that waits for a retry ends now."""
        held.stopped = True
        if held.waits:
            held.waits = False
            self.forget_turn(held)
            self._side.go(self.end(held, self.stopped()))

    def _drop(self, held: ExecutionT) -> None:
        if self.holds(held):
            del self._held[held.id]
            self.forget_turn(held)
            self.freed(held)

    def forget_turn(self, held: ExecutionT) -> None:
        """End its wait."""
        if (timer := self._timers.pop(held.id, None)) is not None:
            timer.cancel()

    def freed(self, held: ExecutionT) -> None:
        """Called when it has ended or waits for a retry: there is room for another one."""

    # ------------------------------------------------------------------ the end of the process

    async def close(self) -> None:
        """Release what waits, and start no more. The handler ends what is running."""
        self._closing = True
        unbegun = [held for held in self.all() if held.waits]
        for held in unbegun:
            self.forget_turn(held)
        for id_, task in tuple(self._starting.items()):
            starts = self._held.get(id_)
            if starts is not None and starts.run is None and not starts.is_over:
                # A work source, say, that takes its time.
                task.cancel()
                unbegun.append(starts)
        await asyncio.gather(*(self.give_back(held) for held in unbegun))
        await self._side.until_done()

    def forget(self) -> None:
        """Forget all claims: this node has expired, and its claims belong to others."""
        for held in self.all():
            self.forget_turn(held)
        self._held.clear()
