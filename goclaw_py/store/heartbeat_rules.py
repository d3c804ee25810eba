"""Decisions about heartbeats that both implementations of the store share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from goclaw_py.heartbeat.models import (
    WAKES_APART,
    Heartbeat,
    HeartbeatConfig,
    HeartbeatRun,
    HeartbeatRunStatus,
)
from goclaw_py.model.outcomes import HeartbeatRunKind, Trigger
from goclaw_py.ports.store import OutboxState

KEPT_ROWS: Final = 1000
"""So many rows of the log each agent keeps."""

COUNTED: Final = timedelta(days=32)
"""Of runs that used something more rows are kept: budgets and a month's costs are their sums."""

KEPT: Final = timedelta(days=90)
"""How long ended rows of the log are kept (SPEC DB-5)."""

MOST_SWEPT: Final = 250
"""So many rows of the log one sweep deletes."""

SKEW: Final = timedelta(minutes=5)
"""A heartbeat run that began further ahead than this was written by a clock that was wrong."""

ITEMS_KEPT: Final = timedelta(days=800)
"""How long it is known when an item was carried last: longer than any interval of one."""

LOST: Final = "its process died while its agent worked"
"""The detail of a lost run."""

TALKS: Final = (Trigger.CHAT, Trigger.API)
"""What makes an agent busy while it runs (SPEC HB-4)."""

UNCONFIRMED: Final = (OutboxState.PENDING, OutboxState.SENDING)
GIVEN_UP: Final = (OutboxState.DEAD, OutboxState.DROPPED)


# -------------------------------------------------------------------- the grid


def point_after(heartbeat: Heartbeat, now: datetime) -> datetime | None:
    """The first point of its grid after an instant, itself excluded; None while it is off.

    Exact: instants and intervals are whole microseconds.
    """
    if not heartbeat.is_on or heartbeat.interval is None or heartbeat.anchor is None:
        return None
    gone = max((now - heartbeat.anchor) // heartbeat.interval, -1)
    return heartbeat.anchor + (gone + 1) * heartbeat.interval


def planned(known: Heartbeat, plan: HeartbeatConfig, now: datetime) -> Heartbeat:
    """A heartbeat as the settings want it; a new one is known by its agent alone."""
    keeps = known.interval == plan.interval
    wanted = replace(known, interval=plan.interval)
    if plan.interval is not None and known.anchor is None:
        wanted = replace(wanted, anchor=now + plan.offset)
    return _timed(wanted, known.next_at if keeps else None, now)


def switched(known: Heartbeat, *, on: bool | None, now: datetime) -> Heartbeat:
    """A heartbeat as people want it."""
    return _timed(replace(known, switched=on), known.next_at, now)


def _timed(heartbeat: Heartbeat, next_at: datetime | None, now: datetime) -> Heartbeat:
    """With its next heartbeat run: the one it had, or the first that is not over."""
    if not heartbeat.is_on:
        next_at = None
    elif next_at is None or _is_beyond(heartbeat, next_at, now):
        next_at = point_after(heartbeat, _over(heartbeat, now))
    return replace(heartbeat, next_at=next_at)


def _over(heartbeat: Heartbeat, now: datetime) -> datetime:
    """Up to when the points of a grid are over: a point at this very instant is not.

    Whoever had to wait for the row comes with an older time than that of its last run, and would
    let it run twice for one point.
    """
    over = now - timedelta.resolution
    began = heartbeat.began_at
    if began is None or began > now + SKEW:
        return over
    return max(over, began)


def _is_beyond(heartbeat: Heartbeat, next_at: datetime, now: datetime) -> bool:
    """Whether a run lies further ahead than any can: a clock was wrong when it was written."""
    if heartbeat.interval is None or heartbeat.anchor is None:
        return False
    return next_at > max(heartbeat.anchor, now + heartbeat.interval)


def woken(known: Heartbeat, kind: HeartbeatRunKind, now: datetime) -> Heartbeat:
    """A heartbeat that is to run as soon as may be; a wake that waits already is enough."""
    if known.wake_at is not None:
        return known
    return replace(known, wake_at=now, wake_kind=kind)


def is_moved(before: Heartbeat, after: Heartbeat) -> bool:
    """Whether a heartbeat run is due at another time."""
    return (before.next_at, before.wake_at) != (after.next_at, after.wake_at)


# -------------------------------------------------------------------- what is due


def wake_from(heartbeat: Heartbeat) -> datetime | None:
    """When a wake that waits may come (SPEC HB-11); None if none does."""
    if heartbeat.wake_at is None or heartbeat.began_at is None:
        return heartbeat.wake_at
    return max(heartbeat.wake_at, heartbeat.began_at + WAKES_APART)


def due_from(heartbeat: Heartbeat, *, wakes: bool) -> datetime | None:
    """When a heartbeat run of it can be claimed; None if one is in hand or nothing lies ahead."""
    if heartbeat.node is not None:
        return None
    if heartbeat.heartbeat_run is not None:
        return heartbeat.began_at
    times = (heartbeat.next_at, wake_from(heartbeat) if wakes else None)
    return min((time for time in times if time is not None), default=None)


@dataclass(frozen=True, slots=True)
class DueCause:
    """Why a heartbeat run that is not in hand is due: by the grid, or by a wake."""

    kind: HeartbeatRunKind
    at: datetime
    is_wake: bool


def due(heartbeat: Heartbeat, now: datetime) -> DueCause | None:
    """What is due of a heartbeat without a heartbeat run, the grid before a wake."""
    if heartbeat.next_at is not None and heartbeat.next_at <= now:
        return DueCause(HeartbeatRunKind.INTERVAL, heartbeat.next_at, is_wake=False)
    wake = wake_from(heartbeat)
    if wake is None or wake > now or heartbeat.wake_at is None:
        return None
    return DueCause(heartbeat.wake_kind or HeartbeatRunKind.EVENT, heartbeat.wake_at, is_wake=True)


def claimed(heartbeat: Heartbeat, why: DueCause, now: datetime) -> Heartbeat:
    """A heartbeat when a new heartbeat run of it was claimed, but for which and by whom.

    A wake that was asked for by now is answered by any run; one for later waits.
    """
    if not why.is_wake and why.kind is HeartbeatRunKind.INTERVAL:
        heartbeat = replace(heartbeat, next_at=point_after(heartbeat, now))
    if why.kind is HeartbeatRunKind.MANUAL or (
        heartbeat.wake_at is not None and heartbeat.wake_at <= now
    ):
        heartbeat = replace(heartbeat, wake_at=None, wake_kind=None)
    return replace(heartbeat, began_at=now)


def answered(heartbeat: Heartbeat, now: datetime) -> Heartbeat:
    """A heartbeat one heartbeat run of which answers what is due by the grid at an instant."""
    if heartbeat.next_at is None or heartbeat.next_at > now:
        return heartbeat
    return replace(heartbeat, next_at=point_after(heartbeat, now))


# -------------------------------------------------------------------- what became of them


def delivery(states: Sequence[OutboxState]) -> str:
    """What became of the messages of a heartbeat run, together: see ``HeartbeatRun.delivery``."""
    seen = Counter(states)
    if any(seen[state] for state in GIVEN_UP):
        return "dead"
    if any(seen[state] for state in UNCONFIRMED):
        return "pending"
    return "sent" if seen else ""


def shown(
    heartbeat_run: HeartbeatRun, states: Sequence[OutboxState], errors: Sequence[str | None]
) -> HeartbeatRun:
    """A row of the log with what became of its messages; ``errors`` are theirs, in order."""
    became = delivery(states)
    pairs = zip(states, errors, strict=True)
    why = next((error or "" for state, error in pairs if state in GIVEN_UP), "")
    status = heartbeat_run.status
    if status is HeartbeatRunStatus.ALERTED and became == "dead":
        status = HeartbeatRunStatus.DELIVERY_FAILED
    return replace(heartbeat_run, status=status, delivery=became, undelivered=why)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows of the log are asked for.

    Args:
        status: None: any.
        skip: None: any, and none.
        dead: Whether one of its messages is given up; None: whether or not.
    """

    status: str | None = None
    skip: str | None = None
    dead: bool | None = None


def wanted(outcome: str) -> Wanted:
    """What ``HeartbeatRun.outcome`` says, as what is stored.

    ``skipped`` stands for all that were.
    """
    status, found, skip = outcome.partition(":")
    if status == HeartbeatRunStatus.DELIVERY_FAILED:
        return Wanted(HeartbeatRunStatus.ALERTED, skip if found else None, dead=True)
    dead = False if status == HeartbeatRunStatus.ALERTED else None
    return Wanted(status, skip if found else None, dead)
