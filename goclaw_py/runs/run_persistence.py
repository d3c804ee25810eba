"""Stores the ends of runs of chats, jobs and heartbeats."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Protocol

from goclaw_py.core.errors import Fenced, RunNotStarted
from goclaw_py.core.ids import NodeId
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.retry import retry_until_available
from goclaw_py.records import NewRun, RunEnd, RunStartResult
from goclaw_py.records.bound import Bound

log = logging.getLogger(__name__)

Store = Callable[[], Awaitable[None]]

_SETTLE_S = 10.0
"""Seconds after which a cancelled start has taken effect, or never will."""


class RunEndStore(Bound, Protocol):
    """The store operations that this module needs."""

    async def finish_run(self, end: RunEnd, *, node: NodeId) -> None: ...


class RunStartStore(RunEndStore, Protocol):
    """The store operations for runs that may not have started."""

    async def begin_run(self, run: NewRun, *, node: NodeId) -> RunStartResult: ...


async def store_run(store: RunStartStore, begun: tuple[NewRun, NodeId], end: RunEnd) -> None:
    """Store the end of a run that answers messages; waits for the database. Raises ``Fenced``.

    ``begun`` is the run with the node id that this process had then. With another id, its claims
    are lost, and other nodes may have used the session since.
    """
    run, began_as = begun
    try:
        await retry_until_available(lambda: store.finish_run(end, node=store.node()))
    except RunNotStarted:
        # It was stopped before its begin was stored, which may yet take effect. It leaves a trace
        # all the same, but one that a shutdown cut is as if it had never been.
        if end.outcome is not Outcome.INTERRUPTED or end.reason is Reason.MERGED:
            await retry_until_available(lambda: _begin_at_last(store, run, began_as))
            await store.retried.finish_run(end, node=began_as)


async def stored_or_logged(
    operation: Callable[[], Awaitable[object]], facts: Mapping[str, object]
) -> bool:
    """Store something; return whether that succeeded.

    Waits for the database; raises ``Fenced`` and ``RunNotStarted``. A boundary: after a bug at the
    end of a child its parent must not wait forever.
    """
    try:
        await retry_until_available(operation)
    except (Fenced, RunNotStarted):
        raise
    except Exception:
        log.exception("run_end_not_stored", extra=facts)
        return False
    return True


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
        """Store the start; waits for the database."""
        try:
            return await self._store_it()
        except asyncio.CancelledError:
            self._is_cut_off = True
            raise

    async def settle(self, outcome: Outcome) -> None:
        """Before the end is stored, wait for a cancelled start, which could take effect after it.

        A refused start cannot. A run that a shutdown interrupted is stored as never started.
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
        return await self._store.retried.begin_run(self._run, node=self._node)


async def store_attempt(store: RunEndStore, run: RunEnd | None, node: NodeId) -> bool:
    """Store the end of an attempt that does not end its claim; return whether it is stored.

    Waits for the database.
    """
    if run is None:
        return False
    try:
        await store.retried.finish_run(run, node=node)
    except (Fenced, RunNotStarted) as error:
        log.debug("attempt_end_not_stored", extra={"error": str(error)})
    except Exception:
        # A boundary: what met the bug must not keep the next attempt from coming.
        log.exception("attempt_end_not_stored", extra={"run_id": run.id})
    else:
        return True
    return False


async def store_end(what: str, store: Store, facts: Mapping[str, object]) -> bool:
    """Store the end of a claim; waits for the database.

    Returns False if the claim belongs to another node. Raises what a bug raises.
    """
    try:
        await retry_until_available(store)
    except Fenced:
        log.warning("claim_lost", extra={**facts, "claim": what})
        return False
    return True
