"""Delays that spread equal schedules of jobs and heartbeats.

Not random: a job's id or an agent's name determines them, for jitter together with the due time, so
that every process computes the same (SPEC CRON-16, HB-1).
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import Final

from goclaw_py.core.ids import AgentName, JobId
from goclaw_py.core.time.durations import MILLISECOND

STAGGER_PART: Final = 0.1
"""The part of an interval over which equal schedules are spread by default."""
MAX_STAGGER: Final = timedelta(hours=1)
MAX_OFFSET: Final = timedelta(minutes=5)
"""Heartbeats with equal intervals are spread over this time."""


def jitter(job: JobId, due: datetime, gap: timedelta, part: float) -> timedelta:
    """Return a delay from 0 to below a part (0 to 0.1) of the gap to the next firing."""
    return gap * (part * _share(f"{job} {due.timestamp():.6f}"))


def stagger(job: JobId, gap: timedelta, part: float) -> timedelta:
    """Return the constant delay of a job, below that part of a gap and ``MAX_STAGGER``.

    Whole milliseconds. A ``part`` of 0 means ``STAGGER_PART``.
    """
    most = min(gap * (part or STAGGER_PART), MAX_STAGGER)
    return most * _share(job) // MILLISECOND * MILLISECOND


def heartbeat_offset(agent: AgentName, interval: timedelta) -> timedelta:
    """Return the delay of a heartbeat's grid: below the interval and ``MAX_OFFSET``.

    Whole milliseconds, and the same in every process (SPEC HB-1).
    """
    span = min(interval, MAX_OFFSET) // MILLISECOND
    return _number(agent) % span * MILLISECOND


def _share(text: str) -> float:
    """Return a number from 0 to below 1, always the same for a text."""
    return _number(text) / 2**48


def _number(text: str) -> int:
    """Return a whole number below 2**48, always the same for a text."""
    digest = hashlib.blake2b(text.encode(), digest_size=6).digest()
    return int.from_bytes(digest, "big")
