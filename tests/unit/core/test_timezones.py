"""Names of zones, and changes of clocks (rule R12 of docs/cron-rules.md)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from goclaw_py.core.errors import UnknownZone
from goclaw_py.core.time.zones import ClockChange, change_at, change_between, passes, zone

BERLIN = ZoneInfo("Europe/Berlin")
label = datetime.fromisoformat


@pytest.mark.parametrize("name", ["Europe/Berlin", "UTC", "America/Argentina/Ushuaia", "Etc/GMT+5"])
def test_an_exact_name_is_a_zone(name: str) -> None:
    assert zone(name).key == name


@pytest.mark.parametrize(
    ("hint", "names"),
    [
        ("such as Europe/Berlin", ["", "localtime", "Factory", "/etc/localtime", "\ud800"]),
        ("such as Europe/Berlin", ["/usr/share/zoneinfo/Europe/Berlin", "../../etc/passwd"]),
        ("such as Europe/Berlin", ["x" * 10_000]),
        ("did you mean Europe/Berlin?", ["posix/Europe/Berlin", "right/Europe/Berlin", "Berlin"]),
        ("did you mean Europe/Berlin?", ["europe/berlin", "Europe/Berlin "]),
        ("did you mean America/New_York?", ["new york"]),
        ("did you mean America/", ["America"]),
        ("did you mean Europe/Berlin", ["Europe/Berlin\0"]),
        ("Asia/Kolkata", ["Kolkatta"]),
        ("Europe/Berlin", ["Europe/Brelin"]),
        ("an offset knows no summer time", ["+02:00", "UTC+2", "GMT+0", "UTC\u22125"]),
        ("such as America/New_York", ["EST", "EST5EDT"]),
        ("such as Europe/Paris", ["cest"]),
    ],
)
def test_any_other_name_is_refused_with_a_hint(hint: str, names: list[str]) -> None:
    """SPEC CRON-2."""
    for name in names:
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
    hour = timedelta(hours=1)
    gap = ClockChange(datetime(2026, 3, 29, 1, tzinfo=UTC), label("2026-03-29 03:00"), hour)
    again = ClockChange(datetime(2026, 10, 25, 1, tzinfo=UTC), label("2026-10-25 02:00"), -hour)
    for text, change in {
        "2026-03-29 02:00": gap,
        "2026-03-29 02:59:59": gap,
        "2026-03-29 03:00": None,
        "2026-10-25 01:59:59": None,
        "2026-10-25 02:00": again,
        "2026-10-25 02:59:59": again,
    }.items():
        assert change_at(label(text), BERLIN) == change, text
    assert (gap.ends, again.ends) == (label("2026-03-29 03:00"), label("2026-10-25 03:00"))
    assert change_between(gap.at - timedelta(days=2), gap.at, BERLIN) == gap
    assert change_between(gap.at, gap.at + timedelta(days=2), BERLIN) is None
