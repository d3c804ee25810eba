"""Notices from the database, on a separate connection that reconnects."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from goclaw_py.core.errors import StoreError, StoreUnavailable
from goclaw_py.records import Notice
from goclaw_py.store.postgres.address import Address
from goclaw_py.store.postgres.fitness import ensure_writable
from goclaw_py.store.postgres.pool import Connection, connect

logger = logging.getLogger(__name__)

FIRST_DELAY_S: Final = 0.1
LAST_DELAY_S: Final = 1.0
LONGEST_TRY_S: Final = 30.0
LOOK_EVERY_S: Final = 1.0
"""How often it looks whether others wait, and the limit of the first try to connect again."""
CHECK_S: Final = 3.0
"""How long the server has for an answer."""
CHECK_EVERY_S: Final = 15.0
"""A connection that a network dropped silently looks alive until it is used."""


class Listener:
    """Receives notices and passes them on in the event loop.

    Notices are hints. Some may be missed while the connection is lost, so after that every listener
    gets every notice once.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._hearers: list[Callable[[Notice], None]] = []
        self._task: asyncio.Task[None] | None = None
        self._is_suspect: Callable[[], bool] = lambda: False
        self._on_return: Callable[[float], None] = lambda _: None

    def guard(self, is_suspect: Callable[[], bool], on_return: Callable[[float], None]) -> None:
        """Look after other connections to the server, which may wait for lost packets.

        While ``is_suspect``, the server is asked whether it answers. ``on_return`` is called when
        it answers again, with the time of the loop's clock since which it did not.
        """
        self._is_suspect, self._on_return = is_suspect, on_return

    def add(self, callback: Callable[[Notice], None]) -> None:
        """Call ``callback`` for each notice from now on."""
        self._hearers.append(callback)

    async def start(self) -> None:
        """Connect and start to listen. Raises ``StoreUnavailable``."""
        connection, lost = await self._listen()
        self._task = asyncio.create_task(self._supervise(connection, lost), name="store-listener")

    async def close(self) -> None:
        """Close the connection."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _notify(self, notice: Notice) -> None:
        loop = asyncio.get_running_loop()
        for hear in self._hearers:
            # Apart from this task: an error in one of them must not end the listening.
            loop.call_soon(hear, notice)

    async def _listen(self) -> tuple[Connection, asyncio.Event]:
        connection = await connect(self._address)
        lost = asyncio.Event()
        connection.on_loss(lost.set)
        try:
            await ensure_writable(connection)
            for notice in Notice:
                await connection.listen(notice, partial(self._notify, notice))
        except BaseException:
            await connection.close()
            raise
        return connection, lost

    async def _supervise(self, connection: Connection, lost: asyncio.Event) -> None:
        while True:
            try:
                away_since = await self._until_lost(connection, lost)
            finally:
                await connection.close()
            logger.warning("database_notices_lost")
            connection, lost = await self._reconnect(away_since)
            logger.info("database_notices_restored")
            for notice in Notice:
                self._notify(notice)

    async def _until_lost(self, connection: Connection, lost: asyncio.Event) -> float | None:
        """Return when the connection has ended, does not respond, or leads to a standby.

        The result is the time since which it does not respond, if that is why.
        """
        loop = asyncio.get_running_loop()
        check_at = loop.time() + CHECK_EVERY_S
        while not lost.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout_at(min(loop.time() + LOOK_EVERY_S, check_at)):
                    await lost.wait()
            asked_at = loop.time()
            if asked_at < check_at and not self._is_suspect():
                continue
            check_at = asked_at + CHECK_EVERY_S
            # Not a cancellation: for that, the driver would wait for the server.
            limit = loop.call_later(CHECK_S, connection.terminate)
            try:
                # One that has become a standby, or read-only, sends no notices any more.
                await ensure_writable(connection)
            except StoreError:
                connection.terminate()
                return asked_at
            finally:
                limit.cancel()
        return None

    async def _reconnect(self, away_since: float | None) -> tuple[Connection, asyncio.Event]:
        delay_s, limit_s = FIRST_DELAY_S, LOOK_EVERY_S
        while True:
            await asyncio.sleep(delay_s)
            delay_s = min(delay_s * 2, LAST_DELAY_S)
            began = asyncio.get_running_loop().time()
            try:
                # The first tries are short: what is sent before the network is back is lost.
                async with asyncio.timeout(limit_s):
                    found = await self._listen()
            except (StoreUnavailable, TimeoutError) as error:
                logger.debug("database_notices_retry", extra={"error": str(error)})
                away_since = began if away_since is None else away_since
                limit_s = min(limit_s * 2, LONGEST_TRY_S)
            except StoreError as error:
                logger.debug("database_notices_retry", extra={"error": str(error)})
            else:
                if away_since is not None:
                    self._on_return(away_since)
                return found
