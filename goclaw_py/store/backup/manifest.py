"""What a backup says about itself."""

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
"""What may have to be in memory as a whole: manifest, header, settings."""

NO_SENSE: Final = (ValueError, KeyError, TypeError, OverflowError, RecursionError)
"""What is raised by JSON that somebody else has written, and by its values."""

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
    """A migration that made the schema; ``checksum`` as in ``store.migrate``."""

    version: int
    name: str
    checksum: str

    @property
    def label(self) -> str:
        """Its number and name."""
        return f"{self.version:04}_{self.name}"


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything that a backup holds.

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
        """How much data there is, before compression."""
        return sum(each.bytes for each in (*self.tables.values(), *self.files.values()))

    def to_json(self) -> bytes:
        """As it stands in the archive."""
        found = asdict(self) | {"made_at": self.made_at.isoformat()}
        return json.dumps(found, indent=1).encode()


def read_manifest(data: bytes) -> Manifest:
    """What ``to_json`` has written. Raises ``BackupError``."""
    try:
        manifest = _manifest(json.loads(data))
    except (*NO_SENSE, AttributeError) as error:
        raise BackupError("it is damaged: its manifest makes no sense") from error
    return manifest


def _manifest(found: Any) -> Manifest:
    made_at = datetime.fromisoformat(found["made_at"])
    schema = tuple(
        Applied(int(each["version"]), str(each["name"]), str(each["checksum"]))
        for each in found["schema"]
    )
    # At both ends of what a date can be, it cannot be shown in every zone.
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
    """Adds up what is written or read of a table or of the files of an agent."""

    def __init__(self) -> None:
        self._count = 0
        self._bytes = 0
        self._hash = hashlib.sha256()

    def rows(self, data: bytes) -> None:
        """Add a piece of a table, which ends anywhere: a row has one newline, at its end."""
        self._count += data.count(b"\n")
        self.more(data)

    def file(self, path: str, mode: int) -> None:
        """Add a file; its content follows as ``more``."""
        self._count += 1
        self._hash.update(f"{path}\0{mode:o}\0".encode())

    def more(self, data: bytes) -> None:
        """Add content."""
        self._bytes += len(data)
        self._hash.update(data)

    @property
    def content(self) -> BackupContent:
        """All of it so far."""
        return BackupContent(self._count, self._bytes, self._hash.hexdigest())
