"""Files as the server keeps them."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator

from tests.botapi.rules import Json, Refusal, Upload, bad_request

PHOTO_BYTES = 10 << 20
UPLOAD_BYTES = 50 << 20
DOWNLOAD_BYTES = 20 << 20
_MOST_PIXELS = 10_000
_MOST_RATIO = 20


class FileKind(StrEnum):
    """What a file is shown as."""

    PHOTO = "photo"
    DOCUMENT = "document"
    VOICE = "voice"
    AUDIO = "audio"
    VIDEO = "video"


Blob = Annotated[
    bytes,
    # Over HTTP the controls carry bytes as hexadecimal digits.
    BeforeValidator(lambda value: bytes.fromhex(value) if isinstance(value, str) else value),
]

_TYPES = {FileKind.VOICE: "VoiceNote"}
_ENDINGS = {
    FileKind.PHOTO: ("photos", "jpg", "image/jpeg"),
    FileKind.DOCUMENT: ("documents", "bin", "application/octet-stream"),
    FileKind.VOICE: ("voice", "oga", "audio/ogg"),
    FileKind.AUDIO: ("music", "mp3", "audio/mpeg"),
    FileKind.VIDEO: ("videos", "mp4", "video/mp4"),
}


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file at the server. ``size`` is what it says, ``content`` what a download brings."""

    id: str
    kind: FileKind
    name: str
    mime: str
    content: bytes
    size: int

    @property
    def unique_id(self) -> str:
        return f"u{self.id}"

    @property
    def path(self) -> str:
        """Its path under ``/file/bot<token>/``."""
        folder, ending, _ = _ENDINGS[self.kind]
        given = self.name.rpartition(".")[2] if "." in self.name else ending
        return f"{folder}/{self.id}.{given}"

    def json(self) -> object:
        """The field of a message: a list of sizes for a photo, else an object."""
        shown: Json = {"file_id": self.id, "file_unique_id": self.unique_id, "file_size": self.size}
        named = {"file_name": self.name, "mime_type": self.mime}
        match self.kind:
            case FileKind.PHOTO:
                width, height = dimensions(self.content) or (90, 90)
                small = {**shown, "file_id": f"{self.id}s", "file_size": 90}
                return [{**small, **_box(1, 1)}, shown | _box(width, height)]
            case FileKind.DOCUMENT:
                return shown | named
            case FileKind.VOICE:
                return shown | {"duration": 1, "mime_type": self.mime}
            case FileKind.AUDIO:
                return shown | {"duration": 1} | named
            case FileKind.VIDEO:
                return shown | _box(320, 240) | {"duration": 1} | named


def _box(width: int, height: int) -> Json:
    return {"width": width, "height": height}


@dataclass(slots=True)
class Files:
    """All files that were sent in either direction."""

    _by_id: dict[str, StoredFile] = field(default_factory=dict)
    _open: dict[str, StoredFile] = field(default_factory=dict)

    def keep(
        self,
        kind: FileKind,
        content: bytes | None,
        *,
        name: str = "",
        mime: str = "",
        size: int | None = None,
    ) -> StoredFile:
        """Keep a file. Without ``content`` one is made, of ``size`` bytes if that is given.

        ``size`` with ``content`` is what the server says, however many bytes there are.
        """
        _, ending, usual = _ENDINGS[kind]
        if content is None:
            content = bytes(size) if size is not None else png()
        number = len(self._by_id) + 1
        file = StoredFile(
            id=f"file{number:04d}",
            kind=kind,
            name=name or f"file_{number}.{ending}",
            mime=mime or usual,
            content=content,
            size=len(content) if size is None else size,
        )
        self._by_id[file.id] = file
        return file

    def known(self, file_id: str, kind: FileKind) -> StoredFile:
        """A file to send again. Raises ``Refusal``."""
        if file_id.startswith(("http://", "https://")):
            raise bad_request("failed to get HTTP URL content")
        file = self._by_id.get(file_id.removesuffix("s"))
        if file is None:
            raise bad_request("wrong file identifier/HTTP URL specified")
        if file.kind is not kind:
            types = [_TYPES.get(k, k.value.capitalize()) for k in (file.kind, kind)]
            raise bad_request(f"can't use file of type {types[0]} as {types[1]}")
        return file

    def content(self, file_id: str) -> bytes:
        """The bytes of a file, in either direction."""
        return self._by_id[file_id.removesuffix("s")].content

    def open(self, file_id: str) -> StoredFile:
        """Make a file ready to be downloaded. Raises ``Refusal``."""
        file = self._by_id.get(file_id.removesuffix("s"))
        if file is None:
            raise bad_request("invalid file_id")
        if file.size > DOWNLOAD_BYTES:
            raise bad_request("file is too big")
        self._open[file.path] = file
        return file

    def at(self, path: str) -> StoredFile:
        """A file that was made ready. Raises ``Refusal``."""
        file = self._open.get(path)
        if file is None:
            raise Refusal(404, "Not Found")
        return file


def checked(kind: FileKind, upload: Upload) -> FileKind:
    """What an upload is shown as. Raises ``Refusal`` for what cannot be sent."""
    size = len(upload.content)
    if size == 0:
        raise bad_request("file must be non-empty")
    if size > UPLOAD_BYTES:
        raise Refusal(413, "Request Entity Too Large")
    if kind is FileKind.PHOTO:
        _check_photo(upload.content)
    if kind is FileKind.VOICE and not upload.content.startswith((b"OggS", b"ID3", b"\xff\xfb")):
        return FileKind.DOCUMENT
    return kind


def png(width: int = 1, height: int = 1) -> bytes:
    """A black picture of this size."""

    def chunk(name: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(name + data))
        return struct.pack(">I", len(data)) + name + data + check

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(bytes((width + 1) * height))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def _check_photo(content: bytes) -> None:
    if len(content) > PHOTO_BYTES:
        size = f"file of size {len(content)} bytes is too big for a photo"
        raise bad_request(f"{size}; the maximum size is {PHOTO_BYTES} bytes")
    sides = dimensions(content)
    if sides is None:
        raise bad_request("IMAGE_PROCESS_FAILED")
    short, long = sorted(sides)
    if short == 0 or short + long > _MOST_PIXELS or long > _MOST_RATIO * short:
        raise bad_request("PHOTO_INVALID_DIMENSIONS")


def dimensions(content: bytes) -> tuple[int, int] | None:
    """Width and height of a PNG; None if it is none."""
    if not content.startswith(b"\x89PNG\r\n\x1a\n") or len(content) < 24:
        return None
    width, height = struct.unpack(">II", content[16:24])
    return width, height
