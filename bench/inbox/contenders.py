"""Queues on PostgreSQL that store one message durably for each call.

All of them get the same server, a database of their own, and as many connections. Each call
returns only after the message is committed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from goclaw_py.core.ids import AgentName, NodeId, SessionKey
from goclaw_py.core.messages import InboundMessage, PeerKind, Sender, Target
from goclaw_py.records import NewInbox, Node
from goclaw_py.store import migrate
from goclaw_py.store.postgres import Address, PostgresStore, connection

CONNECTIONS = 10
CHATS = 1_000
TEXT = "What is the weather like tomorrow, and do I need an umbrella?"
"""The body of each message."""

Insert = Callable[[int], Awaitable[object]]
"""Stores the message with this number, which nobody used before."""

Contender = Callable[[Address], AbstractAsyncContextManager[Insert]]
"""Prepares an empty database and opens it."""


@asynccontextmanager
async def goclaw(address: Address) -> AsyncIterator[Insert]:
    """The gateway's inbox: known messages fall out, sessions are made and claimed, in order."""
    async with connection(address) as direct:
        await migrate.migrate(direct)
    store = await PostgresStore.open(
        host=address.host, user=address.user, database=address.database, max_size=CONNECTIONS
    )
    node = NodeId("bench")
    begin = datetime.now(UTC)
    await store.join(Node(node, "here", 1, "0", begin, begin + timedelta(hours=1)))

    async def insert(number: int) -> None:
        accepted = await store.accept([_message(number)], node=node, now=datetime.now(UTC))
        if len(accepted.rows) != 1:
            raise RuntimeError(f"message {number} was not accepted")

    try:
        yield insert
    finally:
        await store.close()


def _message(number: int) -> NewInbox:
    chat = str(number % CHATS)
    target = Target("telegram", "default", chat)
    message = InboundMessage(
        external_id=f"{chat}:{number}",
        target=target,
        peer=PeerKind.DIRECT,
        sender=Sender(chat, "Ann", "ann"),
        text=TEXT,
        sent_at=datetime.now(UTC),
        message_id=str(number),
    )
    return NewInbox(message, SessionKey(f"agent:main:telegram:direct:{chat}"), AgentName("main"))


@asynccontextmanager
async def pgqueuer(address: Address) -> AsyncIterator[Insert]:
    """pgqueuer over asyncpg: a table of jobs with a trigger that tells the workers."""
    import asyncpg
    from pgqueuer.db import AsyncpgPoolDriver
    from pgqueuer.queries import Queries

    place = {"host": address.host, "user": address.user, "database": address.database}
    async with asyncpg.create_pool(**place, min_size=1, max_size=CONNECTIONS) as pool:
        queries = Queries(AsyncpgPoolDriver(pool))
        await queries.install()
        payload = TEXT.encode()

        async def insert(_number: int) -> object:
            return await queries.enqueue("chat", payload)

        yield insert


@asynccontextmanager
async def procrastinate(address: Address) -> AsyncIterator[Insert]:
    """procrastinate over psycopg: a function of the database stores the job and tells of it."""
    from procrastinate import App, PsycopgConnector

    app = App(
        connector=PsycopgConnector(
            kwargs={"host": address.host, "user": address.user, "dbname": address.database},
            min_size=1,
            max_size=CONNECTIONS,
        )
    )

    @app.task(name="chat")
    async def chat(text: str) -> None:
        """Never run here."""

    deferred: Any = chat
    async with app.open_async():
        await app.schema_manager.apply_schema_async()

        async def insert(_number: int) -> object:
            return await deferred.defer_async(text=TEXT)

        yield insert


CONTENDERS: dict[str, Contender] = {
    "goclaw_py": goclaw,
    "pgqueuer": pgqueuer,
    "procrastinate": procrastinate,
}
