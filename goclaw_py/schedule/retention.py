"""Deletes expired rows periodically (SPEC DB-5)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.time.clock import Clock
from goclaw_py.records import UpkeepStore

log = logging.getLogger(__name__)

FIRST_S = 300.0
"""The delay after a start, which is busy; many gateways do not run for an hour."""

TIDY_S = 3600.0
BREATH_S = 0.05
"""The pause between two steps, so that other work is not delayed."""

_TIDY_STEPS = 80


async def run_retention(sweep: Callable[[], Awaitable[int]]) -> None:
    """Sweep in steps, each of which returns the number of deleted rows, until cancelled."""

    async def tidy() -> None:
        for _ in range(_TIDY_STEPS):
            if not await sweep():
                break

    await _now_and_then(tidy)


async def delete_expired(store: UpkeepStore, clock: Clock, audit_age: timedelta) -> None:
    """Delete old messages, runs, sessions, access requests and the like. Runs until cancelled.

    ``audit_age`` is how long entries of the audit log are kept.
    """

    async def forget() -> None:
        now = clock.now()
        await _sweep_all(lambda: store.end_unread(now=now))
        messages = await _sweep_messages(store, now)
        runs = await _sweep_all(lambda: store.sweep_runs(now=now))
        await _sweep_all(lambda: store.sweep_message_counts(now=now))
        sessions = await _sweep_all(lambda: store.sweep_sessions(now=now))
        await _sweep_all(lambda: store.sweep_requests(now=now))
        await _sweep_all(lambda: store.sweep_incidents(now=now))
        await _sweep_all(lambda: store.sweep_unmentioned(now=now))
        await _sweep_all(lambda: store.sweep_names(now=now))
        await _sweep_all(lambda: store.sweep_setting_edits(now=now))
        await _sweep_all(lambda: store.sweep_web_links(now=now))
        await _sweep_all(lambda: store.sweep_sign_ins(now=now))
        await _sweep_all(lambda: store.sweep_audit(before=now - audit_age))
        if messages + runs + sessions:
            facts = {"messages": messages, "runs": runs, "conversations": sessions}
            log.info("old_data_deleted", extra=facts)

    await _now_and_then(forget)


async def _now_and_then(work: Callable[[], Awaitable[None]]) -> None:
    await asyncio.sleep(FIRST_S)
    while True:
        try:
            await work()
        except StoreUnavailable as error:
            log.debug("store_unavailable", extra={"error": str(error), "part": "tidying"})
        await asyncio.sleep(TIDY_S)


async def _sweep_messages(store: UpkeepStore, now: datetime) -> int:
    """Delete all messages that are old enough."""
    gone = 0
    for sweep in (store.sweep_outbox, store.sweep_inbox):
        after: int | None = 0
        while after is not None:
            swept = await sweep(now=now, after=after)
            gone += swept.rows
            after = swept.after
            await asyncio.sleep(BREATH_S)
    return gone


async def _sweep_all(sweep: Callable[[], Awaitable[int]]) -> int:
    gone = 0
    while rows := await sweep():
        gone += rows
        await asyncio.sleep(BREATH_S)
    return gone
