"""The audit log in the API: pages of it, and all of it as JSON lines (SPEC SEC-9)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query
from fastapi.responses import StreamingResponse

from goclaw_py.operations.audit.operations import AuditEntries, audit_pages
from goclaw_py.operations.control import Control
from goclaw_py.records import AuditEntry, AuditFilter
from goclaw_py.web.api.paging import LINK, Limit, Page, RowBefore, Time
from goclaw_py.web.api.serve import serve
from goclaw_py.web.api.streams import ClosedStream
from goclaw_py.web.api.wire import dump

_MAX_CHARS: Final = 200

Who = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=_MAX_CHARS,
        description="A part of a name, id, address, chat or command line, in any case.",
    ),
]
Action = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=_MAX_CHARS,
        description="An action, or all below it: `job` selects `job.edit`.",
        examples=["job.edit"],
    ),
]
Subject = Annotated[
    str | None,
    Query(min_length=1, max_length=_MAX_CHARS, description="A part of the subject, in any case."),
]


async def _only(
    who: Who = None,
    action: Action = None,
    subject: Subject = None,
    since: Time | None = None,
    until: Time | None = None,
) -> AuditFilter:
    return AuditFilter(who, action, subject, since, until)


Only = Annotated[AuditFilter, Depends(_only)]


class AuditExport(ClosedStream):
    """A response of JSON lines."""

    media_type = "application/jsonl"


def audit_routes(control: Control) -> APIRouter:
    """Return the routes."""
    api = APIRouter(tags=["audit"])

    @serve(api, AuditEntries.list, responses=LINK)
    async def entries(
        page: Page, only: Only, limit: Limit = 50, before: RowBefore = None
    ) -> list[AuditEntry]:
        """List who has changed what, the newest first.

        `before` and `after` in an entry have only what changed. Of prompts, messages and
        checklists there are only the length and the beginning of a hash.
        """
        found = await control.audit.list(limit=limit + 1, only=only, before=before)
        return page.of(found, limit, lambda entry: entry.id)

    @api.get("/api/audit/export", response_class=StreamingResponse)
    async def export(only: Only) -> AuditExport:
        """Get all entries as JSON lines, the newest first.

        An entry that is added meanwhile is not in it.
        """
        # The first ones are read before the answer begins, so that an error has its status.
        pages = audit_pages(control.audit, only)
        first = await anext(pages)
        lines = _lines(first, pages)
        return AuditExport(lines, pages)

    return api


async def _lines(
    first: list[AuditEntry], pages: AsyncGenerator[list[AuditEntry]]
) -> AsyncGenerator[bytes]:
    yield _json_lines(first)
    async for found in pages:
        yield _json_lines(found)


def _json_lines(entries: list[AuditEntry]) -> bytes:
    return b"".join(dump(AuditEntry, entry) + b"\n" for entry in entries)
