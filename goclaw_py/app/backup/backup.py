"""Write a backup of database, workspaces and settings to one file (SPEC DB-5)."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import BinaryIO, Final

from goclaw_py.app.audit import record
from goclaw_py.app.backup.settings_use import SettingsUse
from goclaw_py.app.backup.workspaces import LeftOut, files_in, is_storable, never_saved, workspaces
from goclaw_py.app.database import Database
from goclaw_py.app.progress import OnProgress, ProgressStep, in_thread
from goclaw_py.config import Settings, secrets_in
from goclaw_py.core.errors import BackupError
from goclaw_py.core.time.clocks import SystemClock
from goclaw_py.store import migrate
from goclaw_py.store.backup.manifest import Applied, Manifest
from goclaw_py.store.backup.writing import ArchiveWriter, TableWriter
from goclaw_py.store.postgres import connection
from goclaw_py.store.postgres.copying import CopiedTable, Snapshot, snapshot

_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Error numbers of write errors caused by the disk."""


@dataclass(frozen=True, slots=True)
class Saved:
    """The summary of a backup file.

    ``size`` is the file size in bytes, ``tables`` has row counts, ``files`` file counts by agent.
    ``uses`` is what its settings use on this machine; None if it has none, or if nobody asked.
    """

    file: Path
    size: int
    release: str
    made_at: datetime
    schema: int
    tables: dict[str, int]
    files: dict[str, int]
    has_settings: bool
    notes: tuple[str, ...]
    uses: SettingsUse | None = None


def saved(file: Path, size: int, manifest: Manifest) -> Saved:
    """Return the summary of a backup."""
    return Saved(
        file,
        size,
        manifest.release,
        manifest.made_at,
        manifest.version,
        {name: table.count for name, table in sorted(manifest.tables.items())},
        {agent: content.count for agent, content in sorted(manifest.files.items())},
        manifest.settings is not None,
        manifest.notes,
    )


async def back_up(
    settings: Settings, to: Path | None, *, files: bool, on_progress: OnProgress
) -> Saved:
    """Save the database and, with ``files``, workspaces and settings, also while gateways run.

    ``to`` is a file that does not exist, or a folder; by default the current one. Raises
    ``BackupError``, ``StoreError``; then there is no file.
    """
    now = SystemClock().now()
    file = _destination(to, now)
    with _new_file(file) as (out, part):
        writer = ArchiveWriter(out, release=version("goclaw_py"), made_at=now)
        try:
            manifest = await _fill(
                writer, settings, file, part, files=files, on_progress=on_progress
            )
        except BaseException:
            writer.abandon()
            raise
    return saved(file, file.stat().st_size, manifest)


async def _fill(
    writer: ArchiveWriter,
    settings: Settings,
    file: Path,
    part: Path,
    *,
    files: bool,
    on_progress: OnProgress,
) -> Manifest:
    if files:
        _add_settings(writer, settings)
    database = Database(settings, on_progress=on_progress, create=False)
    try:
        async with connection(await database.address()) as one:
            async with snapshot(one, migrate.known()) as now:
                await _add_tables(writer, now, on_progress)
                numbers = await now.sequences()
            # An older schema may have no audit log yet.
            if any(table.name == "audit" for table in now.tables):
                await record(one, "backup.create", str(file), {"files": files})
    finally:
        await database.close()
    if files:
        await _add_files(writer, settings, part, on_progress)
    schema = [Applied(number, *found) for number, found in sorted(now.applied.items())]
    return await in_thread(writer.finish, server=now.server, schema=schema, sequences=numbers)


def _destination(to: Path | None, now: datetime) -> Path:
    name = f"goclaw-backup-{now:%Y%m%d-%H%M%S}.tar.gz"
    file = (to or Path()).absolute()
    if file.is_dir():
        file /= name
    # Also reject a dangling link, which would be replaced.
    if os.path.lexists(file):
        raise BackupError(f"{file}: the file already exists; choose another name, or delete it")
    return file


@contextmanager
def _new_file(file: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """Create a file under a temporary name, and rename it when it is complete and on the disk.

    Yields the open file and its temporary path. Raises ``BackupError`` if it cannot be written.
    """
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        # The error names the final file, because the temporary name does not help anybody.
        raise BackupError(f"{file}: cannot be written: {error.strerror}") from error
    try:
        with os.fdopen(number, "wb") as out:
            yield out, part
            out.flush()
            os.fsync(out.fileno())
        part.rename(file)
        folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            raise BackupError(f"{file}: cannot be written: {error.strerror}") from error
        raise


def _add_settings(writer: ArchiveWriter, settings: Settings) -> None:
    if settings.file is None:
        return
    text = settings.file.read_text("utf-8")
    hidden = secrets_in(text)
    if hidden:
        keys = ", ".join(hidden)
        writer.notes.append(f"left out, contains secrets ({keys}): {settings.file}")
    else:
        writer.add_settings(text)


async def _add_tables(writer: ArchiveWriter, now: Snapshot, on_progress: OnProgress) -> None:
    sizes = await now.sizes()
    total, before = sum(sizes.values()), 0
    for table in now.tables:
        target = writer.table(table.name, table.columns)
        # A text takes more or less room than its table, so the size of the table is the limit.
        part = partial(_report_part, on_progress, table.name, before, sizes[table.name], total)
        await _add_table(now, table, target, part)
        await in_thread(target.end)
        before += sizes[table.name]


def _report_part(
    on_progress: OnProgress, table: str, before: int, size: int, total: int, copied: int
) -> None:
    on_progress(ProgressStep(f"saving table {table}", before + min(copied, size), total, "bytes"))


async def _add_table(
    now: Snapshot, table: CopiedTable, target: TableWriter, on_copied: Callable[[int], None]
) -> None:
    """Copy one table; ``on_copied`` is called with the number of bytes so far."""
    copied = 0

    async def write(data: bytes) -> None:
        nonlocal copied
        target.feed(data)
        copied += len(data)
        on_copied(copied)
        if target.is_full:
            await in_thread(target.flush)

    await now.copy(table, write)


async def _add_files(
    writer: ArchiveWriter, settings: Settings, part: Path, on_progress: OnProgress
) -> None:
    left_out, skipped, done = LeftOut(), never_saved(settings, part), 0
    for agent, root in workspaces(settings).items():
        found = files_in(root, skipped, left_out)
        try:
            while (each := await in_thread(next, found, None)) is not None:
                path, file = each
                if not is_storable(path):
                    left_out.add("invalid file names", str(root / path))
                    continue
                done += await in_thread(writer.add_file, agent, path, file)
                on_progress(ProgressStep(f"saving files of {agent}", done, unit="bytes"))
        finally:
            found.close()
    writer.notes += left_out.words()
