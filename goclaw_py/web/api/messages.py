"""Outgoing and incoming messages, display names, and browsers in the API (SPEC OPS-2, IO-3)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from fastapi.exceptions import RequestValidationError

from goclaw_py.core.ids import RunId
from goclaw_py.core.targets import TARGET_FORM, parse_target
from goclaw_py.operations.control import Control, MessageCounts
from goclaw_py.records import (
    DeadLetter,
    MessageFilter,
    OutboxRow,
    OutboxState,
    SignIn,
)
from goclaw_py.web.api.paging import (
    LINK,
    Instant,
    Limit,
    Page,
    RowBefore,
    in_utc,
)
from goclaw_py.web.api.wire import (
    MAX_ROW_ID,
    DroppedRows,
    EndedAnswer,
    NamesAnswer,
    NamesBody,
    Retried,
    RowsBody,
)

RowPath = Annotated[int, Path(ge=0, le=MAX_ROW_ID, examples=[120])]
OfRun = Annotated[
    str | None, Query(min_length=1, max_length=512, description="The whole id of a run.")
]


async def _selected(
    channel: Annotated[str | None, Query(max_length=64, examples=["telegram"])] = None,
    chat: Annotated[
        str | None,
        Query(max_length=256, description=f"A chat: {TARGET_FORM}", examples=["telegram:100"]),
    ] = None,
    since: Instant | None = None,
    search: Annotated[str, Query(max_length=256, description="A part of the text.")] = "",
) -> MessageFilter:
    target = None if chat is None else parse_target(chat)
    if chat is not None and target is None:
        wrong = {"type": "value_error", "loc": ("query", "chat"), "msg": f"must be {TARGET_FORM}"}
        raise RequestValidationError([wrong])
    begun = None if since is None else in_utc("since", since)
    return MessageFilter(channel, target, begun, search)


Selected = Annotated[MessageFilter, Depends(_selected)]


def outbox_routes(control: Control) -> APIRouter:
    """Return the routes below ``/api/outbox``."""
    api = APIRouter(tags=["outbox"])

    @api.get("", responses=LINK)
    async def outbox(
        page: Page,
        only: Selected,
        limit: Limit = 50,
        before: RowBefore = None,
        state: OutboxState | None = None,
        run: OfRun = None,
    ) -> list[OutboxRow]:
        """List outgoing messages, the newest first; of one `state`, or of one `run`.

        All given conditions apply. The case of A to Z in `search` is ignored.
        """
        of_run = None if run is None else RunId(run)
        found = await control.outbox(
            limit=limit + 1, state=state, run=of_run, only=only, before=before
        )
        return page.of(found, limit, lambda row: row.id)

    @api.get("/counts")
    async def counts(only: Selected) -> MessageCounts:
        """Count outgoing messages by state, and incoming ones that failed or wait."""
        return await control.message_counts(only)

    @api.get("/{row_id}")
    async def one(row_id: RowPath) -> OutboxRow:
        """Get an outgoing message in any state."""
        return await control.outbox_row(row_id)

    @api.post("/retry")
    async def retry(body: RowsBody) -> Retried:
        """Retry dead and dropped messages."""
        return Retried(await control.retry_outbox(body.ids))

    @api.post("/drop")
    async def drop(body: RowsBody) -> DroppedRows:
        """Drop dead and waiting messages."""
        return DroppedRows(await control.drop_outbox(body.ids))

    return api


def inbox_routes(control: Control) -> APIRouter:
    """Return the routes below ``/api/inbox``."""
    api = APIRouter(tags=["inbox"])

    @api.get("", responses=LINK)
    async def inbox(
        page: Page,
        only: Selected,
        limit: Limit = 50,
        before: RowBefore = None,
        *,
        waiting: bool = False,
    ) -> list[DeadLetter]:
        """List failed incoming messages, or with `waiting` unfinished ones; the newest first."""
        found = await control.dead_letters(
            waiting=waiting, limit=limit + 1, only=only, before=before
        )
        return page.of(found, limit, lambda letter: letter.row.id)

    @api.get("/{row_id}")
    async def one(row_id: RowPath) -> DeadLetter:
        """Get an incoming message in any state."""
        return await control.dead_letter(row_id)

    @api.post("/retry")
    async def retry(body: RowsBody) -> Retried:
        """Retry messages that ended without an answer."""
        return Retried(await control.retry_dead_letters(body.ids))

    @api.post("/drop")
    async def drop(body: RowsBody) -> DroppedRows:
        """Dismiss messages that ended without an answer."""
        return DroppedRows(await control.dismiss_dead_letters(body.ids))

    return api


def name_routes(control: Control) -> APIRouter:
    """Return the route for display names, below ``/api``."""
    api = APIRouter(tags=["people"])

    @api.post("/names")
    async def names(body: NamesBody) -> NamesAnswer:
        """Get display names of sessions, by their keys, and of people (`channel/account/id`)."""
        return NamesAnswer(await control.names(body.keys))

    return api


def sign_in_routes(control: Control) -> APIRouter:
    """Return the routes about browsers, below ``/api/web``."""
    api = APIRouter(tags=["people"])

    @api.get("/sign-ins")
    async def sign_ins() -> list[SignIn]:
        """List the browsers that are signed in, the most recently used first."""
        return await control.sign_ins()

    @api.delete("/sign-ins/{sign_in}", status_code=204)
    async def end_sign_in(sign_in: str) -> None:
        """Sign a browser out, within 5 seconds."""
        await control.end_sign_in(sign_in)

    @api.delete("/sign-ins")
    async def end_sign_ins() -> EndedAnswer:
        """Sign all browsers out, within 5 seconds."""
        return EndedAnswer(await control.end_sign_ins())

    return api
