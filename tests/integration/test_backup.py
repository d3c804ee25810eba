"""Backups of real databases, and what comes back of them (SPEC DB-5)."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import patch
from uuid import uuid4

import pytest
from pydantic import SecretStr

from goclaw_py.app.backup import restore as restoring
from goclaw_py.app.backup.backup import Saved, back_up
from goclaw_py.app.backup.restore import Backup, Restored, examine, plan_restore, restore
from goclaw_py.app.backup.workspaces import Staging
from goclaw_py.app.database import Database as AppDatabase
from goclaw_py.app.progress import ProgressStep
from goclaw_py.app.schema import migrate_schema
from goclaw_py.config import Settings
from goclaw_py.config.models import DatabaseSettings as DatabaseSection
from goclaw_py.core.errors import BackupError, MigrationError, StoreUnavailable
from goclaw_py.core.time.clocks import SystemClock
from goclaw_py.store import migrate
from goclaw_py.store.postgres import Address, connection
from tests.support.filled import all_rows, fill, next_numbers
from tests.support.killed_restore import MOMENTS
from tests.support.postgres import Database, Server, run_sql

pytest_plugins = ["tests.support.embedded_fixtures"]
pytestmark = pytest.mark.real_time

LATEST = migrate.known()[-1].version
FIRST_SCHEMA = Path(__file__).with_name("first_schema.tar.gz")


def settings_of(address: Address | None, home: Path) -> Settings:
    """A home on a managed database, or on its own embedded one."""
    if address is None:
        return Settings(home=home)
    url = f"postgresql://{address.user}@/{address.database}?host={address.host}"
    return Settings(home=home, database=DatabaseSection(url=SecretStr(url)))


def quiet(_step: object) -> None:
    pass


async def save(settings: Settings, to: Path, *, files: bool = True) -> Saved:
    to.parent.mkdir(parents=True, exist_ok=True)
    return await back_up(settings, to, files=files, on_progress=quiet)


async def bring_back(settings: Settings, file: Path, *, replace: bool = False) -> Restored:
    backup = await asyncio.to_thread(examine, file, quiet)
    return await restore(settings, backup, replace=replace, files=True, on_progress=quiet)


@pytest.fixture
async def filled(postgres_database: Database) -> Address:
    await fill(postgres_database.address)
    return postgres_database.address


@pytest.fixture
async def other(postgres_server: Server) -> AsyncIterator[Address]:
    """One more empty database."""
    name = f"backup_{uuid4().hex}"
    await run_sql(postgres_server.address, f"create database {name}")
    yield postgres_server.at(name)
    await run_sql(postgres_server.address, f"drop database {name} with (force)")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "backup.tar.gz"


async def test_every_row_and_every_number_comes_back(
    filled: Address, other: Address, file: Path, tmp_path: Path
) -> None:
    """DB-5. Texts with all that COPY has to escape are among the rows."""
    before = await all_rows(filled)
    assert [table for table, rows in before.items() if not rows] == [], "fill these tables too"
    mask = os.umask(0)
    try:
        saved = await save(settings_of(filled, tmp_path / "a"), file)
    finally:
        os.umask(mask)
    assert saved.tables == {table: len(rows) for table, rows in before.items()}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600, "only its owner can read it"
    assert list(file.parent.glob("*.part")) == list(file.parent.glob(".*.part")) == []

    restored = await bring_back(settings_of(other, tmp_path / "b"), file)
    assert (restored.backup, restored.migrated) == (saved, ())
    assert await all_rows(other) == before
    async with connection(filled) as one, connection(other) as two:
        numbers = await next_numbers(one)
        assert await next_numbers(two) == numbers
        assert numbers["inbox.id"] == 3
        assert numbers["heartbeat_events.id"] == 41
        assert (await migrate.status(two)).pending == ()


async def test_files_stay_restored_if_the_audit_log_cannot_be_written(
    filled: Address, other: Address, file: Path, tmp_path: Path
) -> None:
    """The tables are committed by then."""
    note = tmp_path / "a" / "workspace" / "note.md"
    note.parent.mkdir(parents=True)
    note.write_text("remember")
    await save(settings_of(filled, tmp_path / "a"), file)

    async def fail(*_: object) -> None:
        raise StoreUnavailable("lost")

    with patch.object(restoring, "record", fail), pytest.raises(StoreUnavailable):
        await bring_back(settings_of(other, tmp_path / "b"), file)
    assert await all_rows(other) == await all_rows(filled)
    assert (tmp_path / "b" / "workspace" / "note.md").read_text() == "remember"


async def test_each_table_that_a_migration_makes_is_known(postgres_database: Database) -> None:
    """What is not known would be in no backup."""
    there = await tables(postgres_database.address)
    assert sorted({*there} - {"schema_migrations"}) == migrate.tables(migrate.known())


async def test_a_backup_while_others_write_is_of_one_moment(
    filled: Address, other: Address, file: Path, tmp_path: Path
) -> None:
    """Each transaction writes a row into two tables: both are there, or none."""
    write = (
        "with n as (insert into work_items (queue, title) values ('pair', 't') returning id) "
        "insert into incidents select 'pair ' || id, 't', 'epoch' from n"
    )
    written = asyncio.Event()
    count = 0

    async def writer() -> None:
        nonlocal count
        async with connection(filled) as one:
            while True:
                await one.script(write)
                count += 1
                if count == 20:
                    written.set()

    async with asyncio.TaskGroup() as group:
        writers = [group.create_task(writer()) for _ in range(3)]
        await written.wait()
        first = count
        await save(settings_of(filled, tmp_path / "a"), file)
        for task in writers:
            task.cancel()
    await bring_back(settings_of(other, tmp_path / "b"), file)
    async with connection(other) as two:
        items = await two.fetch("select id from work_items where queue = 'pair'")
        told = await two.fetch("select key from incidents where key like 'pair %'")
        assert {f"pair {row['id']}" for row in items} == {row["key"] for row in told}
        assert len(items) >= first - 3
        # No number is given out twice: a sequence is never behind the rows.
        await two.script(write)


@pytest.mark.slow
async def test_from_embedded_to_managed_and_back(root: Path, other: Address, file: Path) -> None:
    home = settings_of(None, root / "a")
    await save_empty(home)
    async with embedded(home) as address:
        await fill(address)
        before = await all_rows(address)
    there = await save(home, file, files=False)
    assert (await bring_back(settings_of(other, root / "m"), file)).database == "managed"
    assert await all_rows(other) == before

    back = root / "back.tar.gz"
    # The restore is in the audit log.
    counts = there.tables | {"audit": there.tables["audit"] + 1}
    assert (await save(settings_of(other, root / "m"), back)).tables == counts
    second = settings_of(None, root / "b")
    assert (await bring_back(second, back)).database == "embedded"
    async with embedded(second) as address:
        assert await all_rows(address) == before


async def save_empty(home: Settings) -> None:
    async with embedded(home) as address, connection(address) as one:
        await migrate.migrate(one)


@asynccontextmanager
async def embedded(home: Settings) -> AsyncIterator[Address]:
    database = AppDatabase(home, say=quiet)
    try:
        yield await database.address()
    finally:
        await database.close()


async def test_a_backup_of_an_older_schema_is_brought_up_to_date(
    filled: Address, newer: Path, other: Address, file: Path, tmp_path: Path
) -> None:
    """DB-5, DB-2."""
    saved = await save(settings_of(filled, tmp_path / "a"), file)
    assert saved.schema == LATEST
    count = {table: len(rows) for table, rows in (await all_rows(filled)).items()}
    with patch.object(migrate, "known", return_value=migrate.known(newer)):
        # The target may be up to date already, or empty: both ways lead to the same.
        for target in (other, other):
            restored = await bring_back(settings_of(target, tmp_path / "b"), file, replace=True)
            assert restored.migrated == (f"{LATEST + 1:04}_pets.up.sql",)
            rows = await all_rows(target)
            assert {table: len(rows[table]) for table in count} == count
            async with connection(target) as two:
                assert (await migrate.status(two)).pending == ()


async def test_a_database_and_a_backup_of_the_first_schema_are_upgraded_with_their_rows(
    other: Address, tmp_path: Path
) -> None:
    """DB-2, DB-5: the file was written by the last commit that had one migration."""
    restored = await bring_back(settings_of(other, tmp_path), FIRST_SCHEMA)
    assert restored.backup.schema == 1
    assert restored.migrated == tuple(f"{one.label}.up.sql" for one in migrate.known()[1:])
    counts = {table: len(rows) for table, rows in (await all_rows(other)).items()}
    kept = {table: rows for table, rows in restored.backup.tables.items() if table in counts}
    assert {table: counts[table] for table in kept} == kept
    assert min(kept.values()) > 0
    async with connection(other) as opened:
        await migrate.migrate(opened, to=1)
        await migrate.migrate(opened)
        assert (await migrate.status(opened)).pending == ()
    assert {table: len(rows) for table, rows in (await all_rows(other)).items()} == counts
    async with connection(other) as opened:
        sent = await opened.fetch("select state, owner from outbox order by id")
    assert [tuple(row) for row in sent] == [("pending", "n1"), ("pending", None)]


async def test_a_backup_and_a_restore_are_in_the_audit_log(
    filled: Address, other: Address, file: Path, tmp_path: Path
) -> None:
    """SEC-9: the log of the backup comes back, and then what was done with it."""
    await save(settings_of(filled, tmp_path / "a"), file)
    await bring_back(settings_of(other, tmp_path / "b"), file)
    query = "select action, subject, kind, result from audit order by id"
    for address, did in ((filled, "backup.create"), (other, "backup.restore")):
        async with connection(address) as one:
            rows = [tuple(row) for row in await one.fetch(query)]
        assert rows[1:] == [(did, str(file), "node", "ok")]
        assert rows[0][0] == "job.edit"


async def test_an_upgrade_is_in_the_audit_log(empty_database: Database) -> None:
    """One row for all of it; a new database stays empty, so that a backup fits into it."""
    address = empty_database.address
    query = "select action, after::text as after from audit"
    await migrate_schema(address)
    async with connection(address) as one:
        assert await one.fetch(query) == []
        await migrate.migrate(one, to=LATEST - 1)
    await migrate_schema(address)
    async with connection(address) as one:
        (row,) = await one.fetch(query)
    assert row["action"] == "schema.migrate"
    assert migrate.known()[-1].label in row["after"]


async def test_a_backup_of_a_newer_release_is_refused(
    filled: Address, newer: Path, file: Path, tmp_path: Path
) -> None:
    with patch.object(migrate, "known", return_value=migrate.known(newer)):
        async with connection(filled) as one:
            await migrate.migrate(one)
        await save(settings_of(filled, tmp_path), file)
    with pytest.raises(BackupError, match="newer than this release: its schema is at") as refused:
        examine(file, quiet)
    assert "\n" not in str(refused.value)


# ---------------------------------------------------------------------------- what is in the way


async def test_nothing_is_replaced_unasked(
    filled: Address, postgres_server: Server, file: Path, tmp_path: Path
) -> None:
    home = settings_of(filled, tmp_path)
    await save(home, file)
    await run_sql(
        filled, "update incidents set text = 'newer'", "delete from nodes where id = 'n2'"
    )
    before = await all_rows(filled)
    found = await plan_restore(home, examine(file, quiet), files=True)
    assert "incidents" in found.tables
    assert not {"nodes", "leases"} & set(found.tables)
    with pytest.raises(BackupError, match="the database has conversations, messages"):
        await bring_back(home, file)
    assert await all_rows(filled) == before


async def test_with_replace_all_is_as_in_the_backup(
    filled: Address, file: Path, tmp_path: Path
) -> None:
    """Tables of other programs in the same database are left alone, and so are their views."""
    home = settings_of(filled, tmp_path)
    await run_sql(
        filled,
        "create table theirs (id integer primary key); insert into theirs values (1); "
        "create view my_view as select key from sessions",
    )
    before = await all_rows(filled)
    await save(home, file)
    await run_sql(
        filled,
        "insert into history (session, epoch, role, text, at) "
        "select 's2', 0, 'user', 'later', 'epoch' from generate_series(1, 50)",
        "delete from incidents",
    )
    await bring_back(home, file, replace=True)
    assert await all_rows(filled) == before
    async with connection(filled) as one:
        assert len(await one.fetch("select from theirs")) == 1
        assert len(await one.fetch("select from my_view")) == 2
        assert (await next_numbers(one))["history.id"] == 5


@pytest.mark.parametrize("replaces", [True, False])
async def test_nothing_is_restored_under_a_gateway_that_works(
    filled: Address, other: Address, file: Path, tmp_path: Path, replaces: bool
) -> None:
    """Wherever it runs: its lease says so."""
    await save(settings_of(filled, tmp_path / "a"), file)
    async with connection(other) as two:
        await migrate.migrate(two)
    until = datetime.now(UTC) + timedelta(seconds=30)
    await run_sql(
        other, f"insert into nodes values ('g', 'far/1/2', 4711, '1', 'epoch', '{until}')"
    )
    before = await all_rows(other)
    home = settings_of(other, tmp_path / "b")
    for attempt in (
        bring_back(home, file, replace=replaces),
        plan_restore(home, examine(file, quiet), files=True),
    ):
        with pytest.raises(BackupError, match=r"a gateway works .*\(process 4711 on far\)"):
            await attempt
    assert await all_rows(other) == before
    await run_sql(other, "update nodes set lease_until = 'epoch'")
    await bring_back(home, file, replace=replaces)


async def test_work_that_ran_is_taken_over_as_after_a_crash(
    filled: Address, other: Address, file: Path, tmp_path: Path
) -> None:
    """IO-2, IO-5: a backup of a gateway at work, restored a moment later."""
    until = datetime.now(UTC) + timedelta(seconds=60)
    await run_sql(filled, f"update nodes set lease_until = '{until}'")
    await save(settings_of(filled, tmp_path / "a"), file)
    await bring_back(settings_of(other, tmp_path / "b"), file)
    store = await Database(other).open()
    try:
        # Its lease would not have ended for a minute.
        recovery = await store.recover(now=SystemClock().now(), max_attempts=3, apology="sorry")
        assert set(recovery.nodes) == {"n1", "n2"}
        assert [run.outcome.value for run in recovery.cut_runs] == ["lost"]
        sending, pending = (await all_rows(other))["outbox"]
        assert '"possible_duplicate": true' in sending
        assert '"possible_duplicate": false' in pending
    finally:
        await store.close()


# ---------------------------------------------------------------------------- going wrong


class _Stop(Exception):
    pass


@pytest.mark.parametrize("moment", ["copy", "_copied", "finish", "swap"])
async def test_a_restore_that_fails_leaves_everything_as_it_was(
    filled: Address, file: Path, tmp_path: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = settings_of(filled, tmp_path / "a")
    workspace = home.home / "workspace"
    (workspace / "deep").mkdir(parents=True)
    (workspace / "deep" / "file").write_text("old")
    await save(home, file)
    (workspace / "deep" / "file").write_text("new")
    await run_sql(filled, "update incidents set text = 'newer'", "delete from work_items")
    rows, kept = await all_rows(filled), tree(workspace)

    async def fail(*_: object, **__: object) -> None:
        raise _Stop

    match moment:
        case "copy":
            monkeypatch.setattr("goclaw_py.store.postgres.copying.Replacement.copy", fail)
        case "_copied":
            done = restoring._Restoring._copy

            async def after(self: restoring._Restoring, *arguments: object) -> None:
                await done(self, *arguments)  # type: ignore[arg-type]
                raise _Stop

            monkeypatch.setattr(restoring._Restoring, "_copy", after)
        case "finish":
            monkeypatch.setattr("goclaw_py.store.postgres.copying.Replacement.finish", fail)
        case _:
            swap = Staging.swap

            def swapped(self: Staging) -> None:
                swap(self)
                raise _Stop

            monkeypatch.setattr(Staging, "swap", swapped)
    with pytest.raises(_Stop):
        await bring_back(home, file, replace=True)
    assert await all_rows(filled) == rows
    assert tree(workspace) == kept
    async with connection(filled) as one:
        assert (await next_numbers(one))["work_items.id"] == 3
    monkeypatch.undo()
    await bring_back(home, file, replace=True)
    assert (workspace / "deep" / "file").read_text() == "old"


async def test_a_backup_and_a_restore_tell_how_far_they_are(
    filled: Address, tmp_path: Path
) -> None:
    """SPEC OPS-1."""
    settings, file = settings_of(filled, tmp_path / "a"), tmp_path / "x.tar.gz"
    saving: list[ProgressStep] = []
    restoring: list[ProgressStep] = []
    await back_up(settings, file, files=True, on_progress=saving.append)
    backup = examine(file, restoring.append)
    await restore(settings, backup, replace=True, files=True, on_progress=restoring.append)
    for steps in (saving, restoring):
        shares = {step.what: step.done / step.total for step in steps if step.total}
        assert all(0 <= share <= 1 for share in shares.values())
        assert max(shares.values()) > 0.5
    tables = [step.done for step in saving if step.what.startswith("saving table")]
    assert tables == sorted(tables)
    assert {"checking the backup", "emptying the tables"} < {step.what for step in restoring}


async def test_a_restore_that_is_interrupted_leaves_everything_as_it_was(
    filled: Address, file: Path, tmp_path: Path
) -> None:
    """Ctrl-C cancels it, here in the middle of a table."""
    home = settings_of(filled, tmp_path / "a")
    await save(home, file)
    await run_sql(filled, "update incidents set text = 'newer'")
    before = await all_rows(filled)
    backup = examine(file, quiet)
    task: asyncio.Task[Restored]

    def interrupt(step: object) -> None:
        if getattr(step, "what", "") == "restoring table outbox":
            task.cancel()

    task = asyncio.create_task(
        restore(home, backup, replace=True, files=True, on_progress=interrupt)
    )
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await all_rows(filled) == before
    await bring_back(home, file, replace=True)
    assert await all_rows(filled) != before


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.slow
async def test_a_restore_that_is_killed_leaves_the_old_rows_or_all_of_the_backup(
    filled: Address, file: Path, tmp_path: Path, moment: str
) -> None:
    """By ``kill -9``. No file is lost either, and the next restore is complete."""
    home = settings_of(filled, tmp_path / "a")
    workspace = home.home / "workspace"
    workspace.mkdir(parents=True)
    (workspace / "saved").write_text("saved")
    await save(home, file)
    saved = await all_rows(filled)
    (workspace / "saved").unlink()
    for name in ("newer", "newest"):
        (workspace / name).write_text(name)
    await run_sql(filled, "update incidents set text = 'newer'", "delete from work_items")
    newer = await all_rows(filled)

    assert home.database.url is not None
    url = home.database.url.get_secret_value()
    given = (url, str(home.home), str(file), moment)
    killed = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.killed_restore", *given
    )
    assert await killed.wait() == -signal.SIGKILL
    assert await all_rows(filled) == (saved if MOMENTS[moment] else newer)
    assert {"newer", "newest"} <= {path.name for path in workspace.rglob("*")}

    await bring_back(home, file, replace=True)
    assert await all_rows(filled) == saved
    assert (workspace / "saved").read_text() == "saved"


async def test_a_backup_that_is_interrupted_leaves_no_file(
    filled: Address, file: Path, tmp_path: Path
) -> None:
    task: asyncio.Task[Saved]

    def interrupt(_step: object) -> None:
        task.cancel()

    home = settings_of(filled, tmp_path)
    task = asyncio.create_task(back_up(home, file, files=True, on_progress=interrupt))
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == []


async def test_a_file_that_was_exchanged_meanwhile_is_not_restored(
    filled: Address, other: Address, file: Path, tmp_path: Path
) -> None:
    home, there = settings_of(filled, tmp_path / "a"), settings_of(other, tmp_path / "b")
    await save(home, file)
    backup: Backup = examine(file, quiet)
    await run_sql(filled, "delete from heartbeat_items")
    file.unlink()
    await save(home, file)
    with pytest.raises(BackupError, match="changed during the restore"):
        await restore(there, backup, replace=False, files=True, on_progress=quiet)
    assert await tables(other) == []


async def test_rows_that_the_schema_does_not_take_leave_nothing(
    filled: Address, other: Address, file: Path, tmp_path: Path
) -> None:
    await run_sql(filled, "alter table incidents alter text drop not null")
    await run_sql(filled, "update incidents set text = null")
    await save(settings_of(filled, tmp_path / "a"), file)
    with pytest.raises(BackupError, match="does not take it: null value in column") as refused:
        await bring_back(settings_of(other, tmp_path / "b"), file)
    assert "\n" not in str(refused.value)
    assert await tables(other) == []


async def test_a_database_that_cannot_be_saved_is_told_and_leaves_no_file(
    filled: Address, other: Address, tmp_path: Path, file: Path
) -> None:
    await run_sql(filled, "insert into schema_migrations values (999, 'next', 'x')")
    cases: list[tuple[Address, type[Exception], str]] = [
        (filled, MigrationError, "newer than this release"),
        (other, BackupError, "nothing to back up"),
        (Address(host=str(tmp_path), user="x", database="y"), StoreUnavailable, "does not answer"),
    ]
    for address, error, words in cases:
        with pytest.raises(error, match=words):
            await save(settings_of(address, tmp_path), file)
    assert not file.exists()


async def tables(address: Address) -> list[str]:
    async with connection(address) as one:
        rows = await one.fetch("select tablename as t from pg_tables where schemaname = 'public'")
        return [row["t"] for row in rows]


def tree(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text() if path.is_file() else ""
        for path in folder.rglob("*")
    }
