"""Where actions are recorded, and what of them (SPEC SEC-9)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from goclaw_py.core.actors import Actor
from goclaw_py.records.audit import ALL_ENTRIES, OK, AuditEntry, AuditFilter, Facts

_PAGE: Final = 500
"""The number of entries that are read at once."""


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


Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """What is recorded of an operation.

    Args:
        action: Its name, or a function of the arguments that returns it.
        subject: Returns to what it was done, from the arguments and the result; the result is None
            if the operation has failed.
        read: Returns what it may change, before it does.
        told: Returns the same afterwards, from the arguments and the result. With ``read`` only
            what differs is recorded.
        is_done: Returns whether it has changed anything.
        said: Returns the words for the result.
        actor: Returns who did it, where nobody acts before it.
        masked: An argument that is left out of the words of errors.
        find: Returns what is named by a part of its key or id, whole: arguments for the functions
            above. It comes first, because the operation may delete what it finds.
    """

    action: str | Callable[[Arguments], str]
    subject: Callable[[Arguments, Any], str]
    read: Callable[[Any, Arguments], Awaitable[Facts | None]] | None = None
    told: Callable[[Arguments, Any], Facts] | None = None
    is_done: Callable[[Arguments, Any], bool] = lambda _arguments, _result: True
    said: Callable[[Any], str] = lambda _result: OK
    actor: Callable[[Arguments], Actor] | None = None
    masked: str = ""
    find: Callable[[Any, Arguments], Awaitable[Arguments]] | None = None

    def name(self, arguments: Arguments) -> str:
        """Return the name of the action."""
        return self.action if isinstance(self.action, str) else self.action(arguments)


Actions = Mapping[str, Change]


def named(form: str) -> Callable[[Arguments, Any], str]:
    """Return a subject with values of the arguments, such as ``session {key}``."""
    return lambda arguments, _result: form.format_map(arguments)


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


class AuditReader(Protocol):
    """The part of ``Control`` that reads the audit log."""

    async def audit_entries(
        self, *, limit: int = 50, only: AuditFilter = ALL_ENTRIES, before: int | None = None
    ) -> list[AuditEntry]:
        """Return who has changed what, the newest first (SPEC SEC-9)."""


async def audit_pages(reader: AuditReader, only: AuditFilter) -> AsyncGenerator[list[AuditEntry]]:
    """Yield all selected entries, the newest first, some hundreds at a time; at least one page.

    An entry that is added meanwhile is not among them.
    """
    before: int | None = None
    while True:
        found = await reader.audit_entries(limit=_PAGE, only=only, before=before)
        yield found
        if len(found) < _PAGE:
            return
        before = found[-1].id
