"""The database of this process, embedded or managed, with the same code (SPEC DB-1)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from goclaw_py.app.progress import OnProgress, ProgressStep, ignore_progress
from goclaw_py.app.schema import Dump, ensure_fit, migrate_schema
from goclaw_py.config.models import Settings
from goclaw_py.core.errors import NoDatabase, SessionShared, StoreError, StoreUnavailable
from goclaw_py.records import Store
from goclaw_py.store.embedded import EmbeddedPostgres
from goclaw_py.store.postgres import Address, PostgresStore

log = logging.getLogger(__name__)

FOLDER = "postgres"
BACKUPS = "backups"
_WATCH_S = 2.0
_PATIENCE_S = 3.0
_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 15.0


class Database:
    """Opens the database, and starts the embedded server if no other is configured.

    With ``create=False`` it creates nothing, so that commands that only read do not change an empty
    or mistyped ``GOCLAW_HOME``. What it does is reported by ``on_progress``; ``say`` gets lines
    that a person should keep, by default it also reports them as progress.
    """

    def __init__(
        self,
        settings: Settings,
        say: Callable[[str], None] | None = None,
        *,
        on_progress: OnProgress = ignore_progress,
        create: bool = True,
    ) -> None:
        url = settings.database.url
        self._dsn = None if url is None else url.get_secret_value()
        self._tell = on_progress
        self._say = say = say or (lambda line: on_progress(ProgressStep(line)))
        self._state = settings.state_folder
        self._create = create
        self._backups = settings.state_folder / BACKUPS
        self._server = EmbeddedPostgres(settings.state_folder / FOLDER, say=say)
        self.reachable = True
        self._logged: set[str] = set()
        """The reasons that the log has for the present outage."""
        self.trouble = ""
        """Why the database is not ``reachable``."""

    @property
    def kind(self) -> str:
        """``embedded`` or ``managed``, for people."""
        return "embedded" if self._dsn is None else "managed"

    async def address(self) -> Address:
        """Return the address of the database; starts the embedded server if it is not running.

        Raises ``NoDatabase`` if there is none and it must not be created.
        """
        if self._dsn is not None:
            return Address(self._dsn, None, None, None)
        if not (self._create or self._server.exists):
            raise NoDatabase(
                f"there is no database in {self._state} yet; "
                "start the gateway with goclaw run, or correct GOCLAW_HOME"
            )
        self._tell(ProgressStep("starting the embedded database"))
        server = await asyncio.to_thread(self._server.start)
        self._tell(ProgressStep("opening the database"))
        return Address(None, str(server.host), server.user, server.database)

    async def open(self, *, wait: bool, may_migrate: bool = True) -> PostgresStore:
        """Connect, with the schema up to date.

        With ``wait`` it retries while the database is unavailable; without it, it raises
        ``StoreUnavailable``. Raises ``MigrationError`` if the schema is not up to date and may not
        be migrated, or cannot be; ``StoreError`` for an unsuitable database.
        """
        delay_s = _FIRST_WAIT_S
        said = ""
        while True:
            try:
                return await self._open_once(may_migrate=may_migrate)
            except SessionShared:
                # Waiting does not help: the pooler must be bypassed.
                raise
            except StoreUnavailable as error:
                if not wait:
                    raise
                if str(error) != said:
                    said = str(error)
                    self._say(f"{said}; retrying until the database is available")
                    log.warning("database_wait", extra={"error": said})
                await asyncio.sleep(delay_s)
                delay_s = min(2 * delay_s, _LONGEST_WAIT_S)

    async def _open_once(self, *, may_migrate: bool) -> PostgresStore:
        address = await self.address()
        await self.migrate(address, refuse=not may_migrate)
        return await PostgresStore.open(
            address.dsn, host=address.host, user=address.user, database=address.database
        )

    async def migrate(self, address: Address, *, refuse: bool = False) -> list[str]:
        """Bring the schema up to date; return the names of the files that were run.

        Raises ``StoreError`` for a managed database that does not meet the requirements.
        """
        if self._dsn is not None:
            await ensure_fit(address)
        return await migrate_schema(
            address, refuse=refuse, dump=self._dump(), on_progress=self._tell
        )

    def _dump(self) -> Dump | None:
        """Return how to back up the database; managed ones are backed up by their operators."""
        if self._dsn is not None:
            return None
        return Dump(self._server.binary("pg_dump"), self._backups)

    async def watch(self, store: Store) -> None:
        """Monitor whether the database is available, and restart the embedded server."""
        while True:
            await asyncio.sleep(_WATCH_S)
            try:
                await self._ping(store)
            except StoreUnavailable as error:
                self._miss(str(error))
                await self._revive()
            else:
                if not self.reachable:
                    log.info("database_available")
                    self._logged.clear()
                self.reachable, self.trouble = True, ""

    async def _ping(self, store: Store) -> None:
        """Ping the database. A server that hangs counts as unavailable before any timeout."""
        asked = asyncio.create_task(store.ping(), name="ping")
        try:
            await asyncio.wait({asked}, timeout=_PATIENCE_S)
            # What an earlier ping said about a cause says more than the wait for this one.
            if not asked.done() and self.reachable:
                self._miss(f"it did not answer within {_PATIENCE_S:g} s")
            await asked
        finally:
            asked.cancel()

    def _miss(self, why: str) -> None:
        if why not in self._logged:
            self._logged.add(why)
            log.warning("database_unavailable", extra={"error": why})
        self.reachable, self.trouble = False, why

    async def _revive(self) -> None:
        if self._dsn is not None:
            return
        try:
            await asyncio.to_thread(self._server.start)
        except StoreError as error:
            log.warning("embedded_database_start_failed", extra={"error": str(error)})

    async def close(self) -> None:
        """Stop the embedded server unless other processes use it."""
        if self._dsn is None:
            self._tell(ProgressStep("stopping the embedded database"))
            await asyncio.to_thread(self._server.stop)


@asynccontextmanager
async def open_store(
    settings: Settings, *, create: bool, on_progress: OnProgress = ignore_progress
) -> AsyncIterator[PostgresStore]:
    """Open the store for a CLI command. Raises ``StoreUnavailable`` if it cannot be reached.

    Only with ``create`` it makes a database or changes its schema. Otherwise raises ``NoDatabase``
    or ``MigrationError``.
    """
    database = Database(settings, on_progress=on_progress, create=create)
    try:
        store = await database.open(wait=False, may_migrate=create)
        try:
            on_progress(ProgressStep("reading the database"))
            yield store
        finally:
            await store.close()
    finally:
        await database.close()
