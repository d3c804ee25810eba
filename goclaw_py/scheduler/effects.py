"""The effects that the shell of the scheduler must carry out."""

from __future__ import annotations

from dataclasses import dataclass

from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.scheduler.models import LaneState, Request

# Not frozen: freezing makes construction four times as dear, and several are made for each run.


@dataclass(slots=True)
class Start:
    """Start the run's task."""

    request: Request


@dataclass(slots=True)
class Cancel:
    """Cancel the run's task. Its slots stay taken until ``finish`` is called for it."""

    request: Request
    reason: Reason


@dataclass(slots=True)
class MergeIntoRun:
    """The request became part of another one, with which it shares its outcome.

    The other one waits, or has just taken it (``Scheduler.steer_in``).
    """

    request: Request
    into: Request


@dataclass(slots=True)
class Restart:
    """A run begins again with a further message: ``into`` has its messages first (SPEC QUEUE-6).

    The run is cancelled next, and ends as interrupted.
    """

    request: Request
    into: Request


@dataclass(slots=True)
class OfferToRun:
    """The request waits, and this run may take it (mode ``steer``; SPEC QUEUE-4)."""

    request: Request
    run: Request


@dataclass(slots=True)
class LaneWaitExceeded:
    """The request has waited too long for a lane; warn operators (SPEC LANE-7)."""

    request: Request
    lane: LaneState
    waited_s: float
    occupants: tuple[Request, ...]
    """The runs that have the lane's slots."""


@dataclass(slots=True)
class Ended:
    """The outcome of a request: exactly one for every request that joined no other one."""

    request: Request
    outcome: Outcome
    reason: Reason | None = None


Effect = Start | Cancel | MergeIntoRun | Restart | OfferToRun | LaneWaitExceeded | Ended
