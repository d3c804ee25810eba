"""What fails halfway leaves nothing behind: each method of the store is one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import pytest

from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import OutboundMessage
from goclaw_py.core.outcomes import Outcome
from goclaw_py.records import Draft, InboxRow, SeenChat, Summary
from goclaw_py.store.postgres import PostgresStore, connection
from goclaw_py.store.postgres.pool import DatabaseError
from goclaw_py.store.sql import queries
from tests.integration.postgres_work import changes_all_or_nothing, refusing, until_somebody_waits
from tests.support.postgres import Database
from tests.support.stores import ANN, PLACES, T0, A, at, end, entry, inbox, key_of, new_run

pytestmark = pytest.mark.real_time

R1, R2 = RunId("r1"), RunId("r2")
TABLES = [
    "nodes",
    "sessions",
    "moved_sessions",
    "history",
    "inbox",
    "runs",
    "drafts",
    "outbox",
    "chats",
]


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
async def busy(store: PostgresStore) -> Busy:
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


async def _finish(busy: Busy) -> None:
    finished = replace(end("r1", Outcome.COMPLETED, "done"), history=(entry("done"),))
    await busy.store.finish_run(finished, node=A)


async def _sum_up(busy: Busy) -> None:
    finished = replace(end("r1"), summary=Summary("before", busy.place))
    await busy.store.finish_run(finished, node=A)


async def _move(busy: Busy) -> object:
    return await busy.store.move_chat("telegram", "default", old="100", new="300", now=at(5))


Change = Callable[[Busy], Awaitable[object]]
CHANGES: dict[str, tuple[Change, str]] = {
    "move": (_move, "sessions moved_sessions history inbox runs drafts outbox chats"),
    "finish": (_finish, "runs inbox drafts history outbox"),
    "sum up": (_sum_up, "sessions runs inbox"),
    "begin": (
        lambda b: b.store.begin_run(new_run("r2", b.cut), node=A),
        "runs inbox drafts sessions",
    ),
    "note": (
        lambda b: b.store.note(key_of(ANN), entry("noted"), rows=[b.second.id], now=at(5)),
        "inbox history",
    ),
    "amend": (lambda b: b.store.amend(b.edit), "inbox"),
}


@pytest.mark.parametrize(
    ("name", "table"),
    [(name, table) for name, (_, tables) in CHANGES.items() for table in tables.split()],
)
async def test_a_change_that_fails_at_one_table_changes_no_other(
    busy: Busy, postgres_database: Database, name: str, table: str
) -> None:
    """IO-2: the same as when the process or the server dies there."""
    await changes_all_or_nothing(postgres_database, lambda: CHANGES[name][0](busy), TABLES, table)


async def test_an_edit_that_cannot_be_ended_is_not_brought_in(
    busy: Busy, postgres_database: Database
) -> None:
    """CHAN-6: both rows change or none."""
    done = "for each row when (new.state = 'done')"
    async with refusing(postgres_database, "inbox", "update", done):
        with pytest.raises(DatabaseError, match="no more"):
            await busy.store.amend(busy.edit)
    pending = await busy.store.claim_pending(A, now=T0, places=PLACES)
    assert [row.message.text for row in pending] == ["hello", "hello", "better", "hello"]


async def test_what_a_move_that_failed_left_can_be_worked_on(
    busy: Busy, postgres_database: Database
) -> None:
    async with refusing(postgres_database, "chats"):
        with pytest.raises(DatabaseError, match="no more"):
            await _move(busy)
    await _finish(busy)
    begun = await busy.store.begin_run(new_run("r2", busy.cut), node=A)
    assert [stored.text for stored in begun.history] == ["before", "done"]
    assert begun.lost is not None
    assert await busy.store.drafts() == [Draft(R2, ANN, None)]


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
            await until_somebody_waits(postgres_database)
        await ending
    assert R2 not in [draft.run_id for draft in await busy.store.drafts()]
