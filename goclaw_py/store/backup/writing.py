"""Write a backup file in one pass and with little memory."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import BinaryIO, Final

from goclaw_py.store.backup.manifest import (
    FILES,
    FORMAT,
    HEADER,
    KIND,
    MANIFEST,
    SETTINGS,
    TABLES,
    Applied,
    BackupContent,
    Manifest,
    Sum,
    TableContent,
)

PART_BYTES: Final = 4_000_000
"""The buffer size for table rows: tar needs to know sizes in advance."""
_LEVEL: Final = 6
_BLOCK: Final = 1 << 20


class ArchiveWriter:
    """Call its methods in the order of the archive, ``finish`` at the end.

    ``notes`` may be added to until then.
    """

    def __init__(self, file: BinaryIO, *, release: str, made_at: datetime) -> None:
        self.notes: list[str] = []
        self._release = release
        self._made_at = made_at
        # No name and time in the gzip header: the name would be the temporary one.
        self._gzip = gzip.GzipFile("", "wb", _LEVEL, file, mtime=0)
        self._tar = tarfile.open(  # noqa: SIM115 - finish closes it
            fileobj=self._gzip, mode="w|", format=tarfile.PAX_FORMAT
        )
        self._tables: dict[str, TableContent] = {}
        self._files: dict[str, Sum] = {}
        self._settings: BackupContent | None = None
        header = {
            "kind": KIND,
            "format": FORMAT,
            "release": release,
            "made_at": made_at.isoformat(),
        }
        self._add_bytes(HEADER, json.dumps(header).encode())

    def add_settings(self, text: str) -> None:
        """Add the settings file."""
        total, data = Sum(), text.encode()
        total.file(SETTINGS, 0)
        total.more(data)
        self._settings = total.content
        self._add_bytes(SETTINGS, data)

    def table(self, name: str, columns: Sequence[str]) -> TableWriter:
        """Begin with a table."""
        return TableWriter(self, name, columns)

    def add_part(self, table: str, number: int, data: bytes) -> None:
        """Add whole rows of a table."""
        self._add_bytes(f"{TABLES}/{table}/{number:06}", data)

    def end_table(self, name: str, content: BackupContent, columns: Sequence[str]) -> None:
        """Store the totals of a table."""
        self._tables[name] = TableContent(
            content.count, content.bytes, content.sha256, tuple(columns)
        )

    def add_file(self, agent: str, path: str, file: BinaryIO) -> int:
        """Add an open regular file of an agent's workspace; return its size.

        A file that shrinks meanwhile is filled up with zeros and noted, one that grows is cut.
        """
        info = os.fstat(file.fileno())
        total = self._files.setdefault(agent, Sum())
        mode = info.st_mode & 0o777
        total.file(path, mode)
        source = _Exactly(file, info.st_size, total)
        self._add(f"{FILES}/{agent}/{path}", info.st_size, source, mode)
        if source.is_short:
            self.notes.append(f"{path} of {agent} was changed during the backup")
        return info.st_size

    def finish(
        self, *, server: int, schema: Sequence[Applied], sequences: Mapping[str, int]
    ) -> Manifest:
        """Write the manifest as the last member. The file stays open."""
        manifest = Manifest(
            release=self._release,
            made_at=self._made_at,
            server=server,
            schema=tuple(schema),
            tables=self._tables,
            sequences=sequences,
            files={agent: total.content for agent, total in self._files.items()},
            settings=self._settings,
            notes=tuple(self.notes),
        )
        self._add_bytes(MANIFEST, manifest.to_json())
        self._tar.close()
        self._gzip.close()
        return manifest

    def abandon(self) -> None:
        """Abort; the contents of the file are then not a valid archive."""
        with suppress(OSError, ValueError):
            self._tar.close()
        with suppress(OSError, ValueError):
            self._gzip.close()

    def _add_bytes(self, name: str, data: bytes) -> None:
        self._add(name, len(data), io.BytesIO(data), 0o600)

    def _add(self, name: str, size: int, source: BinaryIO | _Exactly, mode: int) -> None:
        member = tarfile.TarInfo(name)
        member.size, member.mode = size, mode
        member.mtime = int(self._made_at.timestamp())
        self._tar.addfile(member, source)
        # tarfile keeps all members for listings, which are not needed here.
        self._tar.members.clear()  # type: ignore[attr-defined]


class TableWriter:
    """Splits a stream of rows into parts that end with a complete row."""

    def __init__(self, archive: ArchiveWriter, name: str, columns: Sequence[str]) -> None:
        self._archive = archive
        self._name = name
        self._columns = columns
        self._sum = Sum()
        self._waiting = bytearray()
        self._parts = 0

    @property
    def is_full(self) -> bool:
        """Whether there is enough data for a part."""
        return len(self._waiting) >= PART_BYTES

    @property
    def count(self) -> int:
        """The number of rows written so far."""
        return self._sum.content.count

    def feed(self, data: bytes) -> None:
        """Buffer a piece that may end within a row. Call ``flush`` when ``is_full``."""
        self._waiting += data

    def flush(self) -> None:
        """Write the buffered complete rows."""
        end = self._waiting.rfind(b"\n") + 1
        if end:
            self._parts += 1
            data = bytes(self._waiting[:end])
            del self._waiting[:end]
            self._sum.rows(data)
            self._archive.add_part(self._name, self._parts, data)

    def end(self) -> BackupContent:
        """Write the remaining rows; store the totals of the table."""
        self.flush()
        content = self._sum.content
        self._archive.end_table(self._name, content, self._columns)
        return content


class _Exactly:
    """Reads a fixed number of bytes of a file, padded or cut, and adds them to the totals."""

    def __init__(self, file: BinaryIO, size: int, total: Sum) -> None:
        self._file = file
        self._left = size
        self._sum = total
        self.is_short = False

    def read(self, size: int = _BLOCK) -> bytes:
        wanted = min(size, self._left)
        data = self._file.read(wanted)
        if len(data) < wanted:
            self.is_short = True
            data += bytes(wanted - len(data))
        self._left -= wanted
        self._sum.more(data)
        return data
