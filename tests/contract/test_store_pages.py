"""What every store promises about lists that are read page by page (SPEC OPS-2)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import pytest

from goclaw_py.core.ids import MAIN_LANE, AgentName, RunId, SessionKey
from goclaw_py.core.messages import PeerKind, Target
from goclaw_py.core.outcomes import Outcome, Trigger
from goclaw_py.core.pagination import Cursor
from goclaw_py.core.run_events import Usage
from goclaw_py.records import (
    ALL_RUNS,
    ActivityQuery,
    NewInbox,
    OutboxState,
    RunFilter,
    SeenChat,
    SeenName,
    StoredRun,
)
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


RUNS: list[tuple[SessionKey | None, bool, RunFilter, str]] = [
    (None, False, ALL_RUNS, "876543210"),
    (key_of(ANN), False, ALL_RUNS, "86420"),
    (None, True, ALL_RUNS, "8632"),
    (key_of(BOB), True, ALL_RUNS, "3"),
    (None, False, RunFilter(agent=OTHER), "72"),
    (None, False, RunFilter(trigger=Trigger.CRON), "541"),
    (None, False, RunFilter(outcome=Outcome.FAILED), "41"),
    (None, False, RunFilter(outcome=Outcome.COMPLETED), "50"),
    (None, False, RunFilter(trigger=Trigger.CRON, outcome=Outcome.COMPLETED), "5"),
    (None, False, RunFilter(OTHER, Trigger.CHAT, Outcome.CANCELLED), "7"),
    (key_of(BOB), False, RunFilter(AgentName("default"), Trigger.CRON, Outcome.FAILED), "1"),
    (key_of(BOB), False, RunFilter(outcome=Outcome.COMPLETED), "5"),
    (None, True, RunFilter(agent=OTHER), "2"),
    (None, True, RunFilter(outcome=Outcome.FAILED), ""),
    (None, False, RunFilter(agent=AgentName("nobody")), ""),
    (SessionKey("x\x00\ud800"), False, RunFilter(agent=AgentName("\x00")), ""),
]


async def test_runs_are_read_in_pages_whole_and_in_part(world: World) -> None:
    await some_runs(world)
    for session, active, only, wanted in RUNS:
        for size in (1, 2, 100):
            query = {"limit": size, "session": session, "active": active, "only": only}

            async def read(before: Cursor | None, query: dict[str, Any] = query) -> list[StoredRun]:
                return await world.b.runs(**query, before=before)

            found = await paged(read)
            assert "".join(run.id for run in found).replace("r", "") == wanted, query


async def test_runs_are_found_and_counted_by_their_sender_and_since_when(world: World) -> None:
    await some_runs(world)
    for number, sender in ((1, "7"), (2, "8"), (3, "7")):
        await world.a.accept([inbox(number, ANN, sender=sender)], node=A, now=T0)
        row = (await todo(world))[-1]
        await world.a.begin_run(new_run(f"s{number}", row, started_at=at(number)), node=A)
    await world.a.finish_run(end("s3", Outcome.TIMED_OUT), node=A)
    ann, both = "telegram/default/7", {None: 1, Outcome.TIMED_OUT: 1}
    for only, wanted, counts in (
        (RunFilter(sender=ann), ["s3", "s1"], both),
        (RunFilter(sender=ann, since=at(3)), ["s3"], {Outcome.TIMED_OUT: 1}),
        (RunFilter(sender=ann, since=at(4)), [], {}),
        (RunFilter(sender=ann, trigger=Trigger.CHAT), ["s3", "s1"], both),
        (RunFilter(sender=ann, trigger=Trigger.CRON), [], {}),
        (RunFilter(sender=ann, outcome=Outcome.TIMED_OUT), ["s3"], both),
        (RunFilter(agent=OTHER, since=at(1)), ["r7"], {Outcome.CANCELLED: 1}),
        (RunFilter(since=at(2)), ["s3", "s2", "r8", "r7", "r6"],
         {Outcome.TIMED_OUT: 1, Outcome.CANCELLED: 1, None: 3}),
    ):  # fmt: skip
        found = await world.b.runs(only=only)
        assert [run.id for run in found] == wanted, only
        assert {run.sender for run in found} <= {ann, "telegram/default/8", None}
        assert await world.b.run_counts(only) == counts, only
    assert await world.b.run_counts(session=key_of(BOB)) == {
        Outcome.FAILED: 1, Outcome.COMPLETED: 1, Outcome.CANCELLED: 1, None: 1,
    }  # fmt: skip


async def test_of_many_runs_only_the_newest_are_counted(world: World) -> None:
    """Of those that have ended; there are few in progress."""
    await some_runs(world)
    for only, session, counts in (
        (ALL_RUNS, None, {Outcome.CANCELLED: 1, None: 4}),
        (RunFilter(trigger=Trigger.CHAT), None, {Outcome.CANCELLED: 1, None: 4}),
        (ALL_RUNS, key_of(BOB), {Outcome.CANCELLED: 1, None: 1}),
        (RunFilter(sender="nobody"), None, {}),
    ):
        assert await world.b.run_counts(only, session=session, most=1) == counts, only


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
        found = await world.b.sessions(search=text)
        assert [one.key for one in found] == [key_of(target) for target in wanted], text
    assert len(await world.b.sessions(search="telegram", limit=2)) == 2


async def test_runs_that_come_meanwhile_shift_no_page(world: World) -> None:
    await some_runs(world)
    first = await world.a.runs(limit=4)
    await world.a.begin_run(new_run("new", started_at=at(99)), node=A)
    rest = await world.a.runs(limit=99, before=first[-1].cursor)
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
    whole = await world.b.sessions(limit=99)
    assert [(one.last_active_at, one.key) for one in whole] == sorted(
        ((one.last_active_at, one.key) for one in whole), reverse=True
    )
    assert len(whole) == 10
    for size in (1, 3):
        assert await paged(lambda before, n=size: world.b.sessions(limit=n, before=before)) == whole  # type: ignore[misc]


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
        (OutboxState.DEAD, None, "0"),
        (OutboxState.DEAD, RunId("r"), "0"),
        (OutboxState.SENDING, None, "1"),
        (OutboxState.PENDING, None, "532"),
        (OutboxState.PENDING, RunId("r"), "2"),
        (OutboxState.DROPPED, None, "4"),
        (OutboxState.SENT, None, ""),
        (None, RunId("\x00"), ""),
    ):

        async def read(before: int | None, state=state, run=run):  # type: ignore[no-untyped-def]
            return await world.b.outbox(limit=2, state=state, run=run, before=before)

        found = await paged_by_id(read, lambda row: row.id)
        assert "".join(row.message.text for row in found) == wanted, (state, run)


@pytest.mark.parametrize("ended", [True, False])
async def test_messages_that_came_in_are_read_in_pages(world: World, ended: bool) -> None:
    rows = await world.accept(*[ANN] * 5)
    if ended:
        await world.a.settle([row.id for row in rows], Outcome.FAILED, now=T0)
    found = await paged_by_id(
        lambda before: world.b.dead_letters(ended=ended, limit=2, before=before),
        lambda letter: letter.row.id,
    )
    assert [letter.row.id for letter in found] == sorted((row.id for row in rows), reverse=True)
    assert await world.b.dead_letters(ended=not ended) == []
