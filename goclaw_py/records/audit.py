"""The audit log: who has changed what (SPEC SEC-9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from goclaw_py.core.actors import Actor

Facts = Mapping[str, object]
"""Values of JSON by name."""

OK: Final = "ok"
"""The result of an action that succeeded."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An action that changed something, or should have.

    Args:
        id: Its number; 0 before it is stored.
        kind: How the actor reached the gateway, an ``ActorKind``.
        actor: The name of the token, person, user of the operating system, or node.
        role: That of the actor; "" where the rules of chats apply.
        via: An address, ``dashboard (ADDRESS)``, a chat or a command line; "" if unknown.
        node: The node that did it; "": a command without a gateway.
        action: What was done, such as ``job.edit``.
        subject: To what.
        before: What changed, as it was; None: nothing, or not known.
        after: What changed, as it is; None: nothing, or not known.
        result: ``OK``, or the words of the error.
    """

    id: int
    at: datetime
    kind: str
    actor: str
    role: str
    via: str
    node: str
    action: str
    subject: str
    before: Facts | None
    after: Facts | None
    result: str


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Selects entries; a field that is None selects all.

    Args:
        who: A part of the actor's name, address, chat or command line, in any case.
        action: An action, or the part before a dot: ``job`` selects ``job.edit``.
        subject: A part of the subject, in any case.
        since: When it was done, at the earliest.
        until: When it was done; later ones are left out.
    """

    who: str | None = None
    action: str | None = None
    subject: str | None = None
    since: datetime | None = None
    until: datetime | None = None


ALL_ENTRIES: Final = AuditFilter()


@dataclass(frozen=True, slots=True)
class NoChange:
    """The result of an action that has changed nothing, such as one that was refused.

    It can be repeated without limit, so equal ones are recorded once a minute (SPEC SEC-9).

    Args:
        words: ``OK``, or the words of the error.
        reason: What equal ones have in common besides actor and action.
    """

    words: str
    reason: str


class AuditLog(Protocol):
    """Records who has changed what."""

    async def record(
        self,
        action: str,
        subject: str,
        *,
        by: Actor | None = None,
        before: Facts | None = None,
        after: Facts | None = None,
        result: str | NoChange = OK,
    ) -> None:
        """Record an action after it was done. Raises nothing: what was done is done.

        ``by`` is who did it; None: the actor of the work in progress, or the node.
        """


class AuditWriter(Protocol):
    """Adds entries."""

    async def add_audit_entry(self, entry: AuditEntry) -> None:
        """Add an entry. It gets the next number."""


class AuditStore(AuditWriter, Protocol):
    """Entries are only added; nothing but retention deletes one."""

    async def audit_entries(
        self, *, limit: int = 50, only: AuditFilter = ALL_ENTRIES, before: int | None = None
    ) -> list[AuditEntry]:
        """Return entries, the newest first, those before the entry ``before``.

        Without that entry there are none: retention deletes the oldest ones.
        """
