"""Messages that go out and came in, and the people and chats they are for (SPEC OPS-2, IO-3)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from goclaw_py.model.ids import RunId
from goclaw_py.ports.control import Control, PairingApplicant
from goclaw_py.ports.store import Chat, DeadLetter, LastActivity, OutboxRow, OutboxState, Person
from goclaw_py.web.api.paging import LINK, ChatBefore, HeardBefore, Limit, Page, RowBefore
from goclaw_py.web.api.wire import (
    MAX_LIMIT,
    MAX_ROW_ID,
    AllowBody,
    ApproveBody,
    DroppedRows,
    Retried,
    RevokeBody,
    RowsBody,
)

RowPath = Annotated[int, Path(ge=0, le=MAX_ROW_ID, examples=[120])]
OfRun = Annotated[
    str | None, Query(min_length=1, max_length=512, description="The whole id of a run.")
]


def outbox_routes(control: Control) -> APIRouter:
    """The routes below ``/api/outbox``."""
    api = APIRouter(tags=["outbox"])

    @api.get("", responses=LINK)
    async def outbox(
        page: Page,
        limit: Limit = 50,
        before: RowBefore = None,
        state: OutboxState | None = None,
        run: OfRun = None,
    ) -> list[OutboxRow]:
        """Messages on their way out, the newest first; those of one `state`, or of one `run`."""
        of_run = None if run is None else RunId(run)
        found = await control.outbox(limit=limit + 1, state=state, run=of_run, before=before)
        return page.of(found, limit, lambda row: row.id)

    @api.get("/{row_id}")
    async def one(row_id: RowPath) -> OutboxRow:
        """One message, whatever became of it."""
        return await control.outbox_row(row_id)

    @api.post("/retry")
    async def retry(body: RowsBody) -> Retried:
        """Try dead and dropped messages again."""
        return Retried(await control.retry_outbox(body.ids))

    @api.post("/drop")
    async def drop(body: RowsBody) -> DroppedRows:
        """Give up messages that are dead or wait."""
        return DroppedRows(await control.drop_outbox(body.ids))

    return api


def inbox_routes(control: Control) -> APIRouter:
    """The routes below ``/api/inbox``."""
    api = APIRouter(tags=["inbox"])

    @api.get("", responses=LINK)
    async def inbox(
        page: Page, limit: Limit = 50, before: RowBefore = None, *, waiting: bool = False
    ) -> list[DeadLetter]:
        """Messages that could not be worked on, or those that are not done; the newest first."""
        found = await control.letters(waiting=waiting, limit=limit + 1, before=before)
        return page.of(found, limit, lambda letter: letter.row.id)

    @api.get("/{row_id}")
    async def one(row_id: RowPath) -> DeadLetter:
        """One message that came in, whatever became of it."""
        return await control.letter(row_id)

    @api.post("/retry")
    async def retry(body: RowsBody) -> Retried:
        """Let messages that ended without an answer run again."""
        return Retried(await control.retry_letters(body.ids))

    @api.post("/drop")
    async def drop(body: RowsBody) -> DroppedRows:
        """Show messages that ended without an answer no more."""
        return DroppedRows(await control.dismiss_letters(body.ids))

    return api


def people_routes(control: Control) -> APIRouter:
    """The routes about people and chats, below ``/api``."""
    api = APIRouter(tags=["people"])

    @api.get("/people", responses=LINK)
    async def people(page: Page, before: ChatBefore, limit: Limit = MAX_LIMIT) -> list[Person]:
        """Who may talk to the agent, the last one approved first."""
        return page.of(await control.people(limit=limit + 1, before=before), limit)

    @api.post("/people/revoke", status_code=204)
    async def revoke(body: RevokeBody) -> None:
        """Forget a person."""
        await control.revoke(body.channel, body.account, body.sender_id)

    @api.get("/pairing")
    async def pairing() -> list[PairingApplicant]:
        """Who asked to talk to the agent."""
        return await control.pairing_requests()

    @api.post("/pairing/approve")
    async def approve(body: ApproveBody) -> Person:
        """Let the person with this pairing code talk."""
        return await control.approve(body.code, guest=body.guest)

    @api.get("/heard", responses=LINK)
    async def heard(page: Page, before: HeardBefore, limit: Limit = 50) -> list[LastActivity]:
        """Chats and threads in which somebody who may talk spoke, the last one first."""
        return page.of(await control.heard(limit=limit + 1, before=before), limit)

    @api.get("/chats", responses=LINK)
    async def chats(page: Page, before: ChatBefore, limit: Limit = MAX_LIMIT) -> list[Chat]:
        """Known chats, the last seen first."""
        return page.of(await control.chats(limit=limit + 1, before=before), limit)

    @api.post("/chats/allow", status_code=204)
    async def allow(body: AllowBody) -> None:
        """Decide whether the agent listens in a group; one never seen becomes known."""
        await control.allow_chat(body.channel, body.account, body.chat, allowed=body.allowed)

    return api
