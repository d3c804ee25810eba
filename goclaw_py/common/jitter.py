"""Delays of jobs and heartbeats that spread equal schedules.

Nothing here is random: a job's id or an agent's name decides, and for jitter also the time that it
is due, so that whoever counts again gets the same (SPEC CRON-16, HB-1).
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import Final

from goclaw_py.common.durations import MILLISECOND
from goclaw_py.model.ids import AgentName, JobId

STAGGER_PART: Final = 0.1
"""Over which part of their interval equal schedules are spread if no jitter says so."""
MAX_STAGGER: Final = timedelta(hours=1)
MAX_OFFSET: Final = timedelta(minutes=5)
"""Below this, heartbeats of one interval are spread."""


def jitter(job: JobId, due: datetime, gap: timedelta, part: float) -> timedelta:
    """From 0 up to, but not including, a part (0 to 0.1) of the gap to the following firing."""
    return gap * (part * _share(f"{job} {due.timestamp():.6f}"))


def stagger(job: JobId, gap: timedelta, part: float) -> timedelta:
    """The same for each firing, below that part of a gap and at most ``MAX_STAGGER``.

    Whole milliseconds. A ``part`` of 0 means ``STAGGER_PART``.
    """
    most = min(gap * (part or STAGGER_PART), MAX_STAGGER)
    return most * _share(job) // MILLISECOND * MILLISECOND


def heartbeat_offset(agent: AgentName, interval: timedelta) -> timedelta:
    """By how much the grid of a heartbeat begins later: below the interval and ``MAX_OFFSET``.

    Whole milliseconds, and the same in every process (SPEC HB-1).
    """
    span = min(interval, MAX_OFFSET) // MILLISECOND
    return _number(agent) % span * MILLISECOND


def _share(text: str) -> float:
    """A number from 0 up to, but not including, 1; always the same for a text."""
    return _number(text) / 2**48


def _number(text: str) -> int:
    """A whole number below 2**48; always the same for a text."""
    digest = hashlib.blake2b(text.encode(), digest_size=6).digest()
    return int.from_bytes(digest, "big")
