"""Events about runs in progress, for operators.

They contain only the text of replies and the names of tools: arguments and results may be private,
and are in the run's record.

The ``id`` of an event is its position, from which a subscriber continues after a lost connection.
It is ignored in comparisons.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from goclaw_py.core.ids import AgentName, RunId, SessionKey
from goclaw_py.core.outcomes import Outcome, Reason, Trigger
from goclaw_py.core.run_events import Usage
from goclaw_py.scheduler.views import RunView


@dataclass(frozen=True, slots=True)
class LiveRun:
    """The run that an event is about.

    ``payer`` is the session whose budget it uses: its own, or that of its topmost ancestor.
    """

    id: RunId
    session: SessionKey
    agent: AgentName
    trigger: Trigger
    parent: RunId | None
    payer: SessionKey


@dataclass(frozen=True, slots=True)
class _OfRun:
    """The fields of every event about a run."""

    at: datetime
    run: LiveRun
    id: str = field(default="", compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class LiveNow:
    """The present state: all unfinished requests. Events after it are complete.

    ``session`` is the one that is followed, None for all.
    """

    at: datetime
    session: SessionKey | None
    runs: tuple[RunView, ...]
    kind: Literal["now"] = "now"
    id: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class LiveRequested(_OfRun):
    """A run was requested. It waits until it starts."""

    kind: Literal["asked"] = "asked"


@dataclass(frozen=True, slots=True)
class LiveJoined(_OfRun):
    """A request became part of ``into``, and will have no run of its own."""

    into: RunId
    kind: Literal["joined"] = "joined"


@dataclass(frozen=True, slots=True)
class LiveStarted(_OfRun):
    """A run has started."""

    kind: Literal["started"] = "started"


@dataclass(frozen=True, slots=True)
class LiveText(_OfRun):
    """The next piece of its reply; ``at`` is when the piece began."""

    text: str
    kind: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class LiveTool(_OfRun):
    """A tool call started or returned; ``ok`` is None while the tool is running."""

    name: str
    call_id: str
    ok: bool | None = None
    kind: Literal["tool"] = "tool"


@dataclass(frozen=True, slots=True)
class LiveUsage(_OfRun):
    """Its model has answered; ``usage`` is the total so far."""

    usage: Usage
    model: str
    kind: Literal["usage"] = "usage"


@dataclass(frozen=True, slots=True)
class LiveEnded(_OfRun):
    """The run has ended and its record can be read; ``usage`` is None if unknown."""

    outcome: Outcome
    reason: Reason | None
    usage: Usage | None
    kind: Literal["ended"] = "ended"


@dataclass(frozen=True, slots=True)
class LiveMissed:
    """Events were lost, because the subscriber is too slow.

    Old text is lost first; ``at`` is when the last lost event happened. A ``count`` of 0 means an
    unknown number: the gateway was restarted, or there was no subscriber for a while. For one
    session, the count may include events of others.
    """

    at: datetime
    count: int
    kind: Literal["missed"] = "missed"


RunEvent = LiveRequested | LiveJoined | LiveStarted | LiveText | LiveTool | LiveUsage | LiveEnded
"""What happens to one run."""

LiveEvent = LiveNow | RunEvent | LiveMissed
"""What somebody who follows runs is told."""
