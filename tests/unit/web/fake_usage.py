"""What runs have used, and a control that tells it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

from goclaw_py.operations.usage.operations import UsageReports
from goclaw_py.runs.usage_report import (
    DayTimes,
    Grouping,
    UsageQuery,
    UsageReport,
    UsageRow,
    Used,
    span_of,
)
from tests.unit.web.fake_deliveries import FakeDeliveries
from tests.unit.web.fake_names import FOOL

DAY = Grouping.DAY
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
PRICED = Used(3, 9, 12_000, 800, 4_000, Decimal("0.0605"))
PARTLY = Used(2, 4, 3_000, 200, 0, Decimal("1.5"), unpriced=1)
UNPRICED = Used(1, 2, 1_000, 100, 0, None, unpriced=1)

BY_DAY = UsageReport(
    by=(DAY, Grouping.SENDER), since=date(2026, 1, 1), until=date(2026, 1, 2), zone="UTC",
    rows=(
        UsageRow(
            {DAY: "2026-01-01", Grouping.SENDER: "telegram/work/7"},
            PRICED,
            {Grouping.SENDER: FOOL},
        ),
        UsageRow({DAY: "2026-01-02", Grouping.SENDER: None}, PARTLY),
    ),
    total=replace(PRICED.plus(PARTLY).plus(UNPRICED), received=40, sent=1_234),
    left_out=12, others=UNPRICED,
)  # fmt: skip


class FakeUsageReports(UsageReports):
    """Answers with ``answer``, and judges a query as a gateway does."""

    def __init__(self, called: Callable[..., None]) -> None:
        self._called = called
        self.answer = BY_DAY

    async def times(self, query: UsageQuery) -> list[DayTimes]:
        self._called("times", query)
        days = span_of(query, NOON).days
        none = Used(received=0, sent=0)
        return [DayTimes(day, used=none) for day in days[:-1]] + [
            DayTimes(days[-1], 4, 1, (0.5, 2.0), (1.25, 61.0), Used(received=40, sent=1_234)),
        ]

    async def report(self, query: UsageQuery) -> UsageReport:
        self._called("report", query)
        span_of(query, NOON)
        return self.answer


class FakeUsage(FakeDeliveries):
    """The part of ``FakeControl`` that is about usage."""

    def __init__(self) -> None:
        super().__init__()
        self.usage = FakeUsageReports(self._called)
