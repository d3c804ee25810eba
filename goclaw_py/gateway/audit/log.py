"""Records actions, and the calls of services that people and programs make (SPEC SEC-9)."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from datetime import timedelta
from typing import Any, Final, TypeVar, cast

from goclaw_py.core.actors import Actor, ActorKind, acting
from goclaw_py.core.errors import (
    AgentError,
    ChannelError,
    GoclawError,
    NodeSilent,
    StoreUnavailable,
)
from goclaw_py.core.text import error_text
from goclaw_py.core.time.clock import Clock
from goclaw_py.gateway.audit.actions import CHATS, SERVICES, SIGN_INS
from goclaw_py.gateway.audit.facts import Hide, changed, clean, line
from goclaw_py.gateway.audit.repeats import APART, RepeatedEntries
from goclaw_py.operations.control import Control
from goclaw_py.operations.declare import Actions, Change
from goclaw_py.operations.heartbeats.operations import HeartbeatService
from goclaw_py.operations.jobs.operations import JobService
from goclaw_py.records import Store
from goclaw_py.records.audit import OK, AuditEntry, AuditWriter, Facts, NoChange
from goclaw_py.records.bound import BoundStore, bind

log = logging.getLogger(__name__)

T = TypeVar("T")

WRITE_S: Final = 5.0
"""How long an action may wait for its entry."""

_MOST_SUBJECT: Final = 500

_KNOWN: Final = GoclawError | ValueError
"""Errors that are raised on purpose."""

_UNSURE: Final = StoreUnavailable | NodeSilent | AgentError | ChannelError
"""Errors after which an action may have changed something."""

_recording: ContextVar[tuple[asyncio.Task[Any] | None, Actor | None] | None] = ContextVar(
    "recording", default=None
)
"""The task in which an action is recorded, and its actor: what it calls in turn is part of it.

In the same task commands of others may be executed that have waited; these are no part of it.
"""


class StoredAuditLog:
    """Implements ``AuditLog``.

    Args:
        node: Returns the id of this node, "" for a command without a gateway.
        hide: Masks secrets.
    """

    def __init__(
        self, store: AuditWriter, clock: Clock, node: Callable[[], str], hide: Hide
    ) -> None:
        self._store = store
        self._clock = clock
        self._node = node
        self._hide = hide
        self._no_changes = RepeatedEntries()

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
        """See ``AuditLog``. It is one statement."""
        node, hide = self._node(), self._hide
        words = result.words if isinstance(result, NoChange) else result
        actor = by or acting() or Actor(ActorKind.NODE, node)
        entry = AuditEntry(
            0,
            self._clock.now(),
            actor.kind.value,
            line(actor.name, hide),
            actor.role.value if actor.role else "",
            line(actor.via, hide, _MOST_SUBJECT),
            node,
            action,
            line(subject, hide, _MOST_SUBJECT),
            clean(before, hide),
            clean(after, hide),
            line(words, hide, _MOST_SUBJECT),
        )
        rows = [entry]
        # A command without a gateway ends before a minute is over.
        if isinstance(result, NoChange) and node:
            rows = self._no_changes.add(entry, result.reason)
        for row in rows:
            await self._write(row)

    async def store_repeats(self, *, is_last: bool = False) -> None:
        """Store what of repeated entries is not stored for a minute, at the end all of it.

        It takes no longer than one row may.
        """
        rows = self._no_changes.due(self._clock.now() + (APART if is_last else timedelta()))
        await asyncio.gather(*map(self._write, rows))

    async def _write(self, entry: AuditEntry) -> None:
        try:
            async with asyncio.timeout(WRITE_S):
                await self._store.add_audit_entry(entry)
        except Exception as error:
            # A boundary: what was done is done, whatever keeps it from being recorded.
            facts = {"action": entry.action, "subject": entry.subject, "actor": entry.actor}
            facts |= {"via": entry.via, "result": entry.result}
            log.error("audit_entry_not_stored", extra=facts | {"error": error_text(error)})  # noqa: TRY400 - mostly no bug

    # ------------------------------------------------------------------ services

    def control(self, control: Control) -> Control:
        """Return the same operations, which record what they change."""
        return cast("Control", _RecordedControl(control, self))

    def chat_jobs(self, jobs: JobService) -> JobService:
        """Return the service for chats, which records what people change."""
        return cast("JobService", _Recorded(jobs, SERVICES["jobs"], self, in_chats=True))

    def chat_heartbeats(self, heartbeats: HeartbeatService) -> HeartbeatService:
        """Return the service for chats, which records what people change."""
        recorded = _Recorded(heartbeats, SERVICES["heartbeats"], self, in_chats=True)
        return cast("HeartbeatService", recorded)

    def chat_store(self, store: BoundStore) -> BoundStore:
        """Return the store for commands and buttons of chats; it records what people change."""
        recorded = cast("Store", _Recorded(store, CHATS, self, in_chats=True))
        return bind(recorded, store.node, store.live)

    def sign_ins(self, store: Store) -> Store:
        """Return the same store, which records sign-ins of browsers."""
        return cast("Store", _Recorded(store, SIGN_INS, self))


class _RecordedControl:
    """A control whose services are recorded."""

    def __init__(self, control: Control, audit: StoredAuditLog) -> None:
        self._control = control
        self._audit = audit

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._control, name)
        return _Recorded(found, SERVICES[name], self._audit) if name in SERVICES else found


class _Recorded:
    """A service whose methods in ``actions`` are recorded; everything else is that of the service.

    ``in_chats``: only what a person has changed, not what was refused: a button may try one thing
    after the other, and the answer says what was wrong.
    """

    def __init__(
        self, service: object, actions: Actions, audit: StoredAuditLog, *, in_chats: bool = False
    ) -> None:
        self._service = service
        self._actions = actions
        self._audit = audit
        self._in_chats = in_chats

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._service, name)
        if (change := self._actions.get(name)) is not None:
            return self._recorded(found, change)
        return found

    def _recorded(
        self, method: Callable[..., Awaitable[T]], change: Change
    ) -> Callable[..., Awaitable[T]]:
        async def called(*args: Any, **kwargs: Any) -> T:
            here = asyncio.current_task(), acting()
            if _recording.get() == here or (self._in_chats and acting() is None):
                return await method(*args, **kwargs)
            given = inspect.signature(method).bind(*args, **kwargs)
            given.apply_defaults()
            reset = _recording.set(here)
            try:
                return await self._call(method, change, given)
            finally:
                _recording.reset(reset)

        return called

    async def _call(
        self,
        method: Callable[..., Awaitable[T]],
        change: Change,
        given: inspect.BoundArguments,
    ) -> T:
        arguments: Mapping[str, Any] = given.arguments
        by = None if change.actor is None else change.actor(arguments)
        before: Facts | None = None
        # If it is not there, or the database is away, the action itself says so.
        with suppress(GoclawError):
            if change.find is not None:
                arguments = {**arguments, **await change.find(self._service, arguments)}
            if change.read is not None:
                before = await change.read(self._service, arguments)
        try:
            result = await method(*given.args, **given.kwargs)
        except Exception as error:
            # A boundary: whatever it raises is recorded, and raised again.
            if not self._in_chats:
                subject = change.subject(arguments, None)
                name, said = change.name(arguments), _words(error)
                if change.masked:
                    # As errors quote it: an empty or short one is also between other letters.
                    said = said.replace(repr(arguments[change.masked]), "'…'")
                is_refused = isinstance(error, _KNOWN) and not isinstance(error, _UNSURE)
                failed = NoChange(said, type(error).__name__) if is_refused else said
                await self._audit.record(name, subject, by=by, result=failed)
            raise
        if change.is_done(arguments, result):
            after = None if change.told is None else change.told(arguments, result)
            old, new = changed(before, after) if change.read else (None, after)
            await self._audit.record(
                change.name(arguments),
                change.subject(arguments, result),
                by=by,
                before=old,
                after=new,
                result=change.said(result),
            )
        return result


def _words(error: Exception) -> str:
    """Return the words of an error, and only the kind of one that is a bug."""
    return (str(error) if isinstance(error, _KNOWN) else "") or type(error).__name__
