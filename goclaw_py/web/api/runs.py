"""Runs and sessions in the API (SPEC OPS-2)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Path, Query
from fastapi.exceptions import RequestValidationError
from pydantic import AfterValidator
from starlette.exceptions import HTTPException

from goclaw_py.core.ids import AgentName, SessionKey
from goclaw_py.core.outcomes import Outcome, Trigger
from goclaw_py.operations.control import Control, QueueView, RunRecord, SessionFork
from goclaw_py.records import (
    RunDensity,
    RunFilter,
    RunSpan,
    Session,
    SessionFilter,
    SessionState,
    StoredEntry,
    StoredRun,
)
from goclaw_py.scheduler.views import ActiveRuns, StopReport
from goclaw_py.web.api.paging import LINK, After, Before, Instant, Limit, Page, in_utc
from goclaw_py.web.api.wire import ForkBody, Renamed, RunCounts, StopBody, TitleBody
from goclaw_py.web.caco.routes import ListedSession, listed

MAX_SPANS: Final = 2_000
"""The largest number of runs on a page of the timeline."""

KeyPath = Annotated[
    str, Path(min_length=1, max_length=512, examples=["agent:main:telegram:direct:100"])
]
RunPath = Annotated[str, Path(min_length=1, max_length=512, examples=["0190-aaaa"])]
Key = Annotated[str | None, Query(max_length=512, description="The whole key.")]
Agent = Annotated[str | None, Query(min_length=1, max_length=64, examples=["main"])]
Search = Annotated[
    str,
    Query(
        max_length=256,
        description="A text in the key, or in the name of the chat, topic or job.",
        examples=["ann"],
    ),
]
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


def _known(trigger: Trigger | None) -> Trigger | None:
    if trigger is not None and trigger not in {*Trigger}:
        raise ValueError(f"one of {', '.join(Trigger)}")
    return trigger


async def _at_any_time(
    agent: Agent = None,
    trigger: Annotated[Trigger | None, AfterValidator(_known)] = None,
    outcome: Outcome | None = None,
    sender: SenderId = None,
) -> RunFilter:
    return RunFilter(None if agent is None else AgentName(agent), trigger, outcome, sender)


AtAnyTime = Annotated[RunFilter, Depends(_at_any_time)]


async def _only(only: AtAnyTime, since: Instant | None = None) -> RunFilter:
    return replace(only, since=None if since is None else in_utc("since", since))


Only = Annotated[RunFilter, Depends(_only)]


async def _sessions(
    agent: Agent = None,
    channel: Annotated[str | None, Query(max_length=64, examples=["telegram"])] = None,
    state: Annotated[
        SessionState | None, Query(description="Those with an unfinished run, or message.")
    ] = None,
) -> SessionFilter:
    return SessionFilter(None if agent is None else AgentName(agent), channel, state)


Selected = Annotated[SessionFilter, Depends(_sessions)]


async def _span(since: Instant, until: Instant) -> tuple[datetime, datetime]:
    span = in_utc("since", since), in_utc("until", until)
    if span[0] > span[1]:
        wrong = {"type": "value_error", "loc": ("query", "until"), "msg": "is before since"}
        raise RequestValidationError([wrong])
    return span


Span = Annotated[tuple[datetime, datetime], Depends(_span)]


def run_routes(control: Control) -> APIRouter:
    """Return the routes below ``/api/runs``, except the event stream."""
    api = APIRouter(tags=["runs"])
    _lists_of_runs(api, control)
    _times_of_runs(api, control)
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
        """List runs, the newest first.

        All given conditions apply: of one `session`, of one `agent`, with one `trigger`, with one
        `outcome`, of one `sender`, started `since` then, only `active` ones.
        """
        key = SessionKey(session) if session is not None else None
        found = await control.runs(
            limit=limit + 1, session=key, active=active, only=only, before=before
        )
        return page.of(found, limit)

    @api.get("/counts")
    async def counts(only: Only, session: Key = None) -> RunCounts:
        """Count runs by outcome; those in progress are `running`. `outcome` is ignored."""
        key = SessionKey(session) if session is not None else None
        return RunCounts(await control.run_counts(only, session=key))

    @api.get("/active")
    async def active() -> ActiveRuns:
        """List all unfinished requests: what is running, and what waits for what."""
        return await control.active()


def _times_of_runs(api: APIRouter, control: Control) -> None:
    @api.get("/timeline", responses=LINK)
    async def timeline(
        page: Page, span: Span, only: AtAnyTime, after: After, limit: Spans = MAX_SPANS
    ) -> list[RunSpan]:
        """List runs that were running from `since` to before `until`, the oldest first.

        Each has only the fields of a timeline. A run in progress has no `finished_at`.
        """
        since, until = span
        found = await control.runs_between(since, until, limit=limit + 1, only=only, after=after)
        return page.of(found, limit, name="after")

    @api.get("/density")
    async def density(span: Span, only: AtAnyTime, parts: Parts = 100) -> list[RunDensity]:
        """Count the runs that started from `since` to before `until`, in equal parts of that time.

        By lane, part (from 0) and outcome (null: in progress).
        """
        since, until = span
        return await control.run_density(since, until, parts=parts, only=only)


def _one_run(api: APIRouter, control: Control) -> None:
    @api.get("/{prefix}")
    async def run(prefix: RunPath) -> StoredRun:
        """Get a run by its id or the beginning of its id."""
        return await control.run(prefix)

    @api.get("/{prefix}/record")
    async def record(prefix: RunPath) -> RunRecord:
        """Get everything that is stored about a run.

        `run` has its facts, tool calls and usage, `entries` the history entries that it added,
        `said` its outgoing messages, `steps` what it did step by step, also before a crash.
        """
        return await control.run_record(prefix)


def session_routes(control: Control) -> APIRouter:
    """Return the routes below ``/api/sessions``, except sending messages."""
    api = APIRouter(tags=["sessions"])

    @api.get("", responses=LINK)
    async def sessions(
        page: Page, before: Before, only: Selected, limit: Limit = 50, search: Search = ""
    ) -> list[ListedSession]:
        """List sessions, the most recently active first; those of jobs with slug and next run."""
        found = await control.sessions(limit=limit + 1, search=search, only=only, before=before)
        return page.of(await listed(control.jobs, found), limit)

    @api.get("/{key:path}/history")
    async def history(key: KeyPath, limit: Limit = 200) -> list[StoredEntry]:
        """List the newest history entries of a session since its last reset, the oldest first."""
        return await control.history(SessionKey(key), limit=limit)

    @api.get("/{key:path}/queue")
    async def queue(key: KeyPath) -> QueueView:
        """Get the running, waiting and unanswered messages of a session, by a part of its key."""
        return await control.queue(key)

    @api.post("/{key:path}/stop")
    async def stop(key: KeyPath, body: StopBody) -> StopReport:
        """Stop as an owner's `/stop` or `/stopall` in the session's chat does.

        `unsent` is the number of dropped messages of earlier answers, `asking` the number of
        turns that waited for the answer of a person.
        """
        return await control.stop(SessionKey(key), everything=body.everything)

    @api.post("/{key:path}/reset", status_code=204)
    async def reset(key: KeyPath) -> None:
        """Cancel the running and waiting runs of a session, and start a new history."""
        await control.reset(SessionKey(key))

    _conversation_routes(api, control)

    @api.get("/{key:path}")
    async def session(key: KeyPath) -> Session:
        """Get a session by its key or a unique part of it."""
        return await control.session(key)

    return api


def _conversation_routes(api: APIRouter, control: Control) -> None:
    @api.put("/{key:path}/title")
    async def rename(key: KeyPath, body: TitleBody) -> Renamed:
        """Give a conversation of the console a title of at most 80 characters.

        "" removes it. Invisible characters are left out.
        """
        try:
            return Renamed(await control.rename(SessionKey(key), body.title))
        except ValueError as error:
            raise HTTPException(422, str(error)) from error

    @api.delete("/{key:path}", status_code=204)
    async def delete(key: KeyPath) -> None:
        """Stop a conversation of the console or the web chat, and delete what was said in it.

        The usage of its runs is kept. 409 if a run does not end within 15 seconds.
        """
        await control.delete(SessionKey(key))

    @api.post("/{key:path}/fork")
    async def fork(key: KeyPath, body: ForkBody) -> SessionFork:
        """Copy the history of a session into a new session of the console.

        With `at`, a run of the session, the copy is what was remembered when it ended. 409 with
        the code `NOT_REWINDABLE` says why there is nothing to copy.
        """
        return await control.fork(SessionKey(key), at=body.at)
