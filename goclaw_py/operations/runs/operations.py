"""What operators see of runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from goclaw_py.core.actors import Least
from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import Role
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.pagination import Cursor
from goclaw_py.core.text import without_source
from goclaw_py.core.time.clock import Clock
from goclaw_py.operations.declare import operation
from goclaw_py.operations.lookup import only as only_one
from goclaw_py.records import (
    ALL_RUNS,
    NEWEST_RUNS,
    OutboxQuery,
    OutboxRow,
    RunDensity,
    RunFilter,
    RunQuery,
    RunSpan,
    Store,
    StoredEntry,
    StoredRun,
)
from goclaw_py.runs.step_views import StepView, step_view
from goclaw_py.scheduler.views import ActiveRuns, RunView

RUNNING: Final = "running"
"""What ``Runs.counts`` calls runs in progress."""

_MOST_ACTIVE: Final = 1000
_MESSAGES_SHOWN: Final = 1000
"""The number of messages of one run."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run with its history entries, its messages and its steps.

    Args:
        entries: The entries that it added to the history of its session.
        said: Its outgoing messages, the oldest first.
        steps: Its steps, in order; empty for a kind of agent whose steps are not stored.
        retryable: The numbers of the messages that it was to answer and did not, as far as they
            are stored and were not retried since: ``Deliveries.retry_dead_letters`` takes them.
        later: The run that has these messages now: they were retried, or it continues this run.
        waits: These messages wait for a run, or for the answer of a person.
    """

    run: StoredRun
    entries: tuple[StoredEntry, ...]
    said: tuple[OutboxRow, ...]
    steps: tuple[StepView, ...] = ()
    retryable: tuple[int, ...] = ()
    later: RunId | None = None
    waits: bool = False


class Runs:
    """Every method may raise ``StoreUnavailable``, and ``NoGateway`` from another process.

    Args:
        unfinished: Returns the unfinished requests of a gateway; None where no gateway is running.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        unfinished: Callable[[], tuple[RunView, ...]] | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._unfinished = unfinished

    @operation("GET /api/runs/counts", Least.VIEWER, key="counts")
    async def counts(self, query: RunQuery = NEWEST_RUNS) -> dict[str, int]:
        """Return how many runs have each outcome, or are ``RUNNING``, on all pages of a query.

        Its outcome and ``active`` are ignored. Of those that have ended, the newest
        ``MOST_RUNS_COUNTED`` are counted.
        """
        counts = await self._store.run_counts(query)
        return {
            RUNNING if outcome is None else outcome.value: runs for outcome, runs in counts.items()
        }

    @operation("GET /api/runs/active", Least.VIEWER)
    async def active(self) -> ActiveRuns:
        """Return all unfinished requests; without a gateway, those in the database."""
        now = self._clock.now()
        if self._unfinished is not None:
            return ActiveRuns(now, live=True, runs=self._unfinished())
        newest_first = await self._store.runs(RunQuery(active=True, limit=_MOST_ACTIVE))
        runs = tuple(run.view(now) for run in reversed(newest_first))
        return ActiveRuns(now, live=False, runs=runs)

    @operation("GET /api/runs/timeline", Least.VIEWER)
    async def between(
        self,
        since: datetime,
        until: datetime,
        *,
        limit: int = 2000,
        only: RunFilter = ALL_RUNS,
        after: Cursor | None = None,
    ) -> list[RunSpan]:
        """Return runs that were running at some time in ``since <= t < until``, oldest first."""
        return await self._store.runs_between(since, until, limit=limit, only=only, after=after)

    @operation("GET /api/runs/density", Least.VIEWER)
    async def density(
        self, since: datetime, until: datetime, *, parts: int = 100, only: RunFilter = ALL_RUNS
    ) -> list[RunDensity]:
        """Count the runs that started in ``since <= t < until``, in equal parts of that time."""
        return await self._store.run_density(since, until, parts=parts, only=only)

    @operation("GET /api/runs/{prefix}", Least.VIEWER)
    async def get(self, prefix: str) -> StoredRun:
        """Return the run whose id starts with ``prefix``. Raises ``NotFound``."""
        found = await self._store.find_run(prefix)
        run = only_one(found, prefix, lambda run: run.id, f"run {prefix!r}", "runs list")
        if run.outcome is None and self._unfinished is not None:
            # The row of a run in progress does not say when it began to speak.
            views = {view.id: view.activity for view in self._unfinished()}
            if activity := views.get(run.id):
                run = replace(run, first_text_at=activity.first_text_at)
        return run

    @operation("GET /api/runs/{prefix}/record", Least.TEXT)
    async def record(self, prefix: str) -> RunRecord:
        """Return that run with its history entries, messages and steps. Raises ``NotFound``."""
        run = await self.get(prefix)
        entries = await self._store.run_history(run.id)
        if not any(one.entry.role is Role.USER for one in entries):
            prompts = await self._store.run_prompts([run.id])
            run = replace(run, prompt=without_source(prompts.get(run.id, "")))
        said = await self._store.outbox(OutboxQuery(limit=_MESSAGES_SHOWN, run=run.id))
        steps = await self._store.run_steps(run.id)
        views = tuple(step_view(one.number, one.step) for one in steps)
        record = RunRecord(run, tuple(entries), tuple(reversed(said)), views)
        if run.outcome in (None, Outcome.COMPLETED):
            return record
        letters = [one.row for one in await self._store.letters_of(run.id)]
        ends = ((one.id, one.outcome) for one in letters if one.run_id == run.id)
        return replace(
            record,
            retryable=tuple(id_ for id_, end in ends if end not in (None, Outcome.COMPLETED)),
            later=next((one.run_id for one in letters if one.run_id not in (None, run.id)), None),
            waits=any(one.run_id is None and one.outcome is None for one in letters),
        )

    # The last one: below it, ``list`` in a signature would be this method.
    @operation("GET /api/runs", Least.VIEWER)
    async def list(self, query: RunQuery = NEWEST_RUNS) -> list[StoredRun]:
        """Return runs, the newest first, with their prompts."""
        runs = await self._store.runs(query)
        prompts = await self._store.run_prompts([run.id for run in runs]) if runs else {}
        if self._unfinished is not None and any(run.outcome is None for run in runs):
            active = {run.id: run.activity for run in self._unfinished()}
            prompts |= {RunId(id_): one.prompt for id_, one in active.items() if one is not None}
        return [replace(run, prompt=without_source(prompts.get(run.id, ""))) for run in runs]
