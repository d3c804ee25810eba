"""A connection that ends at any statement is an unavailable database, nothing else (SPEC DB-4)."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import asyncpg
import pytest

from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import OutboundMessage
from goclaw_py.core.outcomes import Outcome
from goclaw_py.store.postgres import Address, PostgresStore, connection
from goclaw_py.store.postgres import listener as listener_module
from goclaw_py.store.postgres import pool as pool_module
from goclaw_py.store.postgres.pool import Pool, translated
from tests.support.postgres import Database, run_sql
from tests.support.stores import ANN, PLACES, T0, A, a_node, end, inbox, new_run

pytestmark = pytest.mark.real_time

_MOST = 300
"""More packets than the work below sends."""

_SOCKET_NAME = ".s.PGSQL.5432"
_EMPTY = "truncate nodes, sessions, inbox, runs, drafts, outbox cascade"


@dataclass(slots=True)
class Wire:
    """What lies between a client and its server.

    Args:
        cut_at: At this packet of the client all its connections end.
        is_late: The packet reaches the server before; only its answer is lost.
    """

    cut_at: int = 0
    is_late: bool = False
    sent: int = 0
    ends: list[asyncio.StreamWriter] = field(default_factory=list)

    def cut(self) -> None:
        for end_of in self.ends:
            end_of.transport.abort()
        self.ends.clear()

    @asynccontextmanager
    async def to(self, server: Path, here: Path) -> AsyncIterator[None]:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            back, there = await asyncio.open_unix_connection(server)
            self.ends += [writer, there]
            with suppress(OSError):
                await asyncio.gather(self._up(reader, there), self._down(back, writer))

        listening = await asyncio.start_unix_server(serve, here)
        try:
            yield
        finally:
            self.cut()
            listening.close()

    async def _up(self, reader: asyncio.StreamReader, there: asyncio.StreamWriter) -> None:
        while packet := await reader.read(1 << 16):
            self.sent += 1
            is_cut = self.sent == self.cut_at
            if not is_cut or self.is_late:
                there.write(packet)
                await there.drain()
            if is_cut:
                self.cut()
                return
        there.close()

    async def _down(self, back: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while packet := await back.read(1 << 16):
            writer.write(packet)
            await writer.drain()
        writer.close()


async def _work(store: PostgresStore) -> None:
    """A message from its arrival to its answer."""
    await store.join(a_node(A))
    (row,) = (await store.accept([inbox(1)], node=A, now=T0)).rows
    await store.claim_pending(A, now=T0, places=PLACES)
    await store.begin_run(new_run("r", row), node=A)
    await store.open_draft(RunId("r"), ANN, now=T0)
    await store.finish_run(end("r", Outcome.COMPLETED, "done"), node=A)
    await store.settle((), Outcome.COMPLETED, now=T0, say=[OutboundMessage(ANN, "x")])
    await store.leave(A, now=T0)


async def _tried(database: Database, folder: Path, cut_at: int, *, is_late: bool) -> bool:
    """Work with a connection that ends at a packet; return whether it came to that."""
    address, wire = database.address, Wire(cut_at, is_late)
    async with wire.to(Path(str(address.host), _SOCKET_NAME), folder / _SOCKET_NAME):
        try:
            store = await PostgresStore.open(
                host=str(folder), user=address.user, database=address.database, max_size=1
            )
            try:
                await _work(store)
            finally:
                await store.close()
        except StoreUnavailable:
            assert wire.sent >= cut_at
    return wire.sent >= cut_at


@pytest.mark.parametrize("is_late", [False, True], ids=["before", "after"])
@pytest.mark.slow
async def test_a_connection_that_ends_at_any_packet_is_an_unavailable_database(
    postgres_database: Database, tmp_path_factory: pytest.TempPathFactory, *, is_late: bool
) -> None:
    folder = tmp_path_factory.mktemp("w")
    for cut_at in range(1, _MOST):
        if not await _tried(postgres_database, folder, cut_at, is_late=is_late):
            assert cut_at > 20
            return
        await run_sql(postgres_database.address, _EMPTY)
    raise AssertionError("the work does not end")


async def test_a_connection_over_a_network_that_loses_packets_ends_within_seconds(
    postgres_database: Database,
) -> None:
    """DB-4: it must not wait for the time-out of its statement, nor for the pauses of TCP."""
    address = postgres_database.address

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wire = Wire()
        back, there = await asyncio.open_unix_connection(Path(str(address.host), _SOCKET_NAME))
        with suppress(OSError):
            await asyncio.gather(wire._up(reader, there), wire._down(back, writer))

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    dsn = f"postgresql://{address.user}@127.0.0.1:{port}/{address.database}?sslmode=disable"
    async with connection(Address(dsn)) as opened:
        sock = opened._raw._transport.get_extra_info("socket")
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        if sys.platform == "linux":
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 5_000
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 2
    listening.close()


LOST = [
    asyncpg.InternalClientError("cannot switch to state 12; another operation (2) is in progress"),
    asyncpg.ProtocolError("unexpected message"),
    ConnectionResetError("reset"),
    TimeoutError(),
    asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation"),
    asyncpg.AdminShutdownError("terminating connection due to administrator command"),
    asyncpg.CrashShutdownError("terminating connection because of crash"),
]
ONLY_IF_CLOSED = [
    asyncpg.InterfaceError("connection is closed"),
    AttributeError("'NoneType' object has no attribute 'get_extra_info'"),
    RuntimeError("unable to perform operation on <UnixTransport closed=True>; handler is closed"),
]


@pytest.mark.parametrize("error", LOST, ids=lambda error: type(error).__name__)
def test_what_a_lost_connection_raises_is_an_unavailable_database(error: Exception) -> None:
    with pytest.raises(StoreUnavailable), translated():
        raise error


@pytest.mark.parametrize("error", ONLY_IF_CLOSED, ids=lambda error: type(error).__name__)
def test_an_error_is_a_bug_unless_the_connection_is_closed(error: Exception) -> None:
    with pytest.raises(StoreUnavailable), translated(lambda: True):
        raise error
    with pytest.raises(type(error)), translated(lambda: False):
        raise error


@dataclass(slots=True)
class LossyWire(Wire):
    """Loses all packets of the connections that exist when ``lose`` is called, for good."""

    opened: int = 0
    lost: frozenset[int] = frozenset()

    def lose(self) -> None:
        self.lost = frozenset(range(self.opened))

    async def _up(self, reader: asyncio.StreamReader, there: asyncio.StreamWriter) -> None:
        mine, self.opened = self.opened, self.opened + 1
        while packet := await reader.read(1 << 16):
            if mine not in self.lost:
                there.write(packet)
                await there.drain()
        there.close()


@pytest.mark.slow
async def test_one_dead_connection_condemns_those_that_are_as_old(
    postgres_database: Database,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """DB-4: after lost packets one caller waits for a time-out, and not one for each connection."""
    monkeypatch.setattr(pool_module, "COMMAND_S", 1.0)
    address, wire, folder = postgres_database.address, LossyWire(), tmp_path_factory.mktemp("l")
    here = replace(address, host=str(folder))
    async with wire.to(Path(str(address.host), _SOCKET_NAME), folder / _SOCKET_NAME):
        pool = await Pool.open(here, min_size=1, max_size=4)
        try:
            await asyncio.gather(*(pool.fetch("select pg_sleep(0.2)") for _ in range(4)))
            assert wire.opened == 4
            wire.lose()
            with pytest.raises(StoreUnavailable):
                await pool.fetch("select 1")
            for _ in range(4):
                assert await pool.fetch("select 1")
        finally:
            await pool.close()


async def test_statements_of_a_silent_network_end_when_the_server_answers_again(
    postgres_database: Database,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """DB-4: a new connection shows that the old ones are dead, long before their time-outs."""
    monkeypatch.setattr(pool_module, "COMMAND_S", 3600.0)
    monkeypatch.setattr(pool_module, "_SILENT_S", 0.1)
    monkeypatch.setattr(listener_module, "LOOK_EVERY_S", 0.1)
    monkeypatch.setattr(listener_module, "CHECK_S", 0.5)
    address, wire, folder = postgres_database.address, LossyWire(), tmp_path_factory.mktemp("l")
    dsn = f"postgresql://{address.user}@/{address.database}?host={folder}"
    async with wire.to(Path(str(address.host), _SOCKET_NAME), folder / _SOCKET_NAME):
        store = await PostgresStore.open(dsn, max_size=4)
        try:
            await store.nodes()
            wire.lose()
            async with asyncio.timeout(60):
                with pytest.raises(StoreUnavailable):
                    await store.nodes()
                await store.nodes()
        finally:
            await store.close()
