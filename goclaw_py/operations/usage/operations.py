"""Usage of ended runs, and numbers of messages (SPEC OPS-1)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime

from goclaw_py.core.actors import Least
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.time.zones import zone
from goclaw_py.operations.declare import operation
from goclaw_py.records import RunStore
from goclaw_py.runs.usage_report import (
    DayTimes,
    UsageQuery,
    UsageReport,
    hours_of,
    report,
    span_of,
    with_messages,
)


class UsageReports:
    """Every method may raise ``StoreUnavailable``, and ``NoGateway`` from another process."""

    def __init__(self, store: RunStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    @operation("GET /api/usage", Least.VIEWER)
    async def report(self, query: UsageQuery) -> UsageReport:
        """Return usage of ended runs, and messages. Raises ``BadUsageQuery``."""
        span = span_of(query, self._clock.now())
        table, messages = await asyncio.gather(
            self._store.usage(query.by, span), self._store.message_counts(span)
        )
        return report(query, span, table, messages)

    @operation("GET /api/usage/times", Least.VIEWER)
    async def times(self, query: UsageQuery) -> list[DayTimes]:
        """Return the days of a query, or their hours, with runs and the times that were waited.

        Hours that have not begun are left out. The groups of the query are ignored. Raises
        ``BadUsageQuery``.
        """
        now = self._clock.now()
        span = span_of(query, now)
        if query.hours:
            span = hours_of(span, now)
        days, messages = await asyncio.gather(
            self._store.run_times(span), self._store.message_counts(span)
        )
        times = with_messages(days, messages)
        return [
            replace(one, day=one.day.astimezone(zone(query.zone)).date(), hour=one.day)
            if isinstance(one.day, datetime)
            else one
            for one in times
        ]
