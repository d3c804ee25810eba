"""Ways to find the next occurrence of a cron expression after any instant.

Each gets an expression and a zone, does once what can be done once, and returns a function from an
instant to the occurrence after it. All get the same instants. cronsim has no way to go on from
another instant, so it parses each time.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from importlib.util import find_spec
from zoneinfo import ZoneInfo

Next = Callable[[datetime], object]
"""The instant is in the zone."""


def goclaw(expression: str, zone: ZoneInfo) -> Next:
    """Ours."""
    from goclaw_py.schedule.cron.expression import parse

    cron = parse(expression)
    return lambda instant: cron.next_after(zone, instant)


def croniter(expression: str, zone: ZoneInfo) -> Next:
    """croniter as it is called mostly: with aware datetimes."""
    from croniter import croniter as iterator

    six = len(expression.split()) == 6
    steps = iterator(expression, datetime.now(zone), second_at_beginning=six)
    return lambda instant: steps.get_next(datetime, instant)


def apscheduler(expression: str, zone: ZoneInfo) -> Next:
    """The trigger of APScheduler 3."""
    from apscheduler.triggers.cron import CronTrigger

    if len(parts := expression.split()) == 6:
        names = ("second", "minute", "hour", "day", "month", "day_of_week")
        trigger = CronTrigger(**dict(zip(names, parts, strict=True)), timezone=zone)
    else:
        trigger = CronTrigger.from_crontab(expression, zone)
    return lambda instant: trigger.get_next_fire_time(None, instant)


def cronsim(expression: str, zone: ZoneInfo) -> Next:
    """cronsim, which is Debian's cron too."""
    from cronsim import CronSim

    del zone
    return lambda instant: next(CronSim(expression, instant))


OURS = "goclaw_py"
CONTENDERS: dict[str, Callable[[str, ZoneInfo], Next]] = {
    OURS: goclaw,
    "croniter, aware": croniter,
    **({"APScheduler": apscheduler} if find_spec("apscheduler") else {}),
    **({"cronsim": cronsim} if find_spec("cronsim") else {}),
}
