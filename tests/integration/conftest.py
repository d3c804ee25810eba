"""Model agents on a loopback server; stores, servers and migrations that only these tests need."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from goclaw_py.agents.models import ModelAgent, Provider
from goclaw_py.store import migrate
from goclaw_py.store.embedded import EmbeddedPostgres
from goclaw_py.store.postgres import PostgresStore
from tests.support.model_agents import BOTH, ModelAgents, model_agents, url
from tests.support.model_server import ModelServer
from tests.support.postgres import FAST_AND_FORGETFUL, Database
from tests.support.stores import A, a_node

OTHER_KEY = "sk-ant-other-ZYXWVUTSRQPONMLK"


@pytest_asyncio.fixture
async def agents() -> AsyncIterator[ModelAgents]:
    async with model_agents() as made:
        yield made


@pytest.fixture(params=BOTH)
def provider(request: pytest.FixtureRequest) -> Provider:
    """Each of the two protocols that the server speaks."""
    return Provider(request.param)


@pytest.fixture
def server(agents: ModelAgents) -> ModelServer:
    return agents.server


@pytest.fixture
def agent(agents: ModelAgents) -> ModelAgent:
    return agents.make(model="gpt-4o", system_prompt="You are terse.")


@pytest_asyncio.fixture
async def other(agents: ModelAgents) -> AsyncIterator[ModelServer]:
    """A second server: where another provider is, or the models that stand in."""
    async with ModelServer() as server:
        for provider in BOTH:
            agents.environ[provider.key_variable] = OTHER_KEY
            agents.environ[provider.url_variable] = url(server, provider)
        yield server


@pytest.fixture
async def store(postgres_database: Database) -> AsyncIterator[PostgresStore]:
    """That of a node that has joined."""
    opened = await postgres_database.open()
    try:
        await opened.join(a_node(A))
        yield opened
    finally:
        await opened.close()


@pytest.fixture
def own_server() -> Iterator[EmbeddedPostgres]:
    """A server that a test may stop, apart from the one that the other tests share."""
    with tempfile.TemporaryDirectory(prefix="goclaw-pg-", dir="/tmp") as folder:
        server = EmbeddedPostgres(Path(folder) / "postgres", settings=FAST_AND_FORGETFUL)
        server.start()
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """The migrations of a later release, which has one more."""
    folder = tmp_path / "migrations"
    shutil.copytree(migrate.FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__"))
    number = f"{migrate.known()[-1].version + 1:04}"
    (folder / f"{number}_pets.up.sql").write_text(
        "create table pets (id bigint primary key);\n"
        "alter table history add column mood text not null default '';"
    )
    (folder / f"{number}_pets.down.sql").write_text(
        "alter table history drop column mood;\ndrop table pets;"
    )
    return folder
