"""Runs in the API (SPEC OPS-2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Path, Query
from fastapi.exceptions import RequestValidationError

from goclaw_py.core.ids import AgentName, SessionKey
from goclaw_py.operations.control import Control
from goclaw_py.operations.runs.operations import RunRecord, Runs
from goclaw_py.records import RunDensity, RunFilter, RunOrder, RunQuery, RunSpan, StoredRun
from goclaw_py.scheduler.views import ActiveRuns
from goclaw_py.web.api.paging import (
    LINK,
    After,
    Before,
    KnownTrigger,
    Limit,
    Page,
    Time,
    parameters,
)
from goclaw_py.web.api.serve import serve

MAX_SPANS: Final = 2_000
"""The largest number of runs on a page of the timeline."""

RunPath = Annotated[str, Path(min_length=1, max_length=512, examples=["0190-aaaa"])]
Agent = Annotated[AgentName | None, Query(min_length=1, max_length=64, examples=["main"])]
Key = Annotated[SessionKey | None, Query(max_length=512, description="The whole key.")]
Spans = Annotated[
    int, Query(ge=1, le=MAX_SPANS, description="The maximum number of rows on a page.")
]
SenderId = Annotated[
    str | None,
    Query(
        max_length=512,
        description="Who asked for them: `channel/account/id`, or `api`.",
        examples=["telegram/default/100"],
    ),
]
Parts = Annotated[int, Query(ge=1, le=1_000, description="The number of parts.")]


Only = Annotated[
    RunFilter,
    parameters(
        RunFilter,
        agent=Agent,
        trigger=KnownTrigger,
        sender=SenderId,
    ),
]


@dataclass(frozen=True, slots=True)
class RunCounts:
    """The number of runs by outcome; those in progress are ``running``.

    Of those that have ended, the newest 50,000 are counted.
    """

    counts: dict[str, int]


async def _query(only: Only, since: Time | None = None, session: Key = None) -> RunQuery:
    return RunQuery(only=only, session=session, since=since)


Search = Annotated[str, Query(max_length=256, description="A part of the prompt.")]


Wanted = Annotated[RunQuery, Depends(_query)]


async def _listed(
    query: Wanted,
    before: Before,
    search: Search = "",
    order: RunOrder | None = None,
    *,
    active: bool = False,
) -> RunQuery:
    return replace(query, active=active, search=search, before=before, order=order)


Listed = Annotated[RunQuery, Depends(_listed)]


async def _span(since: Time, until: Time) -> tuple[datetime, datetime]:
    if since > until:
        wrong = {"type": "value_error", "loc": ("query", "until"), "msg": "is before since"}
        raise RequestValidationError([wrong])
    return since, until


Span = Annotated[tuple[datetime, datetime], Depends(_span)]


def run_routes(control: Control) -> APIRouter:
    """Return the routes, except the event stream."""
    api = APIRouter(tags=["runs"])
    _lists(api, control)
    _times(api, control)
    _one(api, control)
    return api


def _lists(api: APIRouter, control: Control) -> None:
    @serve(api, Runs.list, responses=LINK)
    async def runs(page: Page, query: Listed, limit: Limit = 50) -> list[StoredRun]:
        """List runs, the newest first.

        All given conditions apply. `since`: those that started then or later; `active`: those in
        progress; `search`: those of the newest 10,000 of them with this text in their prompt.
        `order`: of the newest 10,000, those with most of it, on one page.
        """
        found = await control.runs.list(replace(query, limit=limit + 1))
        return page.of(found, limit) if query.order is None else found[:limit]

    @serve(api, Runs.counts)
    async def counts(query: Wanted) -> RunCounts:
        """Count runs by outcome; those in progress are `running`. `outcome` is ignored."""
        return RunCounts(await control.runs.counts(query))

    @serve(api, Runs.active)
    async def active() -> ActiveRuns:
        """List all unfinished requests: what is running, and what waits for what."""
        return await control.runs.active()


def _times(api: APIRouter, control: Control) -> None:
    @serve(api, Runs.between, responses=LINK)
    async def timeline(
        page: Page, span: Span, only: Only, after: After, limit: Spans = MAX_SPANS
    ) -> list[RunSpan]:
        """List runs that were running from `since` to before `until`, the oldest first.

        Each has only the fields of a timeline. A run in progress has no `finished_at`.
        """
        found = await control.runs.between(*span, limit=limit + 1, only=only, after=after)
        return page.of(found, limit, name="after")

    @serve(api, Runs.density)
    async def density(span: Span, only: Only, parts: Parts = 100) -> list[RunDensity]:
        """Count the runs that started from `since` to before `until`, in equal parts of that time.

        By lane, part (from 0) and outcome (null: in progress).
        """
        return await control.runs.density(*span, parts=parts, only=only)


def _one(api: APIRouter, control: Control) -> None:
    @serve(api, Runs.get)
    async def run(prefix: RunPath) -> StoredRun:
        """Get a run by its id or the beginning of its id."""
        return await control.runs.get(prefix)

    @serve(api, Runs.record)
    async def record(prefix: RunPath) -> RunRecord:
        """Get everything that is stored about a run.

        `run` has its facts, tool calls and usage, `entries` the history entries that it added,
        `said` its outgoing messages, `steps` what it did step by step, also before a crash,
        `retryable` the incoming messages that `POST /api/deliveries/incoming/retry` can retry.
        """
        return await control.runs.record(prefix)
