"""Files of the chat: uploads for messages, and those that came or went with them (CHAN-9)."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlencode

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from goclaw_py.chat.rasters import HEAD_BYTES, raster_type
from goclaw_py.core.errors import BadUpload, NotFound, UploadTooLarge
from goclaw_py.core.messages import FileKind, OutFile
from goclaw_py.core.workspace.files import Workspace, WorkspaceError
from goclaw_py.operations.runs.operations import RunRecord
from goclaw_py.web.pages.chat.conversations import Conversations
from goclaw_py.web.pages.services import PageServices

MAX_NAME_CHARS: Final = 1024
"""The longest name of an upload; it is shortened when it is stored."""

_PIECE: Final = 64 * 1024
_SHOWN: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")
_POLICY: Final = "default-src 'none'; sandbox"
"""Nothing in a file may do anything, whatever a browser takes it for."""


def file_address(run: str, file: OutFile, *, guest: bool = False) -> str:
    """Return the address of a file of a run; for a guest it names no folder of this machine."""
    path = guest_path(file) if guest else file.path
    return f"/chat/file?{urlencode({'run': run, 'path': path})}"


def guest_path(file: OutFile) -> str:
    """Return what names a file of a run to a guest, in place of its path.

    Files of a run may have the same name: several pasted pictures are all ``image.png``.
    """
    return hashlib.blake2b(file.path.encode(), digest_size=8).hexdigest()


def is_picture(file: OutFile) -> bool:
    """Return whether a page may show a file; ``/chat/file`` looks at its content, too."""
    return file.kind is FileKind.PHOTO or file.mime in _SHOWN


def routes(service: PageServices, conversations: Conversations) -> list[Route]:
    """Return the upload of a file, and the download."""
    uploads, workspaces = conversations.parts.uploads, conversations.parts.workspaces

    async def upload(request: Request) -> Response:
        if uploads is None:
            raise BadUpload("this gateway accepts no files")
        length = request.headers.get("content-length", "0")
        if length.isdigit() and int(length) > uploads.max_bytes:
            raise UploadTooLarge(uploads.max_bytes)
        name = request.query_params.get("name", "")
        if len(name) > MAX_NAME_CHARS:
            raise HTTPException(422, f"the name has more than {MAX_NAME_CHARS} characters")
        try:
            stored = await uploads.upload(name, request.stream(), guest=conversations.guest)
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        return JSONResponse({"ref": stored.ref, "name": stored.name, "kind": stored.kind})

    async def download(request: Request) -> Response:
        query = request.query_params
        run, wanted = query.get("run", "")[:64], query.get("path", "")
        guest = bool(conversations.guest)
        try:
            record = await service.control.runs.record(run)
        except NotFound as error:
            # Its text may name runs of others.
            raise NotFound("there is no such file in this run") if guest else error from None
        if record.run.id != run or (guest and not conversations.owns(record.run.session)):
            raise NotFound("there is no such file in this run")
        named = {guest_path(one) if guest else one.path: one for one in _files(record)}
        file, workspace = named.get(wanted), workspaces.get(record.run.agent)
        if file is None or workspace is None:
            raise NotFound("there is no such file in this run")
        return await asyncio.to_thread(_response, workspace, file)

    return [
        Route("/chat/files", upload, methods=["POST"]),
        Route("/chat/file", download),
    ]


def _files(record: RunRecord) -> Iterator[OutFile]:
    for entry in record.entries:
        yield from entry.entry.files
    for row in record.said:
        if row.message.file is not None:
            yield row.message.file


def _response(workspace: Path, file: OutFile) -> Response:
    """Return a file: pictures to be shown, anything else to be saved."""
    root = workspace.absolute()
    if not file.path.startswith(f"{root}/"):
        root = workspace.resolve()  # an agent may have named the file so
    opening = ExitStack()
    try:
        opened = opening.enter_context(Workspace(root).reading(file.path))
        kind = raster_type(opened.read(HEAD_BYTES))
        opened.seek(0)
    except WorkspaceError as error:
        raise NotFound(f"{file.name} cannot be read: {error.reason}") from error

    def pieces() -> Iterator[bytes]:
        with opening:
            while piece := opened.read(_PIECE):
                yield piece

    headers = {
        "Content-Disposition": f"{'inline' if kind else 'attachment'}; "
        f"filename*=UTF-8''{quote(file.name, safe='')}",
        "Content-Security-Policy": _POLICY,
        "Cache-Control": "private, no-store",
    }
    return StreamingResponse(
        pieces(), media_type=kind or "application/octet-stream", headers=headers
    )
