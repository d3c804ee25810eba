"""The loop that claims due work from the database.

The rules of SPEC CRON-4:

Due when `next_run_at <= now`. The loop sleeps until the next due time or a change, at most 1 s; it
only claims and hands over. A hung job delays no other; a `message` needs no lane slot. A burst (20
and more due together) is claimed up to 5 s before its time, as far as this process has room, and
runs at it. When the clock goes back, and at the start, a next run that lies further ahead than one
interval, counting backoff and delays, is computed again. A step of less than a minute repeats
nothing; one of up to three hours no cron times that are fixed (R5) and at least three hours apart.
A job that is paused, deleted or given another time before it has started does not run. A job that
this release cannot read is `disabled` and stops no other. `scheduler.enabled = false`: no loop, no
tools; jobs can be edited; status says off.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Generic, TypeVar

from goclaw_py.core.concurrency import WakeEvent
from goclaw_py.core.errors import Fenced, StoreUnavailable
from goclaw_py.core.time.clock import Clock
from goclaw_py.schedule.engine import ClaimT, ExecutionEngine

log = logging.getLogger(__name__)

LOOK_S: Final = 1.0
"""The polling interval in seconds; notices are only hints (SPEC DB-3)."""
_UNSURE_S = 60.0
_WENT_BACK: Final = timedelta(seconds=1)
_OTHERS_S = 0.05

_E = TypeVar("_E", bound="ExecutionEngine[Any, Any, Any, Any]")


class WorkPoller(ABC, Generic[ClaimT, _E]):
    """Waits for the next due time or a change, at most a second, and claims what is due.

    It waits for nothing else: slow work or channels do not delay other work.

    Args:
        what: What it claims, for the log.
        wake: Set when something was changed, or when there is room for more.
    """

    def __init__(self, what: str, clock: Clock, executions: _E, wake: WakeEvent) -> None:
        self._what = what
        self._clock = clock
        self._executions = executions
        self._wake = wake
        self._closing = False
        self._is_unsure = False
        self._unsure_until = 0.0
        self._looked_at: datetime | None = None
        """The time of the last look; None: due times are to be checked before the next one."""

    async def run(self) -> None:
        """Claim what is due, until cancelled."""
        while not self._closing:
            self._wake.clear()
            try:
                if self._is_unsure:
                    await self._executions.release_unknown()
                    self._is_unsure = asyncio.get_running_loop().time() < self._unsure_until
                sleep_s = await self.poll()
            except StoreUnavailable as error:
                log.debug("store_unavailable", extra={"part": self._what, "error": str(error)})
                if self._is_unsure:
                    # Nothing was released yet: the time starts when the database is available.
                    self._answer_was_lost()
                sleep_s = LOOK_S
            except Fenced:
                # Declared dead; the next look is that of another node.
                sleep_s = LOOK_S
            await self._wake.wait(sleep_s)

    async def poll(self) -> float:
        """Claim what is due now; return the seconds until the next look, at most ``LOOK_S``.

        Raises ``StoreUnavailable`` and ``Fenced``.
        """
        now = self._clock.now()
        if self._looked_at is None or now < self._looked_at - _WENT_BACK:
            # Planned by another clock, or before this one was set back (SPEC CRON-4, HB-1).
            self._looked_at = None
            await self.replan(now)
        self._looked_at = now
        await self.prepare()
        while True:
            due_at = await self.next_due()
            if due_at is None:
                return LOOK_S
            if (ahead_s := (due_at - self._clock.now()).total_seconds()) > 0:
                return min(ahead_s, LOOK_S)
            claimed = await self.claim_due()
            if not claimed:
                # Others are claiming these right now, or it is not ours.
                return _OTHERS_S if self.has_room() else LOOK_S
            self._executions.start_claimed(claimed)

    @abstractmethod
    async def replan(self, now: datetime) -> None:
        """Compute due times again that are further ahead than the schedule allows at ``now``.

        Called at the start, and when the clock has gone back. Raises ``StoreUnavailable``.
        """

    async def prepare(self) -> None:
        """Called before each look."""

    @abstractmethod
    async def next_due(self) -> datetime | None:
        """Return when to claim next, perhaps in the past; None: nothing is planned."""

    @abstractmethod
    async def claim_due(self) -> Sequence[ClaimT]:
        """Claim what is due, through ``claim``."""

    def has_room(self) -> bool:
        """Return whether this process may claim more."""
        return True

    async def claim(self, claims: Awaitable[Sequence[ClaimT]]) -> Sequence[ClaimT]:
        """Return the claims, or release them if this process is closing.

        Returns nothing if this node has expired.
        """
        node = self._executions.node()
        try:
            claimed = await claims
        except StoreUnavailable:
            self._answer_was_lost()
            raise
        if self._executions.node() != node:
            return []
        if self._closing and claimed:
            await self._executions.release([one.id for one in claimed], node)
        return [] if self._closing else claimed

    def _answer_was_lost(self) -> None:
        """Handle claims whose response was lost.

        For a while, because the call may take effect late.
        """
        self._is_unsure = True
        self._unsure_until = asyncio.get_running_loop().time() + _UNSURE_S

    def close(self) -> None:
        """Stop claiming."""
        self._closing = True
        self._wake.call()
