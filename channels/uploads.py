"""Files that people upload in the dashboard, until their message's run takes them (SPEC CHAN-9)."""

from __future__ import annotations

import asyncio
import mimetypes
import re
import secrets
import shutil
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from goclaw_py.chat.rasters import HEAD_BYTES, raster_type
from goclaw_py.core.errors import BadUpload, NotFound, NotSent, Undeliverable, UploadTooLarge
from goclaw_py.core.messages import Attachment, FileKind
from goclaw_py.core.text import visible_line
from goclaw_py.core.web_links import is_guest_name

KEPT_S: Final = 7 * 86_400.0
"""Seconds after which a file that no run has taken is deleted."""

MOST_WAITING: Final = 200
"""The number of files of a person that may wait for a run."""

MAX_NAME_CHARS: Final = 200

_REF: Final = re.compile(r"(?:([^./\0]+)\.)?[0-9a-f]{32}")
_KINDS: Final = {"audio": FileKind.AUDIO, "video": FileKind.VIDEO}


class UploadFolder:
    """Stores uploaded files under random names; their own names are only shown.

    Args:
        folder: Made at the first upload, readable only by its owner.
        max_bytes: The largest file.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self.max_bytes = max_bytes

    async def save(
        self, name: str, body: AsyncIterator[bytes], *, now: datetime, guest: str = ""
    ) -> Attachment:
        """Store a file of a guest; "" is the operator.

        Raises ``UploadTooLarge`` and ``BadUpload``; then nothing is left of it.
        """
        ref = (f"{guest}." if guest else "") + secrets.token_hex(16)
        try:
            await asyncio.to_thread(self._make_room, guest, now)
            path = self._folder / f"{ref}.part"
            try:
                await self._write(path, body)
                await asyncio.to_thread(path.rename, self._folder / ref)
            finally:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise BadUpload(f"the file cannot be stored: {error.strerror or error}") from error
        return await self.attachment(ref, name)

    async def _write(self, path: Path, body: AsyncIterator[bytes]) -> None:
        size = 0
        with path.open("xb") as file:
            async for chunk in body:
                size += len(chunk)
                if size > self.max_bytes:
                    raise UploadTooLarge(self.max_bytes)
                await asyncio.to_thread(file.write, chunk)
        if not size:
            raise BadUpload("the file is empty")

    def _make_room(self, guest: str, now: datetime) -> None:
        """Delete what no run has taken for long. Raises ``BadUpload`` if too much waits.

        Only files of this guest count, or of the operator, so that each has room of their own.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        old, waiting = now.timestamp() - KEPT_S, 0
        for path in self._folder.iterdir():
            with suppress(FileNotFoundError):  # a run has taken it meanwhile
                if path.stat().st_mtime < old:
                    path.unlink()
                elif (ref := _REF.match(path.name)) and (ref[1] or "") == guest:
                    waiting += 1
        if waiting >= MOST_WAITING:
            raise BadUpload(f"{waiting} uploaded files wait already; send or stop their messages")

    async def attachment(self, ref: str, name: str) -> Attachment:
        """Describe a stored file. Raises ``NotFound``."""
        return await asyncio.to_thread(self._attachment, ref, name)

    def _attachment(self, ref: str, name: str) -> Attachment:
        try:
            with self._path(ref).open("rb") as file:
                head = file.read(HEAD_BYTES)
            size = self._path(ref).stat().st_size
        except (OSError, ValueError):
            raise NotFound("an attached file is no longer stored; attach it again") from None
        name = _shown(name)
        mime = raster_type(head)
        if mime:
            return Attachment(FileKind.PHOTO, ref, name, mime, size)
        mime = mimetypes.guess_type(name)[0] or ""
        if mime.startswith("image/"):  # its content is none
            mime = ""
        kind = _KINDS.get(mime.partition("/")[0], FileKind.DOCUMENT)
        return Attachment(kind, ref, name, mime, size)

    async def move(self, ref: str, to: Path) -> None:
        """Move a file to a path that does not exist. Raises ``Undeliverable`` and ``NotSent``."""
        try:
            await asyncio.to_thread(self._move, self._path(ref), to)
        except (FileNotFoundError, ValueError):
            raise Undeliverable("the file is no longer stored") from None
        except OSError as error:
            raise NotSent(f"the file cannot be moved: {error.strerror or error}") from error

    def _move(self, path: Path, to: Path) -> None:
        # The workspace may be on another file system: a crash must not leave half a file there.
        part = to.with_name(f".{path.name}.part")
        try:
            shutil.copyfile(path, part)
            part.rename(to)
        finally:
            part.unlink(missing_ok=True)
        path.unlink(missing_ok=True)

    def _path(self, ref: str) -> Path:
        found = _REF.fullmatch(ref)
        if found is None or not (found[1] is None or is_guest_name(found[1])):
            raise ValueError("this is not the id of an upload")
        return self._folder / ref


def _shown(name: str) -> str:
    """Return the last part of a name on one line; of a long name the end, with its extension."""
    line = visible_line(name.replace("\\", "/").rstrip("/").rpartition("/")[2])
    return line[-MAX_NAME_CHARS:].strip(". ") or "file"
