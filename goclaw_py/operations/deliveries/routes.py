"""Outgoing messages, and incoming ones that failed, in the API (SPEC OPS-2, IO-3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from fastapi.exceptions import RequestValidationError

from goclaw_py.core.ids import RunId
from goclaw_py.core.targets import TARGET_FORM, parse_target
from goclaw_py.operations.control import Control
from goclaw_py.operations.deliveries.operations import Deliveries, MessageCounts
from goclaw_py.records import (
    DeadLetter,
    DeadLetterQuery,
    IncomingState,
    MessageFilter,
    OutboxQuery,
    OutboxRow,
    OutboxState,
)
from goclaw_py.web.api.paging import LINK, Limit, Page, RowBefore, Time
from goclaw_py.web.api.serve import serve
from goclaw_py.web.api.wire import MAX_ROW_ID, Body, RowIds

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
    since: Time | None = None,
    search: Annotated[str, Query(max_length=256, description="A part of the text.")] = "",
    account: Annotated[
        str | None, Query(max_length=64, description="Of its channel.", examples=["default"])
    ] = None,
) -> MessageFilter:
    target = None if chat is None else parse_target(chat)
    if chat is not None and target is None:
        wrong = {"type": "value_error", "loc": ("query", "chat"), "msg": f"must be {TARGET_FORM}"}
        raise RequestValidationError([wrong])
    return MessageFilter(channel, target, since, search, account)


Selected = Annotated[MessageFilter, Depends(_selected)]


class RowsBody(Body):
    """Numbers of deliveries or of incoming messages."""

    ids: RowIds


@dataclass(frozen=True, slots=True)
class Retried:
    """The number of rows that are retried."""

    retried: int


@dataclass(frozen=True, slots=True)
class DroppedRows:
    """The number of rows that were dropped."""

    dropped: int


@dataclass(frozen=True, slots=True)
class Channels:
    """Names of channels."""

    channels: list[str]


def outbox_routes(control: Control) -> APIRouter:
    """Return the routes about outgoing messages."""
    api = APIRouter(tags=["deliveries"])

    @serve(api, Deliveries.outbox, responses=LINK)
    async def deliveries(
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
        wanted = OutboxQuery(state, of_run, only, limit + 1, before)
        return page.of(await control.deliveries.outbox(wanted), limit, lambda row: row.id)

    @serve(api, Deliveries.counts)
    async def counts(only: Selected) -> MessageCounts:
        """Count outgoing messages by state, and failed, waiting and dismissed incoming ones."""
        return await control.deliveries.counts(only)

    @serve(api, Deliveries.channels)
    async def channels() -> Channels:
        """List the channels of stored incoming messages and of seen chats."""
        return Channels(await control.deliveries.channels())

    @serve(api, Deliveries.outbox_row)
    async def one(row_id: RowPath) -> OutboxRow:
        """Get an outgoing message in any state."""
        return await control.deliveries.outbox_row(row_id)

    @serve(api, Deliveries.retry_outbox)
    async def retry(body: RowsBody) -> Retried:
        """Retry failed and dropped messages."""
        return Retried(await control.deliveries.retry_outbox(body.ids))

    @serve(api, Deliveries.drop_outbox)
    async def drop(body: RowsBody) -> DroppedRows:
        """Drop failed and waiting messages."""
        return DroppedRows(await control.deliveries.drop_outbox(body.ids))

    return api


def inbox_routes(control: Control) -> APIRouter:
    """Return the routes about incoming messages."""
    api = APIRouter(tags=["deliveries"])

    @serve(api, Deliveries.dead_letters, responses=LINK)
    async def incoming(
        page: Page,
        only: Selected,
        limit: Limit = 50,
        before: RowBefore = None,
        *,
        state: IncomingState = IncomingState.FAILED,
        waiting: Annotated[bool, Query(include_in_schema=False)] = False,
    ) -> list[DeadLetter]:
        """List incoming messages without an answer, the newest first.

        `state`: those that failed, those that wait for a run or an approval, those that a run
        answers, or those that were dismissed after they failed.
        """
        # The former way to ask for those that wait.
        wished = IncomingState.WAITING if waiting else state
        wanted = DeadLetterQuery(wished, only, limit + 1, before)
        found = await control.deliveries.dead_letters(wanted)
        return page.of(found, limit, lambda letter: letter.row.id)

    @serve(api, Deliveries.dead_letter)
    async def one(row_id: RowPath) -> DeadLetter:
        """Get an incoming message in any state."""
        return await control.deliveries.dead_letter(row_id)

    @serve(api, Deliveries.retry_dead_letters)
    async def retry(body: RowsBody) -> Retried:
        """Retry messages that ended without an answer."""
        return Retried(await control.deliveries.retry_dead_letters(body.ids))

    @serve(api, Deliveries.dismiss_dead_letters)
    async def drop(body: RowsBody) -> DroppedRows:
        """Dismiss messages that ended without an answer, and drop waiting ones."""
        return DroppedRows(await control.deliveries.dismiss_dead_letters(body.ids))

    return api
