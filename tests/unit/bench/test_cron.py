"""The benchmark of cron expressions runs to its end; nothing here is timed."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from bench.cron import __main__ as cron
from bench.cron.contenders import CONTENDERS
from tests.unit.bench.reports import assert_all_was_measured, wanted

ZONE = ZoneInfo("Europe/Berlin")


def test_each_expression_is_measured_against_what_is_wanted() -> None:
    report = cron.report(cron.QUICK)
    bounds = [*wanted(report).values()]
    assert bounds == ["≤ 50"] * len(cron.ORDINARY) + ["≤ 5,000"] * len(cron.WORST)
    assert_all_was_measured(report)


@pytest.mark.parametrize("name", CONTENDERS)
def test_all_find_the_same_ordinary_occurrence(name: str) -> None:
    following = CONTENDERS[name]("30 9 * * *", ZONE)
    assert following(datetime(2026, 1, 5, 9, tzinfo=ZONE)) == datetime(
        2026, 1, 5, 9, 30, tzinfo=ZONE
    )
