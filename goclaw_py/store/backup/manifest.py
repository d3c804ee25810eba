"""The manifest of a backup: a description of its contents."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR
from typing import Annotated, Final

from pydantic import AwareDatetime, StringConstraints, TypeAdapter

from goclaw_py.core.errors import BackupError

FORMAT: Final = 1
KIND: Final = "goclaw-backup"

HEADER: Final = "goclaw-backup.json"
SETTINGS: Final = "settings/goclaw.toml"
TABLES: Final = "tables"
FILES: Final = "files"
MANIFEST: Final = "manifest.json"

MAX_TEXT_BYTES: Final = 4_000_000
"""The maximum size of parts that are read into memory: manifest, header, settings."""

TABLE_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
AGENT_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
TableName = Annotated[str, StringConstraints(pattern=f"^{TABLE_NAME.pattern}$")]
KnownAgent = Annotated[str, StringConstraints(pattern=f"^{AGENT_NAME.pattern}$")]


@dataclass(frozen=True, slots=True)
class BackupContent:
    """What has been written of a table or of the files of an agent.

    ``count`` is rows or files, ``bytes`` what they take up before compression.
    """

    count: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class TableContent(BackupContent):
    """The rows of a table."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Applied:
    """A migration that was applied; ``checksum`` as in ``store.migrate``."""

    version: int
    name: str
    checksum: str

    @property
    def label(self) -> str:
        """Its number and name."""
        return f"{self.version:04}_{self.name}"


@dataclass(frozen=True, slots=True)
class Manifest:
    """The contents of a backup.

    Args:
        release: The version of the program that wrote it.
        server: The version of PostgreSQL that it comes from, such as ``160004``.
        sequences: The next number of each identity column, by ``table.column``.
        files: By agent; empty for a backup without files.
        settings: What the settings file consists of, None if it is not there.
        notes: What was left out, in words.
    """

    release: str
    made_at: AwareDatetime
    server: int
    schema: tuple[Applied, ...]
    tables: Mapping[TableName, TableContent]
    sequences: Mapping[str, int]
    files: Mapping[KnownAgent, BackupContent]
    settings: BackupContent | None
    notes: tuple[str, ...]

    def __post_init__(self) -> None:
        # Dates at both ends of the range cannot be converted to every time zone.
        if not MINYEAR < self.made_at.year < MAXYEAR:
            raise ValueError("no time at which a backup can be made")
        versions = [each.version for each in self.schema]
        if not versions or versions != [number for number, _ in enumerate(versions, 1)]:
            raise ValueError("a version is missing")

    @property
    def version(self) -> int:
        """The version of the schema."""
        return self.schema[-1].version

    @property
    def total_bytes(self) -> int:
        """The size of the data in bytes, before compression."""
        return sum(each.bytes for each in (*self.tables.values(), *self.files.values()))

    def to_json(self) -> bytes:
        """Return the manifest as JSON."""
        return TypeAdapter(Manifest).dump_json(self, indent=1)


def read_manifest(data: bytes) -> Manifest:
    """Parse the output of ``to_json``. Raises ``BackupError``."""
    try:
        return TypeAdapter(Manifest).validate_json(data)
    except ValueError as error:
        raise BackupError("the backup is damaged: its manifest is invalid") from error


class Sum:
    """Computes size and checksum of a table or of the files of an agent."""

    def __init__(self) -> None:
        self._count = 0
        self._bytes = 0
        self._hash = hashlib.sha256()

    def rows(self, data: bytes) -> None:
        """Add a piece of a table, which may end within a row; each row ends with one newline."""
        self._count += data.count(b"\n")
        self.more(data)

    def file(self, path: str, mode: int) -> None:
        """Add a file; pass its content to ``more``."""
        self._count += 1
        self._hash.update(f"{path}\0{mode:o}\0".encode())

    def more(self, data: bytes) -> None:
        """Add content."""
        self._bytes += len(data)
        self._hash.update(data)

    @property
    def content(self) -> BackupContent:
        """Return the totals so far."""
        return BackupContent(self._count, self._bytes, self._hash.hexdigest())
