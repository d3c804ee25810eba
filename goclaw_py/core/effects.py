"""What the scheduler asks its shell to do."""

from __future__ import annotations

from dataclasses import dataclass

from goclaw_py.core.ids import RunId
from goclaw_py.core.outcomes import Outcome, Reason

# Not frozen: freezing makes construction four times as dear, and several are made for each run.


@dataclass(slots=True)
class Start:
    """Begin the run's task."""

    run_id: RunId


@dataclass(slots=True)
class Cancel:
    """Cancel the run's task. Its slots stay taken until ``finish`` is called for it."""

    run_id: RunId
    reason: Reason


@dataclass(slots=True)
class Join:
    """The request became part of another one, which has not started: they share one outcome."""

    request_id: RunId
    into: RunId


@dataclass(slots=True)
class Ended:
    """The request's one outcome. It comes exactly once for every request that did not join."""

    run_id: RunId
    outcome: Outcome
    reason: Reason | None = None


Effect = Start | Cancel | Join | Ended
