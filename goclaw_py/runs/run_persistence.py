"""Stores the ends of runs of chats, jobs and heartbeats."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from goclaw_py.common.retry import retry_until_available, until_stored
from goclaw_py.model.errors import Fenced, RunNotStarted
from goclaw_py.model.ids import NodeId, SessionKey
from goclaw_py.model.outcomes import Ending, Outcome
from goclaw_py.ports.store import NewRun, RunEnd, RunStartResult
from goclaw_py.runs.run_recorder import RunRecorder

log = logging.getLogger(__name__)

Store = Callable[[], Awaitable[None]]

_SETTLE_S = 10.0
"""A begin that was cut off has taken effect by then, or never will."""


class RunEndStore(Protocol):
    """The store operations that this module needs."""

    async def finish_run(self, end: RunEnd, *, node: NodeId) -> None:
        """See ``ports.store.RunStore``."""


class RunStartStore(RunEndStore, Protocol):
    """The same, for runs that may not have begun."""

    async def begin_run(self, run: NewRun, *, node: NodeId) -> RunStartResult:
        """See ``ports.store.RunStore``."""


async def store_run(
    store: RunStartStore, begun: tuple[NewRun, NodeId], end: RunEnd, node: Callable[[], NodeId]
) -> None:
    """Store the end of a run that answers messages; waits for the database. Raises ``Fenced``.

    ``begun`` is the run with the node that this process was then. As another one it has nothing of
    what it had, and others may have worked in the session since.
    """
    run, began_as = begun
    try:
        await retry_until_available(lambda: store.finish_run(end, node=node()))
    except RunNotStarted:
        # It was stopped before its begin was stored. It leaves a trace all the same, but one that a
        # shutdown cut is as if it had never been.
        if end.outcome is not Outcome.INTERRUPTED:
            await retry_until_available(lambda: _begin_at_last(store, run, began_as))
            await retry_until_available(lambda: store.finish_run(end, node=began_as))


async def _begin_at_last(store: RunStartStore, run: NewRun, node: NodeId) -> None:
    try:
        await store.begin_run(run, node=node)
    except Fenced:
        # The commit of the stop has ended all that it was to answer.
        await store.begin_run(replace(run, inbox=()), node=node)


class RunStart:
    """The start of a scheduled run."""

    def __init__(self, store: RunStartStore, run: NewRun, node: NodeId) -> None:
        self._store = store
        self._run = run
        self._node = node
        self._is_cut_off = False

    async def begin(self) -> RunStartResult:
        """Store it; waits for the database."""
        try:
            return await self._store_it()
        except asyncio.CancelledError:
            self._is_cut_off = True
            raise

    async def settle(self, outcome: Outcome) -> None:
        """Before its end is stored: a begin that was cut off could take effect behind that.

        One that is refused does so no more. What a shutdown cut is as if it had never been.
        """
        if not self._is_cut_off or outcome is Outcome.INTERRUPTED:
            return
        try:
            async with asyncio.timeout(_SETTLE_S):
                await self._store_it()
        except Exception as error:
            # A boundary: whatever comes of it, the end is to be stored.
            facts = {"run_id": self._run.id, "error": repr(error)}
            log.info("run_begin_unknown", extra=facts)

    async def _store_it(self) -> RunStartResult:
        return await retry_until_available(
            lambda: self._store.begin_run(self._run, node=self._node)
        )


class Abandoned:
    """Abandoned runs whose sessions continue while their ends are being stored."""

    def __init__(self) -> None:
        self._ends: dict[SessionKey, set[asyncio.Event]] = {}

    @contextmanager
    def storing(self, ended: Ending, session: SessionKey) -> Iterator[Callable[[], None]]:
        """An end is being stored; call what this yields as soon as it is."""
        if ended.outcome is not Outcome.ABANDONED:
            yield lambda: None
            return
        end = asyncio.Event()
        self._ends.setdefault(session, set()).add(end)
        try:
            yield end.set
        finally:
            end.set()
            self._ends[session].discard(end)
            if not self._ends[session]:
                del self._ends[session]

    async def until_stored(self, session: SessionKey) -> None:
        """Wait for all such ends of a session: else a crash would bring those runs back."""
        for end in list(self._ends.get(session, ())):
            await end.wait()


def end_of(
    progress: RunRecorder, prompt: str, ended: Ending, error: BaseException | None, now: datetime
) -> RunEnd:
    """The end of a run that worked on a prompt, with all that is known of its work."""
    told = progress.told(error)
    history = progress.history(prompt, ended.outcome)
    bare = RunEnd(ended.run_id, ended.outcome, now, ended.reason, told, history=history)
    return progress.recorded(bare)


async def store_attempt(store: RunEndStore, run: RunEnd | None, node: NodeId) -> None:
    """Store the end of an attempt that another one follows; waits for the database."""
    if run is None:
        return
    try:
        await retry_until_available(lambda: store.finish_run(run, node=node))
    except (Fenced, RunNotStarted) as error:
        log.debug("attempt_end_not_stored", extra={"error": str(error)})
    except Exception:
        # A boundary: what met the bug must not keep the next attempt from coming.
        log.exception("attempt_end_not_stored", extra={"run_id": run.id})


async def store_end(what: str, whole: Store, bare: Store, facts: Mapping[str, object]) -> bool:
    """Store the end of what was claimed; waits for the database.

    An end that cannot be stored because of a bug is stored barely. False then, and if ``what`` was
    claimed belongs to somebody else by now.
    """
    try:
        await retry_until_available(whole)
    except Fenced:
        log.warning("claim_lost", extra={**facts, "claim": what})
        return False
    except Exception:
        # A boundary: what met the bug may be what was said.
        log.exception("claim_end_not_stored", extra={**facts, "claim": what})
    else:
        return True
    try:
        await until_stored(bare, facts)
    except Fenced:
        log.warning("claim_lost", extra={**facts, "claim": what})
    return False
