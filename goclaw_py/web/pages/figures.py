"""The figures at the top of the first page, and what waits for a person (SPEC OPS-3).

The page is updated every second. What the database has to count is read every ``LASTS_S``, in the
background if it takes long; five statements, 70 ms with 5,000 runs and 1,000 jobs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from goclaw_py.core.approvals import Approval
from goclaw_py.core.errors import GoclawError
from goclaw_py.core.outcomes import FAILURES
from goclaw_py.operations.jobs.models import Requester
from goclaw_py.operations.people.operations import PairingApplicant
from goclaw_py.records import JobQuery
from goclaw_py.runs.usage_report import Grouping, UsageQuery
from goclaw_py.schedule.jobs.models import Job, JobState
from goclaw_py.scheduler.views import GatewayStatus, RunView
from goclaw_py.web.message_text import sees_text
from goclaw_py.web.pages.filters import ANY_FAILURE, TODAY
from goclaw_py.web.pages.services import CACHED_FACTOR, SLOW_S, PageServices

log = logging.getLogger(__name__)

LASTS_S: Final = 10.0

DAYS: Final = 8
"""Today, and the seven days before it. Days are in UTC, as those of budgets."""

_BY: Final = Requester(owner=None)

Days = tuple[float, ...]
"""A number for each of ``DAYS``, the oldest first."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number of the first page, with the page behind it.

    Args:
        value: A time is shown as an age.
        note: What it is compared with.
        is_lasting: The time is a beginning, and shown is how long ago that is.
        days: The same for each day; empty if it has no history.
    """

    name: str
    value: str | datetime | None
    link: str
    note: str = ""
    days: Days = ()
    is_bad: bool = False
    is_lasting: bool = False

    @property
    def bars(self) -> tuple[int, ...]:
        """The days as heights from 0 to 16; a day with anything at all is at least 1 high."""
        top = max(self.days, default=0.0) or 1.0
        return tuple(max(round(16 * one / top), 1 if one else 0) for one in self.days)


@dataclass(frozen=True, slots=True)
class DayTotals:
    """What the database has counted.

    Args:
        failed: Runs with one of the outcomes ``FAILURES``.
        cost: In US dollars.
        next_job: The job that is due next.
        applicants: People who request access.
        approvals: Tool calls that wait for an answer, as far as the reader may see them.
    """

    failed: Days
    cost: Days
    next_job: Job | None
    applicants: tuple[PairingApplicant, ...]
    approvals: tuple[Approval, ...]


class RecentTotals:
    """DayTotals of the last seconds, once for all who may read texts and once for others."""

    def __init__(self, service: PageServices) -> None:
        self._service = service
        self._known: dict[bool, DayTotals] = {}
        self._tasks: dict[bool, asyncio.Task[None]] = {}
        self._until: dict[bool, tuple[float, int]] = {}

    async def get(self, approvals: int) -> DayTotals | None:
        """Return them; None while the database is unavailable, or counts for the first time.

        ``approvals`` is how many tool calls wait: if that has changed, they are read again.
        """
        level, loop = sees_text(), asyncio.get_running_loop()
        task = self._tasks.get(level)
        until_s, seen = self._until.get(level, (0.0, 0))
        is_old = task is not None and task.done() and (loop.time() >= until_s or approvals != seen)
        if task is None or is_old or task.get_loop() is not loop:
            task = self._tasks[level] = loop.create_task(self._read(approvals, level=level))
        await asyncio.wait({task}, timeout=SLOW_S)
        return self._known.get(level)

    async def _read(self, approvals: int, *, level: bool) -> None:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        try:
            self._known[level] = await self._totals(approvals if level else 0)
        except GoclawError as error:
            self._known.pop(level, None)
            log.debug("store_unavailable", extra={"error": str(error), "part": "figures"})
        now_s = loop.time()
        self._until[level] = now_s + max(LASTS_S, CACHED_FACTOR * (now_s - began_s)), approvals

    async def _totals(self, approvals: int) -> DayTotals:
        control, now = self._service.control, self._service.now()
        tomorrow = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        since = tomorrow - timedelta(days=DAYS)
        density, usage, jobs, applicants = await asyncio.gather(
            control.runs.density(since, tomorrow, parts=DAYS),
            control.usage.report(UsageQuery((Grouping.DAY,), days=DAYS)),
            control.jobs.search(JobQuery(states=(JobState.ACTIVE,), limit=1), _BY),
            control.people.requests(),
        )
        bad = [one for one in density if one.outcome in FAILURES]
        costs = {row.group[Grouping.DAY]: row.used.cost_usd for row in usage.rows}
        days = [(since + timedelta(days=n)).date().isoformat() for n in range(DAYS)]
        due = [job for job in jobs.jobs if job.next_run_at is not None]
        return DayTotals(
            failed=tuple(sum(one.runs for one in bad if one.part == n) for n in range(DAYS)),
            cost=tuple(float(costs.get(day) or 0) for day in days),
            next_job=due[0] if due else None,
            applicants=tuple(applicants),
            approvals=tuple(await control.approvals.list()) if approvals else (),
        )


def figures(
    status: GatewayStatus,
    waiting: Sequence[RunView],
    since: datetime | None,
    totals: DayTotals | None,
) -> list[Figure]:
    """Return the figures of a gateway, and of the others that share its database.

    ``waiting`` are the runs that have not started, the first of them since ``since``.
    """
    there = sum(peer.running for peer in status.peers)
    queued = sum(peer.waiting for peer in status.peers)
    on_others = "{} on other nodes".format
    found = [
        Figure(
            "running",
            str(len(status.runs) - len(waiting) + there),
            "/runs?show=running&range=all",
            on_others(there) if there else "",
        ),
        Figure(
            "run waiting" if len(waiting) + queued == 1 else "runs waiting",
            str(len(waiting) + queued),
            "#waiting",
            on_others(queued) if queued else "",
        ),
    ]
    oldest = Figure("oldest wait", since, "#waiting", is_lasting=True)
    if totals is None:
        return [*found, oldest]
    *_, before, today = totals.failed
    failed = Figure(
        "failed today",
        f"{today:,.0f}",
        f"/runs?show={ANY_FAILURE}&range={TODAY}",
        f"yesterday {before:,.0f}",
        totals.failed,
        today > 0,
    )
    job = totals.next_job
    next_job = Figure("next job", None, "/jobs")
    if job is not None:
        next_job = Figure("next job", job.next_run_at, f"/jobs/{job.id}", job.spec.title)
    average = sum(totals.cost[:-1]) / (DAYS - 1)
    cost = Figure(
        *("cost today", _dollars(totals.cost[-1]), "/usage?range=1d"),
        f"average of {DAYS - 1} days: {_dollars(average)}" if average else "",
        totals.cost,
    )
    return [*found, failed, oldest, next_job, cost]


def _dollars(amount: float) -> str:
    return "< $0.01" if 0 < amount < 0.01 else f"${amount:,.2f}"
