"""The real clock, and ids made from it."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime

from goclaw_py.core.ids import RunId, uuid7
from goclaw_py.ports.clock import Clock

_ENTROPY_BITS = 80


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """The present instant, aware, in UTC."""
        return datetime.now(UTC)


def new_id(clock: Clock) -> str:
    """A fresh UUIDv7."""
    return uuid7(int(clock.now().timestamp() * 1000), secrets.randbits(_ENTROPY_BITS))


def new_run_id(clock: Clock) -> RunId:
    """A fresh id for a run."""
    return RunId(new_id(clock))
