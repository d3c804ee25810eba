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

The rules of SPEC CRON-5:

One row per (job, scheduled_at) that has not ended, claimed with owner, lease and fence (`FOR UPDATE
SKIP LOCKED`); the lease is renewed from claim to end, waiting and retries included; a process
claims no more than its lane can start plus as many again. A dead owner's run ends `lost`; with
`misfire = once` the occurrence is released (≤ 3 attempts: runs that were lost, not claims whose
process died before a run started; in the library, which stores no runs, each lost claim counts;
then it stays `lost`, and one message says what the attempts had done, as in IO-2, if tools with
side effects were called also to the owner of a job that tells no failures). So each occurrence is
in one process at a time and runs again only after a crash, which is shown. Start-up never touches
another process's live runs.
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
        self._executions: dict[str, ExecutionT] = {}
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
    async def perform(self, execution: ExecutionT) -> None:
        """Start an attempt, wait, or end; the result of an attempt is passed to ``ended``.

        If cancelled, the attempt has not started. Raises ``Superseded``.
        """

    @abstractmethod
    async def is_wanted(self, execution: ExecutionT) -> bool:
        """Return whether its run is still to start; waits for the database."""

    def decide_again(self, execution: ExecutionT) -> bool:
        """Decide again whether to run an execution that is not wanted; False: it ends."""
        del execution
        return False

    @abstractmethod
    async def after(self, execution: ExecutionT, attempt: Attempt) -> Next | FinishT:
        """Decide what follows an attempt."""

    @abstractmethod
    def stopped(self) -> FinishT:
        """Return the end of a stopped execution."""

    @abstractmethod
    def failed(self, attempt: Attempt) -> FinishT:
        """Return the end of an execution that a bug has ended."""

    @abstractmethod
    async def written(
        self, execution: ExecutionT, finish: FinishT, attempt: Attempt
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
        self,
        execution: ExecutionT,
        finish: FinishT,
        end: EndT,
        say: Messages | None,
        attempt: Attempt,
    ) -> None:
        """Called when an end was stored with ``say``; None: without, or another node has it."""

    @abstractmethod
    def count(self, execution: ExecutionT, end: EndT) -> None:
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
        return tuple(self._executions.values())

    def holds(self, execution: ExecutionT) -> bool:
        """Return whether an execution is still in this process."""
        return self._executions.get(execution.id) is execution

    def attended(self, runs: Collection[str]) -> set[str]:
        """Return the ids of the executions that wait for their turn or have a task.

        ``runs`` are the unfinished runs of this process.
        """
        return {
            execution.id
            for execution in self._executions.values()
            if execution.waits
            or execution.is_over
            or execution.id in self._starting
            or execution.run in runs
        }

    def forget_some(self, ids: Collection[str]) -> None:
        """Forget executions that have no task any more: the store ends them."""
        for execution in self.all():
            if execution.id in ids:
                self._drop(execution)

    # ------------------------------------------------------------------ beginning

    def start_claimed(self, claimed: Sequence[ClaimT]) -> None:
        """Start claims, or end those that do not run. Does not wait."""
        for one in claimed:
            self.begin(self.add(one))

    def add(self, claimed: ClaimT) -> ExecutionT:
        """Add a claim."""
        execution = self.execution_of(claimed)
        self._executions[execution.id] = execution
        return execution

    def begin(self, execution: ExecutionT) -> None:
        """Start an execution whose turn has come."""
        self.start(execution)

    def start(self, execution: ExecutionT) -> None:
        """Start its next attempt."""
        execution.waits = False
        task = self._side.go(self._start(execution))
        self._starting[execution.id] = task
        task.add_done_callback(lambda _: self._starting.pop(execution.id, None))

    async def _start(self, execution: ExecutionT) -> None:
        work_on(**execution.context)
        try:
            if self.holds(execution) and not execution.is_over:
                await self.perform(execution)
        except Superseded:
            if self.holds(execution) and not execution.is_over:
                await self.end(execution, self.stopped())
        except Fenced as error:
            log.debug("claim_lost", extra={**execution.facts, "error": str(error)})
            self._drop(execution)
        except Exception as bug:
            # A boundary: what one execution meets must not stop the others.
            log.exception("execution_crashed", extra=execution.facts)
            await self.ended(execution, failed_by(bug), None)

    def wait_until(self, execution: ExecutionT, at: float) -> None:
        """Wait until a time of the loop's clock."""
        execution.waits = True
        self._timers[execution.id] = asyncio.get_running_loop().call_at(
            at, self._on_timer, execution
        )

    def _on_timer(self, execution: ExecutionT) -> None:
        self._timers.pop(execution.id, None)
        if self.holds(execution):
            self.begin(execution)

    # ------------------------------------------------------------------ ending

    async def ended(
        self,
        execution: ExecutionT,
        attempt: Attempt,
        run: RunEnd | None,
        bare: Callable[[Exception], RunEnd | None] | None = None,
    ) -> None:
        """Store the end of an attempt, and do what follows. Returns when it is stored.

        ``run`` is the end of its run, None without one; ``bare`` replaces it after a bug.
        """
        verdict = await self.after(execution, attempt)
        if not isinstance(verdict, Next):
            await self._finish(execution, verdict, attempt, run, bare)
            return
        is_stored = await store_attempt(self._run_ends, run, execution.node)
        if verdict is Next.PARK and is_stored:
            self._drop(execution)
            await self.parked(execution)
        elif verdict is not Next.RETRY or self._closing:
            await self.give_back(execution)
        elif execution.stopped:
            await self.end(execution, self.stopped())
        elif self.holds(execution):
            delay_s = attempt_delay_s(execution.attempt)
            facts = {**execution.facts, "retry_in_s": delay_s, "error": attempt.error}
            log.info("attempt_retry", extra=facts)
            self.wait_until(execution, asyncio.get_running_loop().time() + delay_s)
            self.freed(execution)

    async def end(self, execution: ExecutionT, finish: FinishT, attempt: Attempt = NOTHING) -> None:
        """End an execution that has not started, or starts no more attempts."""
        await self._finish(execution, finish, attempt, None)

    async def crashed(self, execution: ExecutionT, bug: Exception, run: RunEnd | None) -> None:
        """End an execution whose attempt has ended, and met a bug then."""
        if self.holds(execution):
            attempt = failed_by(bug)
            await self._finish(execution, self.failed(attempt), attempt, run)

    async def _finish(
        self,
        execution: ExecutionT,
        finish: FinishT,
        attempt: Attempt,
        run: RunEnd | None,
        bare: Callable[[Exception], RunEnd | None] | None = None,
    ) -> None:
        execution.is_over = True
        try:
            try:
                end, say = await self.written(execution, finish, attempt)
                whole = partial(self._store_end, execution, end, say, run)
                is_mine = await store_end(self._what, whole, execution.facts)
            except Exception as bug:
                # A boundary: what met the bug may be what was said.
                log.exception(
                    "claim_end_not_stored", extra={**execution.facts, "claim": self._what}
                )
                if attempt.outcome in (Outcome.COMPLETED, Outcome.FAILED):
                    attempt = failed_by(bug)
                    finish = self.failed(attempt)
                run = bare(bug) if run is not None and bare is not None else run
                end, stored = await self._finish_bare(execution, finish, attempt, run)
            else:
                stored = say if is_mine else None
        finally:
            self._drop(execution)
        self.finished(execution, finish, end, stored, attempt)

    async def _finish_bare(
        self, execution: ExecutionT, finish: FinishT, attempt: Attempt, run: RunEnd | None
    ) -> tuple[EndT, Messages | None]:
        """Store an end without what the agent gave back, and if need be without any text.

        Returns the end with its notifications, None if they are not stored.
        """
        end, say = await self.written(execution, finish, attempt)
        whole = partial(self._store_end, execution, end, say, run)
        try:
            is_mine = await store_end(self._what, whole, execution.facts)
        except Exception:
            log.exception("claim_end_not_stored", extra={**execution.facts, "claim": self._what})
        else:
            return end, say if is_mine else None
        end, run = self.bare(end), None if run is None else replace(run, history=())
        least = partial(
            until_stored, partial(self._store_end, execution, end, (), run), execution.facts
        )
        await store_end(self._what, least, execution.facts)
        return end, None

    async def _store_end(
        self, execution: ExecutionT, end: EndT, say: Messages, run: RunEnd | None
    ) -> None:
        if run is not None:
            try:
                # Nobody is asked any more.
                ending = replace(self.run_end(run, end), say=say, approvals=())
                await self._run_ends.finish_run(ending, node=execution.node)
            except RunNotStarted:
                run = None
        if run is None:
            await self.store(end, say, execution.node)
        self.count(execution, end)

    async def parked(self, execution: ExecutionT) -> None:
        """Called when an execution waits for the answer of a person, and is not here any more."""

    async def give_back(self, execution: ExecutionT) -> None:
        """Release an execution; waits for the database."""
        execution.is_over = True
        try:
            await retry_until_available(lambda: self.release([execution.id], execution.node))
        except Fenced as error:
            log.debug("claim_lost", extra={"error": str(error)})
        finally:
            self._drop(execution)

    def stop(self, execution: ExecutionT) -> None:
        """Stop an execution on request: no more attempts; one that waits for a retry ends now."""
        execution.stopped = True
        if execution.waits:
            execution.waits = False
            self.forget_turn(execution)
            self._side.go(self.end(execution, self.stopped()))

    def _drop(self, execution: ExecutionT) -> None:
        if self.holds(execution):
            del self._executions[execution.id]
            self.forget_turn(execution)
            self.freed(execution)

    def forget_turn(self, execution: ExecutionT) -> None:
        """End its wait."""
        if (timer := self._timers.pop(execution.id, None)) is not None:
            timer.cancel()

    def freed(self, execution: ExecutionT) -> None:
        """Called when it has ended or waits for a retry: there is room for another one."""

    # ------------------------------------------------------------------ the end of the process

    async def close(self) -> None:
        """Release what waits, and start no more. The handler ends what is running."""
        self._closing = True
        unbegun = [execution for execution in self.all() if execution.waits]
        for execution in unbegun:
            self.forget_turn(execution)
        for id_, task in tuple(self._starting.items()):
            starts = self._executions.get(id_)
            if starts is not None and starts.run is None and not starts.is_over:
                # A work source, say, that takes its time.
                task.cancel()
                unbegun.append(starts)
        await asyncio.gather(*(self.give_back(execution) for execution in unbegun))
        await self._side.until_done()

    def forget(self) -> None:
        """Forget all claims: this node has expired, and its claims belong to others."""
        for execution in self.all():
            self.forget_turn(execution)
        self._executions.clear()
