"""Why something did or did not happen, for people and for programs (SPEC OPS-4)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class SubjectKind(StrEnum):
    """What can be asked about."""

    GATEWAY = "gateway"
    SESSION = "session"
    CHAT = "chat"
    PERSON = "person"
    INBOX = "inbox"
    """A message that came in."""
    OUTBOX = "outbox"
    """A message on its way out."""
    RUN = "run"
    JOB = "job"
    HEARTBEAT = "heartbeat"
    NODE = "node"


@dataclass(frozen=True, slots=True)
class Subject:
    """What an explanation is about. ``KIND:ID`` names it without doubt."""

    kind: SubjectKind
    id: str
    name: str = ""
    """What people call it."""

    def __str__(self) -> str:
        # Keys of sessions, and chats, are told by their own form.
        bare = self.kind in (SubjectKind.SESSION, SubjectKind.CHAT, SubjectKind.GATEWAY)
        return self.id if bare else f"{self.kind.value}:{self.id}"


@dataclass(frozen=True, slots=True)
class ExplanationStep:
    """One decision on the way, with the time at which it was taken.

    Args:
        at: None: it holds now.
        code: Names the kind of decision; stays the same over releases.
        words: The same for people, as a clause.
    """

    at: datetime | None
    code: str
    words: str


@dataclass(frozen=True, slots=True)
class Cure:
    """Something to do about it. ``command`` is what to type, "" if it is no command."""

    words: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why something did or did not happen.

    Args:
        at: When it was asked.
        code: Names the answer, such as ``delivery.dead``; stays the same over releases.
        answer: One sentence.
        chain: How it came to this, the oldest decision first.
        cures: What to do about it, the best first; empty if there is nothing to do.
    """

    subject: Subject
    at: datetime
    code: str
    answer: str
    chain: tuple[ExplanationStep, ...] = ()
    cures: tuple[Cure, ...] = ()
