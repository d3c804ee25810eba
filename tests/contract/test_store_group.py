"""What every store promises to callers that ask at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from goclaw_py.core.errors import Fenced, RunNotStarted
from goclaw_py.core.ids import NodeId, RunId, SessionKey
from goclaw_py.core.messages import HistoryEntry, LostDraft, Role, Target
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.run_events import Usage
from goclaw_py.records import (
    AcceptedMessages,
    NewInbox,
    OutboxQuery,
    OutboxState,
    RunQuery,
    RunStartResult,
    Store,
)
from tests.support.stores import (
    ANN,
    BOB,
    PLACES,
    T0,
    A,
    B,
    World,
    at,
    end,
    entry,
    inbox,
    key_of,
    new_run,
    pairing,
    ran,
    say,
    todo,
)

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

MANY = 40


def chat(number: int) -> Target:
    return Target("telegram", "default", str(1000 + number))


async def accept_apart(
    store: Store, batch: list[NewInbox], node: NodeId = A
) -> list[AcceptedMessages]:
    """Each message by a caller of its own, all at once."""
    return await asyncio.gather(*(store.accept([row], node=node, now=T0) for row in batch))


async def outcomes(*calls: Coroutine[Any, Any, object]) -> list[object]:
    return await asyncio.gather(*calls, return_exceptions=True)


# ---------------------------------------------------------------------------- accepting


async def test_messages_that_are_accepted_at_once_keep_the_order_of_the_calls(world: World) -> None:
    """IO-2."""
    batch = [inbox(n, ANN if n % 3 else BOB) for n in range(3 * MANY)]
    accepted = await accept_apart(world.a, batch)
    for target in (ANN, BOB):
        ids = [row.id for one in accepted for row in one.rows if row.session == key_of(target)]
        assert ids == sorted(ids)
    assert [one.rows[0].message for one in accepted] == [row.message for row in batch]


async def test_of_callers_with_the_same_message_one_gets_it(world: World) -> None:
    """IO-1: named as its own caller named it."""
    accepted = await accept_apart(world.a, [inbox(1)] * 5)
    assert sorted(len(one.rows) for one in accepted) == [0, 0, 0, 0, 1]
    assert sorted(len(one.duplicates) for one in accepted) == [0, 1, 1, 1, 1]
    assert len(await todo(world)) == 1
    nul, stored = inbox("x\0", text="a\0b"), inbox("x\ufffd", text="c")
    first, second = await accept_apart(world.a, [nul, stored])
    assert [row.message.text.replace("\0", "\ufffd") for row in first.rows] == ["a\ufffdb"]
    assert (first.duplicates, second.rows) == (frozenset(), ())
    assert second.duplicates == {"100:x\ufffd"}


async def test_each_message_keeps_the_instant_of_its_own_call(world: World) -> None:
    assert await world.a.renew(A, until=at(MANY))
    calls = (world.a.accept([inbox(n, chat(n))], node=A, now=at(n)) for n in range(MANY))
    accepted = await asyncio.gather(*calls)
    instants = [at(n) for n in range(MANY)]
    assert [one.rows[0].received_at for one in accepted] == instants
    stored = {row.message.message_id: row.received_at for row in await todo(world)}
    assert [stored[str(n)] for n in range(MANY)] == instants


async def test_a_session_of_another_node_disturbs_nobody(world: World) -> None:
    """NODE-1: and a free one is claimed along with new ones."""
    await world.b.accept([inbox(1, BOB)], node=B, now=T0)
    mine, others, again = await accept_apart(world.a, [inbox(2), inbox(3, BOB), inbox(4)])
    assert [len(one.rows) for one in (mine, others, again)] == [1, 0, 1]
    assert [row.message.message_id for row in await todo(world, B)] == ["1", "3"]
    await world.a.settle([row.id for row in await todo(world)], Outcome.DROPPED, now=T0)
    await world.a.release_sessions(A, [key_of(ANN)])
    accepted = await accept_apart(world.b, [inbox(50), inbox(51, chat(1))], node=B)
    assert [len(one.rows) for one in accepted] == [1, 1]


async def test_calls_for_different_nodes_are_kept_apart(world: World) -> None:
    nodes = [A if n % 2 else B for n in range(MANY)]
    calls = (world.a.accept([inbox(n, chat(n))], node=node, now=T0) for n, node in enumerate(nodes))
    assert all(len(one.rows) == 1 for one in await asyncio.gather(*calls))
    for node, odd in ((A, 1), (B, 0)):
        assert {int(row.message.message_id or "") % 2 for row in await todo(world, node)} == {odd}


async def test_strangers_who_write_at_once_are_greeted_once_each(world: World) -> None:
    asks = [pairing(str(n % 3), f"code {n}") for n in range(12)]
    await asyncio.gather(*(world.a.accept([], node=A, now=T0, pairings=[ask]) for ask in asks))
    greeted = [row.message.target.chat for row in await world.a.outbox()]
    assert sorted(greeted) == ["0", "1", "2"]


async def test_a_caller_that_is_cancelled_takes_nobody_along(world: World) -> None:
    calls = [world.a.accept([inbox(n, chat(n))], node=A, now=T0) for n in range(MANY)]
    tasks = [asyncio.create_task(call) for call in calls]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(result, AcceptedMessages) for result in results[1::2])
    again = await accept_apart(world.a, [inbox(n, chat(n)) for n in range(MANY)])
    assert all(one.duplicates for one in again[1::2])


# ---------------------------------------------------------------------------- runs


async def test_runs_begin_and_end_at_once_each_with_its_own_result(world: World) -> None:
    rows = await world.accept(*(chat(n) for n in range(MANY)))
    runs = [new_run(f"run-{n}", row, target=chat(n)) for n, row in enumerate(rows)]
    begun = await asyncio.gather(*(world.a.begin_run(run, node=A) for run in runs))
    assert begun == [RunStartResult()] * MANY
    await outcomes(*(world.a.finish_run(end(run.id), node=A) for run in runs))
    stored = await world.a.runs(RunQuery(limit=100))
    assert [run.outcome for run in stored] == [Outcome.COMPLETED] * MANY
    assert await todo(world) == []


async def test_sessions_with_keys_that_cannot_be_stored_do_not_disturb_others(world: World) -> None:
    rows = await world.accept(ANN, BOB)
    ugly = [
        replace(new_run(f"ugly {n} \ud83d"), session=SessionKey(f"agent:default:api:{n} \ud83d"))
        for n in range(3)
    ]
    runs = [new_run("ann", rows[0]), *ugly, new_run("bob", rows[1], target=BOB)]
    begun = await asyncio.gather(*(world.a.begin_run(run, node=A) for run in runs))
    assert begun == [RunStartResult()] * len(runs)
    await asyncio.gather(*(world.a.finish_run(end(run.id), node=A) for run in runs))
    assert await world.a.runs(RunQuery(active=True)) == []


async def test_a_run_that_may_not_begin_or_end_fails_alone(world: World) -> None:
    mine, his = await world.accept(ANN), await world.b.accept([inbox(9, BOB)], node=B, now=T0)
    began = await outcomes(
        world.a.begin_run(new_run("mine", *mine), node=A),
        world.a.begin_run(new_run("his", *his.rows, target=BOB), node=A),
    )
    assert began[0] == RunStartResult()
    assert isinstance(began[1], Fenced)
    ended = await outcomes(*(world.a.finish_run(end(name), node=A) for name in ("his", "mine")))
    assert isinstance(ended[0], RunNotStarted)
    assert ended[1] is None


async def test_runs_of_one_session_that_end_at_once_write_one_history(world: World) -> None:
    await world.accept(ANN)
    names = [f"run-{n}" for n in range(10)]
    for name in names:
        await world.a.begin_run(new_run(name), node=A)
    ends = [replace(end(name), history=(entry(f"{name} 1"), entry(f"{name} 2"))) for name in names]
    await asyncio.gather(*(world.a.finish_run(one, node=A) for one in ends))
    told = [stored.entry.text for stored in await world.a.history(key_of(ANN))]
    assert sorted(told) == sorted(f"{name} {n}" for name in names for n in (1, 2))
    # The entries of a run stand together.
    assert [text.split()[0] for text in told[::2]] == [text.split()[0] for text in told[1::2]]


async def test_runs_that_begin_at_once_go_on_with_their_own_drafts(world: World) -> None:
    """SPEC IO-5: of one draft for two messages the first run gets it."""
    rows = await world.accept(ANN, ANN, BOB, chat(3))
    both, of_bob = new_run("both", *rows[:2]), new_run("of bob", rows[2], target=BOB)
    for run, draft in ((both, "51"), (of_bob, None)):
        await world.a.begin_run(run, node=A)
        await world.a.open_draft(run.id, run.target or ANN, now=T0)
        if draft is not None:
            await world.a.draft_posted(run.id, draft)
        await world.a.finish_run(end(run.id, Outcome.INTERRUPTED), node=A)
    targets = (("first", ANN), ("second", ANN), ("bob", BOB), ("new", chat(3)))
    runs = [new_run(n, row, target=to) for (n, to), row in zip(targets, rows, strict=True)]
    begun = await asyncio.gather(*(world.a.begin_run(run, node=A) for run in runs))
    assert [(one.draft, one.lost) for one in begun] == [
        ("51", None),
        (None, None),
        (None, LostDraft(of_bob.id, "3")),
        (None, None),
    ]
    drafts = {draft.run_id: draft.external_id for draft in await world.a.drafts()}
    assert drafts == {"first": "51", "bob": None}


async def test_runs_that_begin_at_once_read_their_own_histories(world: World) -> None:
    """One that begins twice begins once."""
    rows = await world.accept(*(chat(n) for n in range(3)))
    for n in range(3):
        told = tuple(entry(f"{n}.{number}") for number in range(n))
        before = new_run(f"before {n}", target=chat(n))
        await ran(world, before, replace(end(before.id), history=told))
    runs = [new_run(f"now {n}", row, target=chat(n)) for n, row in enumerate(rows)]
    begun = await asyncio.gather(*(world.a.begin_run(run, node=A) for run in runs * 2))
    read = [[one.text for one in run.history] for run in begun]
    assert read == [[], ["1.0"], ["2.0", "2.1"]] * 2
    assert [row.attempts for row in await todo(world)] == [1, 1, 1]


async def test_runs_that_end_at_once_end_each_in_its_own_way(world: World) -> None:
    names = ("completed", "failed", "interrupted", "steered")
    *rows, taken = await world.accept(*(chat(n) for n in range(4)), chat(3))
    for n, name in enumerate(names):
        run = new_run(name, rows[n], target=chat(n))
        await world.a.begin_run(run, node=A)
        await world.a.open_draft(run.id, chat(n), now=T0)
    usage = Usage(2, 30, 40, 5, Decimal("0.25"))
    native = HistoryEntry(Role.ASSISTANT, "hi", native=b"\0\xff", format="x")
    failed = end("failed", Outcome.FAILED, "sorry \0 \ud83d")
    ends = [
        replace(end("completed"), usage=usage, history=(entry("q"), native)),
        replace(failed, error="failed: \0 \ud83d", reason=Reason.RUN_TIMEOUT),
        end("interrupted", Outcome.INTERRUPTED),
        replace(end("steered", Outcome.COMPLETED, "one", "two"), taken_in=(taken.id,)),
    ]
    await asyncio.gather(*(world.a.finish_run(one, node=A) for one in ends))
    runs = {run.id: run for run in await world.a.runs()}
    assert {name: run.outcome for name, run in runs.items()} == {
        one.id: one.outcome for one in ends
    }
    assert runs[RunId("completed")].usage == usage
    of_failed = runs[RunId("failed")]
    assert (of_failed.usage, of_failed.reason) == (None, Reason.RUN_TIMEOUT)
    assert of_failed.error == "failed: \ufffd \ufffd"
    told = await world.a.history(key_of(chat(0)))
    assert [(one.entry, one.run_id) for one in told] == [
        (entry("q"), "completed"),
        (native, "completed"),
    ]
    said = [row.message.text for row in (await world.a.outbox())[::-1]]
    assert said.index("one") < said.index("two")
    assert sorted(said) == ["one", "sorry \ufffd \ufffd", "two"]
    (left,) = await todo(world)
    assert (left.id, left.attempts) == (rows[2].id, 0)
    assert [draft.run_id for draft in await world.a.drafts()] == ["interrupted"]


async def test_a_run_that_ends_twice_at_once_says_its_reply_once(world: World) -> None:
    (row,) = await world.accept(ANN)
    await world.a.begin_run(new_run("r", row), node=A)
    same = replace(end("r", Outcome.COMPLETED, "hi"), history=(entry("q"), entry("a")))
    await asyncio.gather(*(world.a.finish_run(same, node=A) for _ in range(2)))
    assert len(await world.a.outbox()) == 1
    assert len(await world.a.history(key_of(ANN))) == 2


# ---------------------------------------------------------------------------- the outbox


async def test_chats_that_are_claimed_at_once_get_their_own_rows(world: World) -> None:
    await world.put(*(say(f"{n} {turn}", chat(n)) for turn in (1, 2) for n in range(MANY)))
    targets = [chat(n) for n in range(MANY)] + [ANN]
    rows = await asyncio.gather(*(world.a.claim_next(target, node=A, now=T0) for target in targets))
    assert rows.pop() is None
    assert [row and row.message.text for row in rows] == [f"{n} 1" for n in range(MANY)]


async def test_a_chat_that_is_claimed_twice_at_once_gives_its_row_again(world: World) -> None:
    """The answer to the first claim may have been lost. Each claim counts by its own instant."""
    await world.put(say("now"), say("later", BOB), now=at(5))
    claims = ((BOB, T0), (ANN, at(5)), (ANN, at(5)))
    early, first, second = await asyncio.gather(
        *(world.a.claim_next(target, node=A, now=now) for target, now in claims)
    )
    assert early is None
    assert first
    assert second
    assert (first.id, first.fence + 1) == (second.id, second.fence)


async def test_a_row_is_claimed_by_one_of_two_nodes(world: World) -> None:
    await world.put(*(say("x", chat(n)) for n in range(MANY)))
    nodes = ((world.a, A), (world.b, B))
    rows = await asyncio.gather(
        *(one.claim_next(chat(n), node=node, now=T0) for n in range(MANY) for one, node in nodes)
    )
    pairs = zip(rows[::2], rows[1::2], strict=True)
    assert all((mine is None) != (his is None) for mine, his in pairs)


async def test_a_mark_that_comes_too_late_fails_alone(world: World) -> None:
    await world.put(say("x"), say("y", BOB), say("z", BOB))
    ann, bob = [await world.claimed(target=target) for target in (ANN, BOB)]
    newer = await world.claimed()
    results = await outcomes(
        world.a.mark_sent(ann, "1", now=at(1)),
        world.a.mark_sent(bob, "2", now=at(2)),
        world.a.mark_sent(newer, "3", now=at(3)),
    )
    assert isinstance(results[0], Fenced)
    assert results[1:] == [True, False]  # whether another one waits in the chat
    sent = await world.a.outbox(OutboxQuery(state=OutboxState.SENT))
    assert [(row.external_id, row.sent_at) for row in sent] == [("2", at(2)), ("3", at(3))]


# ---------------------------------------------------------------------------- all of it


async def test_two_nodes_in_the_same_sessions_block_nobody_and_lose_nothing(world: World) -> None:
    """IO-2: each message is listed to the owner of its session or waits there for it."""
    chats, rounds = 6, 12
    listed: dict[NodeId, list[int]] = {A: [], B: []}

    async def write(store: Store, node: NodeId, one: int) -> None:
        for turn in range(rounds):
            # In another order of sessions each time: locks must not meet crosswise.
            order = sorted(range(chats), key=lambda n: (n * (one + 3) + turn) % 7)
            batch = [inbox(f"{node}-{one}-{turn}-{n}", chat(n)) for n in order]
            accepted = await store.accept(batch, node=node, now=T0)
            listed[node] += [row.id for row in accepted.rows]
            name = f"{node}-{one}-{turn}"
            run = new_run(name, target=chat(order[0]))
            try:
                await store.begin_run(run, node=node)
            except Fenced:
                continue
            await store.finish_run(end(name, Outcome.COMPLETED, "hello"), node=node)
            row = await store.claim_next(ANN, node=node, now=at(10))
            if row is not None:
                # Another writer of this node may have claimed it anew.
                with suppress(Fenced):
                    await store.mark_sent(row, "1", now=at(10))

    writers = ((world.a, A), (world.b, B))
    await asyncio.gather(*(write(*who, one) for who in writers for one in range(4)))
    pending = {
        node: [row.id for row in await store.claim_pending(node, now=T0, places=PLACES)]
        for store, node in writers
    }
    assert len(pending[A]) + len(pending[B]) == 2 * 4 * rounds * chats
    assert set(listed[A]) <= set(pending[A])
    assert set(listed[B]) <= set(pending[B])
