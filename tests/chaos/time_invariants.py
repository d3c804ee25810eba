"""The invariants about what comes by itself: times of jobs, and heartbeat runs. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from tests.chaos.breach import Breach, Rule, grouped
from tests.chaos.facts import Facts, Occurrence, Timetable

_ALERT_S: Final = 24 * 3600.0
_NEAR_S: Final = 0.01
"""Times of one grid are told apart by more than this."""


def occurrence_once(facts: Facts) -> Iterator[Breach]:
    """SPEC CRON-5: a time of a job runs again only after what did not end by itself."""
    by_schedule = [one for one in facts.occurrences if not one.manual]
    for (job, scheduled), rows in grouped(by_schedule, lambda o: (o.job, o.scheduled)).items():
        if len(rows) > 1:
            yield Breach(Rule.OCCURRENCE_ONCE, job, f"{len(rows)} rows for {scheduled}")
    jobs = {one.id: one.job for one in facts.occurrences}
    for key, runs in grouped(facts.runs, lambda run: run.occurrence).items():
        whole = [run for run in runs if run.outcome == "completed"]
        if key is not None and len(whole) > 1:
            yield Breach(Rule.OCCURRENCE_ONCE, jobs.get(key, key), f"{whole}")
    for key, posts in grouped(facts.posts, lambda post: post.occurrence).items():
        if key is not None and len(posts) > 1:
            yield Breach(Rule.OCCURRENCE_ONCE, jobs.get(key, key), f"told of by {posts}")


def occurrence_told(facts: Facts) -> Iterator[Breach]:
    """SPEC CRON-13: each job of these scenarios tells what came of it."""
    told = {post.occurrence for post in facts.posts}
    runs = grouped(facts.runs, lambda run: run.occurrence)
    for one in facts.occurrences:
        if one.status != "ok":
            continue
        if one.id not in told:
            yield Breach(Rule.OCCURRENCE_TOLD, one.job, f"nobody was told of {one}")
        tries = runs.get(one.id, [])
        if tries and not any(run.outcome == "completed" for run in tries):
            yield Breach(Rule.OCCURRENCE_TOLD, one.job, f"{one} by {tries}")


def occurrence_missed(facts: Facts) -> Iterator[Breach]:
    """SPEC CRON-10: what came due while one before it ran is counted; all others have a row."""
    of = grouped((one for one in facts.occurrences if not one.manual), lambda one: one.job)
    for table in facts.timetables:
        rows = sorted(of.get(table.job, []), key=lambda one: one.scheduled)
        if not rows:
            yield Breach(Rule.OCCURRENCE_MISSED, table.job, f"no time of {table} came at all")
        elif all(one.status == "ok" for one in rows):  # after a failure the next one may be later
            yield from _gaps(table, rows)


def occurrence_skipped(facts: Facts) -> Iterator[Breach]:
    """SPEC CRON-10: jobs of these scenarios wait for their session, and each time has one row.

    The last one may have waited when its job was paused.
    """
    by_schedule = [one for one in facts.occurrences if not one.manual]
    for job, rows in grouped(by_schedule, lambda one: one.job).items():
        *earlier, _ = sorted(rows, key=lambda one: one.scheduled)
        if skipped := [one for one in earlier if one.status == "skipped"]:
            yield Breach(Rule.OCCURRENCE_SKIPPED, job, f"{skipped}")


def _gaps(table: Timetable, rows: Sequence[Occurrence]) -> Iterator[Breach]:
    times = [table.first, *(one.scheduled for one in rows)]
    skipped = round((times[1] - times[0]) / table.every)
    for earlier, later in pairwise(times[1:]):
        skipped += round((later - earlier) / table.every) - 1
    if skipped > table.counted:
        words = f"{skipped} times of {table} have no row"
        yield Breach(Rule.OCCURRENCE_MISSED, table.job, words)
    for time in times:
        steps = (time - table.first) / table.every
        if abs(steps - round(steps)) * table.every > _NEAR_S:
            yield Breach(Rule.OCCURRENCE_MISSED, table.job, f"{time} is no time of {table}")


def alert_once(facts: Facts) -> Iterator[Breach]:
    """SPEC HB-7: the same alert there is told once in a day; one that is dead was not told."""
    alerts = [post for post in facts.posts if post.alert and post.state != "dead"]
    for (chat, alert), posts in grouped(alerts, lambda post: (post.chat, post.alert)).items():
        ordered = sorted(posts, key=lambda post: post.created)
        for one, other in pairwise(ordered):
            if other.created - one.created < _ALERT_S:
                yield Breach(Rule.ALERT_ONCE, chat, f"{alert!r}: {one} and {other}")


def alert_told(facts: Facts) -> Iterator[Breach]:
    """SPEC HB-6, 9: a heartbeat run that alerted has one alert, and no other beat has any."""
    alerts = Counter(
        post.heartbeat_run for post in facts.posts if post.alert and post.heartbeat_run is not None
    )
    known = defaultdict(
        lambda: "?",
        {heartbeat_run.id: heartbeat_run.agent for heartbeat_run in facts.heartbeat_runs},
    )
    alerted = {
        heartbeat_run.id
        for heartbeat_run in facts.heartbeat_runs
        if heartbeat_run.status == "alerted"
    }
    for key in sorted(alerted | alerts.keys()):
        if alerts[key] != (key in alerted):
            words = f"{key} alerted: {key in alerted}, alerts: {alerts[key]}"
            yield Breach(Rule.ALERT_TOLD, known[key], words)
