"""Schedules: when a job runs (SPEC CRON-1 to CRON-3, CRON-15, CRON-16).

All instants are timezone-aware in UTC; people write times in the zone of the job.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from typing import Final, assert_never

from goclaw_py.core.errors import BadMoment, BadSchedule, NeverFires, TooFrequent
from goclaw_py.core.ids import JobId
from goclaw_py.core.time import durations
from goclaw_py.core.time.datetimes import ahead, local_text, parse_moment, why_not
from goclaw_py.core.time.zones import zone
from goclaw_py.schedule import jitter as spread
from goclaw_py.schedule.cron.describe import in_words
from goclaw_py.schedule.cron.expression import parse
from goclaw_py.schedule.jobs.policy import Anchor, FirstRun, OnShort

MAX_INTERVAL: Final = durations.LONGEST

MOST_COUNTED: Final = 100
"""The largest number of missed cron firings that is counted: each takes about 40 µs."""
_MOST_ON_GRID: Final = 10**9
"""Larger counts are not stored."""
_END: Final = datetime(9000, 1, 1, tzinfo=UTC)
"""Intervals end here, like the calendar."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NONE: Final = timedelta()
_MOST_REPEATED: Final = timedelta(hours=3)
"""Debian cron's limit: a clock that goes back further was set, so all times count again."""
_MEANWHILE: Final = timedelta(seconds=1)
"""A job may be made while others are looked at."""
_STEP: Final = timedelta(minutes=1)
"""A clock that goes back less repeats nothing, as if it had stood still."""


@dataclass(frozen=True, slots=True)
class At:
    """Once, at this instant."""

    at: datetime


@dataclass(frozen=True, slots=True)
class Every:
    """Repeatedly. ``origin`` is a point of the grid for ``Anchor.GRID``, otherwise not used."""

    interval: timedelta
    origin: datetime | None = None


@dataclass(frozen=True, slots=True)
class Cron:
    """By local time in the job's zone. ``expression`` is as it was written."""

    expression: str


Schedule = At | Every | Cron


@dataclass(frozen=True, slots=True)
class Timing:
    """Everything that determines when a job runs.

    Args:
        zone: The exact IANA name of its time zone.
        spread: The seed of jitter and stagger: the job's id; None: neither.
        jitter: The part of the time between two firings, from 0 to 0.1 (SPEC CRON-16).
        not_after: It does not run after this instant (SPEC CRON-20).
    """

    schedule: Schedule
    zone: str
    anchor: Anchor = Anchor.COMPLETION
    first_run: FirstRun = FirstRun.AFTER_INTERVAL
    spread: JobId | None = None
    jitter: float = 0.0
    stagger: bool = False
    not_after: datetime | None = None


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of a job, from which the next time is computed.

    Args:
        due_at: Its due time by the schedule.
        started_at: Its start; None if it did not start.
        ended_at: Its end; the next run is after this.
    """

    due_at: datetime
    started_at: datetime | None
    ended_at: datetime


def parse_interval(text: str) -> timedelta:
    """Parse ``<integer><s|m|h|d>`` (SPEC CRON-1). Raises ``BadInterval``."""
    return durations.read(text)


def interval_text(interval: timedelta) -> str:
    """Return the shortest text for ``parse_interval``; milliseconds as ``1500ms``."""
    return durations.text_of(interval)


_INTERVAL: Final = re.compile(
    r"[+-]?[0-9][0-9.,]* ?(ms|[smhd]|sec|seconds?|min|minutes?|hours?|days?)"
)
_CRON: Final = re.compile(r"[0-9*/,?-]+ [0-9*/,?-]+( \S+){3,4}")


def read_schedule(text: str, *, now: datetime, zone: str) -> Schedule:
    """Parse a schedule whose kind its form says: ``in 20m``, ``10m`` or ``0 9 * * 1-5``.

    An interval may begin with ``every``. Raises ``BadSchedule``, as the parser of its kind does.
    """
    plain = " ".join(text.split())
    interval = re.sub("^every (?=[0-9+-])", "", plain.lower())
    if interval != plain.lower() or _INTERVAL.fullmatch(interval):
        return Every(parse_interval(interval))
    if plain.startswith("@") or "*" in plain or _CRON.fullmatch(plain):
        return Cron(plain)
    also = "every 10m, or a cron expression such as 0 9 * * 1-5"
    return At(parse_moment(text, now=now, zone=zone, also=also))


def check(timing: Timing, *, now: datetime, cron_fields: tuple[int, ...] = (5, 6)) -> None:
    """Raise ``BadSchedule`` unless such a job can run.

    ``BadCron``, ``BadInterval``, ``UnknownZone``, ``BadMoment`` for an ``at`` in the past, and
    ``NeverFires``.
    """
    zone(timing.zone)
    match timing.schedule:
        case At(at):
            _aware(at, "at")
            ahead(at, now=now, zone=timing.zone)
        case Every(interval, origin):
            durations.in_range(interval, interval_text(interval))
            if origin is not None:
                _aware(origin, "origin")
        case Cron(expression):
            if not parse(expression, cron_fields).fires():
                raise NeverFires(f"cron {expression!r} never runs: no year has such a day")
        case _:
            assert_never(timing.schedule)
    if timing.not_after is not None:
        _aware(timing.not_after, "not_after")
        ahead(timing.not_after, now=now, zone=timing.zone, shown="not_after")
    first_run_at(timing, now=now)


def spaced(
    timing: Timing,
    minimum: timedelta,
    on_short: OnShort,
    *,
    now: datetime,  # noqa: ARG001  what is allowed does not depend on the season
) -> Timing:
    """Return the timing with at least ``minimum`` between any two firings.

    All firings of any calendar count, without clock changes: the skipped hour in spring makes no
    schedule too frequent. A short interval is extended if ``on_short`` says so. Otherwise, and for
    every cron expression, raises ``TooFrequent``; also ``BadCron`` (SPEC CRON-15).
    """
    match timing.schedule:
        case At():
            return timing
        case Every(interval, origin):
            if interval >= minimum:
                return timing
            if on_short is OnShort.CLAMP:
                # A minimum may have parts of a millisecond; an interval has none.
                longer = -(-minimum // durations.MILLISECOND) * durations.MILLISECOND
                return replace(timing, schedule=Every(longer, origin))
            raise TooFrequent(interval.total_seconds(), minimum.total_seconds(), cron=False)
        case Cron(expression):
            gap = parse(expression).least_gap()
            if gap < minimum:
                raise TooFrequent(gap.total_seconds(), minimum.total_seconds(), cron=True)
            return timing
        case _:
            assert_never(timing.schedule)


def first_run_at(timing: Timing, *, now: datetime) -> datetime:
    """Return the next run of a job that is created, changed or resumed at ``now``.

    Strictly after ``now``, except that ``FirstRun.IMMEDIATE`` is ``now`` for intervals. Raises
    ``NeverFires``.
    """
    schedule = timing.schedule
    if isinstance(schedule, Every) and timing.first_run is FirstRun.IMMEDIATE:
        at = _until(timing, now)
    elif isinstance(schedule, Every) and timing.anchor is not Anchor.GRID:
        at = _until(timing, _jittered(timing, now + schedule.interval + stagger_of(timing)))
    else:
        at = _next(timing, now)
    if at is None:
        raise NeverFires(f"{describe(schedule, timing.zone)}: all its times are in the past")
    return at


def next_run_at(timing: Timing, ran: Ran) -> datetime | None:
    """Return the next run after one that has ended; None if there is none.

    Strictly after ``ran.ended_at``, except for an ``every`` job anchored at its start whose run
    took longer than its interval: that is due at ``ran.ended_at``. If the clock went back during
    the run, it is no further ahead than one interval; see ``replanned``.
    """
    match timing.schedule:
        case At():
            return None
        case Every(interval) if timing.anchor is Anchor.START and ran.started_at is not None:
            due = _jittered(timing, min(ran.started_at, ran.ended_at) + interval)
            return _until(timing, max(due, ran.ended_at))
        case Every(interval) if timing.anchor is not Anchor.GRID:
            # What never began has no start to count from.
            return _until(timing, _jittered(timing, ran.ended_at + interval))
        case _:
            timing = _begun(timing, ran.ended_at)
            is_over = ran.due_at - ran.ended_at <= _not_repeated(timing)
            return _next(timing, max(ran.ended_at, ran.due_at) if is_over else ran.ended_at)


def replanned(timing: Timing, due_at: datetime, *, now: datetime) -> datetime | None:
    """Return the next run if ``due_at`` was computed by a clock that was ahead; None: it is right.

    A schedule whose times are at least three hours apart does not repeat them when the clock goes
    back by up to three hours, unless it is a wildcard (docs/cron-rules.md, R8).
    """
    match timing.schedule:
        case At():
            return None
        case Every(interval) if timing.anchor is not Anchor.GRID:
            latest = now + interval * (1 + timing.jitter) + stagger_of(timing) + _MEANWHILE
            again = _until(timing, _jittered(timing, now + interval)) if due_at > latest else None
        case _:
            timing = _begun(timing, now)
            missing = _next(timing, now + _not_repeated(timing))
            again = None
            if missing is not None and missing < due_at:
                again = _next(timing, now)
    return again if again is not None and again < due_at else None


def _not_repeated(timing: Timing) -> timedelta:
    """Return by how much a clock may go back before times of a job that are over come again."""
    match timing.schedule:
        case Every(interval):
            return min(interval, _STEP)
        case Cron(expression):
            cron = parse(expression)
            gap = cron.least_gap()
            is_rare = gap >= _MOST_REPEATED and not cron.wildcard
            return _MOST_REPEATED if is_rare else min(gap, _STEP)
        case _:
            return _NONE


def _begun(timing: Timing, now: datetime) -> Timing:
    """Return the timing of a job that has begun, with points of its grid before ``now``.

    Its origin is ahead only if the clock went back.
    """
    every = timing.schedule
    if not isinstance(every, Every) or every.origin is None or every.origin <= now:
        return timing
    gone = -((now - every.origin) // every.interval)
    return replace(timing, schedule=replace(every, origin=every.origin - gone * every.interval))


def upcoming(timing: Timing, *, after: datetime, count: int) -> list[datetime]:
    """Return at most ``count`` next runs, strictly increasing, without jitter.

    Jitter is part of each run, not of the schedule.
    """
    return list(islice(firings(timing, after=after), count))


def firings(timing: Timing, *, after: datetime) -> Iterator[datetime]:
    """Yield all times strictly after ``after``, in order, without jitter; may never end.

    For an interval that counts from runs, a run is assumed to end at ``after``, and all following
    ones to take no time.
    """
    shift = stagger_of(timing)
    for each in _unshifted(timing, after.astimezone(UTC) - shift):
        at = _until(timing, each + shift)
        if at is None:
            return
        yield at


def coalesced(timing: Timing, *, due_at: datetime, now: datetime, most: int = MOST_COUNTED) -> int:
    """Return how many firings after ``due_at`` have come by ``now``.

    Cron firings are counted one by one, up to ``most``. 0 for intervals that count from the end or
    start of a run.
    """
    come = takewhile(lambda at: at <= now, firings(timing, after=due_at))
    match timing.schedule:
        case Every() if timing.anchor is not Anchor.GRID:
            return 0
        case Every(interval):
            first = next(come, None)
            if first is None:
                return 0
            last = now if timing.not_after is None else min(now, timing.not_after)
            return min((last - first) // interval + 1, _MOST_ON_GRID)
        case _:
            return sum(1 for _ in islice(come, most))


def stagger_of(timing: Timing) -> timedelta:
    """Return the constant delay of a job after its schedule (SPEC CRON-16).

    The job's id determines a part of the shortest time between two firings: up to ``jitter`` of it,
    or a tenth if that is 0, and at most an hour. For intervals that count from runs, only the first
    run is delayed.
    """
    if not timing.stagger or timing.spread is None:
        return _NONE
    match timing.schedule:
        case At():
            return _NONE
        case Every(interval):
            return spread.stagger(timing.spread, interval, timing.jitter)
        case Cron(expression):
            return spread.stagger(timing.spread, parse(expression).least_gap(), timing.jitter)
        case _:
            assert_never(timing.schedule)


def _unshifted(timing: Timing, after: datetime) -> Iterator[datetime]:
    """Yield the firings after ``after``, without stagger."""
    match timing.schedule:
        case At(at):
            if at > after:
                yield at
        case Every(interval, origin):
            at = _grid(interval, origin, after) if timing.anchor is Anchor.GRID else after
            at = at if at > after else at + interval
            while at < _END:
                yield at
                at += interval
        case Cron(expression):
            cron, here, found = parse(expression), zone(timing.zone), after
            while (following := cron.next_after(here, found)) is not None:
                yield following
                found = following
        case _:
            assert_never(timing.schedule)


def _grid(interval: timedelta, origin: datetime | None, after: datetime) -> datetime:
    """Return the last point of the grid at or before ``after``, or a later origin.

    Without an origin the grid contains 1970-01-01 00:00 UTC.
    """
    origin = _EPOCH if origin is None else origin.astimezone(UTC)
    return origin + max((after - origin) // interval, 0) * interval


def _next(timing: Timing, after: datetime) -> datetime | None:
    """Return the first firing after ``after``, with jitter."""
    following = firings(timing, after=after)
    at = next(following, None)
    if at is None or isinstance(timing.schedule, At) or not timing.jitter:
        return at
    return _until(timing, _jittered(timing, at, next(following, None)))


def _jittered(timing: Timing, due: datetime, following: datetime | None = None) -> datetime:
    """Return a time with its jitter, before the ``following`` one (SPEC CRON-16).

    For an interval that counts from runs, the following one is an interval later. The last firing
    has no jitter, and none that would exceed ``not_after``.
    """
    if not timing.jitter or timing.spread is None:
        return due
    gap = _NONE
    if following is not None:
        gap = following - due
    elif isinstance(timing.schedule, Every) and timing.anchor is not Anchor.GRID:
        gap = timing.schedule.interval
    later = due + spread.jitter(timing.spread, due, gap, timing.jitter)
    return later if timing.not_after is None else max(due, min(later, timing.not_after))


def _until(timing: Timing, at: datetime) -> datetime | None:
    """Return the time, None if it is after ``not_after``."""
    return None if timing.not_after is not None and at > timing.not_after else at.astimezone(UTC)


def _aware(instant: datetime, name: str) -> None:
    if instant.utcoffset() is None:
        raise BadMoment(f"{name}: {instant.isoformat()} has no offset")


def describe(schedule: Schedule, zone: str) -> str:
    """Return the schedule in words, such as ``at 09:00 on Monday to Friday (Europe/Berlin)``.

    Raises ``BadCron``, and ``UnknownZone`` for ``at``.
    """
    match schedule:
        case At(at):
            there = local_text(at, zone)
            return f"once at {there}" if there.endswith(f" {zone}") else f"once at {there} ({zone})"
        case Every(interval):
            return durations.in_words(interval)
        case Cron(expression):
            return f"{in_words(parse(expression))} ({zone})"
        case _:
            assert_never(schedule)


def schedule_json(schedule: Schedule) -> dict[str, object]:
    """Return the schedule as JSON for store and API: ``{"kind": "cron", …}``.

    ``at`` is ISO 8601 in UTC, intervals are ``every_ms``.
    """
    match schedule:
        case At(at):
            return {"kind": "at", "at": _iso(at)}
        case Every(interval, origin):
            plain: dict[str, object] = {
                "kind": "every",
                "every_ms": interval // durations.MILLISECOND,
            }
            return plain if origin is None else {**plain, "origin": _iso(origin)}
        case Cron(expression):
            return {"kind": "cron", "expression": expression}
        case _:
            assert_never(schedule)


def schedule_of(stored: Mapping[str, object]) -> Schedule:
    """Parse the output of ``schedule_json``. Raises ``BadSchedule``."""
    match stored:
        case {"kind": "at", "at": at}:
            return At(_instant(at))
        case {"kind": "every", "every_ms": int(every_ms)} if not isinstance(every_ms, bool):
            origin = stored.get("origin")
            return Every(
                durations.milliseconds(every_ms), None if origin is None else _instant(origin)
            )
        case {"kind": "cron", "expression": str(expression)}:
            return Cron(expression)
    raise BadSchedule(
        'a schedule is {"kind": "at", "at": …}, {"kind": "every", "every_ms": …} '
        'or {"kind": "cron", "expression": …}'
    )


def _iso(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _instant(text: object) -> datetime:
    try:
        instant = datetime.fromisoformat(str(text))
        if instant.tzinfo is not None:
            return instant.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    shown = str(text)[:40]
    raise BadMoment(
        f"{shown!r}: must be a time in ISO 8601 with its offset{why_not(shown.lower())}"
    )
