"""Sessions in the API (SPEC OPS-2)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from starlette.exceptions import HTTPException

from goclaw_py.core.ids import AgentName, SessionKey
from goclaw_py.operations.control import Control, QueueView, SessionFork
from goclaw_py.records import (
    Session,
    SessionFilter,
    SessionState,
    StoredEntry,
)
from goclaw_py.scheduler.views import StopReport
from goclaw_py.web.api.paging import LINK, Before, Limit, Page
from goclaw_py.web.api.wire import ForkBody, Renamed, StopBody, TitleBody
from goclaw_py.web.caco.routes import ListedSession, listed

KeyPath = Annotated[
    str, Path(min_length=1, max_length=512, examples=["agent:main:telegram:direct:100"])
]
Agent = Annotated[str | None, Query(min_length=1, max_length=64, examples=["main"])]
Search = Annotated[
    str,
    Query(
        max_length=256,
        description="A text in the key, or in the name of the chat, topic or job.",
        examples=["ann"],
    ),
]


async def _sessions(
    agent: Agent = None,
    channel: Annotated[str | None, Query(max_length=64, examples=["telegram"])] = None,
    state: Annotated[
        SessionState | None, Query(description="Those with an unfinished run, or message.")
    ] = None,
) -> SessionFilter:
    return SessionFilter(None if agent is None else AgentName(agent), channel, state)


Selected = Annotated[SessionFilter, Depends(_sessions)]


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
