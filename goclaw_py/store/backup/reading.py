"""Read a backup file and verify all of its contents (SPEC SEC-4).

Members are plain files whose names are of the few forms that we write. Nothing is extracted by
name here: who restores gets agent, path and content.
"""

from __future__ import annotations

import gzip
import json
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import IO, BinaryIO, Final, cast

from goclaw_py.core.errors import BackupError
from goclaw_py.core.workspace.paths import BadPath, split_file_path
from goclaw_py.store.backup.manifest import (
    AGENT_NAME,
    FILES,
    FORMAT,
    HEADER,
    KIND,
    MANIFEST,
    MAX_TEXT_BYTES,
    SETTINGS,
    TABLE_NAME,
    TABLES,
    Manifest,
    Sum,
    TableContent,
    read_manifest,
)

_BLOCK: Final = 1 << 20
_NOT_ONE: Final = "this is not a goclaw backup"
_DAMAGED: Final = "the backup is damaged: the file cannot be read to its end"
_MOST_HEADERS: Final = 1 << 20
"""The most bytes of the headers of a member; names and long paths need a few thousand."""
_MOST_NAMES: Final = 10_000
"""The most tables and agents of a backup."""


class MemberKind(Enum):
    """The kind of an archive member."""

    SETTINGS = "settings"
    ROWS = "rows"
    FILE = "file"


@dataclass(slots=True)
class Member:
    """A member of the archive; it can be read until the next one is requested.

    ``name`` is the table or the agent, ``path`` that of a file in its workspace, with ``mode``.
    """

    kind: MemberKind
    name: str
    path: str
    mode: int
    size: int
    _content: IO[bytes]
    _sum: Sum

    def read(self, size: int = _BLOCK) -> bytes:
        """Read the next bytes, none at the end. Raises ``BackupError``."""
        with _readable():
            data = self._content.read(size)
        if self.kind is MemberKind.ROWS:
            self._sum.rows(data)
        else:
            self._sum.more(data)
        return data

    def rest(self) -> None:
        """Read and discard the rest."""
        while self.read():
            pass


class ArchiveReader:
    """Iterate over the members once; ``manifest`` is available after the last one.

    Raises ``BackupError`` wherever the file is not what we write, a checksum at the end included:
    until then what was read may be wrong.
    """

    def __init__(self, file: BinaryIO) -> None:
        """``file`` must be at its beginning; it is not closed."""
        self._manifest: Manifest | None = None
        self._tables: dict[str, Sum] = {}
        self._files: dict[str, Sum] = {}
        self._settings: Sum | None = None
        with _readable(_NOT_ONE):
            self._gzip = gzip.GzipFile(fileobj=file, mode="rb")
            self._limited = _Limited(self._gzip)
            source = cast("BinaryIO", self._limited)
            self._tar = tarfile.open(fileobj=source, mode="r|")  # noqa: SIM115 - as is the file
            first = self._next_header()
            if first is None or first.name != HEADER or not _is_file(first):
                raise BackupError(_NOT_ONE)
            self._check_header(self._small(first))

    @property
    def manifest(self) -> Manifest:
        """The manifest, after all contents were verified."""
        assert self._manifest is not None, "it is known only at the end"
        return self._manifest

    def __iter__(self) -> Iterator[Member]:
        while (entry := self._next()) is not None:
            if entry.name == MANIFEST:
                self._end(self._small(entry))
                return
            member = self._member(entry)
            yield member
            member.rest()
        raise BackupError("the backup is damaged: the file is incomplete")

    def _next(self) -> tarfile.TarInfo | None:
        with _readable():
            entry = self._next_header()
            # tarfile keeps all members for listings, which are not needed here.
            self._tar.members.clear()  # type: ignore[attr-defined]
        if entry is not None and not _is_file(entry):
            raise BackupError(
                f"the backup contains {_shown(entry.name)}, which is not a regular file"
            )
        return entry

    def _next_header(self) -> tarfile.TarInfo | None:
        self._limited.left = _MOST_HEADERS
        entry: tarfile.TarInfo | None = self._tar.next()
        self._limited.left = None
        return entry

    def _small(self, entry: tarfile.TarInfo) -> bytes:
        if entry.size > MAX_TEXT_BYTES:
            raise BackupError(f"the backup is damaged: {_shown(entry.name)} is too large")
        with _readable():
            content = self._tar.extractfile(entry)
            return content.read() if content else b""

    def _check_header(self, data: bytes) -> None:
        try:
            header = json.loads(data)
            kind, number, release = header["kind"], int(header["format"]), str(header["release"])
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise BackupError(_NOT_ONE) from error
        if kind != KIND:
            raise BackupError(_NOT_ONE)
        if number != FORMAT:
            raise BackupError(
                f"the backup was written by release {release[:40]} in format {number}; "
                f"this release reads format {FORMAT}"
            )

    def _member(self, entry: tarfile.TarInfo) -> Member:
        content = self._tar.extractfile(entry)
        assert content is not None  # it is a plain file
        if entry.name == SETTINGS:
            if entry.size > MAX_TEXT_BYTES:
                raise BackupError("the backup is damaged: its settings are too large")
            total = self._settings = self._settings or Sum()
            total.file(SETTINGS, 0)
            return Member(MemberKind.SETTINGS, "", "", 0, entry.size, content, total)
        if len(self._tables) + len(self._files) > _MOST_NAMES:
            raise BackupError("the backup is damaged: it has too many tables or agents")
        folder, _, rest = entry.name.partition("/")
        name, _, path = rest.partition("/")
        if folder == TABLES and TABLE_NAME.fullmatch(name) and path.isdecimal():
            total = self._tables.setdefault(name, Sum())
            return Member(MemberKind.ROWS, name, "", 0, entry.size, content, total)
        if folder == FILES and AGENT_NAME.fullmatch(name) and _is_clean(path):
            total = self._files.setdefault(name, Sum())
            mode = entry.mode & 0o777
            total.file(path, mode)
            return Member(MemberKind.FILE, name, path, mode, entry.size, content, total)
        raise BackupError(
            f"the backup contains {_shown(entry.name)}, which is not part of a goclaw backup"
        )

    def _end(self, data: bytes) -> None:
        """Compare the contents with the manifest, and check that nothing follows it."""
        manifest = read_manifest(data)
        with _readable():
            follows = self._next_header() is not None
            # gzip verifies its checksum only at the end of the file. Archives end with zeros.
            while rest := self._gzip.read(_BLOCK):
                follows |= any(rest)
        if follows:
            raise BackupError("the backup is damaged: there is data after its manifest")
        for name, table in manifest.tables.items():
            read = self._tables.pop(name, Sum()).content
            if TableContent(read.count, read.bytes, read.sha256, table.columns) != table:
                raise BackupError(
                    f"the backup is damaged: the checksum of the rows of {name} is wrong"
                )
        for agent, files in manifest.files.items():
            if self._files.pop(agent, Sum()).content != files:
                raise BackupError(f"the backup is damaged: the files of {agent} are not complete")
        if (self._settings.content if self._settings else None) != manifest.settings:
            raise BackupError("the backup is damaged: the checksum of its settings is wrong")
        if self._tables or self._files:
            raise BackupError("the backup is damaged: its manifest does not list all contents")
        self._manifest = manifest


class _Limited:
    """A file of which only so much may be read: tarfile reads headers of any size into memory."""

    def __init__(self, file: BinaryIO | gzip.GzipFile) -> None:
        self.left: int | None = None
        """The number of bytes; None: any."""
        self._file = file

    def read(self, size: int) -> bytes:
        """Read the next bytes. Raises ``BackupError`` beyond the limit."""
        data = self._file.read(size)
        if self.left is not None:
            self.left -= len(data)
            if self.left < 0:
                raise BackupError("the backup is damaged: the header of a file is too large")
        return data


@contextmanager
def open_archive(path: Path) -> Iterator[BinaryIO]:
    """Open a backup file. Raises ``BackupError``, with the name of the file."""
    try:
        with path.open("rb") as file:
            yield file
    except FileNotFoundError as error:
        raise BackupError(f"{path}: there is no such file") from error
    except OSError as error:
        raise BackupError(f"{path}: {error.strerror or error}") from error


def _is_file(entry: tarfile.TarInfo) -> bool:
    # A sparse file has no limit: a few bytes describe any number of zeros.
    return entry.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not entry.issparse()


def _is_clean(path: str) -> bool:
    """Whether a path stays inside its workspace and is in normal form."""
    try:
        return "/".join(split_file_path(path)) == path
    except BadPath:
        return False


def _shown(name: str) -> str:
    return ascii(name if len(name) <= 80 else name[:80] + "…")


@contextmanager
def _readable(
    otherwise: str = _DAMAGED,
) -> Iterator[None]:
    """Convert errors of gzip and tar about a broken file to one sentence."""
    try:
        yield
    except EOFError as error:  # the end of the compressed data is missing
        raise BackupError(_DAMAGED) from error
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, ValueError) as error:
        raise BackupError(otherwise) from error
