"""Sums of the usage of runs, and numbers of messages, for operators."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date, timedelta

from goclaw_py.core.outcomes import FAILURES
from goclaw_py.runs.usage_report import (
    MAX_GROUPS,
    NOTHING_USED,
    DaySpan,
    DayTimes,
    Grouping,
    MessageCounts,
    UsageRow,
    UsageTable,
    Used,
    costliest,
)
from goclaw_py.store.postgres.part import PostgresPart
from goclaw_py.store.postgres.pool import Row
from goclaw_py.store.sql import queries

_SQL = queries("usage")


class PostgresUsageSums(PostgresPart):
    """Implements ``RunStore.usage``."""

    async def usage(
        self, by: Collection[Grouping], span: DaySpan, *, limit: int = MAX_GROUPS
    ) -> UsageTable:
        """Read only an index: about a second for a million runs."""
        found = await self._pool.fetch(
            _SQL["usage"], list(span.starts), *(one in by for one in Grouping), limit
        )
        # What is joined to the groups leaves them in any order.
        rows = costliest((_row(row, by, span) for row in found if not row["whole"]), limit)
        whole = next((row for row in found if row["whole"]), None)
        if whole is None:
            return UsageTable((), NOTHING_USED)
        return UsageTable(tuple(rows), _used(whole), whole["groups"] - len(rows))

    async def run_times(self, span: DaySpan) -> list[DayTimes]:
        """Read only an index: about half a second for a million runs."""
        found = await self._pool.fetch(_SQL["times"], list(span.starts), sorted(FAILURES))
        known = {row["day"]: row for row in found}
        return [_times(day, known.get(number)) for number, day in enumerate(span.days, 1)]

    async def message_counts(self, span: DaySpan) -> MessageCounts:
        """Read only indexes."""
        found = await self._pool.fetch(_SQL["messages"], list(span.starts))
        return {
            (span.days[row["day"] - 1], row["agent"]): (row["received"], row["sent"])
            for row in found
        }


def _times(day: date, row: Row | None) -> DayTimes:
    if row is None:
        return DayTimes(day)
    waits, firsts = (_seconds(row[name]) for name in ("wait", "first_text"))
    return DayTimes(day, row["runs"], row["failed"], waits, firsts, _used(row))


def _seconds(found: list[timedelta] | None) -> tuple[float, float] | None:
    if found is None:
        return None
    median, high = found
    return median.total_seconds(), high.total_seconds()


def _row(row: Row, by: Collection[Grouping], span: DaySpan) -> UsageRow:
    group: dict[Grouping, str | None] = {
        one: span.days[row["day"] - 1].isoformat() if one is Grouping.DAY else row[one]
        for one in by
    }
    names = {Grouping.JOB: row["title"], Grouping.SENDER: row["name"]}
    return UsageRow(group, _used(row), {one: name for one, name in names.items() if name})


def _used(row: Row) -> Used:
    return Used(
        runs=row["runs"],
        turns=row["turns"],
        input_tokens=row["input_tokens"],
        output_tokens=row["output_tokens"],
        cached_tokens=row["cached_tokens"],
        cost_usd=row["cost_usd"],
        unpriced=row["unpriced"],
    )
