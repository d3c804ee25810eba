"""The store on PostgreSQL when the database misbehaves, and how it asks (SPEC DB-3, DB-4)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from goclaw_py.core.errors import StoreError, StoreUnavailable
from goclaw_py.core.ids import RunId
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.run_steps import NewMessagesStep
from goclaw_py.records import Notice, RunSoFar, StoredStep
from goclaw_py.store import migrate
from goclaw_py.store.embedded import EmbeddedPostgres
from goclaw_py.store.postgres import Address, PostgresStore, connection, listener, pool
from goclaw_py.store.postgres.pool import Pool
from goclaw_py.store.sql import queries
from tests.support.postgres import Database, run_sql
from tests.support.stores import (
    ANN,
    PATIENCE_S,
    PLACES,
    T0,
    A,
    CollectedNotices,
    a_node,
    inbox,
    new_run,
    say,
    until,
)

pytestmark = pytest.mark.real_time


@asynccontextmanager
async def opened(database: Database) -> AsyncIterator[PostgresStore]:
    store = await database.open()
    try:
        await store.join(a_node(A))
        yield store
    finally:
        await store.close()


@pytest.fixture
async def borrowed(postgres_database: Database) -> AsyncIterator[Pool]:
    """A pool of a single connection."""
    pool = await Pool.open(postgres_database.address, min_size=1, max_size=1)
    yield pool
    await pool.close()


async def end_connections(database: Database) -> None:
    """What an administrator's restart does to everybody who is connected."""
    address = replace(database.address, database="postgres")
    await run_sql(
        address,
        "select pg_terminate_backend(pid) from pg_stat_activity "
        f"where datname = '{database.address.database}'",
    )


async def available_again(store: PostgresStore) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                return await store.ping()
            except StoreUnavailable:
                await asyncio.sleep(0.01)


async def trouble(store: PostgresStore) -> str:
    """What is wrong with a server whose connections have just been ended."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await store.ping()
            except StoreUnavailable as error:
                if "cannot be used" in str(error):
                    return str(error)


async def test_connections_that_were_ended_are_replaced(
    store: PostgresStore, postgres_database: Database
) -> None:
    """DB-4."""
    await end_connections(postgres_database)
    await available_again(store)
    assert len((await store.accept([inbox(1)], node=A, now=T0)).rows) == 1


async def test_notices_resume_and_what_was_missed_is_made_up(
    store: PostgresStore, postgres_database: Database
) -> None:
    """DB-3."""
    heard = CollectedNotices()
    store.on_notice(heard.append)
    await end_connections(postgres_database)
    await until(heard.expect(*Notice))
    await available_again(store)
    heard.clear()
    await store.settle([], Outcome.COMPLETED, now=T0, say=[say("x")])
    await until(heard.expect(Notice.OUTBOX))


async def test_a_hearer_that_raises_does_not_end_the_listening(store: PostgresStore) -> None:
    told: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))

    def broken(notice: Notice) -> None:
        if notice is Notice.OUTBOX:
            raise ValueError(notice)

    heard = CollectedNotices()
    store.on_notice(broken)
    store.on_notice(heard.append)
    for _ in range(2):
        heard.clear()
        await store.settle([], Outcome.COMPLETED, now=T0, say=[say("x")])
        await until(heard.expect(Notice.OUTBOX))
    assert len(told) == 2


async def test_a_connection_that_ends_inside_a_transaction_is_told_as_unavailable(
    borrowed: Pool, postgres_database: Database
) -> None:

    async def lose_it() -> None:
        async with borrowed.transaction() as transaction:
            await end_connections(postgres_database)
            await transaction.row("select 1")

    with pytest.raises(StoreUnavailable):
        await lose_it()
    async with borrowed.connection() as again:
        row = await again.row("select 1 as one")
    assert row is not None
    assert row["one"] == 1


async def test_a_mistake_of_ours_is_not_told_as_unavailable(postgres_database: Database) -> None:
    async with connection(postgres_database.address) as direct:
        with pytest.raises(asyncpg.PostgresSyntaxError):
            await direct.fetch("selec 1")
        with pytest.raises(asyncpg.UniqueViolationError):
            await direct.script("insert into leases values ('x'), ('x')")
        with pytest.raises(asyncpg.InterfaceError):
            await direct.fetch("select 1", "an argument too many")


async def test_a_failed_transaction_leaves_nothing_and_the_connection_in_order(
    borrowed: Pool,
) -> None:

    async def fail() -> None:
        async with borrowed.transaction() as transaction:
            await transaction.fetch("insert into leases (name) values ($1)", "x")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    async with borrowed.connection() as same:
        assert await same.fetch("select * from leases") == []


async def test_a_read_only_server_is_unavailable(postgres_database: Database) -> None:
    """As one that a failover has left behind: it answers whoever only looks."""
    name = postgres_database.address.database
    store = await postgres_database.open()
    try:
        await run_sql(
            postgres_database.address,
            f"alter database {name} set default_transaction_read_only = on",
        )
        await end_connections(postgres_database)
        assert "its transactions are read-only" in await trouble(store)
        with pytest.raises(StoreUnavailable, match="the database is read-only"):
            await store.join(a_node(A))
    finally:
        await store.close()
    with pytest.raises(StoreUnavailable, match="read-only"):
        await postgres_database.open()


async def test_too_many_connections_are_told_as_unavailable(postgres_database: Database) -> None:
    name = postgres_database.address.database
    # Rights of a superuser would pass by the limit.
    await run_sql(
        postgres_database.address,
        "create role guest_of_test login",
        f"alter database {name} connection limit 0",
    )
    try:
        with pytest.raises(StoreUnavailable):
            await PostgresStore.open(
                host=postgres_database.address.host, user="guest_of_test", database=name
            )
    finally:
        await run_sql(postgres_database.address, "drop role guest_of_test")


async def test_a_database_that_does_not_exist_is_no_outage(postgres_database: Database) -> None:
    with pytest.raises(StoreError) as caught:
        await Database(replace(postgres_database.address, database="no_such_thing")).open()
    assert not isinstance(caught.value, StoreUnavailable)


@pytest.mark.slow
async def test_a_statement_has_a_time_limit(
    postgres_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "COMMAND_S", 0.05)
    async with connection(postgres_database.address) as direct:
        with pytest.raises(StoreUnavailable):
            await direct.row("select pg_sleep(60)")


async def test_waiting_for_a_free_connection_has_a_time_limit(
    borrowed: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "CONNECT_S", 0.05)
    async with borrowed.connection():
        with pytest.raises(StoreUnavailable):
            async with borrowed.connection():
                pytest.fail("there was only one connection")


async def test_a_cancelled_statement_leaves_the_store_usable(store: PostgresStore) -> None:
    for _ in range(20):
        task = asyncio.create_task(store.accept([inbox(1)], node=A, now=T0))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
    await store.ping()
    await store.accept([inbox(1)], node=A, now=T0)
    assert len(await store.claim_pending(A, now=T0, places=PLACES)) == 1


async def test_a_transaction_that_is_cancelled_at_any_moment_logs_nothing(
    borrowed: Pool, caplog: pytest.LogCaptureFixture
) -> None:
    """Such as at a SIGTERM just after the start."""

    async def work() -> None:
        async with borrowed.transaction() as here:
            await here.fetch("select 1 as one")

    for turns in range(20):
        task = asyncio.create_task(work())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
    await work()
    assert caplog.messages == []


async def test_who_is_cancelled_waits_only_shortly_for_a_connection_that_is_stuck(
    borrowed: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "RELEASE_S", 0.1)
    async with borrowed.connection() as stuck:
        row = await stuck.row("select pg_backend_pid() as pid")
    assert row is not None
    os.kill(row["pid"], signal.SIGSTOP)
    try:
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1), borrowed.connection() as stuck:
                await stuck.row("select 1 as one")
        assert time.monotonic() - began < pool.CLOSE_S
        async with borrowed.connection() as fresh:
            assert await fresh.fetch("select 1 from pg_database limit 1")
    finally:
        os.kill(row["pid"], signal.SIGCONT)


async def test_a_closed_store_is_unavailable(postgres_database: Database, tmp_path: Path) -> None:
    """As one where nobody answers."""
    with pytest.raises(StoreUnavailable):
        await PostgresStore.open(host=str(tmp_path), user="goclaw", database="goclaw")
    store = await postgres_database.open()
    await store.close()
    with pytest.raises(StoreUnavailable):
        await store.ping()


# ---------------------------------------------------------------------------- a server of its own


async def address_of(server: EmbeddedPostgres) -> tuple[Address, int]:
    started = await asyncio.to_thread(server.start)
    address = Address(host=started.host, user=started.user, database=started.database)
    return address, started.pid


@pytest.mark.slow
async def test_a_server_that_hangs_is_unavailable_within_the_time_limits(
    own_server: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "COMMAND_S", 0.2)
    monkeypatch.setattr(pool, "CONNECT_S", 0.2)
    monkeypatch.setattr(listener, "CHECK_EVERY_S", 0.1)
    address, postmaster = await address_of(own_server)
    async with connection(address) as direct:
        await migrate.migrate(direct)
        rows = await direct.fetch("select pid from pg_stat_activity")
    async with opened(Database(address)) as store:
        heard = CollectedNotices()
        store.on_notice(heard.append)
        async with connection(address) as direct:
            rows = await direct.fetch(
                "select pid from pg_stat_activity "
                "where backend_type = 'client backend' and pid <> pg_backend_pid()"
            )
        frozen = [postmaster, *(row["pid"] for row in rows)]
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        try:
            began = time.monotonic()
            for _ in range(2):
                with pytest.raises(StoreUnavailable):
                    await store.claim_next(ANN, node=A, now=T0)
            assert time.monotonic() - began < 30
        finally:
            for pid in frozen:
                os.kill(pid, signal.SIGCONT)
        await available_again(store)
        await until(heard.expect(*Notice))


# ---------------------------------------------------------------------------- how it asks


async def test_what_waits_in_a_session_is_read_once_however_many_messages_come(
    store: PostgresStore, postgres_database: Database
) -> None:
    def batch(number: int) -> str:
        target = {"channel": "c", "account": "a", "chat": "1"}
        row = {"session": "s", "agent": "x", "kind": "message", "received_at": T0.isoformat()}
        said = ({"external_id": f"{number} {n}", "target": target} for n in range(30))
        return json.dumps([row | {"message": message} for message in said])

    async with connection(postgres_database.address) as direct:
        asked = [
            await direct.fetch(queries("inbox")["accept"], A, T0, batch(number), False)
            for number in range(2)
        ]
    first, second = ([row["before"] for row in found if row["before"]] for found in asked)
    assert first == []
    assert [sorted(ids) for ids in second] == [[row["id"] for row in asked[0]]]


async def test_a_damaged_step_is_told_from_the_others(postgres_database: Database) -> None:
    """SPEC OPS-8: the others are still shown."""
    run = RunId("r1")
    step = NewMessagesStep("and Bob")
    async with opened(postgres_database) as store:
        await store.begin_run(new_run(run), node=A)
        await store.note_run(run, RunSoFar(steps=(step, step, step)), node=A)
        for damage in ("payload = '{' where seq = 1", "kind = 'x' where seq = 2"):
            await run_sql(postgres_database.address, f"update run_steps set {damage}")
        assert await store.run_steps(run) == (
            StoredStep(run, 1, step),
            StoredStep(run, 2, None),
            StoredStep(run, 3, None),
        )
