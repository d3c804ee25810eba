"""The real clocks, and ids created from them."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from goclaw_py.core.ids import RunId, uuid7
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.time.texts import duration

log = logging.getLogger(__name__)

WARN_SKEW_S: Final = 2.0
"""A larger clock error, in seconds, causes a warning."""

_JUMP_S: Final = 2.0
_TOLERANCE_S: Final = 0.001
_ENTROPY_BITS: Final = 80
_STEADY: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Continues while the machine sleeps, where such a clock exists."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the present instant, timezone-aware in UTC."""
        return datetime.now(UTC)


steady_s: Callable[[], float] = partial(time.clock_gettime, _STEADY)
"""Returns seconds since some instant; this clock cannot be set."""


class SharedClock:
    """The clock of the database, which all nodes use to compare their leases.

    Between two readings it continues with this machine's steady clock, so setting the machine's
    clock has no effect. Before the first reading it is the machine's clock (docs/adr/0020).

    Args:
        steady: A clock that cannot be set, in seconds.
    """

    def __init__(self, local: Clock | None = None, steady: Callable[[], float] = steady_s) -> None:
        self._local = local or SystemClock()
        self._steady = steady
        self._at: datetime | None = None
        self._since_s = 0.0
        self._took_s = 0.0
        self._is_told = False

    def now(self) -> datetime:
        """Return the present instant, timezone-aware in UTC."""
        if self._at is None:
            return self._local.now()
        return self._at + timedelta(seconds=self._steady() - self._since_s)

    @property
    def skew_s(self) -> float:
        """Return the seconds by which the clock of this machine is ahead."""
        return (self._local.now() - self.now()).total_seconds()

    def begin(self) -> float:
        """Begin a reading; pass the result to ``read``."""
        return self._steady()

    def read(self, there: datetime, begun_s: float) -> bool:
        """Apply a reading of the database's clock; return whether it is a jump.

        The clock was read at some instant during the query, so a slow query says little: it counts
        if it contradicts the present value, or if no query was faster.
        """
        answered_s = self._steady()
        took_s = answered_s - begun_s
        since_s = (self.now() - there).total_seconds()
        # Between the times that either answer allows, if there is a gap.
        off_s = max(-since_s, since_s - took_s) - self._took_s / 2
        is_first = self._at is None
        if is_first or off_s > _TOLERANCE_S or took_s < self._took_s:
            self._at = there + timedelta(seconds=took_s / 2)
            self._since_s, self._took_s = answered_s, took_s
        self._log_skew()
        return not is_first and off_s > _JUMP_S

    def warning(self) -> str | None:
        """Return what is wrong with the clock of this machine, as a clause; None if nothing is."""
        skew_s = self.skew_s
        if abs(skew_s) < WARN_SKEW_S:
            return None
        ahead = "ahead of" if skew_s > 0 else "behind"
        return (
            f"is {duration(abs(skew_s))} {ahead} the database's, whose clock is used; "
            "synchronize both with a time server"
        )

    def _log_skew(self) -> None:
        warning = self.warning()
        if warning is not None and not self._is_told:
            log.warning("clock_skew", extra={"warning": f"the clock of this machine {warning}"})
        self._is_told = warning is not None


def new_id(clock: Clock) -> str:
    """Return a new UUIDv7."""
    return uuid7(int(clock.now().timestamp() * 1000), secrets.randbits(_ENTROPY_BITS))


def new_run_id(clock: Clock) -> RunId:
    """Return a new id for a run."""
    return RunId(new_id(clock))
