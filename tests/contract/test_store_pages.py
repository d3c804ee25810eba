"""What every store promises about lists that are read page by page (SPEC OPS-2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import fields, replace
from decimal import Decimal
from itertools import product
from typing import Protocol, TypeVar

import pytest

from goclaw_py.core.ids import MAIN_LANE, AgentName, RunId, SessionKey
from goclaw_py.core.messages import PeerKind, Target
from goclaw_py.core.outcomes import Outcome, Trigger
from goclaw_py.core.pagination import Cursor
from goclaw_py.core.run_events import Usage
from goclaw_py.records import (
    NEWEST_RUNS,
    ActivityQuery,
    DeadLetterQuery,
    IncomingState,
    NewInbox,
    OutboxQuery,
    OutboxState,
    RunFilter,
    RunOrder,
    RunQuery,
    SeenChat,
    SeenName,
    Session,
    SessionQuery,
    StoredRun,
)
from tests.support.run_filters import EVERY_FILTER, has
from tests.support.stores import (
    ANN,
    BOB,
    T0,
    A,
    World,
    at,
    end,
    entry,
    inbox,
    key_of,
    message,
    new_run,
    say,
    todo,
)

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

OTHER = AgentName("other")


class _Placed(Protocol):
    @property
    def cursor(self) -> Cursor: ...


P = TypeVar("P", bound=_Placed)
T = TypeVar("T")


async def paged(read: Callable[[Cursor | None], Awaitable[list[P]]]) -> list[P]:
    """All of a list, in pages."""
    found: list[P] = []
    before = None
    while rows := await read(before):
        found += rows
        before = Cursor.parse(str(rows[-1].cursor), keys=len(rows[-1].cursor.keys))
    return found


async def paged_by_id(
    read: Callable[[int | None], Awaitable[list[T]]], number: Callable[[T], int]
) -> list[T]:
    found: list[T] = []
    before = None
    while rows := await read(before):
        found += rows
        before = number(rows[-1])
    return found


async def some_runs(world: World) -> None:
    """Several at the same instant, with all that can be asked for."""
    for n in range(9):
        run = new_run(f"r{n}", target=(ANN, BOB)[n % 2], started_at=at(n // 3))
        agent = OTHER if n in (2, 7) else run.agent
        trigger = Trigger.CRON if n in (1, 4, 5) else Trigger.CHAT
        await world.a.begin_run(replace(run, agent=agent, trigger=trigger), node=A)
    ends = {0: Outcome.COMPLETED, 1: Outcome.FAILED, 4: Outcome.FAILED}
    for n, outcome in (ends | {5: Outcome.COMPLETED, 7: Outcome.CANCELLED}).items():
        await world.a.finish_run(end(f"r{n}", outcome), node=A)


RUNS: list[tuple[RunQuery, str]] = [
    (NEWEST_RUNS, "876543210"),
    (RunQuery(session=key_of(ANN)), "86420"),
    (RunQuery(active=True), "8632"),
    (RunQuery(session=key_of(BOB), active=True), "3"),
    (RunQuery(only=RunFilter(agent=OTHER)), "72"),
    (RunQuery(only=RunFilter(trigger=Trigger.CRON)), "541"),
    (RunQuery(only=RunFilter(outcome=Outcome.FAILED)), "41"),
    (RunQuery(only=RunFilter(outcome=Outcome.COMPLETED)), "50"),
    (RunQuery(only=RunFilter(OTHER), active=True), "2"),
    (RunQuery(only=RunFilter(outcome=Outcome.FAILED), active=True), ""),
    (RunQuery(only=RunFilter(agent=AgentName("nobody"))), ""),
    (RunQuery(session=SessionKey("x\x00\ud800"), only=RunFilter(agent=AgentName("\x00"))), ""),
]


async def test_runs_are_read_in_pages_whole_and_in_part(world: World) -> None:
    await some_runs(world)
    for query, wanted in RUNS:
        for size in (1, 2, 100):

            async def read(
                before: Cursor | None, query: RunQuery = query, size: int = size
            ) -> list[StoredRun]:
                return await world.b.runs(replace(query, limit=size, before=before))

            found = await paged(read)
            assert "".join(run.id for run in found).replace("r", "") == wanted, query


async def test_runs_are_read_by_duration_tokens_and_cost(world: World) -> None:
    """All that a list has, in another order; a run in progress is the longest."""
    await some_more_runs(world)
    for n, tokens, cost in ((2, 5, "0.5"), (3, 900, "0.1"), (8, 7, None)):
        usage = Usage(1, tokens, cost_usd=Decimal(cost) if cost else None)
        ended = replace(end(f"r{n}"), usage=usage, finished_at=at(100 + n))
        await world.a.finish_run(ended, node=A)
    running = await world.b.runs(RunQuery(active=True, order=RunOrder.DURATION))
    assert [run.started_at for run in running] == sorted(run.started_at for run in running)
    assert len({run.started_at for run in running}) > 1
    firsts = {RunOrder.DURATION: "r8r3", RunOrder.TOKENS: "r3r8", RunOrder.COST: "r2r3"}
    for order, wanted in firsts.items():
        only = RunFilter(outcome=Outcome.COMPLETED)
        found = await world.b.runs(RunQuery(only=only, order=order, limit=2))
        assert "".join(run.id for run in found) == wanted
    of_person = [
        RunFilter(sender=EVERY_FILTER.sender),
        RunFilter(sender=EVERY_FILTER.sender, outcome=Outcome.FAILED),
    ]
    queries = [query for query, _ in RUNS] + [RunQuery(only=only) for only in of_person]
    queries.append(RunQuery(session=key_of(ANN), only=of_person[1], since=at(2)))
    queries.append(RunQuery(search="r"))
    for query, order in product(queries, RunOrder):
        listed = await world.b.runs(replace(query, limit=100))
        in_order = sorted(listed, key=lambda run: run.place_in(order), reverse=True)
        for limit in (1, 100):
            found = await world.b.runs(replace(query, limit=limit, order=order))
            assert found == in_order[:limit], (query, order)


ONLY = replace(EVERY_FILTER, agent=OTHER)
VALUES = {one.name: getattr(ONLY, one.name) for one in fields(RunFilter)}
"""A value of each field of a filter, which some runs have and others have not."""


async def some_more_runs(world: World) -> None:
    """With senders, and all that can be asked for in many combinations."""
    await some_runs(world)
    for number, sender in enumerate("778787", 1):
        await world.a.accept([inbox(number, ANN, sender=sender)], node=A, now=T0)
        row = (await todo(world))[-1]
        run = new_run(f"s{number}", row, started_at=at(number))
        agent = OTHER if number in (2, 3, 4) else run.agent
        trigger = Trigger.CRON if number in (1, 3, 4, 6) else Trigger.CHAT
        await world.a.begin_run(replace(run, agent=agent, trigger=trigger), node=A)
    for number, outcome in ((2, Outcome.COMPLETED), (3, Outcome.FAILED), (4, Outcome.FAILED)):
        await world.a.finish_run(end(f"s{number}", outcome), node=A)
    await world.a.finish_run(end("s6", Outcome.TIMED_OUT), node=A)


async def test_each_combination_of_conditions_selects_what_has_all_of_them(world: World) -> None:
    """Whatever index it reads. ``some_more_runs`` needs some with a value of a new field."""
    await some_more_runs(world)
    everything = await world.b.runs(RunQuery(limit=100))
    for name, value in VALUES.items():
        assert {has(run, name, value) for run in everything} == {True, False}, name
    for number in range(2 ** len(VALUES)):
        picked = {name: one for n, (name, one) in enumerate(VALUES.items()) if number >> n & 1}
        only = RunFilter(**picked)
        wanted = [
            run for run in everything if all(has(run, name, one) for name, one in picked.items())
        ]
        spans = await world.b.runs_between(T0, at(99), only=only)
        assert {span.id for span in spans} == {run.id for run in wanted}, only
        density = await world.b.run_density(T0, at(99), parts=3, only=only)
        assert sum(one.runs for one in density) == len(wanted), only
        for session, since in product((None, key_of(ANN)), (None, at(2))):
            query = RunQuery(only=only, session=session, since=since, limit=100)
            found = [
                run
                for run in wanted
                if session in (None, run.session) and (since is None or run.started_at >= since)
            ]
            assert await world.b.runs(query) == found, query
            active = [run for run in found if run.outcome is None]
            assert await world.b.runs(replace(query, active=True)) == active, query
            if only.outcome is None:
                counts = Counter(run.outcome for run in found)
                assert await world.b.run_counts(query) == counts, query
                failed = replace(query, only=replace(only, outcome=Outcome.FAILED), active=True)
                assert await world.b.run_counts(failed) == counts, "outcome and active are ignored"


async def test_of_many_runs_only_the_newest_are_counted(world: World) -> None:
    """Of those that have ended; there are few in progress."""
    await some_runs(world)
    for query, counts in (
        (NEWEST_RUNS, {Outcome.CANCELLED: 1, None: 4}),
        (RunQuery(only=RunFilter(trigger=Trigger.CHAT)), {Outcome.CANCELLED: 1, None: 4}),
        (RunQuery(session=key_of(BOB)), {Outcome.CANCELLED: 1, None: 1}),
        (RunQuery(only=RunFilter(sender="nobody")), {}),
    ):
        assert await world.b.run_counts(query, most=1) == counts, query


async def test_runs_are_counted_by_the_part_of_a_time_in_which_they_started(world: World) -> None:
    await some_runs(world)
    found = await world.b.run_density(at(0), at(2), parts=4)
    counts = {(one.part, one.outcome): one.runs for one in found}
    assert {one.lane for one in found} == {MAIN_LANE}
    assert counts == {
        (0, Outcome.COMPLETED): 1, (0, Outcome.FAILED): 1, (0, None): 1,
        (2, None): 1, (2, Outcome.FAILED): 1, (2, Outcome.COMPLETED): 1,
    }  # fmt: skip
    assert await world.b.run_density(at(99), at(100), parts=1) == []


async def test_sessions_are_found_by_key_and_names(world: World) -> None:
    topic = Target("telegram", "default", "-9", "5")
    for target in (ANN, BOB, topic):
        await world.a.accept([inbox(1, target)], node=A, now=T0)
    crew = Target("telegram", "default", "-9")
    await world.a.note_names([SeenName(ANN, "Änn", "Annie"), SeenName(crew, "Crew 50%")], now=T0)
    await world.a.note_topic(topic, name="Plans")
    for text, wanted in (
        ("änn", [ANN]), ("@ANNIE", [ANN]), ("0%", [topic]), ("plans", [topic]), ("%", [topic]),
        (f":{BOB.chat}", [BOB]), ("nobody\0", []), (":DIRECT:-9", [topic]),
    ):  # fmt: skip
        found = await world.b.sessions(SessionQuery(search=text))
        assert [one.key for one in found] == [key_of(target) for target in wanted], text
    assert len(await world.b.sessions(SessionQuery(search="telegram", limit=2))) == 2


async def test_runs_that_come_meanwhile_shift_no_page(world: World) -> None:
    await some_runs(world)
    first = await world.a.runs(RunQuery(limit=4))
    await world.a.begin_run(new_run("new", started_at=at(99)), node=A)
    rest = await world.a.runs(RunQuery(limit=99, before=first[-1].cursor))
    assert [run.id for run in first + rest] == [f"r{number}" for number in range(8, -1, -1)]


async def test_runs_that_worked_at_some_time_of_a_span_are_found(world: World) -> None:
    """From its begin to before its end; those before it that went on into it too."""
    runs = {"before": (0, 9), "until": (1, 10), "into": (2, 11), "within": (12, 13)}
    runs |= {"over": (3, 99), "out": (15, 99), "after": (20, 99), "backwards": (10, 5)}
    begins = {name: begun for name, (begun, _) in runs.items()} | {"long": 0, "works": 14}
    for name, begun in begins.items():
        run = replace(new_run(name, started_at=at(begun)), submitted_at=at(begun - 1))
        await world.a.begin_run(run, node=A)
    for name, (_, ended) in runs.items():
        done = replace(end(name), finished_at=at(ended), usage=Usage(1, 2, 3))
        await world.a.finish_run(done, node=A)
    found = await world.b.runs_between(at(10), at(20))
    wanted = ["long", "until", "into", "over", "backwards", "within", "works", "out"]
    assert [span.id for span in found] == wanted
    assert (found[1].submitted_at, found[1].finished_at) == (at(0), at(10))
    assert found[0].outcome is None
    pages, after = [], None
    while page := await world.b.runs_between(at(10), at(20), limit=3, after=after):
        pages.append([span.id for span in page])
        after = page[-1].cursor
    assert pages == [wanted[:3], wanted[3:6], wanted[6:]]


async def test_what_a_run_has_added_to_a_history_is_found_even_after_a_reset(world: World) -> None:
    for name in ("r1", "r2"):
        await world.a.begin_run(new_run(name), node=A)
        done = replace(end(name), history=(entry(f"ask {name}"), entry(f"say {name}")))
        await world.a.finish_run(done, node=A)
    await world.a.reset_session(key_of(ANN), now=at(5))
    found = await world.b.run_history(RunId("r1"))
    assert [one.entry.text for one in found] == ["ask r1", "say r1"]
    assert {one.run_id for one in found} == {"r1"}
    assert await world.b.run_history(RunId("r")) == []


async def test_sessions_are_read_in_pages(world: World) -> None:
    """Some in one instant, some in the same ten seconds, some long before."""
    moments = (0, 0, 0, 1, 200, 400, 400, 7200, 7201, 86_400)
    for number, second in enumerate(moments):
        target = Target("telegram", "default", str(number))
        await world.a.accept([inbox(1, target)], node=A, now=at(second))
    whole = await world.b.sessions(SessionQuery(limit=99))
    assert [(one.last_active_at, one.key) for one in whole] == sorted(
        ((one.last_active_at, one.key) for one in whole), reverse=True
    )
    assert len(whole) == 10
    for query in (SessionQuery(limit=1), SessionQuery(limit=3)):

        async def read(before: Cursor | None, query: SessionQuery = query) -> list[Session]:
            return await world.b.sessions(replace(query, before=before))

        assert await paged(read) == whole


async def test_chats_that_were_seen_and_heard_are_read_in_pages(world: World) -> None:
    for n, second in enumerate((0, 0, 0, 5, 400, 400, 86_400)):
        chat = Target("telegram", ("a", "b")[n % 2], f"-{n}")
        await world.a.note_chats([SeenChat(chat, PeerKind.GROUP, "")], now=at(second))
        there = replace(chat, thread=(None, "7")[n % 2])
        key = SessionKey(f"agent:default:telegram:{n}")
        row = NewInbox(message(n, there), key, AgentName("default"))
        await world.a.accept([row], node=A, now=at(second))
    chats, heard = await world.b.chats(), await world.b.activity(ActivityQuery(limit=99))
    assert (len(chats), len(heard)) == (7, 7)
    assert chats == sorted(chats, key=lambda chat: chat.cursor, reverse=True)
    assert heard == sorted(heard, key=lambda one: one.cursor, reverse=True)
    assert await paged(lambda before: world.b.chats(limit=2, before=before)) == chats
    two = ActivityQuery(limit=2)
    assert await paged(lambda before: world.b.activity(replace(two, before=before))) == heard


async def test_messages_that_go_out_are_read_in_pages_whole_and_in_part(world: World) -> None:
    mine = [replace(say(f"{number}"), run_id=RunId("r")) for number in range(3)]
    rows = await world.put(*mine, *[say(f"{number}") for number in range(3, 6)])
    first = await world.claimed()
    await world.a.mark_dead(first, "no", now=T0)
    await world.claimed()
    await world.a.drop_outbox([rows[4].id], now=T0)
    for state, run, wanted in (
        (None, None, "543210"),
        (None, RunId("r"), "210"),
        (OutboxState.FAILED, None, "0"),
        (OutboxState.FAILED, RunId("r"), "0"),
        (OutboxState.SENDING, None, "1"),
        (OutboxState.WAITING, None, "532"),
        (OutboxState.WAITING, RunId("r"), "2"),
        (OutboxState.DROPPED, None, "4"),
        (OutboxState.SENT, None, ""),
        (None, RunId("\x00"), ""),
    ):

        async def read(before: int | None, state=state, run=run):  # type: ignore[no-untyped-def]
            return await world.b.outbox(OutboxQuery(limit=2, state=state, run=run, before=before))

        found = await paged_by_id(read, lambda row: row.id)
        assert "".join(row.message.text for row in found) == wanted, (state, run)


@pytest.mark.parametrize("ended", [True, False])
async def test_messages_that_came_in_are_read_in_pages(world: World, ended: bool) -> None:
    state, other = IncomingState.FAILED, IncomingState.WAITING
    if not ended:
        state, other = other, state
    rows = await world.accept(*[ANN] * 5)
    if ended:
        await world.a.settle([row.id for row in rows], Outcome.FAILED, now=T0)
    found = await paged_by_id(
        lambda before: world.b.dead_letters(DeadLetterQuery(state, limit=2, before=before)),
        lambda letter: letter.row.id,
    )
    assert [letter.row.id for letter in found] == sorted((row.id for row in rows), reverse=True)
    assert await world.b.dead_letters(DeadLetterQuery(other)) == []
