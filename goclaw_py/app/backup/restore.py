"""Restore a backup, replacing existing data (SPEC DB-5, SEC-4).

``examine`` verifies the whole file before anything is changed. ``restore`` reads the file again,
and verifies it again before the changes are committed.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from goclaw_py.app.audit import record
from goclaw_py.app.backup.backup import Saved, saved
from goclaw_py.app.backup.settings_use import settings_use
from goclaw_py.app.backup.workspaces import Staging, filled, homes_of, pieces_of
from goclaw_py.app.database import Database
from goclaw_py.app.progress import OnProgress, ProgressStep, ignore_progress, in_thread
from goclaw_py.config import Settings, load
from goclaw_py.core.errors import BackupError
from goclaw_py.store import migrate
from goclaw_py.store.backup.manifest import Manifest
from goclaw_py.store.backup.reading import ArchiveReader, Member, MemberKind, open_archive
from goclaw_py.store.postgres import connection
from goclaw_py.store.postgres.copying import (
    CopiedTable,
    Replacement,
    contents,
    filled_tables,
    live_nodes,
    moment,
    refuse_if_filled,
    refuse_if_used,
    replacing,
)


@dataclass(frozen=True, slots=True)
class Backup:
    """A verified backup file. ``settings`` is the text of its settings file."""

    file: Path
    size: int
    manifest: Manifest
    settings: str | None

    @property
    def saved(self) -> Saved:
        """The summary of the backup."""
        return saved(self.file, self.size, self.manifest)


@dataclass(frozen=True, slots=True)
class InTheWay:
    """What a restore would replace: tables with rows, folders with files."""

    tables: tuple[str, ...]
    folders: tuple[Path, ...]

    @property
    def contents(self) -> str:
        """What is in the tables, in words."""
        return contents(self.tables)

    def refuse(self) -> None:
        """Raise ``BackupError`` if anything would be replaced."""
        refuse_if_filled(self.tables)
        if self.folders:
            raise BackupError(
                f"{self.folders[0]} is not empty: use --replace to replace its files by those of "
                "the backup, or --no-files to keep them"
            )


@dataclass(frozen=True, slots=True)
class Restored:
    """The result of a restore. ``migrated`` names the migrations that were run at its end.

    ``settings`` is the settings file if it was written.
    """

    backup: Saved
    database: str
    migrated: tuple[str, ...]
    files: dict[str, int]
    settings: Path | None


# ---------------------------------------------------------------------------- examine


def examine(file: Path, on_progress: OnProgress) -> Backup:
    """Read a whole backup and compare it with its manifest. Changes nothing; blocks.

    Raises ``BackupError`` for anything that is not an undamaged backup, or one of a newer release.
    """
    text: str | None = None
    with open_archive(file) as opened, _about(file):
        size = os.fstat(opened.fileno()).st_size
        reader = ArchiveReader(opened)
        for member in reader:
            if member.kind is MemberKind.SETTINGS:
                text = b"".join(iter(member.read, b"")).decode("utf-8")
            while member.read():
                on_progress(ProgressStep("checking the backup", opened.tell(), size, "bytes"))
        _check_schema(reader.manifest)
    return Backup(file.absolute(), size, reader.manifest, text)


@contextmanager
def _about(file: Path) -> Iterator[None]:
    try:
        yield
    except BackupError as error:
        raise BackupError(f"{file}: {error}") from error
    except UnicodeDecodeError as error:
        raise BackupError(
            f"{file}: the backup is damaged: its settings are not UTF-8 text"
        ) from error


def _check_schema(manifest: Manifest) -> None:
    known = {each.version: each for each in migrate.known()}
    for each in manifest.schema:
        ours = known.get(each.version)
        if ours is None:
            raise BackupError(
                "the backup is newer than this release: "
                f"its schema is at {manifest.schema[-1].label}, ours at {known[max(known)].label}; "
                f"restore it with release {manifest.release}"
            )
        if (ours.name, ours.checksum) != (each.name, each.checksum):
            raise BackupError(
                f"this release does not know the schema of the backup: {each.label} differs"
            )


def settings_of(backup: Backup, home: Path) -> Settings | None:
    """Return the settings of a backup as they would be in a home; None if it has none.

    Raises ``SettingError`` if they are invalid.
    """
    if backup.settings is None:
        return None
    return load(home / "goclaw.toml", text=backup.settings)


def settings_for(settings: Settings, backup: Backup, *, files: bool, outside: bool) -> Settings:
    """Return the settings for a restore: those of the backup if there is no settings file.

    They define the workspace folders, so that whoever made the backup could write anywhere. Raises
    ``BackupError`` if they use paths ``outside`` of the home without permission, and
    ``SettingError`` if they are invalid.
    """
    theirs = None if settings.file is not None else settings_of(backup, settings.home)
    if theirs is None:
        return settings
    paths = settings_use(theirs, files=files).outside
    if paths and not outside:
        raise BackupError(
            f"the settings of the backup use paths outside of {settings.home}, or hidden in it: "
            f"{', '.join(paths)}; if you know why, repeat this with --yes"
        )
    return theirs


@contextmanager
def _settings_written(settings: Settings, text: str) -> Iterator[None]:
    """Write the settings file, unless the block raises."""
    settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = settings.home / f".goclaw.toml.{os.getpid()}.part"
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
            out.write(text)
        yield
        part.rename(settings.home / "goclaw.toml")
    finally:
        part.unlink(missing_ok=True)


async def plan_restore(
    settings: Settings,
    backup: Backup,
    *,
    files: bool,
    outside: bool = False,
    on_progress: OnProgress = ignore_progress,
) -> InTheWay:
    """Return what a restore would replace. Raises ``BackupError`` if it is impossible."""
    ours = settings_for(settings, backup, files=files, outside=outside)
    roots = homes_of(ours, backup.manifest.files if files else (), backup.file)
    database = Database(ours, on_progress=on_progress)
    try:
        async with connection(await database.address()) as one:
            await migrate.check_server(one)
            await migrate.status(one)
            refuse_if_used(await live_nodes(one, now=await moment(one)))
            tables = await filled_tables(one, migrate.known())
    finally:
        await database.close()
    return InTheWay(tuple(tables), tuple(filled(roots)))


# ---------------------------------------------------------------------------- the restore


async def restore(
    settings: Settings,
    backup: Backup,
    *,
    replace: bool,
    files: bool,
    outside: bool = False,
    on_progress: OnProgress,
) -> Restored:
    """Restore everything in one transaction; after an error, nothing has changed.

    Runs that were running during the backup are recovered by the next gateway, as after a crash.
    With ``replace`` existing data is replaced; without it, database and folders must be empty.
    ``outside`` permits settings of the backup to use paths outside of the home. Raises
    ``BackupError``, ``StoreError``, ``SettingError``.
    """
    ours = settings_for(settings, backup, files=files, outside=outside)
    keeps = files and ours is not settings
    with _settings_written(settings, backup.settings or "") if keeps else nullcontext():
        roots = homes_of(ours, backup.manifest.files if files else (), backup.file)
        if not replace:
            InTheWay((), tuple(filled(roots))).refuse()
        database = Database(ours, on_progress=on_progress)
        work = _Restoring(backup, Staging(roots), on_progress)
        try:
            migrated = await work.run(database, replace=replace)
        finally:
            await database.close()
        return Restored(
            backup.saved,
            database.kind,
            tuple(migrated),
            {agent: backup.manifest.files[agent].count for agent in roots},
            settings.home / "goclaw.toml" if keeps else None,
        )


class _Restoring:
    """One restore."""

    def __init__(self, backup: Backup, staging: Staging, on_progress: OnProgress) -> None:
        self._backup = backup
        self._staging = staging
        self._tell = on_progress
        self._done = 0

    async def run(self, database: Database, *, replace: bool) -> list[str]:
        """Restore; return the names of the migrations that were run at its end."""
        migrations = migrate.known()
        manifest = self._backup.manifest
        async with connection(await database.address()) as one:
            try:
                now = await moment(one)
                self._tell(ProgressStep("emptying the tables"))
                async with replacing(
                    one, migrations, manifest.version, now=now, may_replace=replace
                ) as replacement:
                    await self._fill(replacement)
                    self._tell(ProgressStep("storing the restored data"))
                    migrated = await replacement.finish(manifest.sequences, now=now)
                    # The last step before the commit, and the only one that is not rolled back
                    # after a kill -9.
                    await in_thread(self._staging.swap)
            except BaseException:
                await in_thread(self._staging.undo)
                raise
            await in_thread(self._staging.clear)
            # After the commit, no failure may bring back the former files.
            facts = {"release": manifest.release, "made_at": manifest.made_at.isoformat()}
            await record(one, "backup.restore", str(self._backup.file), facts)
        return migrated

    async def _fill(self, replacement: Replacement) -> None:
        self._check_tables(replacement)
        with open_archive(self._backup.file) as file, _about(self._backup.file):
            reader = ArchiveReader(file)
            await self._copy(reader, replacement)
            if reader.manifest != self._backup.manifest:
                raise BackupError("the backup file was changed during the restore; start again")

    def _check_tables(self, replacement: Replacement) -> None:
        ours = {name: table.columns for name, table in replacement.tables.items()}
        theirs = {name: table.columns for name, table in self._backup.manifest.tables.items()}
        if ours.keys() != theirs.keys() or any(
            sorted(columns) != sorted(theirs[name]) for name, columns in ours.items()
        ):
            raise BackupError("the tables of the backup do not match its schema")

    async def _copy(self, reader: ArchiveReader, replacement: Replacement) -> None:
        await in_thread(self._staging.prepare)
        members = iter(reader)
        while (member := await in_thread(next, members, None)) is not None:
            match member.kind:
                case MemberKind.ROWS:
                    await replacement.copy(self._table(member), self._pieces(member))
                case MemberKind.FILE if self._staging.takes(member.name):
                    await in_thread(self._add_file, member)
                case _:
                    pass

    def _table(self, member: Member) -> CopiedTable:
        known = self._backup.manifest.tables.get(member.name)
        if known is None:
            raise BackupError("the backup file was changed during the restore; start again")
        # In the column order of the backup, which may differ from that of the database.
        return CopiedTable(member.name, known.columns)

    async def _pieces(self, member: Member) -> AsyncIterator[bytes]:
        while data := await in_thread(member.read):
            self._count(f"restoring table {member.name}", len(data))
            yield data

    def _add_file(self, member: Member) -> None:
        what = f"restoring files of {member.name}"
        pieces = pieces_of(member.read, lambda size: self._count(what, size))
        self._staging.add(member.name, member.path, member.mode, pieces)

    def _count(self, what: str, size: int) -> None:
        self._done += size
        total = self._backup.manifest.total_bytes
        self._tell(ProgressStep(what, self._done, total, "bytes"))
