"""Filters of lists of runs and sessions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from goclaw_py.core.ids import AgentName
from goclaw_py.core.outcomes import Outcome, Trigger


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Selects runs; a field that is None selects all.

    Args:
        sender: Who asked for them, as ``StoredRun.sender``.
        since: When they started, at the earliest.
    """

    agent: AgentName | None = None
    trigger: Trigger | None = None
    outcome: Outcome | None = None
    sender: str | None = None
    since: datetime | None = None


ALL_RUNS = RunFilter()

MOST_RUNS_COUNTED: Final = 50_000
"""The largest number of ended runs that are counted by outcome, so that its time has a limit."""


class SessionState(StrEnum):
    """What is unfinished in a session."""

    RUNNING = "running"
    """A run."""
    WAITING = "waiting"
    """A message that has not been answered."""


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """Selects sessions; a field that is None selects all."""

    agent: AgentName | None = None
    channel: str | None = None
    state: SessionState | None = None


ALL_SESSIONS = SessionFilter()
