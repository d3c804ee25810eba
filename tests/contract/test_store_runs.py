"""What every store promises about runs, sessions and their history."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from decimal import Decimal

import pytest

from goclaw_py.core.errors import Fenced, LeaseExpired, RunNotStarted
from goclaw_py.core.ids import NodeId, RunId, SessionKey
from goclaw_py.core.messages import HistoryEntry, Role
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.pagination import FOUND
from goclaw_py.core.run_events import NO_USAGE, RunNote, Usage
from goclaw_py.records import (
    Notice,
    RunQuery,
    RunSoFar,
    RunStartResult,
    StoredEntry,
    StoredRun,
    ToolCall,
)
from goclaw_py.scheduler.models import Mode
from tests.support.store_jobs import claim_one, claimed_job, run_for
from tests.support.stores import (
    AGENT,
    ANN,
    APOLOGY,
    BOB,
    T0,
    A,
    B,
    World,
    a_node,
    at,
    crash,
    end,
    entry,
    inbox,
    key_of,
    letter_of,
    listen,
    new_run,
    ran,
    recovered,
    session_of,
    todo,
    until,
)

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]


async def test_a_run_is_listed_while_it_works_and_with_its_outcome_then(world: World) -> None:
    new = replace(new_run("r"), parent=RunId("p"), model="offline")
    await world.a.begin_run(new, node=A)
    (works,) = await world.b.runs(RunQuery(active=True))
    names = ("id", "session", "agent", "trigger", "lane", "parent", "target", "started_at")
    assert [getattr(works, name) for name in names] == [getattr(new, name) for name in names]
    assert (works.node, works.payer, works.submitted_at) == (A, new.session, T0)
    assert (works.model, works.usage, works.finished_at) == ("offline", None, None)
    assert (works.outcome, works.reason, works.error) == (None, None, None)
    usage = Usage(3, 1000, 50, 10, Decimal("0.0123"))
    failed = replace(end("r", Outcome.FAILED), reason=Reason.RUN_TIMEOUT, error="boom")
    await world.a.finish_run(replace(failed, usage=usage), node=A)
    (run,) = await world.b.runs()
    ended = {"outcome": Outcome.FAILED, "reason": Reason.RUN_TIMEOUT, "error": "boom"}
    assert run == replace(works, finished_at=at(9), usage=usage, **ended)  # type: ignore[arg-type]
    assert await world.b.runs(RunQuery(active=True)) == []
    await ran(world, new_run("s"), replace(end("s"), usage=Usage(1, 2, 3, 4)))
    assert (await world.a.find_run("s"))[0].usage == Usage(1, 2, 3, 4), "without a price"


async def test_a_run_ends_with_its_rows_history_and_reply_together(world: World) -> None:
    """IO-3."""
    rows = await world.accept(ANN, ANN)
    assert await world.a.begin_run(new_run("r1", *rows), node=A) == RunStartResult()
    pair = (entry("question"), HistoryEntry(Role.ASSISTANT, "answer", b'{"n":\x00}', "native"))
    heard = listen(world.b)
    await world.a.finish_run(
        replace(end("r1", Outcome.COMPLETED, "answer", "more"), history=pair), node=A
    )
    await until(heard.expect(Notice.OUTBOX))
    assert await todo(world) == []
    said = [(row.message.text, row.session) for row in await world.a.outbox()]
    assert said == [("more", key_of(ANN)), ("answer", key_of(ANN))]
    assert (await world.a.begin_run(new_run("r2"), node=A)).history == pair
    assert await world.b.history(key_of(ANN)) == [
        StoredEntry(pair[0], T0, RunId("r1")),
        StoredEntry(pair[1], at(9), RunId("r1")),
    ]


async def test_what_is_unusual_about_a_run_is_kept_with_its_end(world: World) -> None:
    """SPEC AGENT-5, AGENT-12."""
    notes = (RunNote.HISTORY_REPAIRED, RunNote.USAGE_ESTIMATED)
    await ran(world, new_run("r"), replace(end("r"), notes=notes))
    (stored,) = await world.b.runs()
    assert stored.notes == notes


async def test_a_start_that_need_not_be_durable_counts_like_any_other(world: World) -> None:
    (row,) = await world.accept(ANN)
    await world.a.begin_run(replace(new_run("r", row), durable=False), node=A)
    assert [run.id for run in await world.b.runs(RunQuery(active=True))] == ["r"]
    assert [one.attempts for one in await todo(world)] == [1]
    await world.a.finish_run(end("r", Outcome.COMPLETED, "answer"), node=A)
    assert await todo(world) == []


async def test_finishing_twice_changes_nothing(world: World) -> None:
    rows = await world.accept(ANN)
    await ran(world, new_run("r", *rows), end("r", Outcome.COMPLETED, "answer"))
    await world.a.release_sessions(A, [key_of(ANN)])
    await world.a.finish_run(end("r", Outcome.FAILED, "other words"), node=A)
    assert (await world.a.runs())[0].outcome is Outcome.COMPLETED
    assert len(await world.a.outbox()) == 1


async def test_only_the_node_that_began_a_run_can_finish_it(world: World) -> None:
    with pytest.raises(RunNotStarted, match="never began"):
        await world.a.finish_run(end("ghost"), node=A)
    with pytest.raises(Fenced):
        await world.a.begin_run(new_run("r"), node=NodeId("stranger"))
    assert await world.a.sessions() == []
    await world.a.begin_run(new_run("r"), node=A)
    with pytest.raises(Fenced):
        await world.b.finish_run(end("r"), node=B)


async def test_an_interrupted_run_gives_its_rows_and_attempt_back(world: World) -> None:
    """QUEUE-11: but for one that was settled meanwhile. Beginning twice counts one attempt."""
    settled, row = await world.accept(ANN, ANN)
    for _ in range(2):
        await world.a.begin_run(new_run("r", settled, row), node=A)
    assert [one.attempts for one in await todo(world)] == [1, 1]
    await world.a.settle([settled.id], Outcome.CANCELLED, now=T0)
    await world.a.finish_run(end("r", Outcome.INTERRUPTED), node=A)
    assert await todo(world) == [replace(row, last_run=RunId("r"))]
    assert (await world.a.runs())[0].outcome is Outcome.INTERRUPTED


async def test_an_ended_run_does_not_begin_again(world: World) -> None:
    """Nor one that recovery has ended."""
    await ran(world, new_run("r"))
    with pytest.raises(Fenced):
        await world.a.begin_run(new_run("r"), node=A)
    await world.a.begin_run(new_run("lost"), node=A)
    now = await recovered(world)
    with pytest.raises(Fenced):
        await world.b.begin_run(new_run("lost", started_at=now), node=B)


async def test_a_run_makes_its_session_and_claims_it(world: World) -> None:
    """It is the last thing that happened there."""
    key = SessionKey("agent:default:cron:daily")
    assert await world.a.session(key) is None
    assert await world.a.history(key) == []
    await world.a.accept([inbox(1)], node=A, now=at(1))
    await world.a.accept([inbox(1, BOB)], node=A, now=at(2))
    new = replace(new_run("r", started_at=at(3)), session=key, target=None)
    await world.a.begin_run(new, node=A)
    session = await session_of(world.b, key)
    assert (session.owner, session.fence, session.target) == (A, 1, None)
    assert (session.created_at, session.last_active_at) == (at(3), at(3))
    await world.a.begin_run(new_run("r2", started_at=at(4)), node=A)
    assert [one.key for one in await world.b.sessions()] == [key_of(ANN), key, key_of(BOB)]


async def test_a_run_cannot_begin_in_another_live_nodes_session(world: World) -> None:
    rows = await world.accept(ANN)
    with pytest.raises(Fenced):
        await world.b.begin_run(new_run("r", *rows), node=B)
    assert await world.b.runs() == []
    assert [row.attempts for row in await todo(world)] == [0]


async def test_a_run_may_begin_in_an_expired_nodes_session(world: World) -> None:
    """If no message waits in it: a stop of the dead node may have ended that one."""
    await ran(world, new_run("before"))
    now = await world.kill(A)
    await world.b.begin_run(new_run("r", started_at=now), node=B)
    session = await session_of(world.b, key_of(ANN))
    assert (session.owner, session.fence) == (B, 2)


async def test_a_run_is_fenced_when_its_session_was_taken_over_and_came_back(world: World) -> None:
    """NODE-1: neither the owner nor the name of the node tells."""
    await world.a.begin_run(new_run("old"), node=A)
    now = await world.kill(A)
    with pytest.raises(Fenced):  # what has not ended is recovered first
        await world.b.begin_run(new_run("early", started_at=now), node=B)
    await world.b.recover(now=now, max_attempts=3, apology=APOLOGY)
    await world.b.begin_run(new_run("other", started_at=now), node=B)
    await world.b.finish_run(end("other"), node=B)
    await world.b.release_sessions(B, [key_of(ANN)])
    await world.a.join(a_node(A))
    assert await world.a.renew(A, until=at(2000))
    await world.a.begin_run(new_run("new", started_at=now), node=A)
    with pytest.raises(Fenced):
        await world.a.finish_run(end("old", Outcome.COMPLETED, "late"), node=A)
    await world.a.finish_run(end("new", Outcome.COMPLETED, "in time"), node=A)
    assert [row.message.text for row in await world.a.outbox()] == ["in time"]


async def test_a_node_that_has_to_renew_its_lease_gets_nothing_new(world: World) -> None:
    """SPEC DB-4: after an outage nodes would take sessions from each other."""
    await world.a.begin_run(new_run("own"), node=A)
    late = at(16)
    with pytest.raises(LeaseExpired):
        await world.a.begin_run(new_run("early", target=BOB, started_at=late), node=A)
    await world.a.begin_run(new_run("own too", started_at=late), node=A)
    assert await world.a.renew(A, until=at(60))
    await world.a.begin_run(new_run("in time", target=BOB, started_at=late), node=A)


async def test_a_run_is_found_by_a_prefix_of_its_id(world: World) -> None:
    for name in ("0190-aa", "0190-ab", "0190-ac", "0191%", "0192"):
        await world.a.begin_run(new_run(name), node=A)
    assert [run.id for run in await world.a.find_run("0190-ab")] == ["0190-ab"]
    assert [run.id for run in await world.a.find_run("0190-a")] == ["0190-aa", "0190-ab", "0190-ac"]
    await world.a.begin_run(new_run("0190-a"), node=A)
    assert [run.id for run in await world.a.find_run("0190-a")] == ["0190-a"], "the whole id"
    assert await world.a.find_run("019%") == []
    assert await world.a.find_run("0190-abc") == []
    assert len(await world.a.find_run("")) == FOUND


async def test_the_newest_entries_are_returned_oldest_first(world: World) -> None:
    await world.a.begin_run(new_run("r"), node=A)
    entries = tuple(entry(str(n)) for n in range(5))
    await world.a.finish_run(replace(end("r"), history=entries), node=A)
    stored = await world.a.history(key_of(ANN), limit=2)
    assert [row.entry.text for row in stored] == ["3", "4"]
    assert await world.a.history(key_of(ANN), limit=0) == []
    session = await session_of(world.a, key_of(ANN))
    assert session.entries == 5


async def test_a_reset_begins_a_fresh_history(world: World) -> None:
    """CMD-5: the stopped run's last words belong to what was left behind."""
    await world.a.reset_session(key_of(ANN), now=T0)
    assert await world.a.sessions() == [], "an unknown one"
    await ran(world, new_run("r1"), replace(end("r1"), history=(entry("old"),)))
    await world.a.begin_run(new_run("stopped"), node=A)
    await world.b.reset_session(key_of(ANN), now=at(20))
    last = replace(end("stopped", Outcome.CANCELLED), history=(entry("half a sent"),))
    await world.a.finish_run(last, node=A)
    assert await world.a.history(key_of(ANN)) == []
    assert await world.a.begin_run(new_run("r2"), node=A) == RunStartResult()
    session = await session_of(world.a, key_of(ANN))
    assert (session.entries, session.last_active_at) == (0, at(20))
    await world.a.note(key_of(ANN), entry("new"), rows=(), now=at(2))
    assert [stored.entry.text for stored in await world.a.history(key_of(ANN))] == ["new"]
    whole = await world.a.history(key_of(ANN), whole=True)
    told = [("old", 0), ("half a sent", 0), ("new", 1)]
    assert [(stored.entry.text, stored.resets) for stored in whole] == told
    assert await world.a.history(key_of(ANN), limit=1, whole=True) == whole[-1:]


# ---------------------------------------------------------------------------- rows taken in


@pytest.mark.parametrize("outcome", [Outcome.COMPLETED, Outcome.CANCELLED])
async def test_rows_that_a_run_took_in_end_with_it(world: World, outcome: Outcome) -> None:
    """QUEUE-4, QUEUE-8: but for what another run works on, and what was settled before."""
    first, steered, waits, others, settled = await world.accept(*[ANN] * 5)
    await world.a.begin_run(new_run("r", first), node=A)
    await world.a.begin_run(new_run("another", others), node=A)
    await world.a.settle([settled.id], Outcome.DROPPED, now=T0)
    last = replace(end("r", outcome), taken_in=(steered.id, others.id, settled.id))
    with pytest.raises(Fenced):
        await world.b.finish_run(last, node=B)
    assert len(await todo(world)) == 4
    await world.a.finish_run(replace(last, reason=Reason.STOPPED), node=A)
    assert [row.id for row in await todo(world)] == [waits.id, others.id]
    ended = {row.id: row for row in await world.b.unanswered(key_of(ANN), ended=True)}
    assert (ended[settled.id].outcome, ended[settled.id].run_id) == (Outcome.DROPPED, None)
    if outcome is Outcome.CANCELLED:
        for row in (ended[first.id], ended[steered.id]):
            assert (row.run_id, row.outcome, row.reason) == ("r", outcome, Reason.STOPPED)


async def test_an_interrupted_run_leaves_what_it_took_in_as_it_was(world: World) -> None:
    """QUEUE-4, QUEUE-11."""
    rows = await world.accept(ANN, ANN)
    cut = replace(end("r", Outcome.INTERRUPTED), taken_in=(rows[1].id,))
    await ran(world, new_run("r", rows[0]), cut)
    assert await todo(world) == [replace(rows[0], last_run=RunId("r")), rows[1]]


# ---------------------------------------------------------------------------- the queue mode


async def test_a_chosen_mode_comes_with_the_rows_of_its_session(world: World) -> None:
    """CMD-5: it belongs to the chat, so it stays through a reset and a change of node."""
    await world.a.choose_mode(key_of(ANN), Mode.STEER)
    assert await world.a.sessions() == [], "an unknown one"
    assert [row.mode for row in await world.accept(ANN, BOB)] == [None, None]
    for mode in (*Mode, None, Mode.STEER):
        await world.a.choose_mode(key_of(ANN), mode)
        assert [row.mode for row in await world.accept(ANN, BOB)] == [mode, None]
    modes = {(key_of(ANN), Mode.STEER), (key_of(BOB), None)}
    assert {(row.session, row.mode) for row in await todo(world)} == modes
    await world.a.reset_session(key_of(ANN), now=T0)
    await world.a.leave(A, now=T0)
    assert {(row.session, row.mode) for row in await todo(world, B)} == modes


async def test_a_note_ends_its_rows_and_is_remembered_outside_of_any_run(world: World) -> None:
    """CHAN-6: an edit of a message that was answered already."""
    await ran(world, new_run("r"), replace(end("r"), history=(entry("before"),)))
    first, second = await world.accept(ANN, ANN)
    await world.b.note(key_of(ANN), entry("it was edited"), rows=[first.id], now=at(20))
    assert await world.a.history(key_of(ANN)) == [
        StoredEntry(entry("before"), T0, RunId("r")),
        StoredEntry(entry("it was edited"), at(20), None),
    ]
    assert [row.id for row in await todo(world)] == [second.id]
    letter = await letter_of(world.a, first.id)
    assert (letter.row.outcome, letter.row.finished_at) == (Outcome.COMPLETED, at(20))


async def test_a_note_is_added_once_and_not_for_a_row_that_has_ended(world: World) -> None:
    """Without rows it is always, unless nobody knows its session."""
    (row,) = await world.accept(ANN)
    for _ in range(2):
        await world.a.note(key_of(ANN), entry("noted"), rows=[row.id, 999], now=T0)
    await world.a.note(key_of(ANN), entry("by the way"), rows=(), now=T0)
    told = [stored.entry.text for stored in await world.a.history(key_of(ANN))]
    assert told == ["noted", "by the way"]
    await world.a.note(key_of(BOB), entry("for nobody"), rows=(), now=T0)
    assert await world.a.session(key_of(BOB)) is None


async def test_a_crash_loses_no_row_that_was_taken_in(world: World) -> None:
    """QUEUE-4, IO-2: until the end is stored they wait. Its end is fenced when its node is back."""
    first, steered = await world.accept(ANN, ANN)
    await world.crash("r", first)
    with pytest.raises(Fenced):
        await world.a.finish_run(end("r", Outcome.COMPLETED, "late words"), node=A)
    assert await world.a.outbox() == []
    pending = await todo(world, B)
    assert [(row.id, row.attempts) for row in pending] == [(first.id, 1), (steered.id, 0)]


# ---------------------------------------------- runs that a crash or a shutdown cuts (SPEC AGENT-9)


PAID = ToolCall("pay", '{"to": "ann"}', T0, seconds=1.0, ok=True, result="paid")
SENT = ToolCall("send", "{}", T0)
READ = ToolCall("read", "{}", T0, side_effects=False, seconds=0.1, ok=True, result="text")
USED = Usage(2, 100, 10, 5, Decimal("0.25"))


async def the_run(world: World, run: str) -> StoredRun:
    (found,) = await world.b.find_run(run)
    return found


async def test_what_is_noted_of_a_run_is_seen_while_it_works(world: World) -> None:
    """Of its own node's. An end that knows nothing, stored only barely, takes nothing away."""
    await world.a.begin_run(new_run("r"), node=A)
    await world.a.note_run(RunId("r"), RunSoFar((SENT,), USED, "m"), node=A)
    # Where nothing is given usage and model stay.
    await world.a.note_run(RunId("r"), RunSoFar((SENT, PAID)), node=A)
    for name, node in (("r", B), ("unknown", A)):
        with pytest.raises(Fenced):
            await world.a.note_run(RunId(name), RunSoFar((SENT,)), node=node)
    run = await the_run(world, "r")
    assert (run.tools, run.usage, run.model) == ((SENT, PAID), USED, "m")
    assert run.outcome is None
    await world.a.finish_run(end("r", Outcome.FAILED), node=A)
    with pytest.raises(Fenced):
        await world.a.note_run(RunId("r"), RunSoFar((SENT,)), node=A)
    run = await the_run(world, "r")
    assert (run.tools, run.usage) == ((SENT, PAID), USED)


async def test_what_was_noted_survives_a_crash_and_counts(world: World) -> None:
    await world.a.begin_run(new_run("r"), node=A)
    await world.a.note_run(RunId("r"), RunSoFar((SENT,), USED, "m"), node=A)
    # What a run uses that works is known to its own process.
    assert await world.b.spent(since=T0, agent=AGENT) == NO_USAGE
    await crash(world)
    run = await the_run(world, "r")
    assert (run.outcome, run.tools, run.usage, run.model) == (Outcome.LOST, (SENT,), USED, "m")
    assert await world.b.spent(since=T0, agent=AGENT) == USED
    assert await world.b.spent(since=T0, payer=run.session) == USED


async def test_the_next_run_for_a_message_is_told_what_was_called(world: World) -> None:
    (row,) = await world.accept(ANN)
    await world.a.begin_run(new_run("r1", row), node=A)
    await world.a.note_run(RunId("r1"), RunSoFar((READ, PAID)), node=A)
    await crash(world)
    begun = await world.a.begin_run(new_run("r2", row, started_at=at(1)), node=A)
    assert (begun.cut_calls, begun.cut_usage) == ((READ, PAID), NO_USAGE)
    assert begun.is_restarted
    # A lost answer can be asked for again.
    assert await world.a.begin_run(new_run("r2", row, started_at=at(1)), node=A) == begun
    await world.a.note_run(RunId("r2"), RunSoFar((SENT,), USED), node=A)
    await world.a.finish_run(end("r2", Outcome.INTERRUPTED), node=A)
    begun = await world.a.begin_run(new_run("r3", row, started_at=at(2)), node=A)
    assert (begun.cut_calls, begun.cut_usage) == ((READ, PAID, SENT), USED)
    await world.a.finish_run(end("r3"), node=A)
    (other,) = await world.accept(ANN)
    assert (await world.a.begin_run(new_run("r4", other), node=A)).cut_calls == ()


@pytest.mark.parametrize(
    ("outcome", "reason", "is_restarted"),
    [
        (Outcome.INTERRUPTED, Reason.SHUTDOWN, True),
        (Outcome.INTERRUPTED, Reason.OUTAGE, False),
        (Outcome.INTERRUPTED, Reason.APPROVAL, False),
        (Outcome.INTERRUPTED, Reason.MERGED, False),
    ],
)
async def test_the_next_run_for_a_message_is_told_of_a_restart(
    world: World, outcome: Outcome, reason: Reason, *, is_restarted: bool
) -> None:
    (row,) = await world.accept(ANN)
    first = await world.a.begin_run(new_run("r1", row), node=A)
    assert not first.is_restarted
    await world.a.finish_run(replace(end("r1", outcome), reason=reason), node=A)
    begun = await world.a.begin_run(new_run("r2", row, started_at=at(1)), node=A)
    assert begun.is_restarted is is_restarted


async def test_a_claim_has_the_tools_that_its_interrupted_runs_had_called(world: World) -> None:
    claimed = await claimed_job(world.a)
    assert claimed.called == ()
    await world.a.begin_run(run_for("r1", claimed), node=A)
    await world.a.note_run(RunId("r1"), RunSoFar((SENT, READ, PAID)), node=A)
    await crash(world)
    again = await claim_one(world.a)
    assert again.called == ("pay", "send")
    begun = await world.a.begin_run(run_for("r2", again), node=A)
    assert begun.cut_calls == (SENT, READ, PAID)


async def test_the_end_wins_over_what_is_noted_at_the_same_time(world: World) -> None:
    await world.a.begin_run(new_run("r"), node=A)
    noted = world.a.note_run(RunId("r"), RunSoFar((SENT,)), node=A)
    ended = world.a.finish_run(end("r"), node=A)
    await asyncio.gather(noted, ended, return_exceptions=True)
    assert (await the_run(world, "r")).outcome is Outcome.COMPLETED
