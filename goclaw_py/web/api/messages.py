"""Messages on their way out, and messages that could not be worked on (SPEC OPS-2, IO-3)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from goclaw_py.model.ids import RunId
from goclaw_py.ports.control import Control
from goclaw_py.ports.store import DeadLetter, OutboxRow, OutboxState
from goclaw_py.web.api.answers import answer
from goclaw_py.web.api.paging import LINK, Limit, RowBefore, page
from goclaw_py.web.api.wire import MAX_ROW_ID, DroppedRows, Retried, RowsBody

RowPath = Annotated[int, Path(ge=0, le=MAX_ROW_ID, examples=[120])]
OfRun = Annotated[
    str | None, Query(min_length=1, max_length=512, description="The whole id of a run.")
]


def outbox_routes(control: Control) -> APIRouter:
    """The routes below ``/api/outbox``."""
    api = APIRouter(tags=["outbox"])

    @api.get("", response_model=list[OutboxRow], responses=LINK)
    async def outbox(
        request: Request,
        limit: Limit = 50,
        before: RowBefore = None,
        state: OutboxState | None = None,
        run: OfRun = None,
    ) -> Response:
        """Messages on their way out, the newest first; those of one `state`, or of one `run`."""
        of_run = None if run is None else RunId(run)
        found = await control.outbox(limit=limit + 1, state=state, run=of_run, before=before)
        return page(OutboxRow, found, limit, request, lambda row: row.id)

    @api.get("/{row_id}", response_model=OutboxRow)
    async def one(row_id: RowPath) -> Response:
        """One message, whatever became of it."""
        return answer(OutboxRow, await control.outbox_row(row_id))

    @api.post("/retry", response_model=Retried)
    async def retry(body: RowsBody) -> Response:
        """Try dead and dropped messages again."""
        return answer(Retried, Retried(await control.retry_outbox(body.ids)))

    @api.post("/drop", response_model=DroppedRows)
    async def drop(body: RowsBody) -> Response:
        """Give up messages that are dead or wait."""
        return answer(DroppedRows, DroppedRows(await control.drop_outbox(body.ids)))

    return api


def inbox_routes(control: Control) -> APIRouter:
    """The routes below ``/api/inbox``."""
    api = APIRouter(tags=["inbox"])

    @api.get("", response_model=list[DeadLetter], responses=LINK)
    async def inbox(
        request: Request, limit: Limit = 50, before: RowBefore = None, *, waiting: bool = False
    ) -> Response:
        """Messages that could not be worked on, or those that are not done; the newest first."""
        found = await control.letters(waiting=waiting, limit=limit + 1, before=before)
        return page(DeadLetter, found, limit, request, lambda letter: letter.row.id)

    @api.get("/{row_id}", response_model=DeadLetter)
    async def one(row_id: RowPath) -> Response:
        """One message that came in, whatever became of it."""
        return answer(DeadLetter, await control.letter(row_id))

    @api.post("/retry", response_model=Retried)
    async def retry(body: RowsBody) -> Response:
        """Let messages that ended without an answer run again."""
        return answer(Retried, Retried(await control.retry_letters(body.ids)))

    @api.post("/drop", response_model=DroppedRows)
    async def drop(body: RowsBody) -> Response:
        """Show messages that ended without an answer no more."""
        return answer(DroppedRows, DroppedRows(await control.dismiss_letters(body.ids)))

    return api
