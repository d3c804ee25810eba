"""Runs and sessions: what became of them, and what is in them (SPEC OPS-2)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Path, Query
from fastapi.exceptions import RequestValidationError
from pydantic import AwareDatetime

from goclaw_py.model.ids import AgentName, SessionKey
from goclaw_py.model.outcomes import Outcome, Trigger
from goclaw_py.ports.control import Control, QueueView, RunRecord
from goclaw_py.ports.store import RunFilter, RunSpan, Session, StoredEntry, StoredRun
from goclaw_py.scheduler.views import ActiveRuns, StopReport
from goclaw_py.web.api.paging import LINK, After, Before, Limit, Page
from goclaw_py.web.api.wire import StopBody
from goclaw_py.web.caco.routes import ListedSession, listed

MAX_SPANS: Final = 2_000
"""How many runs a page of the timeline may have."""

KeyPath = Annotated[
    str, Path(min_length=1, max_length=512, examples=["agent:main:telegram:direct:100"])
]
RunPath = Annotated[str, Path(min_length=1, max_length=512, examples=["0190-aaaa"])]
Key = Annotated[str | None, Query(max_length=512, description="The whole key.")]
Agent = Annotated[str | None, Query(min_length=1, max_length=64, examples=["main"])]
Spans = Annotated[
    int, Query(ge=1, le=MAX_SPANS, description="The maximum number of rows on a page.")
]
Instant = Annotated[AwareDatetime, Query(examples=["2026-01-02T03:00:00Z"])]


async def _only(
    agent: Agent = None, trigger: Trigger | None = None, outcome: Outcome | None = None
) -> RunFilter:
    return RunFilter(None if agent is None else AgentName(agent), trigger, outcome)


Only = Annotated[RunFilter, Depends(_only)]


async def _span(since: Instant, until: Instant) -> tuple[datetime, datetime]:
    span = _in_utc("since", since), _in_utc("until", until)
    if span[0] > span[1]:
        wrong = {"type": "value_error", "loc": ("query", "until"), "msg": "is before since"}
        raise RequestValidationError([wrong])
    return span


Span = Annotated[tuple[datetime, datetime], Depends(_span)]


def _in_utc(name: str, instant: datetime) -> datetime:
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        text = "no calendar has this time in UTC"
        wrong = {"type": "value_error", "loc": ("query", name), "msg": text}
        raise RequestValidationError([wrong]) from None


def run_routes(control: Control) -> APIRouter:
    """The routes below ``/api/runs``, but for the event stream."""
    api = APIRouter(tags=["runs"])
    _lists_of_runs(api, control)
    _one_run(api, control)
    return api


def _lists_of_runs(api: APIRouter, control: Control) -> None:
    @api.get("", responses=LINK)
    async def runs(
        page: Page,
        only: Only,
        before: Before,
        limit: Limit = 50,
        session: Key = None,
        *,
        active: bool = False,
    ) -> list[StoredRun]:
        """Runs, the newest first.

        All that is given must hold: of one `session`, of one `agent`, with one `trigger`, ended
        with one `outcome`, `active` ones only.
        """
        key = SessionKey(session) if session is not None else None
        found = await control.runs(
            limit=limit + 1, session=key, active=active, only=only, before=before
        )
        return page.of(found, limit)

    @api.get("/active")
    async def active() -> ActiveRuns:
        """All requests that are not done: what works, and what waits for what."""
        return await control.active()

    @api.get("/timeline", responses=LINK)
    async def timeline(
        page: Page, span: Span, after: After, limit: Spans = MAX_SPANS
    ) -> list[RunSpan]:
        """Runs that worked at some time from `since` to before `until`, the oldest first.

        Of each only what a picture of many needs. A run that still works has no `finished_at`.
        """
        since, until = span
        found = await control.runs_between(since, until, limit=limit + 1, after=after)
        return page.of(found, limit, name="after")


def _one_run(api: APIRouter, control: Control) -> None:
    @api.get("/{prefix}")
    async def run(prefix: RunPath) -> StoredRun:
        """One run, by its id or the beginning of its id."""
        return await control.run(prefix)

    @api.get("/{prefix}/record")
    async def record(prefix: RunPath) -> RunRecord:
        """Everything that is stored of a run.

        `run` has its facts, the tools it has called and what it has used, `entries` what it has
        added to the history of its session (what was asked, what was answered), `said` its messages
        to chats and what became of them.
        """
        return await control.run_record(prefix)


def session_routes(control: Control) -> APIRouter:
    """The routes below ``/api/sessions``, but for messages into them."""
    api = APIRouter(tags=["sessions"])

    @api.get("", responses=LINK)
    async def sessions(page: Page, before: Before, limit: Limit = 50) -> list[ListedSession]:
        """Sessions, the last active first; those of jobs with slug and next run."""
        found = await control.sessions(limit=limit + 1, before=before)
        return page.of(await listed(control.jobs, found), limit)

    @api.get("/{key:path}/history")
    async def history(key: KeyPath, limit: Limit = 200) -> list[StoredEntry]:
        """The newest entries of a session's history since its last reset, oldest first."""
        return await control.history(SessionKey(key), limit=limit)

    @api.get("/{key:path}/queue")
    async def queue(key: KeyPath) -> QueueView:
        """What runs, what waits and what got no answer, by any unique part of the session's key."""
        return await control.queue(key)

    @api.post("/{key:path}/stop")
    async def stop(key: KeyPath, body: StopBody) -> StopReport:
        """Like `/stop` or `/stopall` in that session's chat, of an owner.

        `unsent` is how many messages of answers that were written already are given up.
        """
        return await control.stop(SessionKey(key), everything=body.everything)

    @api.post("/{key:path}/reset", status_code=204)
    async def reset(key: KeyPath) -> None:
        """Stop what runs and waits in a session and begin a fresh history."""
        await control.reset(SessionKey(key))

    @api.get("/{key:path}")
    async def session(key: KeyPath) -> Session:
        """The session with this key or unique part of a key."""
        return await control.session(key)

    return api
