"""What is known after a run of the whole system: plain values for ``invariants``.

Instants are seconds on one clock that all of it shares. Nodes, sessions, runs and chats go by their
ids. What is named in no table (what people saw, when an agent worked) comes from outside.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import inf

_NAME = re.compile(r"\bm\d+\b")


def names(text: str) -> frozenset[str]:
    """The messages that a text is about: each has a name (``m37``) that is in its answer, too."""
    return frozenset(_NAME.findall(text))


@dataclass(frozen=True, slots=True)
class Said:
    """Something that a channel was told is kept: from then on it must not be lost."""

    chat: str
    text: str


@dataclass(frozen=True, slots=True)
class Message:
    """A row of the inbox.

    Args:
        place: Grows in the order in which they were accepted.
        outcome: None while it waits.
        run: The last run that worked on it.
        command: It is answered by the gateway and not by a run.
        reason: Why it ended otherwise than by its own work.
        ended: When that was stored, if it is known.
        sent: When it was said, if it is known.
    """

    place: int
    session: str
    chat: str
    text: str
    outcome: str | None
    attempts: int = 1
    run: str | None = None
    command: bool = False
    reason: str | None = None
    ended: float | None = None
    sent: float = 0.0


@dataclass(frozen=True, slots=True)
class Run:
    """A stored run; ``ended`` and ``outcome`` are None while it works.

    ``occurrence`` and ``heartbeat_run`` are what it works for, if it works for one.
    """

    id: str
    session: str
    node: str
    trigger: str
    started: float
    ended: float | None
    outcome: str | None
    occurrence: str | None = None
    heartbeat_run: str | None = None


@dataclass(frozen=True, slots=True)
class Worked:
    """What an agent noted itself: it worked for a run from then to then.

    ``ended`` is None if its process was gone before it could say.

    Args:
        told: When it was told to end, if it was and did not care.
        stood_still: Its process was frozen meanwhile; it could not end.
        prompt: What it was asked, if that is known.
    """

    run: str
    session: str
    began: float
    ended: float | None
    told: float | None = None
    stood_still: bool = False
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class Post:
    """A row of the outbox. ``alert`` is the key by which equal alerts are told, "" if it is none.

    Without text it only closes a draft; with one and ``draft`` it finishes that by an edit.

    Args:
        heartbeat_run: The one that it tells of.
        sends: How often its request may have left.
    """

    id: int
    chat: str
    text: str
    state: str
    possible_duplicate: bool = False
    run: str | None = None
    occurrence: str | None = None
    alert: str = ""
    created: float = 0.0
    draft: bool = False
    heartbeat_run: str | None = None
    sends: int = 1


@dataclass(frozen=True, slots=True)
class Seen:
    """A whole message that people saw in a chat; a draft that grows is none.

    ``message`` is the chat's id of it: the same one twice was edited, not sent again.
    """

    chat: str
    message: str
    text: str
    at: float


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One time of a job. ``ended``: for good."""

    id: str
    job: str
    scheduled: float
    status: str
    ended: bool
    manual: bool = False


@dataclass(frozen=True, slots=True)
class Timetable:
    """A job that is due on a grid, and was active long enough to come at least once.

    Args:
        first: The first time after it was made.
        every: Seconds between two.
        counted: How many it has counted as come while one before them ran.
    """

    job: str
    first: float
    every: float
    counted: int = 0


@dataclass(frozen=True, slots=True)
class HeartbeatFact:
    """One heartbeat of an agent. ``ended``: for good."""

    id: str
    agent: str
    status: str
    ended: bool


@dataclass(frozen=True, slots=True)
class Claim:
    """Something that is in somebody's hands: ``kind`` of it, and whose; None: nobody's."""

    kind: str
    key: str
    node: str | None


@dataclass(frozen=True, slots=True)
class Facts:
    """All of it, once everything had time to settle and every node has ended in order.

    Args:
        said: May be left out; then nobody asks what became of what was confirmed.
        worked: May be left out, too.
        timetables: Of jobs with times that can be foretold.
        settled: By then everything had time to end; afterwards the nodes were ended.
        nobody_fell: All processes lived and were awake all the time, and all chats were in reach.
    """

    said: tuple[Said, ...] = ()
    messages: tuple[Message, ...] = ()
    runs: tuple[Run, ...] = ()
    worked: tuple[Worked, ...] = ()
    posts: tuple[Post, ...] = ()
    seen: tuple[Seen, ...] = ()
    occurrences: tuple[Occurrence, ...] = ()
    heartbeat_runs: tuple[HeartbeatFact, ...] = ()
    claims: tuple[Claim, ...] = ()
    timetables: tuple[Timetable, ...] = ()
    nobody_fell: bool = False
    settled: float = inf
