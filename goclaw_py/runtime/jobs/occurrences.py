"""Occurrences from their claim to their stored end (SPEC CRON-5 to CRON-8).

Who performs them is somebody else's business: runs of agents in a gateway, callbacks in programs of
others. Decisions are made in ``core.due``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol

from goclaw_py.core.due import End, Retry, after, begin, settled
from goclaw_py.core.errors import Fenced, NeverBegan
from goclaw_py.core.events import Usage
from goclaw_py.core.ids import NodeId, OccurrenceId
from goclaw_py.core.jobs import Job
from goclaw_py.core.messages import OutboundMessage, OutFile
from goclaw_py.core.occurrence import (
    OUTPUT_BYTES,
    Attempt,
    Claimed,
    JobUpdate,
    OccurrenceEnd,
    Status,
    Why,
)
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.policy import JobPolicy, Misfire
from goclaw_py.core.text import cut_bytes
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.store import EndedOccurrence, JobStore, RunEnd
from goclaw_py.runtime.jobs.held import Held
from goclaw_py.runtime.jobs.room import Room
from goclaw_py.runtime.retry import attempt_delay_s, until_available, until_stored

log = logging.getLogger(__name__)

_NOTHING = Attempt(Outcome.REJECTED)
"""What is known of an attempt that never began."""

MISSED_APART_S = 1.0
"""What was missed starts one after the other, so that a restart is no stampede (SPEC CRON-6)."""


@dataclass(frozen=True, slots=True)
class Said:
    """What an attempt has said and used."""

    text: str = ""
    usage: Usage | None = None
    files: tuple[OutFile, ...] = ()


class Performer(Protocol):
    """Does what jobs ask for."""

    def busy(self, job: Job, policy: JobPolicy) -> Why | None:
        """Why there is no room for a job now; None: there is."""

    async def perform(self, held: Held) -> None:
        """Begin an attempt; whatever comes of it, ``Occurrences.ended`` is told."""

    async def tell(
        self, held: Held, end: End, update: JobUpdate | None, attempt: Attempt, said: Said
    ) -> tuple[OutboundMessage, ...]:
        """What people are told of the end of an occurrence."""

    async def told(self, held: Held, end: End, say: Sequence[OutboundMessage], said: Said) -> None:
        """The end is stored, and with it what is told. Raises nothing."""


class RunStore(JobStore, Protocol):
    """What is written here."""

    async def finish_run(self, end: RunEnd, *, node: NodeId) -> None:
        """See ``ports.store.RunStore``."""


class Occurrences:
    """Those that this process has in hand.

    Args:
        base: The policy of the settings.
        freed: Called when there is room for more.
    """

    def __init__(
        self,
        store: RunStore,
        clock: Clock,
        node: Callable[[], NodeId],
        base: JobPolicy,
        freed: Callable[[], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._node = node
        self._base = base
        self._freed = freed
        self._held: dict[OccurrenceId, Held] = {}
        self._timers: dict[OccurrenceId, asyncio.TimerHandle] = {}
        self._room = Room(self._held)
        self._tasks: set[asyncio.Task[None]] = set()
        self._last_missed = -MISSED_APART_S
        self._closing = False

    def connect(self, performer: Performer) -> None:
        """Give it who performs. Call it once, before anything is due."""
        self._performer = performer

    # ------------------------------------------------------------------ looking

    @property
    def load(self) -> int:
        """How many run or wait for a place to run; not those that wait for their next attempt."""
        return sum(not held.waits or held.started_at is None for held in self._held.values())

    def of_agent(self, agent: str) -> int:
        """How many jobs of an agent are in hand."""
        return sum(held.claimed.job.spec.agent == agent for held in self._held.values())

    def all(self) -> Iterable[Held]:
        """Those in hand, the first claimed first."""
        return tuple(self._held.values())

    def holds(self, occurrence: OccurrenceId) -> bool:
        """Whether it is in hand."""
        return occurrence in self._held

    # ------------------------------------------------------------------ beginning

    async def take(self, claimed: Sequence[Claimed]) -> None:
        """Begin what was claimed, or end what does not run. Returns soon, whatever they do."""
        over: list[tuple[Held, End]] = []
        for one in claimed:
            held = self.hold(one)
            busy = self._performer.busy(one.job, held.policy)
            decided = begin(one, self._base, now=self._clock.now(), busy=busy)
            if isinstance(decided, End):
                over.append((held, decided))
            elif self._is_missed(held):
                self._begin_later(held, self._turn_of_missed())
            else:
                self._begin(held)
        if over:
            self._go(self._end_unbegun(over))

    def hold(self, claimed: Claimed) -> Held:
        """Have an occurrence in hand."""
        held = Held(claimed, claimed.job.policy(self._base), attempt=claimed.attempts)
        self._held[held.id] = held
        return held

    def _begin(self, held: Held) -> None:
        """Begin an attempt as soon as its agent has room (SPEC CRON-10)."""
        if self._room.has(held):
            self.start(held)
        else:
            self._room.line_up(held)

    def start(self, held: Held) -> None:
        """Begin its next attempt."""
        held.attempt += 1
        held.waits = False
        self._go(self._perform(held))

    async def _perform(self, held: Held) -> None:
        try:
            await self._performer.perform(held)
        except Exception as bug:
            # A boundary: what one job meets must not stop the others.
            log.exception("a job met a bug", extra=_facts(held))
            failed = Attempt(Outcome.FAILED, error=f"{type(bug).__name__}: {bug}")
            await self.ended(held, failed, Said(), None)

    def _is_missed(self, held: Held) -> bool:
        claimed = held.claimed
        grace = timedelta(seconds=held.policy.misfire_grace_s)
        late = claimed.claimed_at - claimed.due_at > grace
        return late and not claimed.by_hand and held.policy.misfire is Misfire.ONCE

    def _turn_of_missed(self) -> float:
        """When the next one that was missed may begin, by the loop's clock."""
        now = asyncio.get_running_loop().time()
        self._last_missed = max(now, self._last_missed + MISSED_APART_S)
        return self._last_missed

    def _begin_later(self, held: Held, at: float) -> None:
        held.waits = True
        loop = asyncio.get_running_loop()
        self._timers[held.id] = loop.call_at(at, self._on_timer, held)

    def _on_timer(self, held: Held) -> None:
        self._timers.pop(held.id, None)
        if held.id in self._held:
            self._begin(held)

    # ------------------------------------------------------------------ ending

    async def ended(self, held: Held, attempt: Attempt, said: Said, run: RunEnd | None) -> None:
        """An attempt is over: store that, and do what follows. Returns when it is stored.

        ``run`` is the end of its run, None if it had none or it never began.
        """
        verdict = after(held.claimed, self._base, attempt, held.attempt)
        if isinstance(verdict, Retry) and not self._closing:
            await self._store_run(run)
            delay_s = attempt_delay_s(held.attempt)
            log.info(
                "a job is tried again",
                extra={**_facts(held), "in_s": delay_s, "why": attempt.error},
            )
            self._begin_later(held, asyncio.get_running_loop().time() + delay_s)
            self._freed()
        elif isinstance(verdict, End):
            await self._end(held, verdict, attempt, said, run)
        else:
            await self._store_run(run)
            await self._give_back(held)

    async def end(self, held: Held, end: End, attempt: Attempt | None = None) -> None:
        """End one that has not begun."""
        await self._end(held, end, attempt or _NOTHING, Said(), None)

    async def _end(
        self, held: Held, end: End, attempt: Attempt, said: Said, run: RunEnd | None
    ) -> None:
        done, say = await self._written(held, end, attempt, said)
        facts = _facts(held)
        try:
            if not await self._stored(done, say, run, facts):
                # What met a bug may be what was said.
                say, bare = (), replace(done, output="", error="its end could not be stored")
                await until_stored(lambda: self._store_end(bare, (), None), facts)
        except Fenced:
            log.warning("another node has this occurrence by now", extra=facts)
            say = ()
        finally:
            self._drop(held)
        await self._performer.told(held, end, say, said)

    async def _stored(
        self,
        done: OccurrenceEnd,
        say: tuple[OutboundMessage, ...],
        run: RunEnd | None,
        facts: Mapping[str, object],
    ) -> bool:
        """Whether it was stored. Waits for the database; raises ``Fenced``."""
        try:
            await until_available(lambda: self._store_end(done, say, run))
        except Fenced:
            raise
        except Exception:
            log.exception("the end of a job was not stored; storing it barely", extra=facts)
            return False
        return True

    async def _written(
        self, held: Held, end: End, attempt: Attempt, said: Said
    ) -> tuple[OccurrenceEnd, tuple[OutboundMessage, ...]]:
        """An end as it is stored, and what is told of it."""
        now = self._clock.now()
        claimed = held.claimed
        update = settled(claimed, self._base, end, started_at=held.started_at, now=now)
        try:
            say = await self._performer.tell(held, end, update, attempt, said)
        except Exception:
            # A boundary: a text that cannot be written must not keep its job from going on.
            log.exception("what a job says could not be written", extra=_facts(held))
            say = ()
        done = OccurrenceEnd(
            id=claimed.id,
            job=claimed.job.id,
            revision=claimed.job.revision,
            status=end.status,
            finished_at=now,
            update=update,
            why=end.why,
            output=cut_bytes(said.text, OUTPUT_BYTES),
            error=attempt.error,
            attempts=held.attempt,
            started_at=held.started_at,
            usage=said.usage,
            keep=held.policy.history_keep,
        )
        return done, say

    async def _store_end(
        self, done: OccurrenceEnd, say: tuple[OutboundMessage, ...], run: RunEnd | None
    ) -> None:
        node = self._node()
        if run is not None:
            try:
                await self._store.finish_run(replace(run, occurrence=done, say=say), node=node)
            except NeverBegan:
                run = None
        if run is None:
            await self._store.end_occurrences([EndedOccurrence(done, say)], node=node)

    async def _end_unbegun(self, over: Sequence[tuple[Held, End]]) -> None:
        for held, end in over:
            if end.status is not Status.LOST:
                log.info("a job does not run", extra={**_facts(held), "why": end.why})
            await self._end(held, end, _NOTHING, Said(), None)

    async def _store_run(self, run: RunEnd | None) -> None:
        if run is None:
            return
        try:
            await until_available(lambda: self._store.finish_run(run, node=self._node()))
        except (Fenced, NeverBegan) as error:
            log.debug("the end of an attempt was not stored: %s", error)

    async def _give_back(self, held: Held) -> None:
        if held.claimed.by_hand:
            await self._end(
                held, End(Status.INTERRUPTED), Attempt(Outcome.INTERRUPTED), Said(), None
            )
            return
        status = Status.INTERRUPTED
        try:
            await until_available(
                lambda: self._store.give_back([held.id], node=self._node(), status=status)
            )
        except Fenced as error:
            log.debug("an occurrence is another node's already: %s", error)
        finally:
            self._drop(held)

    def stop(self, held: Held) -> None:
        """End one that waits for its next attempt, on request; it begins no more."""
        if (timer := self._timers.pop(held.id, None)) is not None:
            timer.cancel()
        self._go(self._end(held, End(Status.CANCELLED, Why.STOPPED), _NOTHING, Said(), None))

    # ------------------------------------------------------------------ the end of the process

    async def close(self) -> None:
        """Give back what waits; nothing begins any more. What runs is ended by who performs it."""
        self._closing = True
        self._forget_waits()
        await asyncio.gather(*(self._give_back(held) for held in self.all() if held.waits))
        if self._tasks:
            await asyncio.wait(self._tasks)

    def forget(self) -> None:
        """This node was declared dead: what it had in hand belongs to others."""
        self._forget_waits()
        self._held.clear()

    def _forget_waits(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._room.clear()

    def _drop(self, held: Held) -> None:
        self._held.pop(held.id, None)
        if (timer := self._timers.pop(held.id, None)) is not None:
            timer.cancel()
        self._room.forget(held)
        for other in self._room.let_in():
            self.start(other)
        self._freed()

    def _go(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _facts(held: Held) -> dict[str, object]:
    job = held.claimed.job
    return {"job": job.id, "slug": job.spec.slug, "occurrence": held.id, "attempt": held.attempt}
