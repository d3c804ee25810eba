"""The watch over the database: who asks for it is told what is so now (SPEC DB-4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from goclaw_py.app.database import Database
from goclaw_py.config import load
from goclaw_py.core.errors import SessionShared, StoreUnavailable
from goclaw_py.records import Store
from goclaw_py.store.postgres import PostgresStore


class Server:
    """Answers a ping after a while, or never."""

    def __init__(self) -> None:
        self.takes_s = 0.0
        self.refuses = False
        self.why = "away"
        self.asked = 0

    async def ping(self) -> None:
        self.asked += 1
        await asyncio.sleep(self.takes_s)
        if self.refuses:
            raise StoreUnavailable(self.why)


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
async def database(tmp_path: Path, server: Server) -> AsyncIterator[Database]:
    url = "postgresql://nobody@localhost/none"
    settings = load(env={"GOCLAW_HOME": str(tmp_path), "GOCLAW_DATABASE_URL": url})
    made = Database(settings, say=lambda _line: None)
    watching = asyncio.create_task(made.watch(cast("Store", server)))
    yield made
    watching.cancel()


def told(database: Database) -> tuple[bool, str]:
    """Whether it is there, and else why not."""
    return database.reachable, database.trouble


async def test_one_that_hangs_is_away_before_it_is_given_up(
    database: Database, server: Server
) -> None:
    server.takes_s, server.refuses = 13.0, True
    await asyncio.sleep(4)
    assert told(database)[0]
    await asyncio.sleep(2)
    assert not told(database)[0]
    assert server.asked == 1, "it has one question at a time"


async def test_one_that_answers_late_is_back(database: Database, server: Server) -> None:
    server.takes_s = 8.0
    await asyncio.sleep(6)
    assert not told(database)[0]
    await asyncio.sleep(5)
    assert told(database)[0]


async def test_one_that_refuses_is_away_at_once_and_why(database: Database, server: Server) -> None:
    server.refuses = True
    await asyncio.sleep(2.5)
    assert told(database) == (False, "away")
    server.refuses = False
    await asyncio.sleep(2.5)
    assert told(database) == (True, "")


async def test_a_cause_that_a_later_ping_finds_is_logged_once_and_kept(
    database: Database, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that waits for its standby hangs first, and says later why."""
    server.takes_s, server.refuses = 5.0, True
    await asyncio.sleep(6)
    assert told(database) == (False, "it did not answer within 3 s")
    server.why = "its commits wait for a standby"
    for _ in range(20):
        await asyncio.sleep(2)
    assert told(database) == (False, "its commits wait for a standby")
    logged = [getattr(record, "error", "") for record in caplog.records]
    assert logged == ["it did not answer within 3 s", "its commits wait for a standby"]


class Opening(Database):
    """Fails to open for a while, for these reasons, one try after the other."""

    def __init__(self, tmp_path: Path, *reasons: StoreUnavailable) -> None:
        self.said: list[str] = []
        self.tries = list(reasons)
        url = "postgresql://nobody@localhost/none"
        settings = load(env={"GOCLAW_HOME": str(tmp_path), "GOCLAW_DATABASE_URL": url})
        super().__init__(settings, self.said.append)

    async def _open_once(self, *, may_migrate: bool) -> PostgresStore:
        if self.tries:
            raise self.tries.pop(0)
        return cast("PostgresStore", self)


async def test_why_a_start_waits_is_said_once_for_each_reason(tmp_path: Path) -> None:
    away, standby = StoreUnavailable("away"), StoreUnavailable("it is a standby")
    opening = Opening(tmp_path, away, away, away, standby, standby)
    await opening.open(wait=True)
    waits = "; retrying until the database is available"
    assert opening.said == [f"away{waits}", f"it is a standby{waits}"]


async def test_a_pooler_that_gives_sessions_away_is_not_waited_for(tmp_path: Path) -> None:
    opening = Opening(tmp_path, SessionShared("a pooler"), StoreUnavailable("never asked"))
    with pytest.raises(SessionShared):
        await opening.open(wait=True)
    assert len(opening.tries) == 1
