"""Names of zones, and changes of clocks (rule R12 of docs/cron-rules.md)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from goclaw_py.common.dst import ClockChange, change_at, change_between, passes
from goclaw_py.common.timezones import zone
from goclaw_py.model.errors import UnknownZone

BERLIN = ZoneInfo("Europe/Berlin")
label = datetime.fromisoformat


@pytest.mark.parametrize("name", ["Europe/Berlin", "UTC", "America/Argentina/Ushuaia", "Etc/GMT+5"])
def test_an_exact_name_is_a_zone(name: str) -> None:
    assert zone(name).key == name


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("", "such as Europe/Berlin"),
        ("localtime", "such as Europe/Berlin"),
        ("Factory", "such as Europe/Berlin"),
        ("posix/Europe/Berlin", "did you mean Europe/Berlin?"),
        ("right/Europe/Berlin", "did you mean Europe/Berlin?"),
        ("europe/berlin", "did you mean Europe/Berlin?"),
        ("Europe/Berlin ", "did you mean Europe/Berlin?"),
        ("Berlin", "did you mean Europe/Berlin?"),
        ("new york", "did you mean America/New_York?"),
        ("Kolkatta", "Asia/Kolkata"),
        ("Europe/Brelin", "Europe/Berlin"),
        ("America", "did you mean America/"),
        ("+02:00", "an offset knows no summer time"),
        ("UTC+2", "an offset knows no summer time"),
        ("GMT+0", "an offset knows no summer time"),
        ("UTC\u22125", "an offset knows no summer time"),
        ("EST", "such as America/New_York"),
        ("cest", "such as Europe/Paris"),
        ("EST5EDT", "such as America/New_York"),
        ("/etc/localtime", "such as Europe/Berlin"),
        ("/usr/share/zoneinfo/Europe/Berlin", "such as Europe/Berlin"),
        ("../../etc/passwd", "such as Europe/Berlin"),
        ("Europe/Berlin\0", "did you mean Europe/Berlin"),
        ("x" * 10_000, "such as Europe/Berlin"),
        ("\ud800", "such as Europe/Berlin"),
    ],
)
def test_any_other_name_is_refused_with_a_hint(name: str, hint: str) -> None:
    """SPEC CRON-2."""
    with pytest.raises(UnknownZone) as refused:
        zone(name)
    assert refused.value.zone == name
    assert hint in str(refused.value)
    assert len(str(refused.value)) < 300


def test_a_label_has_one_instant_none_or_two() -> None:
    assert passes(label("2026-07-01 12:00"), BERLIN) == (datetime(2026, 7, 1, 10, tzinfo=UTC),)
    assert passes(label("2026-03-29 02:30"), BERLIN) == ()
    first, second = passes(label("2026-10-25 02:30"), BERLIN)
    assert second - first == timedelta(hours=1)


def test_a_change_is_found_from_any_label_that_it_touches() -> None:
    gap = ClockChange(
        datetime(2026, 3, 29, 1, tzinfo=UTC), label("2026-03-29 03:00"), timedelta(hours=1)
    )
    again = ClockChange(
        datetime(2026, 10, 25, 1, tzinfo=UTC), label("2026-10-25 02:00"), timedelta(hours=-1)
    )
    assert change_at(label("2026-03-29 02:00"), BERLIN) == gap
    assert change_at(label("2026-03-29 02:59:59"), BERLIN) == gap
    assert change_at(label("2026-03-29 03:00"), BERLIN) is None
    assert change_at(label("2026-10-25 02:00"), BERLIN) == again
    assert change_at(label("2026-10-25 02:59:59"), BERLIN) == again
    assert change_at(label("2026-10-25 01:59:59"), BERLIN) is None
    assert gap.ends == label("2026-03-29 03:00")
    assert again.ends == label("2026-10-25 03:00")
    assert change_between(gap.at - timedelta(days=2), gap.at, BERLIN) == gap
    assert change_between(gap.at, gap.at + timedelta(days=2), BERLIN) is None
