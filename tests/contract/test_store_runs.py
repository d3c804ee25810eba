"""What every store promises about runs, sessions and their history."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from decimal import Decimal

import pytest

from goclaw_py.model.errors import Fenced, LeaseExpired, RunNotStarted
from goclaw_py.model.ids import NodeId, RunId, SessionKey
from goclaw_py.model.outcomes import Outcome, Reason
from goclaw_py.model.run_events import Usage
from goclaw_py.ports.agent import HistoryEntry, Role
from goclaw_py.ports.store import Notice, RunStartResult, StoredEntry, StoredRun
from goclaw_py.scheduler.models import Mode
from tests.support.stores import (
    ANN,
    APOLOGY,
    BOB,
    PLACES,
    T0,
    A,
    B,
    Heard,
    World,
    a_node,
    at,
    end,
    entry,
    inbox,
    key_of,
    new_run,
    until,
)

pytestmark = pytest.mark.real_time


async def test_a_run_that_works_is_listed_without_an_outcome(world: World) -> None:
    new = replace(new_run("r"), parent=RunId("p"), model="offline")
    await world.a.begin_run(new, node=A)
    assert await world.b.runs(active=True) == [
        StoredRun(
            id=new.id,
            session=new.session,
            agent=new.agent,
            trigger=new.trigger,
            lane=new.lane,
            node=A,
            started_at=T0,
            finished_at=None,
            outcome=None,
            reason=None,
            error=None,
            usage=None,
            model="offline",
            parent=RunId("p"),
            payer=new.session,
            submitted_at=T0,
            target=ANN,
        )
    ]


async def test_a_finished_run_keeps_how_it_ended(world: World) -> None:
    usage = Usage(3, 1000, 50, 10, Decimal("0.0123"))
    finished = replace(
        end("r", Outcome.FAILED), reason=Reason.RUN_TIMEOUT, error="boom", usage=usage
    )
    await world.a.begin_run(new_run("r"), node=A)
    await world.a.finish_run(finished, node=A)
    (run,) = await world.b.runs()
    assert (run.outcome, run.reason, run.error) == (Outcome.FAILED, Reason.RUN_TIMEOUT, "boom")
    assert (run.finished_at, run.usage) == (at(9), usage)
    assert await world.b.runs(active=True) == []


async def test_a_usage_without_price_stays_without(world: World) -> None:
    await world.a.begin_run(new_run("r"), node=A)
    await world.a.finish_run(replace(end("r"), usage=Usage(1, 2, 3, 4)), node=A)
    assert (await world.a.runs())[0].usage == Usage(1, 2, 3, 4)


async def test_a_run_ends_with_its_rows_history_and_reply_together(world: World) -> None:
    """IO-3."""
    rows = await world.accept(ANN, ANN)
    assert await world.a.begin_run(new_run("r1", *rows), node=A) == RunStartResult()
    pair = (entry("question"), HistoryEntry(Role.ASSISTANT, "answer", b'{"n":\x00}', "native"))
    heard = Heard()
    world.b.on_notice(heard.append)
    await world.a.finish_run(
        replace(end("r1", Outcome.COMPLETED, "answer", "more"), history=pair), node=A
    )
    await until(heard.expect(Notice.OUTBOX))
    assert await world.a.claim_pending(A, now=T0, places=PLACES) == []
    said = [(row.message.text, row.session) for row in await world.a.outbox()]
    assert said == [("more", key_of(ANN)), ("answer", key_of(ANN))]
    assert (await world.a.begin_run(new_run("r2"), node=A)).history == pair
    assert await world.b.history(key_of(ANN)) == [
        StoredEntry(pair[0], T0, RunId("r1")),
        StoredEntry(pair[1], at(9), RunId("r1")),
    ]


async def test_finishing_twice_changes_nothing(world: World) -> None:
    rows = await world.accept(ANN)
    await world.a.begin_run(new_run("r", *rows), node=A)
    await world.a.finish_run(end("r", Outcome.COMPLETED, "answer"), node=A)
    await world.a.release_sessions(A, [key_of(ANN)])
    await world.a.finish_run(end("r", Outcome.FAILED, "other words"), node=A)
    assert (await world.a.runs())[0].outcome is Outcome.COMPLETED
    assert len(await world.a.outbox()) == 1


async def test_finishing_twice_at_once_counts_once(world: World) -> None:
    await world.a.begin_run(new_run("r"), node=A)
    await asyncio.gather(
        *(world.a.finish_run(end("r", Outcome.COMPLETED, "answer"), node=A) for _ in range(4))
    )
    assert len(await world.a.outbox()) == 1


async def test_a_run_that_never_began_cannot_finish(world: World) -> None:
    with pytest.raises(RunNotStarted, match="never began"):
        await world.a.finish_run(end("ghost"), node=A)


async def test_an_interrupted_run_gives_its_rows_and_attempt_back(world: World) -> None:
    """QUEUE-11."""
    rows = await world.accept(ANN)
    await world.a.begin_run(new_run("r", *rows), node=A)
    await world.a.finish_run(end("r", Outcome.INTERRUPTED), node=A)
    assert await world.a.claim_pending(A, now=T0, places=PLACES) == rows
    assert (await world.a.runs())[0].outcome is Outcome.INTERRUPTED


async def test_a_row_that_was_settled_meanwhile_stays_settled(world: World) -> None:
    rows = await world.accept(ANN, ANN)
    await world.a.begin_run(new_run("r", *rows), node=A)
    await world.a.settle([rows[0].id], Outcome.CANCELLED, now=T0)
    await world.a.finish_run(end("r", Outcome.INTERRUPTED), node=A)
    assert [row.id for row in await world.a.claim_pending(A, now=T0, places=PLACES)] == [rows[1].id]


async def test_beginning_twice_counts_one_attempt(world: World) -> None:
    rows = await world.accept(ANN)
    await world.a.begin_run(new_run("r", *rows), node=A)
    await world.a.begin_run(new_run("r", *rows), node=A)
    assert [row.attempts for row in await world.a.claim_pending(A, now=T0, places=PLACES)] == [1]


async def test_an_ended_run_does_not_begin_again(world: World) -> None:
    await world.a.begin_run(new_run("r"), node=A)
    await world.a.finish_run(end("r"), node=A)
    with pytest.raises(Fenced):
        await world.a.begin_run(new_run("r"), node=A)


async def test_a_run_makes_its_session_and_claims_it(world: World) -> None:
    key = SessionKey("agent:default:cron:daily")
    new = replace(new_run("r", started_at=at(3)), session=key, target=None)
    await world.a.begin_run(new, node=A)
    session = await world.b.session(key)
    assert session is not None
    assert (session.owner, session.fence, session.target) == (A, 1, None)
    assert (session.created_at, session.last_active_at) == (at(3), at(3))


async def test_a_run_cannot_begin_in_another_live_nodes_session(world: World) -> None:
    rows = await world.accept(ANN)
    with pytest.raises(Fenced):
        await world.b.begin_run(new_run("r", *rows), node=B)
    assert await world.b.runs() == []
    assert [row.attempts for row in await world.a.claim_pending(A, now=T0, places=PLACES)] == [0]


async def test_a_node_that_has_not_joined_cannot_begin_a_run(world: World) -> None:
    with pytest.raises(Fenced):
        await world.a.begin_run(new_run("r"), node=NodeId("stranger"))
    assert await world.a.sessions() == []


async def test_a_run_may_begin_in_a_dead_nodes_session(world: World) -> None:
    await world.accept(ANN)
    now = await world.kill(A)
    await world.b.begin_run(new_run("r", started_at=now), node=B)
    session = await world.b.session(key_of(ANN))
    assert session is not None
    assert (session.owner, session.fence) == (B, 2)


async def test_a_run_is_fenced_when_its_session_was_taken_over_and_came_back(
    world: World,
) -> None:
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


async def test_another_node_cannot_finish_a_run(world: World) -> None:
    await world.a.begin_run(new_run("r"), node=A)
    with pytest.raises(Fenced):
        await world.b.finish_run(end("r"), node=B)


async def test_a_run_that_recovery_ended_cannot_begin_again(world: World) -> None:
    await world.a.begin_run(new_run("r"), node=A)
    now = await world.kill(A)
    await world.b.recover(now=now, max_attempts=3, apology=APOLOGY)
    with pytest.raises(Fenced):
        await world.b.begin_run(new_run("r", started_at=now), node=B)


async def test_runs_are_listed_newest_first(world: World) -> None:
    for name, second in (("a", 1), ("c", 2), ("b", 2), ("d", 0)):
        await world.a.begin_run(new_run(name, started_at=at(second)), node=A)
    assert [run.id for run in await world.a.runs()] == ["c", "b", "a", "d"]
    assert [run.id for run in await world.a.runs(limit=2)] == ["c", "b"]


async def test_runs_of_one_session_can_be_asked_for(world: World) -> None:
    await world.a.begin_run(new_run("a"), node=A)
    await world.a.begin_run(new_run("b", target=BOB), node=A)
    await world.a.begin_run(new_run("c", started_at=at(1)), node=A)
    await world.a.finish_run(end("c"), node=A)
    key = key_of(ANN)
    assert [run.id for run in await world.a.runs(session=key)] == ["c", "a"]
    assert [run.id for run in await world.a.runs(session=key, limit=1)] == ["c"]
    assert [run.id for run in await world.a.runs(session=key, active=True)] == ["a"]
    assert [run.id for run in await world.a.runs(active=True, limit=1)] == ["b"]


async def test_a_run_is_found_by_a_prefix_of_its_id(world: World) -> None:
    for name in ("0190-aa", "0190-ab", "0190-ac", "0191%"):
        await world.a.begin_run(new_run(name), node=A)
    assert [run.id for run in await world.a.find_run("0190-ab")] == ["0190-ab"]
    assert [run.id for run in await world.a.find_run("0190")] == ["0190-aa", "0190-ab"]
    assert await world.a.find_run("019%") == []
    assert await world.a.find_run("0190-abc") == []
    assert len(await world.a.find_run("")) == 2


async def test_sessions_are_listed_last_active_first(world: World) -> None:
    await world.a.accept([inbox(1)], node=A, now=at(1))
    await world.a.accept([inbox(1, BOB)], node=A, now=at(2))
    await world.a.begin_run(new_run("r", started_at=at(3)), node=A)
    assert [session.key for session in await world.b.sessions()] == [key_of(ANN), key_of(BOB)]
    assert len(await world.b.sessions(limit=1)) == 1


async def test_an_unknown_session_is_none_and_has_no_history(world: World) -> None:
    assert await world.a.session(key_of(ANN)) is None
    assert await world.a.history(key_of(ANN)) == []


async def test_the_newest_entries_are_returned_oldest_first(world: World) -> None:
    await world.a.begin_run(new_run("r"), node=A)
    entries = tuple(entry(str(n)) for n in range(5))
    await world.a.finish_run(replace(end("r"), history=entries), node=A)
    stored = await world.a.history(key_of(ANN), limit=2)
    assert [row.entry.text for row in stored] == ["3", "4"]
    assert await world.a.history(key_of(ANN), limit=0) == []
    session = await world.a.session(key_of(ANN))
    assert session is not None
    assert session.entries == 5


async def test_a_reset_begins_a_fresh_history(world: World) -> None:
    await world.a.begin_run(new_run("r1"), node=A)
    await world.a.finish_run(replace(end("r1"), history=(entry("old"),)), node=A)
    await world.b.reset_session(key_of(ANN), now=at(20))
    assert await world.a.history(key_of(ANN)) == []
    assert await world.a.begin_run(new_run("r2"), node=A) == RunStartResult()
    session = await world.a.session(key_of(ANN))
    assert session is not None
    assert (session.entries, session.last_active_at) == (0, at(20))


async def test_a_run_that_began_before_the_reset_writes_no_fresh_history(world: World) -> None:
    """CMD-5: the stopped run's last words belong to what was left behind."""
    await world.a.begin_run(new_run("r"), node=A)
    await world.a.reset_session(key_of(ANN), now=T0)
    stopped = replace(end("r", Outcome.CANCELLED), history=(entry("half a sent"),))
    await world.a.finish_run(stopped, node=A)
    assert await world.a.history(key_of(ANN)) == []


async def test_resetting_an_unknown_session_is_harmless(world: World) -> None:
    await world.a.reset_session(key_of(ANN), now=T0)
    assert await world.a.sessions() == []


# ---------------------------------------------------------------------------- rows taken in


async def test_rows_that_a_run_took_in_end_with_it(world: World) -> None:
    """QUEUE-4."""
    first, steered, waits = await world.accept(ANN, ANN, ANN)
    await world.a.begin_run(new_run("r", first), node=A)
    await world.a.finish_run(replace(end("r"), taken_in=(steered.id,)), node=A)
    assert await world.a.claim_pending(A, now=T0, places=PLACES) == [waits]


async def test_a_stopped_run_takes_the_rows_that_it_took_in_along(world: World) -> None:
    """QUEUE-4, QUEUE-8."""
    first, steered = await world.accept(ANN, ANN)
    await world.a.begin_run(new_run("r", first), node=A)
    stopped = replace(end("r", Outcome.CANCELLED), reason=Reason.STOPPED, taken_in=(steered.id,))
    await world.a.finish_run(stopped, node=A)
    ended = await world.b.unanswered(key_of(ANN), ended=True)
    assert [(row.id, row.run_id, row.outcome, row.reason) for row in ended] == [
        (steered.id, "r", Outcome.CANCELLED, Reason.STOPPED),
        (first.id, "r", Outcome.CANCELLED, Reason.STOPPED),
    ]


async def test_an_interrupted_run_leaves_the_rows_that_it_took_in_as_they_were(
    world: World,
) -> None:
    """QUEUE-4, QUEUE-11."""
    rows = await world.accept(ANN, ANN)
    await world.a.begin_run(new_run("r", rows[0]), node=A)
    cut = replace(end("r", Outcome.INTERRUPTED), taken_in=(rows[1].id,))
    await world.a.finish_run(cut, node=A)
    assert await world.a.claim_pending(A, now=T0, places=PLACES) == rows


async def test_a_crash_loses_no_row_that_was_taken_in_and_counts_no_attempt_for_it(
    world: World,
) -> None:
    """QUEUE-4, IO-2: until the end is stored they are rows that wait."""
    first, steered = await world.accept(ANN, ANN)
    await world.crash("r", first)
    pending = await world.b.claim_pending(B, now=at(0), places=PLACES)
    assert [(row.id, row.attempts) for row in pending] == [(first.id, 1), (steered.id, 0)]


async def test_a_row_of_another_run_is_not_taken_in(world: World) -> None:
    first, second = await world.accept(ANN, ANN)
    await world.a.begin_run(new_run("r1", first), node=A)
    await world.a.begin_run(new_run("r2", second), node=A)
    await world.a.finish_run(replace(end("r1"), taken_in=(second.id,)), node=A)
    pending = await world.a.claim_pending(A, now=T0, places=PLACES)
    assert [row.id for row in pending] == [second.id]


async def test_a_row_that_was_settled_before_the_end_is_not_taken_in(world: World) -> None:
    first, steered = await world.accept(ANN, ANN)
    await world.a.begin_run(new_run("r", first), node=A)
    await world.a.settle([steered.id], Outcome.DROPPED, now=T0)
    await world.a.finish_run(replace(end("r"), taken_in=(steered.id,)), node=A)
    (dropped,) = await world.b.unanswered(key_of(ANN), ended=True)
    assert (dropped.outcome, dropped.run_id) == (Outcome.DROPPED, None)


async def test_a_fenced_end_leaves_the_rows_that_were_taken_in(world: World) -> None:
    """NODE-1."""
    first, steered = await world.accept(ANN, ANN)
    await world.a.begin_run(new_run("r", first), node=A)
    with pytest.raises(Fenced):
        await world.b.finish_run(replace(end("r"), taken_in=(steered.id,)), node=B)
    assert len(await world.a.claim_pending(A, now=T0, places=PLACES)) == 2


# ---------------------------------------------------------------------------- the queue mode


async def test_a_chosen_mode_comes_with_the_rows_of_its_session(world: World) -> None:
    """CMD-5: no question of its own is needed for it."""
    (before,) = await world.accept(ANN)
    await world.a.choose_mode(key_of(ANN), Mode.COLLECT)
    after, other = await world.accept(ANN, BOB)
    assert (before.mode, after.mode, other.mode) == (None, Mode.COLLECT, None)
    pending = await world.a.claim_pending(A, now=T0, places=PLACES)
    assert {(row.session, row.mode) for row in pending} == {
        (key_of(ANN), Mode.COLLECT),
        (key_of(BOB), None),
    }


async def test_every_mode_can_be_chosen_and_taken_back(world: World) -> None:
    """CMD-5."""
    await world.accept(ANN)
    for mode in (*Mode, None):
        await world.a.choose_mode(key_of(ANN), mode)
        (row,) = await world.accept(ANN)
        assert row.mode is mode


async def test_a_chosen_mode_stays_through_a_reset_and_a_change_of_node(world: World) -> None:
    """CMD-5: it belongs to the chat."""
    await world.accept(ANN)
    await world.a.choose_mode(key_of(ANN), Mode.STEER)
    await world.a.reset_session(key_of(ANN), now=T0)
    await world.a.leave(A, now=T0)
    (row,) = await world.b.claim_pending(B, now=T0, places=PLACES)
    assert row.mode is Mode.STEER


async def test_choosing_a_mode_for_an_unknown_session_is_harmless(world: World) -> None:
    await world.a.choose_mode(key_of(ANN), Mode.STEER)
    assert await world.a.sessions() == []


async def test_a_note_ends_its_rows_and_is_remembered_outside_of_any_run(world: World) -> None:
    """CHAN-6: an edit of a message that was answered already."""
    await world.a.begin_run(new_run("r"), node=A)
    await world.a.finish_run(replace(end("r"), history=(entry("before"),)), node=A)
    first, second = await world.accept(ANN, ANN)
    await world.b.note(key_of(ANN), entry("it was edited"), rows=[first.id], now=at(20))
    assert await world.a.history(key_of(ANN)) == [
        StoredEntry(entry("before"), T0, RunId("r")),
        StoredEntry(entry("it was edited"), at(20), None),
    ]
    assert [row.id for row in await world.a.claim_pending(A, now=T0, places=PLACES)] == [second.id]
    letter = await world.a.dead_letter(first.id)
    assert letter is not None
    assert (letter.row.outcome, letter.row.finished_at) == (Outcome.COMPLETED, at(20))


async def test_a_note_is_added_once_and_not_for_a_row_that_has_ended(world: World) -> None:
    (row,) = await world.accept(ANN)
    for _ in range(2):
        await world.a.note(key_of(ANN), entry("noted"), rows=[row.id, 999], now=T0)
    assert [stored.entry.text for stored in await world.a.history(key_of(ANN))] == ["noted"]


async def test_a_note_without_rows_is_added(world: World) -> None:
    await world.accept(ANN)
    await world.a.note(key_of(ANN), entry("by the way"), rows=(), now=T0)
    assert [stored.entry.text for stored in await world.a.history(key_of(ANN))] == ["by the way"]


async def test_a_note_for_a_session_that_does_not_exist_is_nowhere(world: World) -> None:
    await world.a.note(key_of(BOB), entry("for nobody"), rows=(), now=T0)
    assert await world.a.session(key_of(BOB)) is None


async def test_a_note_goes_to_the_present_history(world: World) -> None:
    await world.accept(ANN)
    await world.a.note(key_of(ANN), entry("old"), rows=(), now=T0)
    await world.a.reset_session(key_of(ANN), now=at(1))
    await world.a.note(key_of(ANN), entry("new"), rows=(), now=at(2))
    assert [stored.entry.text for stored in await world.a.history(key_of(ANN))] == ["new"]


async def test_a_run_that_was_recovered_is_fenced_though_its_node_has_come_back(
    world: World,
) -> None:
    (row,) = await world.accept(ANN)
    await world.crash("r", row)
    with pytest.raises(Fenced):
        await world.a.finish_run(end("r", Outcome.COMPLETED, "late words"), node=A)
    assert await world.a.outbox() == []
