"""What fails halfway leaves nothing behind: each method of the store is one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace

import pytest

from goclaw_py.model.ids import RunId
from goclaw_py.model.messages import OutboundMessage
from goclaw_py.model.outcomes import Outcome
from goclaw_py.ports.store import Draft, InboxRow, SeenChat, Summary
from goclaw_py.store.postgres import PostgresStore, connection
from goclaw_py.store.postgres.pool import DatabaseError
from goclaw_py.store.sql import queries
from tests.support.postgres import Database, run_sql
from tests.support.stores import (
    ANN,
    PATIENCE_S,
    PLACES,
    T0,
    A,
    a_node,
    at,
    end,
    entry,
    inbox,
    key_of,
    new_run,
)

pytestmark = pytest.mark.real_time

R1, R2 = RunId("r1"), RunId("r2")
TABLES = (
    "nodes",
    "sessions",
    "moved_sessions",
    "history",
    "inbox",
    "runs",
    "drafts",
    "outbox",
    "chats",
)

REFUSE = """
create function refuse() returns trigger language plpgsql as $$
begin
    raise exception 'no more';
end
$$;
"""


@dataclass(frozen=True, slots=True)
class Busy:
    """A store in which a run works on the first of two messages; ``edit`` edits the second."""

    store: PostgresStore
    first: InboxRow
    second: InboxRow
    edit: InboxRow
    cut: InboxRow
    """A message of a run that was cut, with its draft."""
    place: int
    """Of an entry in the history."""


@pytest.fixture
async def busy(postgres_database: Database) -> AsyncIterator[Busy]:
    store = await postgres_database.open()
    try:
        yield await fill(store)
    finally:
        await store.close()


async def fill(store: PostgresStore) -> Busy:
    await store.join(a_node(A))
    said = inbox("2e", text="better")
    edit = replace(said, message=replace(said.message, edits="100:2"))
    batch = [inbox(1), inbox(2), edit, inbox(4)]
    first, second, edited, cut = (await store.accept(batch, node=A, now=T0)).rows
    await store.begin_run(new_run("r0", cut), node=A)
    await store.open_draft(RunId("r0"), ANN, now=T0)
    await store.finish_run(end("r0", Outcome.INTERRUPTED), node=A)
    await store.begin_run(new_run("r1", first), node=A)
    await store.open_draft(R1, ANN, now=T0)
    await store.note_chats([SeenChat(ANN, first.message.peer, "Ann")], now=T0)
    await store.note(key_of(ANN), entry("before"), rows=(), now=T0)
    await store.settle((), Outcome.COMPLETED, now=T0, say=[OutboundMessage(ANN, "x")])
    (place,) = (await store.begin_run(new_run("r1", first), node=A)).places
    return Busy(store, first, second, edited, cut, place)


async def everything(database: Database) -> dict[str, list[str]]:
    """What all tables hold."""
    async with connection(database.address) as opened:
        return {
            table: sorted(
                row["text"] for row in await opened.fetch(f"select t::text as text from {table} t")
            )
            for table in TABLES
        }


async def _move(busy: Busy) -> object:
    return await busy.store.move_chat("telegram", "default", old="100", new="300", now=at(5))


async def _finish(busy: Busy) -> None:
    finished = replace(end("r1", Outcome.COMPLETED, "done"), history=(entry("done"),))
    await busy.store.finish_run(finished, node=A)


async def _sum_up(busy: Busy) -> None:
    finished = replace(end("r1"), summary=Summary("before", busy.place))
    await busy.store.finish_run(finished, node=A)


async def _begin(busy: Busy) -> object:
    return await busy.store.begin_run(new_run("r2", busy.cut), node=A)


async def _note(busy: Busy) -> None:
    await busy.store.note(key_of(ANN), entry("noted"), rows=[busy.second.id], now=at(5))


async def _amend(busy: Busy) -> object:
    return await busy.store.amend(busy.edit)


Change = Callable[[Busy], Awaitable[object]]

CASES: list[tuple[Change, str]] = [
    *((_move, table) for table in TABLES if table != "nodes"),
    *((_finish, table) for table in ("runs", "inbox", "drafts", "history", "outbox")),
    *((_sum_up, table) for table in ("sessions", "runs", "inbox")),
    *((_begin, table) for table in ("runs", "inbox", "drafts", "sessions")),
    *((_note, table) for table in ("inbox", "history")),
    (_amend, "inbox"),
]


@pytest.mark.parametrize(
    ("change", "table"), CASES, ids=[f"{change.__name__[1:]}-{table}" for change, table in CASES]
)
async def test_a_change_that_fails_at_one_table_changes_no_other(
    busy: Busy, postgres_database: Database, change: Change, table: str
) -> None:
    """IO-2: the same as when the process or the server dies there."""
    before = await everything(postgres_database)
    refusal = (
        f"create trigger refuse before insert or update or delete on {table} "
        "execute function refuse()"
    )
    await run_sql(postgres_database.address, REFUSE, refusal)
    with pytest.raises(DatabaseError, match="no more"):
        await change(busy)
    assert await everything(postgres_database) == before
    await run_sql(postgres_database.address, f"drop trigger refuse on {table}")
    await change(busy)
    assert await everything(postgres_database) != before


async def test_an_edit_that_cannot_be_ended_is_not_brought_in(
    busy: Busy, postgres_database: Database
) -> None:
    """CHAN-6: both rows change or none."""
    refusal = (
        "create trigger refuse before update on inbox for each row "
        "when (new.state = 'done') execute function refuse()"
    )
    await run_sql(postgres_database.address, REFUSE, refusal)
    with pytest.raises(DatabaseError, match="no more"):
        await busy.store.amend(busy.edit)
    pending = await busy.store.claim_pending(A, now=T0, places=PLACES)
    assert [row.message.text for row in pending] == ["hello", "hello", "better", "hello"]


async def test_a_draft_that_is_being_opened_while_its_run_ends_ends_with_it(
    busy: Busy, postgres_database: Database
) -> None:
    """IO-5: no draft is left that nobody finishes."""
    await busy.store.begin_run(new_run("r2"), node=A)
    async with connection(postgres_database.address) as other:
        async with other.transaction():
            opening = (R2, ANN.channel, ANN.account, ANN.chat, None, T0)
            await other.fetch(queries("drafts")["open"], *opening)
            ending = asyncio.create_task(busy.store.finish_run(end("r2"), node=A))
            await _until_somebody_waits(postgres_database)
        await ending
    assert R2 not in [draft.run_id for draft in await busy.store.drafts()]


async def _until_somebody_waits(database: Database) -> None:
    async with connection(database.address) as watching, asyncio.timeout(PATIENCE_S):
        while not await watching.fetch("select from pg_locks where not granted"):
            await asyncio.sleep(0.005)


async def test_what_a_move_that_failed_left_can_be_worked_on(
    busy: Busy, postgres_database: Database
) -> None:
    await run_sql(
        postgres_database.address,
        REFUSE,
        "create trigger refuse before insert or update or delete on chats "
        "execute function refuse()",
    )
    with pytest.raises(DatabaseError, match="no more"):
        await _move(busy)
    await _finish(busy)
    begun = await busy.store.begin_run(new_run("r2", busy.cut), node=A)
    assert [stored.text for stored in begun.history] == ["before", "done"]
    assert begun.lost is not None
    assert await busy.store.drafts() == [Draft(R2, ANN, None)]
