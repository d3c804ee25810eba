"""Events about runs in progress, for operators.

Of what is said, only the reply's own text is in here, and of a call of a tool only its name:
arguments and results may be private, and the run's record has them.

The ``id`` of an event is its place in what this gateway tells: whoever has lost the connection goes
on behind it. It is no fact about the run, so it does not count when events are compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from goclaw_py.model.ids import AgentName, RunId, SessionKey
from goclaw_py.model.outcomes import Outcome, Reason, Trigger
from goclaw_py.model.run_events import Usage
from goclaw_py.scheduler.views import RunView


@dataclass(frozen=True, slots=True)
class LiveRun:
    """The run that an event is about.

    ``payer`` is the session whose budget it uses: its own, or that of the run at the top of those
    that have asked for it.
    """

    id: RunId
    session: SessionKey
    agent: AgentName
    trigger: Trigger
    parent: RunId | None
    payer: SessionKey


@dataclass(frozen=True, slots=True)
class _OfRun:
    """What every event about a run has."""

    at: datetime
    run: LiveRun
    id: str = field(default="", compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class LiveNow:
    """The current state: all requests that are not done. Events after it are complete.

    ``session`` is the one that is followed, None for all.
    """

    at: datetime
    session: SessionKey | None
    runs: tuple[RunView, ...]
    kind: Literal["now"] = "now"
    id: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class LiveAsked(_OfRun):
    """A run was requested. It waits until it starts."""

    kind: Literal["asked"] = "asked"


@dataclass(frozen=True, slots=True)
class LiveJoined(_OfRun):
    """A request became part of ``into``, so there will be no run of its own."""

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
    """Its model has answered; ``usage`` is all that it has used so far."""

    usage: Usage
    model: str
    kind: Literal["usage"] = "usage"


@dataclass(frozen=True, slots=True)
class LiveEnded(_OfRun):
    """The run has ended and its record can be read; ``usage`` is None where it is not known."""

    outcome: Outcome
    reason: Reason | None
    usage: Usage | None
    kind: Literal["ended"] = "ended"


@dataclass(frozen=True, slots=True)
class LiveMissed:
    """So many events were lost, because the subscriber reads too slowly.

    Old text is lost before anything else, the oldest first; ``at`` is when the last of these events
    happened. With the ``count`` 0 nobody knows how many: the gateway was started anew since, or
    nobody had looked for a while. Of the events of one session it may count others that went
    before.
    """

    at: datetime
    count: int
    kind: Literal["missed"] = "missed"


RunEvent = LiveAsked | LiveJoined | LiveStarted | LiveText | LiveTool | LiveUsage | LiveEnded
"""What happens to one run."""

LiveEvent = LiveNow | RunEvent | LiveMissed
"""What somebody who follows runs is told."""
