"""The table of profiles in the guide says what the profiles are (SPEC CRON-17)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path

import pytest

from goclaw_py.schedule.jobs.policy import DURATIONS, PROFILES, Busy, JobPolicy, Profile

GUIDE = Path(__file__).parents[4] / "docs" / "guide" / "profiles.md"
NONE = "\N{EN DASH}"

_UNITS = {"h": 3600, "m": 60, "s": 1}
_OF_PROFILES: Mapping[str, Callable[[Profile], object]] = {
    "enabled": lambda profile: profile.enabled,
    "timezone": lambda profile: profile.zone or "the machine's",
    "fields of cron": lambda profile: ", ".join(map(str, profile.cron_fields)),
    "default_prompt": lambda profile: profile.default_prompt or None,
    "lanes.cron": lambda profile: profile.lane,
    "shutdown.wait": lambda profile: (profile.shutdown_wait_s,),
}


def table() -> dict[str, dict[str, str]]:
    """The cells under *Side by side*, by key and profile, without their markup."""
    part = GUIDE.read_text("utf-8").partition("## Side by side")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ")]
    head, *body = [[cell.strip(" `*") for cell in row] for row in rows]
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in body}


def seconds(text: str) -> tuple[float, ...]:
    """Times such as ``30s 1m``; nothing is no time."""
    if text == NONE:
        return ()
    return tuple(float(each[:-1]) * _UNITS[each[-1]] for each in text.split())


def shown(profile: Profile, key: str) -> object:
    """A value as the table has it: times in a tuple, of which 0 is none."""
    if key in _OF_PROFILES:
        return _OF_PROFILES[key](profile)
    policy = profile.policy
    if key == "on_busy" and policy.on_busy is Busy.DELAY:
        return f"delay:{policy.busy_delay:.0f}"
    if key == "backoff":
        return policy.backoff
    if key in DURATIONS:
        length = getattr(policy, key)
        return (length,) if length else ()
    value = getattr(policy, key)
    return None if not value and key in ("jitter", "auto_disable_after") else value


def agrees(cell: str, value: object) -> bool:
    match value:
        case bool():
            return cell == ("yes" if value else "no")
        case None:
            return cell == NONE
        case tuple():
            return seconds(cell) == value
        case _:
            return cell == str(value)


def test_the_table_has_each_profile_and_each_key() -> None:
    found = table()
    keys = {field.name for field in fields(JobPolicy)} - {"busy_delay"}
    assert set(found) == keys | set(_OF_PROFILES)
    assert all(list(row) == list(PROFILES) for row in found.values())


@pytest.mark.parametrize("name", PROFILES)
def test_the_table_agrees_with_the_profile(name: str) -> None:
    cells = {key: row[name] for key, row in table().items()}
    wrong = {
        key: cell for key, cell in cells.items() if not agrees(cell, shown(PROFILES[name], key))
    }
    assert wrong == {}


def test_a_wrong_cell_would_be_found() -> None:
    assert not agrees("31m", (1800.0,))
    assert not agrees("yes", value=False)
    assert not agrees("30s 2m", (30.0, 60.0))
    assert not agrees("5", None)
    assert not agrees("grid", "start")


def test_each_profile_has_its_own_section() -> None:
    text = GUIDE.read_text("utf-8")
    assert [name for name in PROFILES if f"\n## {name}\n" not in text] == []
