"""Filters and queries of lists of runs and sessions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from goclaw_py.core.ids import AgentName, SessionKey
from goclaw_py.core.outcomes import Outcome, Trigger
from goclaw_py.core.pagination import Cursor


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Selects runs by fields of ``StoredRun``; a field that is None selects all.

    All lists and counts of runs have these fields, and so have the API, the commands and the pages.
    """

    agent: AgentName | None = None
    trigger: Trigger | None = None
    outcome: Outcome | None = None
    sender: str | None = None


ALL_RUNS = RunFilter()


class RunOrder(StrEnum):
    """What the first runs of a list have most of; the newer one is first of equal ones."""

    DURATION = "duration"
    """Runs in progress are before all that have ended, the longest running first."""
    TOKENS = "tokens"
    COST = "cost"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunQuery:
    """Selects runs, the newest first or in another order.

    Args:
        session: Only those of this session.
        since: Only those that started then or later.
        active: Only those in progress.
        search: Only those of the newest ``MOST_RUNS_SEARCHED`` with this text in their prompt,
            whatever the case of A to Z; a run in progress has none yet.
        before: Only those after this one in the list: the ``cursor`` of the last one of a page.
        order: Of the newest ``MOST_RUNS_ORDERED``, those with most of it first, without ``before``.
    """

    only: RunFilter = ALL_RUNS
    session: SessionKey | None = None
    since: datetime | None = None
    active: bool = False
    search: str = ""
    limit: int = 50
    before: Cursor | None = None
    order: RunOrder | None = None


NEWEST_RUNS: Final = RunQuery()

MOST_RUNS_ORDERED: Final = 10_000
"""The number of runs that are put in another order, so that its time has a limit."""

MOST_RUNS_SEARCHED: Final = 10_000
"""The number of runs whose prompts one search reads, so that its time has a limit."""

MOST_RUNS_COUNTED: Final = 50_000
"""The largest number of ended runs that are counted by outcome, so that its time has a limit."""


class SessionState(StrEnum):
    """What is unfinished in a session."""

    RUNNING = "running"
    """A run."""
    WAITING = "waiting"
    """A message that waits for its run, or for an answer to what its run has asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionQuery:
    """Selects sessions, the most recently active first; a field that is None selects all.

    Args:
        search: Only those with this text in the key, or in the name of the chat, its topic or its
            job, whatever the case.
        before: Only those after this one in the list: the ``cursor`` of the last one of a page.
    """

    agent: AgentName | None = None
    channel: str | None = None
    state: SessionState | None = None
    search: str = ""
    limit: int = 50
    before: Cursor | None = None


NEWEST_SESSIONS: Final = SessionQuery()
