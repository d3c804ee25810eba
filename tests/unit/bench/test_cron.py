"""The benchmark of cron expressions runs to its end; nothing here is timed."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from bench.cron import __main__ as cron
from bench.cron.contenders import CONTENDERS

ZONE = ZoneInfo("Europe/Berlin")


def test_each_expression_is_measured_against_what_is_wanted() -> None:
    report = cron.report(cron.QUICK)
    wanted = [str(f.wanted) for line in report.lines for f in line.figures if f.wanted is not None]
    assert wanted == ["≤ 50"] * len(cron.ORDINARY) + ["≤ 5,000"] * len(cron.WORST)
    assert all(len(f.values) == 1 for line in report.lines for f in line.figures)


@pytest.mark.parametrize("name", CONTENDERS)
def test_all_find_the_same_ordinary_occurrence(name: str) -> None:
    following = CONTENDERS[name]("30 9 * * *", ZONE)
    assert following(datetime(2026, 1, 5, 9, tzinfo=ZONE)) == datetime(
        2026, 1, 5, 9, 30, tzinfo=ZONE
    )


def test_an_unknown_number_of_rounds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["bench", "--rounds", "0"])
    with pytest.raises(SystemExit):
        cron.main()
