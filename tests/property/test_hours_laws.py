"""Active hours against a model that looks at the clock every minute (SPEC HB-2)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import assume, given
from hypothesis import strategies as st

from goclaw_py.schedule.heartbeat.active_hours import ActiveHours, read_hours

MINUTE = timedelta(minutes=1)

CHANGES = {
    "Europe/Berlin": ("2026-03-29T01:00", "2026-10-25T01:00"),
    "America/New_York": ("2026-03-08T07:00", "2026-11-01T06:00"),
    "Australia/Lord_Howe": ("2026-04-04T15:00", "2026-10-03T15:30"),
    "Antarctica/Troll": ("2026-03-29T01:00", "2026-10-25T01:00"),
    # These change at midnight, a minute after it, and by a whole day.
    "America/Sao_Paulo": ("2018-11-04T03:00", "2018-02-18T02:00"),
    "America/St_Johns": ("2010-03-14T03:31", "2010-11-07T02:31"),
    "Pacific/Apia": ("2011-12-30T10:00",),
    # Half and quarter hours, and no changes at all.
    "Asia/Kolkata": ("2026-03-29T01:00",),
    "Asia/Kathmandu": ("2026-03-29T01:00",),
    "UTC": ("2026-03-29T01:00",),
}


class Naive:
    """A set of what clocks show while the window is open, written down minute by minute."""

    def __init__(self, start: str, end: str, zone: str) -> None:
        self.zone = ZoneInfo(zone)
        shown = datetime.fromisoformat(f"2000-01-01T{start}")
        self.open = {f"{shown:%H:%M}"}
        while (shown := shown + MINUTE).strftime("%H:%M") != ("00:00" if end == "24:00" else end):
            self.open.add(f"{shown:%H:%M}")

    def holds(self, at: datetime) -> bool:
        return f"{at.astimezone(self.zone):%H:%M}" in self.open

    def next_start(self, after: datetime) -> datetime:
        at = after.replace(second=0, microsecond=0) + MINUTE
        while not self.holds(at) or self.holds(at - MINUTE):
            at += MINUTE
        return at


@st.composite
def instants(draw: st.DrawFn, zone: str) -> datetime:
    """Mostly around a change."""
    change = datetime.fromisoformat(draw(st.sampled_from(CHANGES[zone]))).replace(tzinfo=UTC)
    near = st.timedeltas(timedelta(hours=-30), timedelta(hours=30))
    in_minutes = st.integers(-150, 150).map(lambda minutes: minutes * MINUTE)
    far = st.timedeltas(timedelta(days=-300), timedelta(days=300))
    return change + draw(near | in_minutes | far)


minutes = st.integers(0, 1439) | st.integers(0, 47).map(lambda half: half * 30)
clocks = minutes.map(lambda minute: f"{minute // 60:02}:{minute % 60:02}")
ends = clocks | st.just("24:00")
zones = st.sampled_from(sorted(CHANGES))


@given(st.data(), clocks, ends, zones)
def test_it_holds_when_the_model_holds(
    data: st.DataObject, start: str, end: str, zone: str
) -> None:
    assume(start != end)
    at = data.draw(instants(zone))
    assert read_hours(start, end, zone).holds(at) is Naive(start, end, zone).holds(at)


@given(st.data(), clocks, ends, zones)
def test_it_opens_when_the_model_opens(
    data: st.DataObject, start: str, end: str, zone: str
) -> None:
    assume(start != end and (start, end) != ("00:00", "24:00"))
    after = data.draw(instants(zone))
    assert read_hours(start, end, zone).next_start(after) == Naive(start, end, zone).next_start(
        after
    )


@given(st.data(), zones)
def test_the_whole_day_always_holds_and_opens_at_midnight(data: st.DataObject, zone: str) -> None:
    hours = ActiveHours(0, 1440, zone)
    after = data.draw(instants(zone))
    assert hours.holds(after)
    opens = hours.next_start(after)
    before = (opens - timedelta(microseconds=1)).astimezone(ZoneInfo(zone))
    assert opens > after
    assert opens.astimezone(ZoneInfo(zone)).date() > before.date() or before.hour == 0
