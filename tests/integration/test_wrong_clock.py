"""On a machine whose clock is wrong, all goes by the database's (SPEC NODE-1)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from goclaw_py.app.backup.restore import examine, plan_restore
from goclaw_py.app.control import open_control
from goclaw_py.core.errors import BackupError
from goclaw_py.core.ids import NodeId
from goclaw_py.core.time.clocks import SystemClock
from goclaw_py.schedule.jobs.embedded.job_scheduler import Due, JobScheduler
from goclaw_py.store.postgres import PostgresStore
from tests.integration.test_backup import quiet, save, settings_of
from tests.support.postgres import Database
from tests.support.stores import a_node

pytestmark = pytest.mark.real_time

AHEAD = timedelta(minutes=5)
A = NodeId("a")


@pytest.fixture(autouse=True)
def ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of this machine is five minutes ahead."""
    monkeypatch.setattr(SystemClock, "now", lambda _: datetime.now(UTC) + AHEAD)


@pytest.fixture
async def live(postgres_database: Database) -> Database:
    """With a gateway of another machine, whose lease has just been renewed."""
    store = await postgres_database.open()
    try:
        await store.join(replace(a_node(A), lease_until=datetime.now(UTC) + AHEAD / 2))
    finally:
        await store.close()
    return postgres_database


async def alive(store: PostgresStore) -> list[NodeId]:
    return [node.id for node in await store.nodes()]


async def test_nothing_is_restored_under_a_gateway_that_looks_dead_from_here(
    live: Database, tmp_path: Path
) -> None:
    home = settings_of(live.address, tmp_path)
    file = tmp_path / "saved.tar.gz"
    await save(home, file)
    with pytest.raises(BackupError, match="a gateway works"):
        await plan_restore(home, examine(file, quiet), files=False)


async def test_commands_tell_who_lives_by_the_clock_of_the_database(
    live: Database, tmp_path: Path
) -> None:
    async with open_control(settings_of(live.address, tmp_path), create=False) as control:
        found = await control.nodes.list()
    assert [found.health(node) for node in found.nodes] == ["live"]


async def test_a_program_with_the_library_expires_no_gateway(live: Database) -> None:
    store = await live.open()
    jobs = JobScheduler(store)

    @jobs.on_due
    async def nothing(due: Due) -> None:
        """Do nothing."""

    try:
        await jobs.start()
        assert len(await alive(store)) == 2
        until = max(node.lease_until for node in await store.nodes() if node.id != A)
        assert until < datetime.now(UTC) + AHEAD / 2
        await jobs.stop(0)
        assert await alive(store) == [A]
    finally:
        await store.close()
