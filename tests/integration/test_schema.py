"""What a start does to the schema (SPEC DB-2)."""

from __future__ import annotations

import shutil
from pathlib import Path
from uuid import uuid4

import pytest

from goclaw_py.app.progress import ProgressStep
from goclaw_py.app.schema import Dump, migrate_schema
from goclaw_py.core.errors import MigrationError
from goclaw_py.store.embedded import EmbeddedPostgres
from goclaw_py.store.migrate import known, migrate, status
from goclaw_py.store.postgres import Address, connection
from tests.support.postgres import Server, run_sql

pytestmark = pytest.mark.real_time

STEPS = [step.label for step in known()]
MORE = f"{len(STEPS) + 1:04}"
"""The number of the next step."""


@pytest.fixture
async def address(postgres_server: Server) -> Address:
    name = f"schema_{uuid4().hex}"
    await run_sql(postgres_server.address, f"create database {name}")
    return postgres_server.at(name)


@pytest.fixture
def dump(postgres_server: Server, tmp_path: Path) -> Dump:
    host = postgres_server.address.host
    assert host is not None
    return Dump(EmbeddedPostgres(Path(host)).binary("pg_dump"), tmp_path / "backups")


async def test_a_new_database_is_migrated_and_nothing_is_saved(
    address: Address, dump: Dump
) -> None:
    assert await migrate_schema(address, dump=dump) == [f"{step}.up.sql" for step in STEPS]
    assert await migrate_schema(address, dump=dump) == []
    assert not dump.folder.exists()


async def test_a_database_with_data_is_saved_before_it_changes(
    address: Address, dump: Dump, newer: Path
) -> None:
    async with connection(address) as one:
        await migrate(one)
    steps: list[ProgressStep] = []
    done = await migrate_schema(address, dump=dump, migrations=newer, on_progress=steps.append)
    assert steps[0].what == "backing up the database before its migration"
    told = [(step.what, step.done, step.total) for step in steps if step.unit == "migrations"]
    assert told == [(f"applying {name}", place, len(done)) for place, name in enumerate(done)]
    assert done == [f"{MORE}_pets.up.sql"]
    (file,) = dump.folder.iterdir()
    assert file.name.startswith(f"before-{MORE}-")
    assert file.suffix == ".dump"
    assert file.read_bytes()[:5] == b"PGDMP"


async def test_a_database_that_cannot_be_saved_stays_as_it_is(
    address: Address, dump: Dump, newer: Path
) -> None:
    async with connection(address) as one:
        await migrate(one)
    dump.folder.parent.mkdir(exist_ok=True)
    broken = Dump(Path(shutil.which("false") or "/bin/false"), dump.folder)
    with pytest.raises(MigrationError, match="the backup before the migration failed"):
        await migrate_schema(address, dump=broken, migrations=newer)
    async with connection(address) as one:
        assert (await status(one, newer)).current == len(STEPS)


async def test_a_start_that_may_not_migrate_refuses_an_old_database(address: Address) -> None:
    with pytest.raises(MigrationError, match="not up to date: 0001_initial"):
        await migrate_schema(address, refuse=True)
    async with connection(address) as one:
        assert (await status(one)).current == 0
