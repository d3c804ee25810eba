"""The manifest of a backup: a description of its contents."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import MAXYEAR, MINYEAR, datetime
from typing import Any, Final

from goclaw_py.model.errors import BackupError

FORMAT: Final = 1
KIND: Final = "goclaw-backup"

HEADER: Final = "goclaw-backup.json"
SETTINGS: Final = "settings/goclaw.toml"
TABLES: Final = "tables"
FILES: Final = "files"
MANIFEST: Final = "manifest.json"

MAX_TEXT_BYTES: Final = 4_000_000
"""The maximum size of parts that are read into memory: manifest, header, settings."""

NO_SENSE: Final = (ValueError, KeyError, TypeError, OverflowError, RecursionError)
"""The errors that untrusted JSON and its values can cause."""

TABLE_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
AGENT_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


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
    made_at: datetime
    server: int
    schema: tuple[Applied, ...]
    tables: Mapping[str, TableContent]
    sequences: Mapping[str, int]
    files: Mapping[str, BackupContent]
    settings: BackupContent | None
    notes: tuple[str, ...]

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
        found = asdict(self) | {"made_at": self.made_at.isoformat()}
        return json.dumps(found, indent=1).encode()


def read_manifest(data: bytes) -> Manifest:
    """Parse the output of ``to_json``. Raises ``BackupError``."""
    try:
        manifest = _manifest(json.loads(data))
    except (*NO_SENSE, AttributeError) as error:
        raise BackupError("the backup is damaged: its manifest is invalid") from error
    return manifest


def _manifest(found: Any) -> Manifest:
    made_at = datetime.fromisoformat(found["made_at"])
    schema = tuple(
        Applied(int(each["version"]), str(each["name"]), str(each["checksum"]))
        for each in found["schema"]
    )
    # Dates at both ends of the range cannot be converted to every time zone.
    if made_at.tzinfo is None or not MINYEAR < made_at.year < MAXYEAR:
        raise ValueError("no time at which a backup can be made")
    if [each.version for each in schema] != [number for number, _ in enumerate(schema, 1)]:
        raise ValueError("a version is missing")
    if not schema:
        raise ValueError("no version at all")
    return Manifest(
        release=str(found["release"]),
        made_at=made_at,
        server=int(found["server"]),
        schema=schema,
        tables={
            _matching(TABLE_NAME, name): TableContent(
                *_content(each), tuple(str(column) for column in each["columns"])
            )
            for name, each in found["tables"].items()
        },
        sequences={str(name): int(value) for name, value in found["sequences"].items()},
        files={
            _matching(AGENT_NAME, name): BackupContent(*_content(each))
            for name, each in found["files"].items()
        },
        settings=None if found["settings"] is None else BackupContent(*_content(found["settings"])),
        notes=tuple(str(note) for note in found["notes"]),
    )


def _content(found: Any) -> tuple[int, int, str]:
    return int(found["count"]), int(found["bytes"]), str(found["sha256"])


def _matching(pattern: re.Pattern[str], text: str) -> str:
    if not pattern.fullmatch(text):
        raise ValueError(text)
    return text


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
