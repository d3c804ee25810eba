"""Sessions and display names in the API (SPEC OPS-2, OPS-4, OPS-8, OPS-9).

Messages to sessions are in ``web.caco``, whose form they have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Self

from fastapi import APIRouter, Depends, Path, Query
from pydantic import Field, model_validator

from goclaw_py.core.ids import AgentName, RunId, SessionKey
from goclaw_py.operations.control import Control
from goclaw_py.operations.sessions.operations import QueueView, SessionFork, Sessions
from goclaw_py.records import Aside, Session, SessionQuery, SessionState, StoredEntry
from goclaw_py.scheduler.views import StopReport
from goclaw_py.web.api.paging import LINK, Before, Limit, Page
from goclaw_py.web.api.serve import serve
from goclaw_py.web.api.wire import MAX_LIMIT, Body, Flag, Key, Name, ShortText
from goclaw_py.web.caco.routes import ListedSession, listed

KeyPath = Annotated[
    str, Path(min_length=1, max_length=512, examples=["agent:main:telegram:direct:100"])
]


class StopBody(Body):
    """``everything``: ``/stopall`` instead of ``/stop``; ``run``: the only run that is stopped."""

    everything: Flag = False
    run: Name | None = None

    @model_validator(mode="after")
    def _means_one_thing(self) -> Self:
        if self.everything and self.run is not None:
            raise ValueError("everything and a run cannot both be stopped")
        return self


class TitleBody(Body):
    """``title``: the title of a conversation; "" brings back its first words."""

    title: ShortText


class ForkBody(Body):
    """``at``: the beginning of the id of the run at whose end the copy stops."""

    at: Name | None = None


class NamesBody(Body):
    """The sessions and people to name."""

    keys: Annotated[list[Key], Field(max_length=MAX_LIMIT)]


@dataclass(frozen=True, slots=True)
class NamesAnswer:
    """Display names of the sessions and people that were asked about."""

    names: dict[str, str]


@dataclass(frozen=True, slots=True)
class Renamed:
    """The title of a conversation, as it is stored."""

    title: str


Search = Annotated[
    str,
    Query(
        max_length=256,
        description="A text in the key, or in the name of the chat, topic or job.",
        examples=["ann"],
    ),
]


async def _selected(
    agent: Annotated[str | None, Query(min_length=1, max_length=64, examples=["main"])] = None,
    channel: Annotated[str | None, Query(max_length=64, examples=["telegram"])] = None,
    state: Annotated[
        SessionState | None, Query(description="Those with an unfinished run, or message.")
    ] = None,
) -> SessionQuery:
    name = None if agent is None else AgentName(agent)
    return SessionQuery(agent=name, channel=channel, state=state)


Selected = Annotated[SessionQuery, Depends(_selected)]


def session_routes(control: Control) -> APIRouter:
    """Return the routes, except sending messages."""
    api = APIRouter(tags=["sessions"])

    @serve(api, Sessions.list, responses=LINK)
    async def sessions(
        page: Page, before: Before, query: Selected, limit: Limit = 50, search: Search = ""
    ) -> list[ListedSession]:
        """List sessions, the most recently active first; those of jobs with slug and next run."""
        wanted = replace(query, search=search, limit=limit + 1, before=before)
        return page.of(await listed(control.jobs, await control.sessions.list(wanted)), limit)

    @serve(api, Sessions.history)
    async def history(
        key: KeyPath, limit: Limit = 200, *, whole: bool = False
    ) -> list[StoredEntry]:
        """List the newest history entries of a session since its last reset, the oldest first.

        With `whole`, also those before it.
        """
        return await control.sessions.history(SessionKey(key), limit=limit, whole=whole)

    @serve(api, Sessions.asides)
    async def asides(key: KeyPath, limit: Limit = 50) -> list[Aside]:
        """List commands and other messages that are not in the history, the oldest first."""
        return await control.sessions.asides(SessionKey(key), limit=limit)

    @serve(api, Sessions.queue)
    async def queue(key: KeyPath) -> QueueView:
        """Get the running, waiting and unanswered messages of a session, by a part of its key."""
        return await control.sessions.queue(key)

    @serve(api, Sessions.stop)
    async def stop(key: KeyPath, body: StopBody) -> StopReport:
        """Stop as an owner's `/stop` or `/stopall` in the session's chat does, or only a `run`.

        `unsent` is the number of dropped messages of earlier answers, `asking` the number of
        turns that waited for the answer of a person.
        """
        return await control.sessions.stop(
            SessionKey(key),
            everything=body.everything,
            run=None if body.run is None else RunId(body.run),
        )

    @serve(api, Sessions.reset, status_code=204)
    async def reset(key: KeyPath) -> None:
        """Cancel the running and waiting runs of a session, and start a new history."""
        await control.sessions.reset(SessionKey(key))

    _conversations(api, control)

    # The last one: its path matches those of the others, too.
    @serve(api, Sessions.get)
    async def session(key: KeyPath) -> Session:
        """Get a session by its key or a unique part of it."""
        return await control.sessions.get(key)

    return api


def name_routes(control: Control) -> APIRouter:
    """Return the route for display names."""
    api = APIRouter(tags=["people"])

    @serve(api, Sessions.names)
    async def names(body: NamesBody) -> NamesAnswer:
        """Get display names of sessions, by their keys, and of people (`channel/account/id`)."""
        return NamesAnswer(await control.sessions.names(body.keys))

    return api


def _conversations(api: APIRouter, control: Control) -> None:
    @serve(api, Sessions.rename)
    async def rename(key: KeyPath, body: TitleBody) -> Renamed:
        """Give a conversation of the console a title of at most 80 characters.

        "" removes it. Invisible characters are left out.
        """
        return Renamed(await control.sessions.rename(SessionKey(key), body.title))

    @serve(api, Sessions.delete, status_code=204)
    async def delete(key: KeyPath) -> None:
        """Stop a conversation of the console or the web chat, and delete what was said in it.

        The usage of its runs is kept. 409 if a run does not end within 15 seconds.
        """
        await control.sessions.delete(SessionKey(key))

    @serve(api, Sessions.fork)
    async def fork(key: KeyPath, body: ForkBody) -> SessionFork:
        """Copy the history of a session into a new session of the console.

        With `at`, a run of the session, the copy is what was remembered when it ended. 409 with
        the code `NOT_REWINDABLE` says why there is nothing to copy.
        """
        return await control.sessions.fork(SessionKey(key), at=body.at)
