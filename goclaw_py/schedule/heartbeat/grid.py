"""When heartbeats run: their grid, and what is due (SPEC HB-1, HB-11).

Pure: stores apply it to their rows, the forecast to the heartbeats it was given.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from goclaw_py.core.outcomes import HeartbeatRunKind
from goclaw_py.schedule.heartbeat.models import WAKES_APART, Heartbeat, HeartbeatConfig

SKEW: Final = timedelta(minutes=5)
"""A heartbeat run that started further in the future was stored with a wrong clock."""


def point_after(heartbeat: Heartbeat, now: datetime) -> datetime | None:
    """Return the first point of the grid after an instant; None while the heartbeat is off.

    Exact: instants and intervals are whole microseconds.
    """
    if not heartbeat.is_on or heartbeat.interval is None or heartbeat.anchor is None:
        return None
    gone = max((now - heartbeat.anchor) // heartbeat.interval, -1)
    return heartbeat.anchor + (gone + 1) * heartbeat.interval


def planned(known: Heartbeat, plan: HeartbeatConfig, now: datetime) -> Heartbeat:
    """Return a heartbeat with the settings applied; a new one has only its agent."""
    keeps = known.interval == plan.interval
    wanted = replace(known, interval=plan.interval)
    if plan.interval is not None and known.anchor is None:
        wanted = replace(wanted, anchor=now + plan.offset)
    return _timed(wanted, known.next_at if keeps else None, now)


def switched(known: Heartbeat, *, on: bool | None, now: datetime) -> Heartbeat:
    """Return a heartbeat turned on or off by a person."""
    return _timed(replace(known, switched=on), known.next_at, now)


def _timed(heartbeat: Heartbeat, next_at: datetime | None, now: datetime) -> Heartbeat:
    """Return it with its next run: the one it had, or the first that is not in the past."""
    if not heartbeat.is_on:
        next_at = None
    elif next_at is None or _is_beyond(heartbeat, next_at, now):
        next_at = point_after(heartbeat, _over(heartbeat, now))
    return replace(heartbeat, next_at=next_at)


def _over(heartbeat: Heartbeat, now: datetime) -> datetime:
    """Return the instant up to which points of the grid have passed, itself excluded.

    A caller that waited for the row's lock has a time before that of the last run, and would run
    the heartbeat twice for one point.
    """
    over = now - timedelta.resolution
    began = heartbeat.began_at
    if began is None or began > now + SKEW:
        return over
    return max(over, began)


def _is_beyond(heartbeat: Heartbeat, next_at: datetime, now: datetime) -> bool:
    """Return whether a run is further ahead than possible, because a clock was wrong."""
    if heartbeat.interval is None or heartbeat.anchor is None:
        return False
    return next_at > max(heartbeat.anchor, now + heartbeat.interval)


def replanned(known: Heartbeat, plan: HeartbeatConfig, now: datetime) -> Heartbeat:
    """Return a heartbeat without times that only a clock which was ahead can have stored."""
    interval, anchor = known.interval, known.anchor
    if interval is not None and anchor is not None and anchor > now + plan.offset:
        # The points of the grid stay, and begin earlier.
        known = replace(known, anchor=anchor - (anchor - now) // interval * interval)
    timed = _timed(
        replace(
            known,
            began_at=None if known.began_at is None else min(known.began_at, now),
            wake_at=None if known.wake_at is None else min(known.wake_at, now),
        ),
        known.next_at,
        now,
    )
    return timed if known.next_at is not None else replace(timed, next_at=None)


def woken(known: Heartbeat, kind: HeartbeatRunKind, now: datetime) -> Heartbeat:
    """Return a heartbeat with a wake requested; a waiting wake is kept."""
    if known.wake_at is not None:
        return known
    return replace(known, wake_at=now, wake_kind=kind)


def is_moved(before: Heartbeat, after: Heartbeat) -> bool:
    """Return whether the next heartbeat run is due at another time."""
    return (before.next_at, before.wake_at) != (after.next_at, after.wake_at)


# -------------------------------------------------------------------- what is due


def wake_from(heartbeat: Heartbeat) -> datetime | None:
    """Return when a waiting wake may run (SPEC HB-11); None without one."""
    if heartbeat.wake_at is None or heartbeat.began_at is None:
        return heartbeat.wake_at
    return max(heartbeat.wake_at, heartbeat.began_at + WAKES_APART)


def due_from(heartbeat: Heartbeat, *, wakes: bool) -> datetime | None:
    """Return when a run can be claimed; None if one is claimed or none is planned."""
    if heartbeat.node is not None:
        return None
    if heartbeat.heartbeat_run is not None:
        return heartbeat.began_at
    times = (heartbeat.next_at, wake_from(heartbeat) if wakes else None)
    return min((time for time in times if time is not None), default=None)


@dataclass(frozen=True, slots=True)
class DueCause:
    """Why an unclaimed heartbeat run is due: by the grid, or by a wake."""

    kind: HeartbeatRunKind
    at: datetime
    is_wake: bool


def due(heartbeat: Heartbeat, now: datetime) -> DueCause | None:
    """Return what is due, the grid before a wake; None if nothing is."""
    if heartbeat.next_at is not None and heartbeat.next_at <= now:
        return DueCause(HeartbeatRunKind.INTERVAL, heartbeat.next_at, is_wake=False)
    wake = wake_from(heartbeat)
    if wake is None or wake > now or heartbeat.wake_at is None:
        return None
    return DueCause(heartbeat.wake_kind or HeartbeatRunKind.EVENT, heartbeat.wake_at, is_wake=True)


def claimed(heartbeat: Heartbeat, why: DueCause, now: datetime) -> Heartbeat:
    """Return a heartbeat after a new run was claimed, except the run and its node.

    Any run satisfies a wake that was requested by now; a later wake waits.
    """
    if not why.is_wake and why.kind is HeartbeatRunKind.INTERVAL:
        heartbeat = replace(heartbeat, next_at=point_after(heartbeat, now))
    if why.kind is HeartbeatRunKind.MANUAL or (
        heartbeat.wake_at is not None and heartbeat.wake_at <= now
    ):
        heartbeat = replace(heartbeat, wake_at=None, wake_kind=None)
    return replace(heartbeat, began_at=now)


def answered(heartbeat: Heartbeat, now: datetime) -> Heartbeat:
    """Return a heartbeat whose run also satisfies what the grid has due by an instant."""
    if heartbeat.next_at is None or heartbeat.next_at > now:
        return heartbeat
    return replace(heartbeat, next_at=point_after(heartbeat, now))
