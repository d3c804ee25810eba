"""Check and migrate the schema when a process starts (SPEC DB-2)."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from goclaw_py.app.audit import record
from goclaw_py.app.progress import OnProgress, ProgressStep, ignore_progress
from goclaw_py.core.errors import MigrationError, SessionShared
from goclaw_py.store.migrate import FOLDER, migrate, own_tables, status
from goclaw_py.store.postgres import Address, connection
from goclaw_py.store.postgres.fitness import bare, examine, shares_sessions
from goclaw_py.store.postgres.refusals import POOLED

log = logging.getLogger(__name__)

_LOOK_EVERY_S = 0.5


@dataclass(frozen=True, slots=True)
class Dump:
    """How the embedded database is backed up before its schema changes."""

    program: Path
    folder: Path


async def ensure_fit(address: Address) -> None:
    """Raise ``StoreError`` if a database does not meet the requirements, with what to do.

    It is ``StoreUnavailable`` if the problem may be temporary, ``SessionShared`` if a pooler shares
    sessions, ``MigrationError`` if this release does not know the schema.
    """
    async with bare(address) as one:
        async with bare(address) as other:
            if await shares_sessions(one, other):
                raise SessionShared(POOLED)
        server, _ = await examine(one, own_tables())
        for fault in server.faults():
            raise fault.error()
        pending = (await status(one)).pending
        for fault in server.faults(pending):
            raise fault.error()


async def migrate_schema(
    address: Address,
    *,
    refuse: bool = False,
    dump: Dump | None = None,
    migrations: Path = FOLDER,
    on_progress: OnProgress = ignore_progress,
) -> list[str]:
    """Run pending migrations; return the names of the files that were run.

    With ``refuse`` it raises ``MigrationError`` if any are pending. With ``dump`` a database that
    is not new is backed up first, into a file ``before-<version>-<time>.dump``.
    """
    async with connection(address) as one:
        found = await status(one, migrations)
        if not found.pending:
            return []
        if refuse:
            names = ", ".join(found.pending)
            raise MigrationError(
                f"the database schema is not up to date: {names}", "run: goclaw migrate"
            )
        if dump is not None and found.current:
            file = await _save(address, dump, found.latest, on_progress)
            log.info("migration_backup_saved", extra={"file": file})
        done = await migrate(one, folder=migrations, on_step=partial(_report_step, on_progress))
        if found.current and migrations == FOLDER:
            # A new database stays empty: a backup may be restored into it.
            await record(one, "schema.migrate", "database", {"applied": done})
    for name in done:
        log.info("migration_applied", extra={"migration": name})
    return done


def _report_step(on_progress: OnProgress, file: str, number: int, total: int) -> None:
    on_progress(ProgressStep(f"applying {file}", number - 1, total, "migrations"))


async def _save(address: Address, dump: Dump, version: int, on_progress: OnProgress) -> str:
    dump.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    now = datetime.now(UTC)
    file = dump.folder / f"before-{version:04}-{now:%Y%m%dT%H%M%SZ}.dump"
    # An incomplete dump must not look like a complete one.
    part = file.with_suffix(".part")
    arguments = ["--format=custom", f"--file={part}", f"--host={address.host}"]
    process = await asyncio.create_subprocess_exec(
        str(dump.program),
        *arguments,
        f"--username={address.user}",
        f"--dbname={address.database}",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    reporting = asyncio.create_task(_report_size(part, on_progress))
    try:
        _, errors = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        part.unlink(missing_ok=True)
        raise
    finally:
        reporting.cancel()
    if process.returncode:
        reason = errors.decode(errors="replace").strip().splitlines()[-1:]
        raise MigrationError(f"the backup before the migration failed: {''.join(reason)}")
    part.rename(file)
    return str(file)


async def _report_size(file: Path, on_progress: OnProgress) -> None:
    """Report the growth of a file until it is cancelled."""
    while True:
        size = await asyncio.to_thread(_size, file)
        on_progress(
            ProgressStep("backing up the database before its migration", size, unit="bytes")
        )
        await asyncio.sleep(_LOOK_EVERY_S)


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0
