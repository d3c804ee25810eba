"""Migrate the database schema to the version of this release, and back.

``migrations/`` holds numbered pairs ``NNNN_name.up.sql`` and ``NNNN_name.down.sql``. Each file is
one transaction; one process migrates at a time; a file must not change after it was applied
(SPEC DB-2).

The rules of SPEC DB-2:

Numbered files in `migrations/`, under an advisory lock, up and down, checksummed; a landed file
never changes, and a change of the schema is a new one; `run` migrates (after a backup when
embedded; `--no-migrate` refuses instead), and commands that store something without a gateway do;
those that only read say which migrations are pending, and change nothing. A file is one
transaction: after a kill within one, the server gives it up within seconds, also while it waits for
a lock, and the next start begins with that file again; a gateway that finds another process at it
waits. Each keeps the previous release working. A database of an unreleased version is refused in
one line. A stored reason, trigger or kind that a release does not know is shown as it is stored.
`timestamptz`, `jsonb`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from goclaw_py.core.errors import MigrationError, StoreUnavailable
from goclaw_py.store.postgres.pool import Connection, DatabaseError
from goclaw_py.store.postgres.refusals import OLDEST, too_old

FOLDER: Final = Path(__file__).resolve().parents[2] / "migrations"
"""The folder of the migrations, in a wheel and in a source tree."""

_FILE = re.compile(r"(\d{4})_(\w+)\.(up|down)\.sql")
_MADE = re.compile(r"^create table (\w+)", re.MULTILINE)
_LOCK: Final = 0x676F_636C_6177
"""The advisory lock for migrations: "goclaw" in ASCII."""
_LOCK_WAIT_S: Final = 60.0
_STEP_S: Final = 3600.0
_CLIENT_CHECK_S: Final = 2

# applied_at is only for people and never compared, so the clock of the server may be used.
_RECORDS: Final = """
create table if not exists schema_migrations (
    version    integer     primary key,
    name       text        not null,
    checksum   text        not null,
    applied_at timestamptz not null default clock_timestamp()
)
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema: the SQL that applies and reverts it.

    ``checksum`` is the SHA-256 of ``up``, which must not change after it was applied anywhere.
    """

    version: int
    name: str
    up: str
    down: str

    @property
    def label(self) -> str:
        """Its number and name."""
        return f"{self.version:04}_{self.name}"

    @property
    def checksum(self) -> str:
        """The checksum in hexadecimal digits."""
        return hashlib.sha256(self.up.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class MigrationStep:
    """A migration in one of its two directions."""

    migration: Migration
    is_up: bool

    @property
    def file(self) -> str:
        """The name of the file."""
        return f"{self.migration.label}.{'up' if self.is_up else 'down'}.sql"


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    """``current`` is the version of the database, 0 for an empty one."""

    current: int
    latest: int
    pending: tuple[str, ...]


def known(folder: Path = FOLDER) -> list[Migration]:
    """The migrations of this release, in order.

    Raises ``MigrationError`` for a stray file, a gap in the numbers or a missing half.
    """
    paths = {path.name: path for path in sorted(folder.glob("*.sql"))}
    found: list[Migration] = []
    for name, path in paths.items():
        match = _FILE.fullmatch(name)
        if match is None:
            raise MigrationError(f"{name} must be named NNNN_name.up.sql or NNNN_name.down.sql")
        if match[3] == "up":
            down = paths.get(f"{match[1]}_{match[2]}.down.sql")
            if down is None:
                raise MigrationError(f"{name} has no .down.sql file")
            # Text mode: a checkout with other line ends is still the same file.
            texts = path.read_text(encoding="utf-8"), down.read_text(encoding="utf-8")
            found.append(Migration(int(match[1]), match[2], *texts))
    if not found or [migration.version for migration in found] != list(range(1, len(found) + 1)):
        raise MigrationError(f"the migrations in {folder} must be numbered from 0001 without gaps")
    return found


def tables(migrations: Sequence[Migration]) -> list[str]:
    """Return the names of all tables that these migrations create, except schema_migrations.

    The database may contain other tables, also in the same schema.
    """
    return sorted({name for migration in migrations for name in _MADE.findall(migration.up)})


def own_tables(folder: Path = FOLDER) -> list[str]:
    """Return the names of all tables of this release, including schema_migrations."""
    return [*tables(known(folder)), "schema_migrations"]


async def status(connection: Connection, folder: Path = FOLDER) -> SchemaStatus:
    """Compare the database with this release, without changing it. Raises ``MigrationError``."""
    migrations = known(folder)
    done = await applied(connection)
    _verify(migrations, done)
    waiting = [migration for migration in migrations if migration.version not in done]
    return SchemaStatus(
        current=max(done, default=0),
        latest=migrations[-1].version,
        pending=tuple(migration.label for migration in waiting),
    )


async def pending(connection: Connection, folder: Path = FOLDER) -> list[str]:
    """Return the migrations that ``migrate`` would apply."""
    return list((await status(connection, folder)).pending)


OnStep = Callable[[str, int, int], None]
"""Called before a file is run, with its name, its number from 1, and the number of files."""


def _ignore_step(_file: str, _number: int, _total: int) -> None:
    pass


async def migrate(
    connection: Connection,
    *,
    to: int | None = None,
    folder: Path = FOLDER,
    on_step: OnStep = _ignore_step,
) -> list[str]:
    """Bring the schema to version ``to``, up or down; to the latest by default.

    Returns the names of the files that were run. Files before a failing one stay applied. Raises
    ``MigrationError`` if a file has changed since it was applied, the database is newer than this
    release, or a file fails; ``StoreUnavailable`` if another process holds the lock for more than a
    minute.
    """
    migrations = known(folder)
    target = migrations[-1].version if to is None else to
    if not 0 <= target <= migrations[-1].version:
        raise MigrationError(
            f"there is no schema version {target}; the latest is {len(migrations)}"
        )
    await check_server(connection)
    async with alone(connection):
        return await migrate_to(connection, target, migrations, on_step)


async def migrate_to(
    connection: Connection,
    target: int,
    migrations: Sequence[Migration],
    on_step: OnStep = _ignore_step,
) -> list[str]:
    """Migrate while holding the lock of ``alone``, possibly within a transaction."""
    await connection.script(_RECORDS)
    done = await applied(connection)
    _verify(migrations, done)
    steps = _plan(migrations, max(done, default=0), target)
    for number, step in enumerate(steps, 1):
        on_step(step.file, number, len(steps))
        await _run(connection, step)
    return [step.file for step in steps]


def _plan(migrations: Sequence[Migration], current: int, target: int) -> list[MigrationStep]:
    if target >= current:
        return [MigrationStep(migration, is_up=True) for migration in migrations[current:target]]
    return [
        MigrationStep(migration, is_up=False) for migration in reversed(migrations[target:current])
    ]


def _verify(migrations: Sequence[Migration], done: Mapping[int, tuple[str, str]]) -> None:
    """Raise ``MigrationError`` if an applied migration is unknown or has changed."""
    by_version = {migration.version: migration for migration in migrations}
    for version, (name, checksum) in sorted(done.items()):
        migration = by_version.get(version)
        if migration is None:
            raise MigrationError(
                f"the database is at {version:04}_{name}, which is newer than this release "
                f"({migrations[-1].label})",
                "install the release that migrated it, or restore a backup of this release",
            )
        if migration.checksum != checksum:
            raise MigrationError(
                f"{MigrationStep(migration, is_up=True).file} has changed since it was applied: "
                "an unreleased version created this database",
                "start with a new one (set another database.url, or for the embedded server move "
                "the folder postgres away)",
            )


async def check_server(connection: Connection) -> None:
    """Raise ``MigrationError`` if this PostgreSQL is too old."""
    row = await connection.row("select current_setting('server_version_num')::integer as version")
    if row is not None and (major := row["version"] // 10_000) < OLDEST:
        raise MigrationError(too_old(major))


async def applied(connection: Connection) -> dict[int, tuple[str, str]]:
    """Return name and checksum of each applied migration, by version."""
    exists = await connection.row("select to_regclass('schema_migrations') is not null as yes")
    if exists is None or not exists["yes"]:
        return {}
    rows = await connection.fetch("select version, name, checksum from schema_migrations")
    return {row["version"]: (row["name"], row["checksum"]) for row in rows}


@asynccontextmanager
async def alone(connection: Connection) -> AsyncIterator[None]:
    """Hold the migration lock; the server releases it if this process dies.

    Raises ``StoreUnavailable`` if another process holds it for more than a minute.
    """
    if not await connection.lock(_LOCK, wait_s=_LOCK_WAIT_S):
        raise StoreUnavailable(
            f"another process has been changing the database schema for {_LOCK_WAIT_S:.0f} s",
            "wait until it has ended; a large table takes minutes",
        )
    try:
        # Otherwise a server that changes a large table, or waits for a lock, goes on for a process
        # that was killed, and the next start waits for it. Not every system of a server has it.
        with suppress(DatabaseError):
            await connection.script(f"set client_connection_check_interval = '{_CLIENT_CHECK_S}s'")
        yield
    finally:
        await connection.unlock(_LOCK)


async def _run(connection: Connection, step: MigrationStep) -> None:
    """Run one file and record it, in one transaction."""
    migration = step.migration
    async with connection.transaction():
        # Wait long for locks on busy tables; other statements give up sooner.
        await connection.script(f"set local lock_timeout = '{_STEP_S}s'")
        try:
            await connection.script(
                migration.up if step.is_up else migration.down, timeout_s=_STEP_S
            )
        except DatabaseError as error:
            raise MigrationError(f"{step.file} failed: {error}") from error
        if step.is_up:
            await connection.fetch(
                "insert into schema_migrations (version, name, checksum) values ($1, $2, $3)",
                migration.version,
                migration.name,
                migration.checksum,
            )
        else:
            await connection.fetch(
                "delete from schema_migrations where version = $1", migration.version
            )
