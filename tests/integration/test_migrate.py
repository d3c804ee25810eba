"""Migrations on a real database (SPEC DB-2)."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from goclaw_py.core.errors import MigrationError, StoreUnavailable
from goclaw_py.store import migrate as m
from goclaw_py.store.postgres import Connection, connection
from tests.support.postgres import Database
from tests.support.stores import PATIENCE_S

pytestmark = pytest.mark.real_time

LATEST = m.known()[-1].version

FROZEN = {
    1: "fa215480a1fea8e956f5fc5f81845f6ca50c700890e47fdb67d3fe8e54affdf8",
    2: "d7792faf7eaeabb5bcda5eccf29272654984a73fdff2619bafa5e054d63da94e",
    3: "7118b5f91868ad3a82b744f398386b57bbf4ed1019e0c84ab6de6b89d7daf71e",
    4: "f9108ef8dbfe41f2bc70f9b771a0b7b9a9cc3c7d077f029ab1b86311359ae3c7",
    5: "0903c6ba1766e6bcbe0f7f3d6af1dfe0ca5190690a6e54a76a314b823ca494a1",
    6: "c697e3f0fbfe310cf504a77012813c95d8226f7e7c624e394127eb8bcc0290d7",
    7: "c799930fbe28d5443428df1cc8a8c9c84ac472b908da8a1290a0adc80ca7d27b",
    8: "960f119a1d00b3af8cdee8d9596fb99fc36d6eeaa0f73398859b5b607ed48952",
    9: "5625780a188d270f1dc5f162df8f858b06a8dcb2611d431606e6da832c95ec98",
    10: "34babeee2d364e504bc45bf4d73285b1b55e1cf67661a3e953faaf2dce18901a",
}
"""The checksums of migrations that databases have: a change of the schema is a new file.

Who adds a file adds its line, and nobody changes one.
"""


@pytest.fixture
async def opened(empty_database: Database) -> AsyncIterator[Connection]:
    async with connection(empty_database.address) as connected:
        yield connected


async def shape(opened: Connection) -> set[tuple[str, str, str]]:
    """Every column of the schema, but for the records of migrations."""
    rows = await opened.fetch(
        "select table_name, column_name, data_type from information_schema.columns "
        "where table_schema = 'public' and table_name <> 'schema_migrations'"
    )
    return {(row["table_name"], row["column_name"], row["data_type"]) for row in rows}


async def test_an_empty_database_is_brought_to_the_latest_version(opened: Connection) -> None:
    before = await m.status(opened)
    assert (before.current, before.latest) == (0, LATEST)
    assert before.pending[0] == "0001_initial"
    assert await opened.fetch("select from pg_tables where schemaname = 'public'") == []
    ran = await m.migrate(opened)
    assert ran == [f"{label}.up.sql" for label in before.pending]
    assert await m.migrate(opened) == []
    assert await m.status(opened) == m.SchemaStatus(LATEST, LATEST, ())
    assert {"nodes", "inbox", "outbox"} <= {table for table, _, _ in await shape(opened)}


async def test_down_and_up_again_gives_the_same_schema(opened: Connection) -> None:
    await m.migrate(opened)
    before = await shape(opened)
    ran = await m.migrate(opened, to=0)
    assert ran[-1] == "0001_initial.down.sql"
    assert await shape(opened) == set()
    await m.migrate(opened)
    assert await shape(opened) == before


async def test_a_version_in_between_can_be_reached_from_both_sides(
    opened: Connection, newer: Path
) -> None:
    await m.migrate(opened, to=LATEST, folder=newer)
    assert await m.pending(opened, newer) == [f"{LATEST + 1:04}_pets"]
    assert await m.migrate(opened, folder=newer) == [f"{LATEST + 1:04}_pets.up.sql"]
    assert await m.migrate(opened, to=LATEST, folder=newer) == [f"{LATEST + 1:04}_pets.down.sql"]


def test_migrations_that_databases_have_never_change() -> None:
    assert {one.version: one.checksum for one in m.known()} == FROZEN


async def test_messages_runs_and_deliveries_of_the_first_schema_are_kept(
    opened: Connection,
) -> None:
    """Up and down: runs know their messages, and the owner says what is being sent."""
    await m.migrate(opened, to=1)
    await opened.script(
        """
        insert into nodes (id, host, pid, release, started_at, lease_until)
        values ('n', 'h', 1, '0', 'epoch', 'epoch');
        insert into inbox (
            channel, account, external_id, session, agent, kind, state, message, received_at,
            run_id, finished_at, outcome
        )
        values
            ('c', 'a', '1', 's', 'main', 'message', 'done', '{}', 'epoch', 'r', 'epoch', 'failed'),
            ('c', 'a', '2', 's', 'main', 'message', 'pending', '{}', 'epoch', 'q', null, null),
            ('c', 'a', '3', 's', 'main', 'message', 'pending', '{}', 'epoch', 'q', null, null),
            ('c', 'a', '4', 's', 'main', 'message', 'pending', '{}', 'epoch', null, null, null);
        insert into runs (
            id, session, agent, trigger, lane, node, fence, epoch, model, started_at, finished_at,
            outcome
        )
        values
            ('r', 's', 'main', 'chat', 'main', 'n', 1, 0, '', 'epoch', 'epoch', 'completed'),
            ('q', 's', 'main', 'chat', 'main', 'n', 1, 0, '', 'epoch', null, null),
            ('x', 't', 'main', 'cron', 'cron', 'n', 1, 0, '', 'epoch', 'epoch', 'completed');
        insert into drafts (run_id, inbox, channel, account, chat, opened_at)
        values ('q', '{2,3}', 'c', 'a', '1', 'epoch');
        insert into outbox (
            channel, account, chat, message, state, owner, created_at, next_attempt_at
        )
        values
            ('c', 'a', '1', '{}', 'sending', 'n', 'epoch', 'epoch'),
            ('c', 'a', '1', '{}', 'pending', null, 'epoch', 'epoch')
        """
    )
    await m.migrate(opened, to=2)
    runs = await opened.fetch("select id, inbox, has_draft from runs order by id")
    assert [(row["id"], row["inbox"], row["has_draft"]) for row in runs] == [
        ("q", [2, 3], True),
        ("r", [1], False),
        ("x", [], False),
    ]
    sent = await opened.fetch("select state, owner from outbox order by id")
    assert [tuple(row) for row in sent] == [("pending", "n"), ("pending", None)]
    await m.migrate(opened, to=1)
    sent = await opened.fetch("select state, owner from outbox order by id")
    assert [tuple(row) for row in sent] == [("sending", "n"), ("pending", None)]


@pytest.mark.parametrize("version", [-1, 99])
async def test_an_unknown_version_is_refused(opened: Connection, version: int) -> None:
    with pytest.raises(MigrationError, match="there is no schema version"):
        await m.migrate(opened, to=version)


async def test_a_file_that_changed_after_it_was_applied_is_named(
    opened: Connection, newer: Path
) -> None:
    await m.migrate(opened, folder=newer)
    file = newer / "0001_initial.up.sql"
    file.write_text(file.read_text() + "-- later thought\n")
    for attempt in (m.migrate(opened, folder=newer), m.status(opened, newer)):
        with pytest.raises(MigrationError, match=r"0001_initial\.up\.sql has changed"):
            await attempt


async def test_a_database_of_an_unreleased_version_is_refused_in_one_line(
    opened: Connection,
) -> None:
    """Before 0.1 there were up to 31 files; nothing of them can be migrated."""
    await m.migrate(opened)
    await opened.script(
        "update schema_migrations set checksum = 'other'; "
        "insert into schema_migrations (version, name, checksum) values (31, 'job_creators', 'x')"
    )
    with pytest.raises(MigrationError, match="start with a new one") as refused:
        await m.status(opened)
    assert "\n" not in str(refused.value)


async def test_other_line_ends_are_no_change(opened: Connection, newer: Path) -> None:
    await m.migrate(opened, folder=newer)
    file = newer / "0001_initial.up.sql"
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert await m.pending(opened, newer) == []


async def test_a_database_of_a_newer_release_is_refused(opened: Connection, newer: Path) -> None:
    await m.migrate(opened, folder=newer)
    with pytest.raises(MigrationError, match="pets, which is newer than this release"):
        await m.migrate(opened)
    with pytest.raises(MigrationError, match="newer"):
        await m.status(opened)


async def test_several_runners_at_once_apply_each_file_once(empty_database: Database) -> None:
    async def run() -> list[str]:
        async with connection(empty_database.address) as connected:
            return await m.migrate(connected)

    ran = await asyncio.gather(*(run() for _ in range(4)))
    assert sorted(map(len, ran)) == [0, 0, 0, LATEST]


async def test_a_runner_gives_up_when_another_one_does_not_end(
    empty_database: Database, opened: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(m, "_LOCK_WAIT_S", 0.05)
    async with connection(empty_database.address) as other:
        assert await other.lock(m._LOCK, wait_s=1)
        # A gateway waits for it, instead of ending.
        with pytest.raises(StoreUnavailable, match="another process has been changing"):
            await m.migrate(opened)
        await other.unlock(m._LOCK)
    assert await m.migrate(opened) != []


_OTHERS = """
select query from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and wait_event_type = 'Lock'
"""


@pytest.mark.parametrize("version", range(1, LATEST + 1))
@pytest.mark.slow
async def test_a_start_goes_on_after_one_that_was_killed_within_a_file(
    empty_database: Database, opened: Connection, tmp_path: Path, version: int
) -> None:
    """SPEC DB-2: and the server does not finish the file for a process that is gone."""
    await m.migrate(opened, to=version - 1)
    before = await shape(opened)
    at = empty_database.address
    env = {
        **os.environ,
        "GOCLAW_HOME": str(tmp_path),
        "GOCLAW_DATABASE_URL": f"postgresql://{at.user}@/{at.database}?host={at.host}",
    }
    command = [sys.executable, "-m", "goclaw_py", "migrate"]
    async with connection(at) as other:
        await other.script("begin; lock table schema_migrations in share row exclusive mode")
        killed = await asyncio.create_subprocess_exec(*command, env=env, stdout=DEVNULL)
        try:
            # Everything of the file was done, but for its record.
            while not (waiting := await opened.fetch(_OTHERS)):
                await asyncio.sleep(0.05)
            assert "insert into schema_migrations" in waiting[0]["query"]
        finally:
            killed.kill()
            await killed.wait()
        async with asyncio.timeout(PATIENCE_S):
            while await opened.fetch(_OTHERS):
                await asyncio.sleep(0.05)
        await other.script("rollback")
    assert (await m.status(opened)).current == version - 1
    assert await shape(opened) == before
    following = await asyncio.create_subprocess_exec(*command, env=env, stdout=DEVNULL)
    assert await following.wait() == 0
    assert await m.status(opened) == m.SchemaStatus(LATEST, LATEST, ())


async def test_a_failing_file_leaves_nothing_of_itself(opened: Connection, newer: Path) -> None:
    (newer / f"{LATEST + 2:04}_bad.up.sql").write_text("create table half (x int); oops;")
    (newer / f"{LATEST + 2:04}_bad.down.sql").write_text("")
    with pytest.raises(MigrationError, match=r"bad\.up\.sql failed: syntax error"):
        await m.migrate(opened, folder=newer)
    tables = {table for table, _, _ in await shape(opened)}
    assert "pets" in tables
    assert "half" not in tables
    assert await m.pending(opened, newer) == [f"{LATEST + 2:04}_bad"]


async def test_an_old_server_is_refused(
    opened: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(m, "OLDEST", 99)
    with pytest.raises(MigrationError, match="PostgreSQL 14 or newer is required"):
        await m.migrate(opened)


def test_files_that_are_no_row_of_pairs_are_refused(newer: Path) -> None:
    stray = newer / "notes.sql"
    stray.write_text("")
    with pytest.raises(MigrationError, match=r"notes\.sql must be named"):
        m.known(newer)
    stray.unlink()
    down = newer / f"{LATEST + 1:04}_pets.down.sql"
    down.unlink()
    with pytest.raises(MigrationError, match=r"pets\.up\.sql has no \.down\.sql"):
        m.known(newer)
    down.write_text("")
    for half in newer.glob("0001_*"):
        half.unlink()
    with pytest.raises(MigrationError, match="without gaps"):
        m.known(newer)
