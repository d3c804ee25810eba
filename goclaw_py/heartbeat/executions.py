"""Heartbeat runs from claim to end, in this process (SPEC HB-1 to HB-4, HB-9 to HB-12)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Final, Protocol

from goclaw_py.common.background_tasks import BackgroundTasks
from goclaw_py.common.clock import new_id
from goclaw_py.common.log_context import work_on
from goclaw_py.common.retry import attempt_delay_s, retry_until_available
from goclaw_py.common.text import cut_bytes
from goclaw_py.heartbeat.decisions import (
    BUSY_RETRY,
    AskAgent,
    Deferred,
    HeartbeatPolicy,
    Skipped,
    Verdict,
    for_one,
)
from goclaw_py.heartbeat.execution import HeartbeatExecution, facts_of
from goclaw_py.heartbeat.execution_ends import HeartbeatExecutionEnds
from goclaw_py.heartbeat.models import (
    REPLY_BYTES,
    Heartbeat,
    HeartbeatClaim,
    HeartbeatRunEnd,
    HeartbeatRunStatus,
    Skip,
)
from goclaw_py.heartbeat.preconditions import Checks
from goclaw_py.heartbeat.texts import IS_BUSY
from goclaw_py.jobs.execution_models import Attempt, Why
from goclaw_py.model.errors import Fenced
from goclaw_py.model.ids import AgentName, HeartbeatRunId, NodeId
from goclaw_py.model.messages import OutboundMessage, Target
from goclaw_py.model.metrics_port import NO_METER, MetricsRecorder
from goclaw_py.model.outcomes import Outcome
from goclaw_py.model.run_events import NO_USAGE
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.store import RunEnd, Store

log = logging.getLogger(__name__)

_FRESH: Final = timedelta(seconds=1)
"""So long after a beat was decided it begins without another look: its lane may be full."""

RETRIES: Final = 2
"""How often a beat is tried again whose run has failed (SPEC HB-10)."""


@dataclass(frozen=True, slots=True)
class HeartbeatOutcome:
    """The outcome of a heartbeat run, and its notifications.

    Args:
        reply: What the agent said, token and all.
        text: What the history of the chat is to hold of it.
        gone: The topic of which it says that nothing can be written there.
    """

    status: HeartbeatRunStatus
    detail: str = ""
    reply: str = ""
    target: Target | None = None
    say: tuple[OutboundMessage, ...] = ()
    text: str = ""
    gone: Target | None = None


class HeartbeatHandler(Protocol):
    """Asks the agents."""

    def perform(self, held: HeartbeatExecution) -> None:
        """Begin an attempt; whatever comes of it, ``HeartbeatExecutions.ended`` is told."""

    async def told(
        self, held: HeartbeatExecution, end: HeartbeatRunEnd, told: HeartbeatOutcome
    ) -> None:
        """The end is stored, and with it what is told."""


class HeartbeatExecutions:
    """The ones that this process has claimed.

    Args:
        freed: Called with one that is over.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        node: Callable[[], NodeId],
        policies: Mapping[AgentName, HeartbeatPolicy],
        checks: Checks,
        freed: Callable[[HeartbeatClaim], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._node = node
        self._policies = policies
        self._checks = checks
        self._freed = freed
        self._ends = HeartbeatExecutionEnds(store)
        self._held: dict[HeartbeatRunId, HeartbeatExecution] = {}
        self._side = BackgroundTasks("heartbeats")
        self._waits: dict[HeartbeatRunId, asyncio.Event] = {}
        """How to end the waiting of a beat early."""
        self._closing = False

    def connect(
        self,
        performer: HeartbeatHandler,
        note: Callable[[HeartbeatRunEnd], None],
        meter: MetricsRecorder = NO_METER,
    ) -> None:
        """Give it who asks the agents, and who is told of ends. Call it before anything is due."""
        self._performer = performer
        self._ends.connect(meter)
        self._note = note

    def all(self) -> Iterable[HeartbeatExecution]:
        """Those in hand, the first claimed first."""
        return tuple(self._held.values())

    def holds(self, held: HeartbeatExecution) -> bool:
        """Whether it is in hand."""
        return self._held.get(held.id) is held

    # ------------------------------------------------------------------ beginning

    def take(self, claimed: Sequence[HeartbeatClaim]) -> None:
        """Begin what was claimed. Returns at once, whatever they do."""
        for one in claimed:
            self._side.go(self._begin(self._hold(one, self._node())))

    async def claim_by_hand(self, agent: AgentName) -> HeartbeatExecution | None:
        """Claim a beat because somebody asks for it, and begin it; None if one is not over.

        Waits for the database: if an answer is lost the beat may be claimed, and nobody else could
        run it any more. Raises ``Fenced``.
        """
        return await self._side.run_shielded(self._claim_by_hand(agent))

    async def _claim_by_hand(self, agent: AgentName) -> HeartbeatExecution | None:
        beat, node, now = HeartbeatRunId(new_id(self._clock)), self._node(), self._clock.now()
        claimed = await retry_until_available(
            lambda: self._store.claim_heartbeat_now(node, agent, now=now, beat=beat)
        )
        if claimed is None:
            return None
        held = self._hold(claimed, node)
        self._side.go(self._begin(held))
        return held

    def _hold(self, claimed: HeartbeatClaim, node: NodeId) -> HeartbeatExecution:
        held = HeartbeatExecution(claimed, self._policies[claimed.agent], node)
        self._held[held.id] = held
        return held

    async def _begin(self, held: HeartbeatExecution) -> None:
        work_on(agent=held.claimed.agent, heartbeat_run=held.id)
        try:
            await self._decide(held)
        except Fenced as error:
            log.debug("claim_lost", extra={"error": str(error)})
            self._drop(held)
        except Exception as bug:
            # A boundary: what one beat meets must not stop the others.
            log.exception("heartbeat_crashed", extra=facts_of(held))
            await self.end(held, HeartbeatRunStatus.FAILED, f"{type(bug).__name__}: {bug}")

    async def _decide(self, held: HeartbeatExecution) -> None:
        """Check until it comes to its agent, or does not."""
        claimed = held.claimed
        heartbeat = claimed.heartbeat
        if held.looked_at is not None:
            heartbeat = await self._as_it_stands(heartbeat)
        while self.holds(held) and not held.is_over:
            verdict = await self._look(held, heartbeat)
            if not self.holds(held) or held.is_over:
                return
            match verdict:
                case Skipped(skip, noted):
                    await self._skip(held, skip, held.detail, noted)
                case AskAgent():
                    self._attempt(held)
                    return
                case Deferred():
                    await self._defer(held)
                    # It may have been switched off, or muted, meanwhile.
                    heartbeat = await self._as_it_stands(heartbeat)

    async def _look(self, held: HeartbeatExecution, heartbeat: Heartbeat) -> Verdict:
        """Check, and know what its agent would be asked."""
        claimed = held.claimed
        checked = await retry_until_available(
            partial(self._checks.check, claimed.kind, heartbeat, claimed.next_at)
        )
        held.looked_at, held.detail = checked.at, checked.detail
        if isinstance(checked.verdict, AskAgent):
            held.go = checked.verdict
            held.budget = for_one(held.policy, checked.looks.spent)
        return checked.verdict

    async def _as_it_stands(self, heartbeat: Heartbeat) -> Heartbeat:
        found = await retry_until_available(lambda: self._store.heartbeats([heartbeat.agent]))
        return found[0] if found else heartbeat

    async def _skip(
        self, held: HeartbeatExecution, skip: Skip, detail: str, noted: tuple[str, ...]
    ) -> None:
        end = self._end_of(held, HeartbeatRunStatus.SKIPPED, detail)
        await self._store_end(
            held, replace(end, skip=skip, done=noted), None, HeartbeatOutcome(end.status)
        )

    async def _defer(self, held: HeartbeatExecution) -> None:
        """Its agent is busy: look again in a while, at the latest when the next one is due."""
        if not held.deferred:
            held.deferred = True
            await retry_until_available(
                lambda: self._store.defer_heartbeat(held.id, node=held.node, detail=IS_BUSY)
            )
            log.info("heartbeat_deferred", extra=facts_of(held))
        wait_s = BUSY_RETRY.total_seconds()
        if held.claimed.next_at is not None:
            ahead = (held.claimed.next_at - self._clock.now()).total_seconds()
            wait_s = min(wait_s, max(ahead, 0.0))
        await self._wait(held, wait_s)

    async def _wait(self, held: HeartbeatExecution, seconds: float) -> None:
        """Wait, unless the beat is stopped or this process ends."""
        over = self._waits.setdefault(held.id, asyncio.Event())
        held.waits = True
        try:
            async with asyncio.timeout(seconds):
                await over.wait()
        except TimeoutError:
            held.waits = False

    async def is_wanted(self, held: HeartbeatExecution) -> bool:
        """Whether it still comes to its agent; waits for the database.

        What was decided a moment ago is not decided again.
        """
        if held.looked_at is not None and self._clock.now() - held.looked_at <= _FRESH:
            return True
        heartbeat = await self._as_it_stands(held.claimed.heartbeat)
        return isinstance(await self._look(held, heartbeat), AskAgent)

    def decide_again(self, held: HeartbeatExecution) -> None:
        """An attempt did not begin: it was decided too long ago."""
        held.attempt -= 1
        held.run = None
        self._side.go(self._begin(held))

    def _attempt(self, held: HeartbeatExecution) -> None:
        held.attempt += 1
        self._performer.perform(held)

    # ------------------------------------------------------------------ ending

    async def ended(
        self, held: HeartbeatExecution, attempt: Attempt, run: RunEnd | None, told: HeartbeatOutcome
    ) -> None:
        """An attempt is over: store that, and do what follows. Returns when it is stored.

        ``run`` is the end of its run, None if it never began. ``told`` counts if it has completed.
        """
        if run is not None and run.usage is not None:
            held.usage = (held.usage or NO_USAGE).plus(run.usage)
        if attempt.outcome is Outcome.INTERRUPTED or (self._closing and _again(held, attempt)):
            await self._ends.store_run(held, run)
            await self._give_back(held)
        elif attempt.outcome is Outcome.COMPLETED:
            await self._finish(held, told, run)
        elif attempt.outcome is Outcome.CANCELLED or held.stopped:
            await self._finish(
                held, HeartbeatOutcome(HeartbeatRunStatus.CANCELLED, "it was stopped"), run
            )
        elif _again(held, attempt):
            await self._ends.store_run(held, run)
            self._side.go(self._retry(held, attempt))
        else:
            await self._finish(
                held, HeartbeatOutcome(HeartbeatRunStatus.FAILED, attempt.error or _WORDLESS), run
            )

    async def _retry(self, held: HeartbeatExecution, attempt: Attempt) -> None:
        delay_s = attempt_delay_s(held.attempt)
        why = {"retry_in_s": delay_s, "error": attempt.error}
        log.info("heartbeat_retry", extra={**facts_of(held), **why})
        await self._wait(held, delay_s)
        if self.holds(held) and not held.is_over and not held.waits:
            await self._begin(held)

    async def lost(self, held: HeartbeatExecution) -> None:
        """Its run, or the beat itself, is another process's by now."""
        await self._give_back(held)

    async def end(self, held: HeartbeatExecution, status: HeartbeatRunStatus, detail: str) -> None:
        """End one that has no run."""
        if self.holds(held) and not held.is_over:
            await self._finish(held, HeartbeatOutcome(status, detail), None)

    async def _finish(
        self, held: HeartbeatExecution, told: HeartbeatOutcome, run: RunEnd | None
    ) -> None:
        end = self._end_of(held, told.status, told.detail)
        end = replace(
            end,
            target=told.target,
            reply=cut_bytes(told.reply, REPLY_BYTES),
            failed=_FAILED.get(told.status),
        )
        if told.status not in _UNHEARD and held.go is not None:
            events = tuple(event.id for event in held.go.events)
            end = replace(end, events=events, done=held.go.due.keys)
        await self._store_end(held, end, run, told)

    async def _store_end(
        self,
        held: HeartbeatExecution,
        end: HeartbeatRunEnd,
        run: RunEnd | None,
        told: HeartbeatOutcome,
    ) -> None:
        held.is_over = True
        try:
            if not await self._ends.store(held, end, run, told.say):
                return
        finally:
            self._drop(held)
        self._note(end)
        log.info(
            "heartbeat_ended",
            extra={
                **facts_of(held),
                "status": end.status,
                "reason": end.skip,
                "detail": end.detail,
            },
        )
        if told.say or end.failed is not None:
            self._side.go(self._performer.told(held, end, told))

    def _end_of(
        self, held: HeartbeatExecution, status: HeartbeatRunStatus, detail: str
    ) -> HeartbeatRunEnd:
        return HeartbeatRunEnd(
            id=held.id,
            agent=held.claimed.agent,
            status=status,
            finished_at=self._clock.now(),
            detail=detail,
            started_at=held.started_at,
            noted_at=held.looked_at,
            attempts=held.attempt,
        )

    # ------------------------------------------------------------------ the end of the process

    def stop(self, held: HeartbeatExecution) -> None:
        """Let it begin no more attempt, on request; one that waits for it ends now."""
        held.stopped = True
        if held.waits:
            self._side.go(self.end(held, HeartbeatRunStatus.CANCELLED, "it was stopped"))
            self._waits[held.id].set()

    async def close(self) -> None:
        """Give back what waits; nothing begins any more. What runs is ended by who performs it."""
        self._closing = True
        waiting = [held for held in self.all() if held.run is None or held.waits]
        await asyncio.gather(*(self._give_back(held) for held in waiting if not held.is_over))
        await self._side.until_done()

    def forget(self) -> None:
        """This node was declared dead: what it had in hand belongs to others."""
        self._held.clear()
        for over in self._waits.values():
            over.set()
        self._waits.clear()

    async def _give_back(self, held: HeartbeatExecution) -> None:
        held.is_over = True
        try:
            await self._ends.give_back(held)
        finally:
            self._drop(held)

    def _drop(self, held: HeartbeatExecution) -> None:
        if not self.holds(held):
            return
        del self._held[held.id]
        if (over := self._waits.pop(held.id, None)) is not None:
            over.set()
        self._freed(held.claimed)


_WORDLESS: Final = "its run failed without a word"

_FAILED: Final = {
    HeartbeatRunStatus.OK: False,
    HeartbeatRunStatus.ALERTED: False,
    HeartbeatRunStatus.DUPLICATE: False,
    HeartbeatRunStatus.NO_ROUTE: False,
    HeartbeatRunStatus.FAILED: True,
}
"""What an end makes of the number of failures in a row; the others keep it."""

_UNHEARD: Final = frozenset(
    {HeartbeatRunStatus.FAILED, HeartbeatRunStatus.CANCELLED, HeartbeatRunStatus.NO_ROUTE}
)
"""Ends of which nobody has heard: the next beat carries the same events and items again."""


def _again(held: HeartbeatExecution, attempt: Attempt) -> bool:
    """Whether a failed attempt is followed by another one (SPEC HB-10, CRON-7)."""
    if attempt.outcome not in (Outcome.FAILED, Outcome.TIMED_OUT) or not attempt.retryable:
        return False
    spent = attempt.side_effects or attempt.why is Why.BUDGET
    return held.attempt <= RETRIES and not spent and not held.stopped
