"""Explanations of why something did or did not happen (SPEC OPS-4)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from goclaw_py.operations.command_pages import page_of, setting_page


class SubjectKind(StrEnum):
    """The kind of thing that can be explained."""

    GATEWAY = "gateway"
    SESSION = "session"
    CHAT = "chat"
    PERSON = "person"
    MESSAGE = "message"
    """An incoming message."""
    DELIVERY = "delivery"
    """An outgoing message."""
    RUN = "run"
    JOB = "job"
    HEARTBEAT = "heartbeat"
    NODE = "node"

    @classmethod
    def _missing_(cls, value: object) -> SubjectKind | None:
        """Accept the names of messages before 0.1.0, until 1.0."""
        return {"inbox": cls.MESSAGE, "outbox": cls.DELIVERY}.get(str(value))


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of an explanation. ``KIND:ID`` identifies it."""

    kind: SubjectKind
    id: str
    name: str = ""
    """Its name for people."""

    def __str__(self) -> str:
        # Session keys and chats are recognised by their form.
        bare = self.kind in (SubjectKind.SESSION, SubjectKind.CHAT, SubjectKind.GATEWAY)
        return self.id if bare else f"{self.kind.value}:{self.id}"


@dataclass(frozen=True, slots=True)
class ExplanationStep:
    """A decision, with the time at which it was made.

    Args:
        at: None: it holds now.
        code: The kind of decision; stable over releases.
        words: The decision for people, as a clause.
    """

    at: datetime | None
    code: str
    words: str


@dataclass(frozen=True, slots=True)
class Cure:
    """A remedy.

    Args:
        command: The command to type, "" if it is none.
        link: The path of the page that shows it, or does it; "" if there is none. Without a path,
            that of the command.
    """

    words: str
    command: str = ""
    link: str = ""

    def __post_init__(self) -> None:
        if self.command and not self.link:
            object.__setattr__(self, "link", page_of(self.command))


def setting_cure(words: str, path: str) -> Cure:
    """Return a remedy that changes a setting, or one of a section."""
    return Cure(words, link=setting_page(path))


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of why something did or did not happen.

    Args:
        at: When it was requested.
        code: The kind of answer, such as ``delivery.failed``; stable over releases.
        answer: One sentence.
        chain: The decisions that led to it, the oldest first.
        cures: The remedies, the best first; empty if there are none.
    """

    subject: Subject
    at: datetime
    code: str
    answer: str
    chain: tuple[ExplanationStep, ...] = ()
    cures: tuple[Cure, ...] = ()
