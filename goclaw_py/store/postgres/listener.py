"""Notices from the database, on a separate connection that reconnects."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from goclaw_py.model.errors import StoreError
from goclaw_py.ports.store import Notice
from goclaw_py.store.postgres.address import Address
from goclaw_py.store.postgres.fitness import ensure_writable
from goclaw_py.store.postgres.pool import Connection, connect

logger = logging.getLogger(__name__)

FIRST_DELAY_S: Final = 0.1
LAST_DELAY_S: Final = 5.0
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

    def add(self, hear: Callable[[Notice], None]) -> None:
        """Call ``hear`` for each notice from now on."""
        self._hearers.append(hear)

    async def start(self) -> None:
        """Connect and start to listen. Raises ``StoreUnavailable``."""
        connection, lost = await self._listen()
        self._task = asyncio.create_task(self._keep(connection, lost), name="store-listener")

    async def close(self) -> None:
        """Close the connection."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _tell(self, notice: Notice) -> None:
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
                await connection.listen(notice, partial(self._tell, notice))
        except BaseException:
            await connection.close()
            raise
        return connection, lost

    async def _keep(self, connection: Connection, lost: asyncio.Event) -> None:
        while True:
            try:
                await _until_lost(connection, lost)
            finally:
                await connection.close()
            logger.warning("database_notices_lost")
            connection, lost = await self._reconnect()
            logger.info("database_notices_restored")
            for notice in Notice:
                self._tell(notice)

    async def _reconnect(self) -> tuple[Connection, asyncio.Event]:
        delay_s = FIRST_DELAY_S
        while True:
            await asyncio.sleep(delay_s)
            delay_s = min(delay_s * 2, LAST_DELAY_S)
            try:
                return await self._listen()
            except StoreError as error:
                logger.debug("database_notices_retry", extra={"error": str(error)})


async def _until_lost(connection: Connection, lost: asyncio.Event) -> None:
    """Return when the connection has ended, does not respond, or leads to a standby."""
    while not lost.is_set():
        try:
            async with asyncio.timeout(CHECK_EVERY_S):
                await lost.wait()
        except TimeoutError:
            try:
                # One that has become a standby, or read-only, sends no notices any more.
                await ensure_writable(connection)
            except StoreError:
                return
