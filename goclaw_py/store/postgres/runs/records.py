"""Reading runs and sessions, for operators and budgets."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields, replace
from datetime import datetime

import orjson

from goclaw_py.core.ids import AgentName, RunId, SessionKey
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.pagination import Cursor
from goclaw_py.core.run_events import Usage
from goclaw_py.records import (
    ALL_RUNS,
    MOST_RUNS_COUNTED,
    MOST_RUNS_ORDERED,
    MOST_RUNS_SEARCHED,
    NEWEST_RUNS,
    NEWEST_SESSIONS,
    PROMPT_CHARS,
    InterruptedSubagent,
    RunDensity,
    RunFilter,
    RunOrder,
    RunQuery,
    RunSpan,
    Session,
    SessionQuery,
    StoredEntry,
    StoredRun,
    SubagentTask,
)
from goclaw_py.store.postgres import rows
from goclaw_py.store.postgres.pages import OLDEST, place, prefix_range
from goclaw_py.store.postgres.part import PostgresPart
from goclaw_py.store.postgres.runs.beginnings import interrupted_work
from goclaw_py.store.sql import queries
from goclaw_py.store.text import storable

_SQL = queries("records")


class PostgresRunRecords(PostgresPart):
    """Implements the reading methods of ``RunStore``."""

    async def runs(self, query: RunQuery = NEWEST_RUNS) -> list[StoredRun]:
        """Each combination of conditions has its own index."""
        if query.active and (query.search or query.only.outcome is not None):
            return []
        if query.order is not None:
            return await self._runs_in_order(query, query.order)
        statement, page = _statement(query), (query.limit, *place(query.before))
        conditions = query.session, query.since, *_conditions(query.only)
        if query.search:
            search = MOST_RUNS_SEARCHED, storable(query.search)
            found = await self._pool.fetch(statement, *page, *search, *conditions)
        elif statement == _SQL["newest"]:
            found = await self._pool.fetch(statement, *page, query.since)
        else:
            found = await self._pool.fetch(statement, *page, *conditions)
        return [rows.run(row) for row in found]

    async def _runs_in_order(self, query: RunQuery, order: RunOrder) -> list[StoredRun]:
        if query.search:  # at most ``MOST_RUNS_SEARCHED``, without an index for their order
            found = await self.runs(replace(query, order=None, limit=MOST_RUNS_ORDERED))
            return sorted(found, key=lambda run: run.place_in(order), reverse=True)[: query.limit]
        arguments = query.since, query.session, MOST_RUNS_ORDERED, *_conditions(query.only)
        page = query.active, order, query.limit
        return [
            rows.run(row) for row in await self._pool.fetch(_SQL["in_order"], *arguments, *page)
        ]

    async def runs_between(
        self,
        since: datetime,
        until: datetime,
        *,
        limit: int = 2000,
        only: RunFilter = ALL_RUNS,
        after: Cursor | None = None,
    ) -> list[RunSpan]:
        """The cost depends on the number of runs returned, not on their age."""
        found = await self._pool.fetch(
            _SQL["between"], since, until, limit, *place(after or OLDEST), *_conditions(only)
        )
        return [rows.from_row(RunSpan, row) for row in found]

    async def run_prompts(self, runs: Collection[RunId]) -> dict[RunId, str]:
        found = await self._pool.fetch(_SQL["prompts"], list(runs), PROMPT_CHARS)
        return {RunId(row["run_id"]): row["prompt"] for row in found}

    async def run_history(self, run: RunId) -> list[StoredEntry]:
        found = await self._pool.fetch(_SQL["history_of_run"], run)
        return [rows.stored_entry(row) for row in found]

    async def find_run(self, prefix: str) -> list[StoredRun]:
        found = await self._pool.fetch(_SQL["find"], *prefix_range(prefix))
        return [rows.run(row) for row in found]

    async def run_density(
        self, since: datetime, until: datetime, *, parts: int, only: RunFilter = ALL_RUNS
    ) -> list[RunDensity]:
        """Read only an index, but for runs in progress."""
        bounds = [since + (until - since) * number / parts for number in range(parts + 1)]
        found = await self._pool.fetch(_SQL["density"], bounds, *_conditions(only))
        return [rows.from_row(RunDensity, row) for row in found]

    async def run_counts(
        self, query: RunQuery = NEWEST_RUNS, *, most: int = MOST_RUNS_COUNTED
    ) -> dict[Outcome | None, int]:
        """Read only an index, but for the runs of one session or sender."""
        conditions = _conditions(replace(query.only, outcome=None))
        arguments = (query.since, query.session, most, *conditions)
        found = await self._pool.fetch(_SQL["counts"], *arguments)
        counted = {row["outcome"]: row["runs"] for row in found if row["runs"]}
        return {None if one is None else Outcome(one): runs for one, runs in counted.items()}

    async def sessions(self, query: SessionQuery = NEWEST_SESSIONS) -> list[Session]:
        text, of = storable(query.search).lower(), (query.agent, query.channel, query.state)
        page = query.limit, *place(query.before)
        if text or any(one is not None for one in of):
            found = await self._pool.fetch(_SQL["search"], *page, text, *of)
        else:
            found = await self._pool.fetch(_SQL["sessions"], *page)
        return [rows.session(row) for row in found]

    async def session(self, key: SessionKey) -> Session | None:
        row = await self._pool.row(_SQL["session"], key)
        return None if row is None else rows.session(row)

    async def history(
        self, key: SessionKey, *, limit: int = 200, whole: bool = False
    ) -> list[StoredEntry]:
        newest_first = await self._pool.fetch(_SQL["history"], key, limit, whole)
        return [rows.stored_entry(row) for row in reversed(newest_first)]

    async def spent(
        self,
        *,
        since: datetime,
        payer: SessionKey | None = None,
        agent: AgentName | None = None,
    ) -> Usage:
        if payer is None:
            row = await self._pool.row(_SQL["spent"], since, agent)
        else:
            row = await self._pool.row(_SQL["spent_by"], since, agent, payer)
        assert row is not None
        return rows.usage(row)

    async def interrupted_subagents(self, *, since: datetime) -> list[InterruptedSubagent]:
        async with self._pool.connection() as connection:
            found = await connection.fetch(_SQL["interrupted_subagents"], since)
            return [
                InterruptedSubagent(
                    rows.run(row),
                    _task(row["task"]),
                    row["crashes"],
                    (await interrupted_work(connection, row["id"]))[0],
                )
                for row in found
            ]

    async def spawned(self, call_key: str) -> RunId | None:
        row = await self._pool.row(_SQL["spawned"], call_key)
        return None if row is None else RunId(row["id"])


def _task(text: str) -> SubagentTask:
    given = orjson.loads(text)
    return SubagentTask(given["prompt"], given["label"], given["sender"])


def _conditions(only: RunFilter) -> tuple[object, ...]:
    """Return the values of a filter, in the order of its fields: the last arguments of a query."""
    return tuple(getattr(only, one.name) for one in fields(only))


def _statement(query: RunQuery) -> str:
    """Return the statement whose index skips the fewest runs."""
    only = query.only
    if query.search or query.active:
        return _SQL["newest_with_text"] if query.search else _SQL["active"]
    if query.session is not None:
        return _SQL["newest_of_session"]
    if only.sender is not None:
        return _SQL["newest_of_sender"]
    if only.outcome not in (None, Outcome.COMPLETED):
        return _SQL["newest_with_outcome"]
    if only.trigger is not None:
        return _SQL["newest_of_trigger"]
    if only.agent is not None:
        return _SQL["newest_of_agent"]
    if only != ALL_RUNS:
        return _SQL["newest_filtered"]
    # Without conditions: a plan for any of them would read more rows.
    return _SQL["newest"]
