"""Rules about heartbeats that both stores share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from goclaw_py.records import OutboxState
from goclaw_py.schedule.heartbeat.models import HeartbeatRun, HeartbeatRunStatus

KEPT_ROWS: Final = 1000
"""The number of heartbeat runs that are kept for each agent."""

COUNTED: Final = timedelta(days=32)
"""Runs with usage are kept longer than ``KEPT_ROWS``: budgets and a month's costs need them."""

KEPT: Final = timedelta(days=90)
"""How long finished heartbeat runs are kept (SPEC DB-5)."""

MOST_SWEPT: Final = 250
"""The number of heartbeat runs that one sweep deletes."""

ITEMS_KEPT: Final = timedelta(days=800)
"""How long the last execution of a checklist item is stored: longer than any interval."""

LOST: Final = "its process died while its agent worked"
"""The detail of a lost run."""


UNCONFIRMED: Final = (OutboxState.WAITING, OutboxState.SENDING)
GIVEN_UP: Final = (OutboxState.FAILED, OutboxState.DROPPED)


def delivery(states: Sequence[OutboxState]) -> str:
    """Return the delivery state of a heartbeat run's messages: see ``HeartbeatRun.delivery``."""
    seen = Counter(states)
    if any(seen[state] for state in GIVEN_UP):
        return "failed"
    if any(seen[state] for state in UNCONFIRMED):
        return "waiting"
    return "sent" if seen else ""


def shown(
    heartbeat_run: HeartbeatRun, states: Sequence[OutboxState], errors: Sequence[str | None]
) -> HeartbeatRun:
    """Return a heartbeat run with the delivery of its messages; ``errors`` are theirs, in order."""
    became = delivery(states)
    pairs = zip(states, errors, strict=True)
    why = next((error or "" for state, error in pairs if state in GIVEN_UP), "")
    status = heartbeat_run.status
    if status is HeartbeatRunStatus.ALERTED and heartbeat_run.target is None:
        status = HeartbeatRunStatus.LOGGED
    elif status is HeartbeatRunStatus.ALERTED and became == "failed":
        status = HeartbeatRunStatus.DELIVERY_FAILED
    return replace(heartbeat_run, status=status, delivery=became, undelivered=why)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The stored form of an outcome filter.

    Args:
        status: None: any.
        skip: None: any or none.
        shown_as: What an alert is shown as (``_ALERTS``); None: any.
    """

    status: str | None = None
    skip: str | None = None
    shown_as: str | None = None


_ALERTS: Final = (
    HeartbeatRunStatus.ALERTED,
    HeartbeatRunStatus.LOGGED,
    HeartbeatRunStatus.DELIVERY_FAILED,
)
"""They are stored as ``ALERTED``: which one it is follows from its target and its messages."""


def stored_status(status: HeartbeatRunStatus) -> HeartbeatRunStatus:
    """Return the status that is stored for one that is shown."""
    return HeartbeatRunStatus.ALERTED if status in _ALERTS else status


def wanted(outcome: str) -> Wanted:
    """Convert a ``HeartbeatRun.outcome`` to a filter of stored columns.

    ``skipped`` matches all skip reasons.
    """
    status, found, skip = outcome.partition(":")
    cause = skip if found else None
    if status in _ALERTS:
        return Wanted(HeartbeatRunStatus.ALERTED, cause, shown_as=status)
    return Wanted(status, cause)
