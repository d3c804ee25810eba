"""What the scheduler asks its shell to do."""

from __future__ import annotations

from dataclasses import dataclass

from goclaw_py.model.outcomes import Outcome, Reason
from goclaw_py.scheduler.models import LaneState, Request

# Not frozen: freezing makes construction four times as dear, and several are made for each run.


@dataclass(slots=True)
class Start:
    """Begin the run's task."""

    request: Request


@dataclass(slots=True)
class Cancel:
    """Cancel the run's task. Its slots stay taken until ``finish`` is called for it."""

    request: Request
    reason: Reason


@dataclass(slots=True)
class MergeIntoRun:
    """The request became part of another one: they share one outcome.

    The other one has not started, or it has just taken the request in (``Scheduler.take_in``).
    """

    request: Request
    into: Request


@dataclass(slots=True)
class OfferToRun:
    """The request waits, and this run may take it in (mode ``steer``; SPEC QUEUE-4)."""

    request: Request
    run: Request


@dataclass(slots=True)
class LaneWaitExceeded:
    """The request has waited for a lane for too long (SPEC LANE-7); operators should know."""

    request: Request
    lane: LaneState
    waited_s: float
    occupants: tuple[Request, ...]
    """Who has the lane's slots."""


@dataclass(slots=True)
class Ended:
    """The request's one outcome. It comes exactly once for every request that did not join."""

    request: Request
    outcome: Outcome
    reason: Reason | None = None


Effect = Start | Cancel | MergeIntoRun | OfferToRun | LaneWaitExceeded | Ended
