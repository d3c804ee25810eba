"""Who does something: roles, and the actor of the work in progress (SPEC SEC-8)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final


class AccessRole(StrEnum):
    """What a person or program may do over HTTP; each role may do what those before it may."""

    VIEWER = "viewer"
    """Reads; the text of messages only if that is allowed as well."""

    OPERATOR = "operator"
    """Acts: stops, sends, answers, runs and edits jobs."""

    ADMIN = "admin"
    """Decides about people, settings, tokens and nodes."""


class Least(IntEnum):
    """The least that a request needs; each includes those before it."""

    VIEWER = 0
    TEXT = 1
    """A viewer who may read the text of messages, or more."""

    OPERATOR = 2
    ADMIN = 3

    def __str__(self) -> str:
        """Return it in words."""
        return "viewer who may read text" if self is Least.TEXT else self.name.lower()


class ActorKind(StrEnum):
    """How somebody reached the gateway."""

    SETTINGS_TOKEN = "settings_token"  # noqa: S105 - a kind
    TOKEN = "token"  # noqa: S105 - a kind
    PERSON = "person"
    """A person who signed in by name, wrote in a chat, or without a token is on this machine."""

    COMMAND_LINE = "command_line"
    NODE = "node"
    """The gateway itself."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who does something.

    Args:
        name: The name of the token, person, user of the operating system, or node.
        role: None: the rules of chats apply.
        reads_text: Whether a viewer may read the text of messages; others may.
        via: Where it came from: an address, the dashboard with an address, a chat, or a command
            line; "" if unknown.
    """

    kind: ActorKind
    name: str
    role: AccessRole | None = None
    reads_text: bool = True
    via: str = ""


_acting: Final[ContextVar[Actor | None]] = ContextVar("acting", default=None)


def acting() -> Actor | None:
    """Return the actor of the work in progress; None: nobody, the gateway works by itself."""
    return _acting.get()


@contextmanager
def acts(actor: Actor | None) -> Iterator[None]:
    """Let an actor, or nobody, be that of the work in the block, and of tasks that begin in it."""
    before = _acting.set(actor)
    try:
        yield
    finally:
        _acting.reset(before)
