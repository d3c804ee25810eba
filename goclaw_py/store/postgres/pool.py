"""Connections to PostgreSQL, with ``asyncpg``.

It converts the driver's errors to ``StoreUnavailable``, and makes texts storable.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Final

import asyncpg

from goclaw_py.core.errors import SessionShared, StoreError, StoreUnavailable
from goclaw_py.store.postgres.address import COMMAND_S, CONNECT_S, Address, connecting
from goclaw_py.store.postgres.refusals import (
    OLDEST,
    RefusalKind,
    refusal,
    refusal_to_connect,
    too_old,
)
from goclaw_py.store.text import storable

Row = Mapping[str, Any]
"""A row of the driver. Only ``rows.py`` and the callers of queries read it."""

DatabaseError = asyncpg.PostgresError
"""An error of the server about a statement."""

COPY_S: Final = 86_400.0
"""Seconds for copying a table: tables may be large and disks slow."""
RELEASE_S: Final = 1.0
"""Seconds for the server to end a cancelled statement; then the connection is closed.

The cancelled caller waits for it, within a transaction also for the rollback.
"""
_SILENT_S: Final = 2.0
"""Seconds without a response after which a connection is dead if another one is."""
_SLOW_S: Final = 5.0
"""The same after a statement that took too long: the server may only be slow."""
CLOSE_S: Final = 5.0
_IDLE_S: Final = 30.0
"""Seconds after which an unused connection is closed.

All are opened in the first moment, when every background task reads what it needs; afterwards a few
are used again and again. Each takes 2 to 8 MB of the server.
"""

# The client's own limits do not reach a server whose client is gone: a process that is frozen in a
# transaction would keep its locks for hours, and block all others.
_SESSION: Final = {
    # What a role or a database has set for everybody is meant for people, and would end what waits.
    "statement_timeout": "0",
    "idle_session_timeout": "0",
    "idle_in_transaction_session_timeout": "10s",
    "lock_timeout": "5s",
    # Statements are written for it: one that meets another's change sees it, instead of failing.
    "default_transaction_isolation": "read committed",
    # Each statement is planned once: planning it again takes longer than running it, and compiling
    # its plan longer still.
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
    # A plan is used until the statistics change. If a table was nearly empty then, reading it whole
    # seemed cheapest, even to find a row by its key, and stays the plan while a burst fills it.
    # With this, a table is read whole only where no index answers (docs/adr/0038).
    "enable_seqscan": "off",
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "15s",
}
_SOCKET: Final = {
    "SO_KEEPALIVE": (socket.SOL_SOCKET, 1),
    "TCP_KEEPIDLE": (socket.IPPROTO_TCP, 2),
    "TCP_KEEPINTVL": (socket.IPPROTO_TCP, 1),
    "TCP_KEEPCNT": (socket.IPPROTO_TCP, 3),
    "TCP_USER_TIMEOUT": (socket.IPPROTO_TCP, 5_000),
}
"""The same for our side, where the system has it.

After lost packets every connection with a statement under way would otherwise wait for its own
time-out, and then for the ever longer pauses of TCP. A slow server acknowledges what it gets, so a
statement that takes its time is not cut.
"""
_SLOW: Final = "find out whether it runs, and what delays it: its load, the network, a firewall"
_SESSION_OF_17: Final = {"transaction_timeout": "0"}
_ARRAYS: Final = (
    "select $1::bigint[], $2::boolean[], $3::bytea[], $4::integer[], $5::jsonb[], $6::timestamptz[]"
)
"""All types of arrays in our statements, beside ``text[]``, which the driver knows."""


def _translate(error: Exception, *, at_work: bool) -> StoreError | None:
    """Return our error for one of the driver; None if it is a bug of ours.

    A refusal ``at_work`` may be temporary: a password was changed, or another server took over.
    """
    if isinstance(error, socket.gaierror):
        return StoreUnavailable(f"a host of database.url cannot be found: {error.strerror}")
    if isinstance(error, ssl.SSLCertVerificationError) and not at_work:
        cure = "correct sslrootcert, sslmode or the host in database.url"
        return StoreError(f"the certificate of the database: {error.verify_message}", cure)
    if isinstance(error, ConnectionError) and "rejected SSL upgrade" in str(error) and not at_work:
        return StoreError("the database offers no TLS", "correct sslmode in database.url")
    if isinstance(error, ssl.SSLError) and not at_work:
        return StoreUnavailable(f"TLS with the database failed: {error.reason or error}")
    if isinstance(error, OSError):  # includes TimeoutError, which has no words
        why, cure = (f": {error}", "") if str(error) else (" in time", _SLOW)
        return StoreUnavailable(f"the database does not answer{why}", cure)
    state = getattr(error, "sqlstate", None) or ""
    found = (refusal if at_work else refusal_to_connect)(state, str(error))
    if found is None:
        return None
    if found.kind is RefusalKind.SHARED:
        return SessionShared(found.fact)
    is_over = found.kind is RefusalKind.REFUSED and not at_work
    return (StoreError if is_over else StoreUnavailable)(found.fact, found.cure)


@contextmanager
def translated(
    is_closed: Callable[[], bool] = lambda: False, *, at_work: bool = True
) -> Iterator[None]:
    """Convert errors of the driver to ours; only this knows what a lost connection raises.

    ``is_closed`` tells whether the connection was lost: the driver then raises the same classes as
    for wrong arguments. ``at_work`` is False during the first connection.
    """
    try:
        yield
    except StoreError:
        raise
    except (OSError, asyncpg.PostgresError) as error:
        if (ours := _translate(error, at_work=at_work)) is not None:
            raise ours from error
        raise
    except asyncpg.TargetServerAttributeNotMatched as error:
        words = "no server of database.url is as its target_session_attrs says, such as a primary"
        raise StoreUnavailable(words) from error
    except asyncpg.InternalClientError as error:
        # The protocol broke off; the driver may not have noticed yet that the connection is lost.
        raise StoreUnavailable(f"the connection to the database broke off: {error}") from error
    except Exception as error:
        if is_closed():
            raise StoreUnavailable(f"the connection to the database is gone: {error}") from error
        raise


class Connection:
    """A connection, or a transaction on it."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw

    def is_gone(self) -> bool:
        """Return whether it has ended."""
        try:
            return bool(self._raw.is_closed())
        except asyncpg.InterfaceError:
            # The pool takes a connection back in the moment in which it is lost.
            return True

    def terminate(self) -> None:
        """Close it without a message to the server."""
        if not self.is_gone():
            self._raw.terminate()

    async def fetch(self, query: str, *arguments: object) -> list[Row]:
        """Run a statement and return its rows."""
        with translated(self.is_gone):
            rows: list[Row] = await self._raw.fetch(query, *storable(arguments))
        return rows

    async def row(self, query: str, *arguments: object) -> Row | None:
        """Run a statement and return its first row, if any."""
        with translated(self.is_gone):
            row: Row | None = await self._raw.fetchrow(query, *storable(arguments))
        return row

    async def script(self, text: str, *, timeout_s: float | None = None) -> None:
        """Run any number of statements without arguments."""
        with translated(self.is_gone):
            await self._raw.execute(text, timeout=timeout_s)

    async def copy_out(
        self, table: str, columns: Sequence[str], write: Callable[[bytes], Awaitable[None]]
    ) -> int:
        """Pass all rows of a table to ``write``, as PostgreSQL's text; return their number."""
        with translated(self.is_gone):
            done = await self._raw.copy_from_table(
                table, columns=columns, output=write, format="text", timeout=COPY_S
            )
        return int(done.rpartition(" ")[2])

    async def copy_in(self, table: str, columns: Sequence[str], data: AsyncIterator[bytes]) -> int:
        """Add rows in PostgreSQL's text format to a table; return their number."""
        with translated(self.is_gone):
            done = await self._raw.copy_to_table(
                table, columns=columns, source=data, format="text", timeout=COPY_S
            )
        return int(done.rpartition(" ")[2])

    async def lock(self, key: int, *, wait_s: float) -> bool:
        """Take an advisory lock until ``unlock`` or the end of the connection.

        Returns False if another session held it for ``wait_s`` seconds.
        """
        # The server's own limit: a client that stops waiting would not know whether it got it.
        await self.script(f"set lock_timeout = {round(wait_s * 1000)}")
        try:
            with translated(self.is_gone):
                return await self._locked(key, wait_s)
        finally:
            if not self.is_gone():
                await self.script(f"set lock_timeout = '{_SESSION['lock_timeout']}'")

    async def _locked(self, key: int, wait_s: float) -> bool:
        try:
            await self._raw.execute("select pg_advisory_lock($1)", key, timeout=wait_s + COMMAND_S)
        except asyncpg.LockNotAvailableError:
            return False
        return True

    async def unlock(self, key: int) -> None:
        """Release an advisory lock, if the connection has not ended."""
        if not self.is_gone():
            await self.fetch("select pg_advisory_unlock($1)", key)

    async def listen(self, channel: str, callback: Callable[[], None]) -> None:
        """Call ``callback`` for each notice on a channel, until the connection ends."""
        with translated(self.is_gone):
            await self._raw.add_listener(channel, lambda *_: callback())

    def on_loss(self, gone: Callable[[], None]) -> None:
        """Call ``gone`` once when the connection ends for any reason."""
        self._raw.add_termination_listener(lambda _: gone())

    @asynccontextmanager
    async def transaction(self, *, snapshot: bool = False) -> AsyncIterator[None]:
        """Commit at the end, or roll back after an exception.

        With ``snapshot`` it is read-only, and all its statements see the same moment.
        """
        isolation = "repeatable_read" if snapshot else None
        transaction = self._raw.transaction(isolation=isolation, readonly=snapshot)
        try:
            with translated(self.is_gone):
                await transaction.start()
        except BaseException:
            # It may have begun, and the driver cannot roll it back.
            self.terminate()
            raise
        try:
            yield
        except StoreUnavailable:
            # The server may be hanging: rolling back would wait for it once more.
            self.terminate()
            raise
        except BaseException:
            # What was raised counts more than a rollback that the server has done by itself.
            with suppress(StoreUnavailable), translated(self.is_gone):
                await transaction.rollback()
            raise
        with translated(self.is_gone):
            await transaction.commit()

    async def close(self) -> None:
        """Close it, without the protocol's farewell if the server does not respond."""
        try:
            with translated(self.is_gone):
                await self._raw.close(timeout=CLOSE_S)
        except StoreUnavailable:
            self.terminate()


async def connect(address: Address, *, bare: bool = False) -> Connection:
    """Open a connection outside of a pool.

    A ``bare`` connection does not change its session, which it may share with others. Raises
    ``StoreUnavailable`` if there is no response, ``StoreError`` if we are refused or the address is
    not valid.
    """
    cache = {"statement_cache_size": 0} if bare else {}
    with translated(at_work=False), connecting(address):
        raw = await asyncpg.connect(**address.arguments(), **cache)
    if not bare:
        try:
            with translated(raw.is_closed):
                await _settle(raw)
        except BaseException:
            raw.terminate()
            raise
    return Connection(raw)


async def _settle(raw: Any) -> None:
    """Set all parameters of a new session that matter to us.

    Raises ``StoreError`` if the server is too old for one.
    """
    major = raw.get_server_version().major
    if major < OLDEST:
        raise StoreError(too_old(major))
    _limit_silence(raw._transport.get_extra_info("socket"))  # noqa: SLF001 - it has no option for it
    newer = _SESSION_OF_17 if major >= 17 else {}
    wishes = (_SESSION | newer).items()
    await raw.execute("; ".join(f"set {name} = '{value}'" for name, value in wishes))


def _limit_silence(opened: socket.socket | None) -> None:
    """Let a connection over a network end soon after its packets are lost."""
    if opened is not None and opened.family in (socket.AF_INET, socket.AF_INET6):
        for name, (level, value) in _SOCKET.items():
            if (option := getattr(socket, name, None)) is not None:
                opened.setsockopt(level, option, value)


async def _open(raw: Any) -> None:
    """Prepare a new connection of the pool.

    The driver looks up types of arrays in the catalog, for each connection, when a statement has
    one first. Together that takes one query, not one for each statement with another type.
    """
    with translated(raw.is_closed):
        await _settle(raw)
        await raw.prepare(_ARRAYS)


async def _reset_nothing(_connection: object) -> None:
    """Reset nothing: no code here changes a session, and a reset costs a round trip."""


class Pool:
    """A limited number of connections."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self._lent: dict[Connection, float] = {}
        """The borrowed connections, with the time of the loop's clock since which each is."""

    @classmethod
    async def open(cls, address: Address, *, min_size: int, max_size: int) -> Pool:
        """Connect. Raises as ``connect``."""
        with translated(at_work=False), connecting(address):
            pool = asyncpg.create_pool(
                **address.arguments(),
                min_size=min_size,
                max_size=max_size,
                max_inactive_connection_lifetime=_IDLE_S,
                # A timer for each statement would keep the context variables of the run that was
                # the first to use it, and so its conversation and pictures, for minutes.
                max_cached_statement_lifetime=0,
                init=_open,
                reset=_reset_nothing,
            )
            return cls(await pool)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """Borrow a connection; each statement is its own transaction."""
        with translated(self._raw.is_closing):
            raw = await self._raw.acquire(timeout=CONNECT_S)
        connection, loop = Connection(raw), asyncio.get_running_loop()
        self._lent[connection] = loop.time()
        try:
            yield connection
        except BaseException as error:
            if isinstance(error, StoreUnavailable):
                is_slow = isinstance(error.__cause__, TimeoutError) and not connection.is_gone()
                if is_slow or connection.is_gone():
                    self.condemn(loop.time() - (_SLOW_S if is_slow else _SILENT_S))
                connection.terminate()
            # What was raised counts more: a cancellation that turned into "the database is away"
            # would be taken for a reason to try again.
            with suppress(StoreUnavailable):
                await self._release(connection, raw)
            raise
        finally:
            del self._lent[connection]
        await self._release(connection, raw)

    def is_late(self) -> bool:
        """Return whether somebody has had a connection for longer than a statement takes."""
        before = asyncio.get_running_loop().time() - _SILENT_S
        return any(since < before for since in self._lent.values())

    def condemn(self, before: float) -> None:
        """Close idle connections, and those that were borrowed ``before``, after one was lost.

        What loses packets loses those of all connections, and each would be found dead by a caller
        that waits for its own time-out. The driver can only close them with a farewell, for which
        it would wait.
        """
        for holder in self._raw._holders:  # noqa: SLF001
            if holder._con is not None and holder._in_use is None:  # noqa: SLF001
                holder._con.terminate()  # noqa: SLF001
        for connection, since in tuple(self._lent.items()):
            if since < before:
                connection.terminate()

    async def _release(self, connection: Connection, raw: Any) -> None:
        with translated(connection.is_gone):
            await self._raw.release(raw, timeout=RELEASE_S)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """Borrow a connection for one transaction."""
        async with self.connection() as connection, connection.transaction():
            yield connection

    async def fetch(self, query: str, *arguments: object) -> list[Row]:
        """Run one statement, which is its own transaction; return its rows."""
        async with self.connection() as connection:
            return await connection.fetch(query, *arguments)

    async def row(self, query: str, *arguments: object) -> Row | None:
        """Run one statement, which is its own transaction; return its first row, if any."""
        async with self.connection() as connection:
            return await connection.row(query, *arguments)

    async def close(self) -> None:
        """Wait shortly for calls in progress, then close all connections."""
        try:
            with translated(self._raw.is_closing):
                async with asyncio.timeout(CLOSE_S):
                    await self._raw.close()
        except StoreUnavailable:
            self._raw.terminate()
