"""What every store promises about how long things are kept (SPEC DB-5)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from goclaw_py.core.ids import JobId, OccurrenceId, RunId, SessionKey
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.core.outcomes import Outcome, Trigger
from goclaw_py.core.run_events import ToolEnded, ToolStarted
from goclaw_py.records import (
    InboxKind,
    InboxRow,
    OutboxQuery,
    OutboxRow,
    OutboxState,
    RetentionReport,
    RunEnd,
    RunSoFar,
)
from goclaw_py.schedule.heartbeat.models import HeartbeatRunStatus
from goclaw_py.schedule.jobs.models import JobState
from goclaw_py.store import upkeep_rules
from tests.support import store_heartbeats, store_jobs
from tests.support.store_heartbeats import alert, alerted, manual, planned
from tests.support.store_jobs import a_job, added, claimed_job
from tests.support.stores import (
    ANN,
    BOB,
    T0,
    A,
    World,
    an_id,
    at,
    crash,
    end,
    entry,
    inbox,
    key_of,
    new_run,
    pairing,
    ran,
    recovered,
    say,
    todo,
)

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

STEPS = (ToolStarted("c", "pay", "{}"), ToolEnded("c", "pay", ok=True, result="paid"))

DAY = timedelta(days=1)
TICK = timedelta(microseconds=1)
YEARS = T0 + 1000 * DAY
"""When all is older than it may be."""

RUN, JOB = an_id(1), an_id(2)
OF_ONE_RUN = [
    *(f"agent:main:{trigger}:{RUN}" for trigger in ("heartbeat", "subagent", "delegate")),
    f"agent:main:cron:{JOB}:{RUN}",
]
FOR_EVER = [
    key_of(ANN),
    f"agent:main:telegram:group:{RUN}",
    "agent:main:api:notes",
    f"agent:main:api:{RUN}",
    # A person may have named the conversation of a job so.
    "agent:main:cron:monthly",
    "agent:main:cron:monthly:report",
    "agent:main:subagent:monthly",
]


LETTERS = {Outcome.FAILED, Outcome.DROPPED, Outcome.LOST}


async def letter(world: World, outcome: Outcome | None, *, now: datetime = T0) -> InboxRow:
    """A message that has ended so, or waits."""
    (row,) = await world.accept(ANN)
    if outcome is not None:
        await world.a.settle([row.id], outcome, now=now)
    return row


async def sent(world: World, text: str = "hello", *, now: datetime = T0) -> OutboxRow:
    await world.put(say(text, BOB), now=now)
    row = await world.claimed(target=BOB, now=now)
    await world.a.mark_sent(row, "id", now=now)
    return row


async def a_session(
    world: World, key: str, *, trigger: Trigger = Trigger.CRON, entries: int = 1, run: str = "r"
) -> SessionKey:
    """A conversation in which one run has worked, released."""
    session = SessionKey(key)
    begun = replace(new_run(run), session=session, trigger=trigger, target=None)
    await world.a.begin_run(begun, node=A)
    history = tuple(entry(f"line {n}") for n in range(entries))
    await world.a.finish_run(replace(end(run), history=history, finished_at=T0), node=A)
    await world.a.release_sessions(A, [session])
    return session


# ---------------------------------------------------------------------------- messages that came


@pytest.mark.parametrize("dismissed", [False, True])
async def test_a_message_is_kept_for_a_week_and_for_a_month_if_an_operator_should_see_it(
    world: World, dismissed: bool
) -> None:
    """And has not seen it yet."""
    rows = {}
    for outcome in (Outcome.COMPLETED, Outcome.CANCELLED, *LETTERS):
        row = rows[outcome] = await letter(world, outcome)
        if dismissed:
            await world.a.dismiss_dead_letters([row.id], now=T0)
    weeks = len(rows) if dismissed else 2
    for days, swept in ((7, weeks), (30, len(rows) - weeks)):
        assert (await world.a.sweep_inbox(now=T0 + days * DAY)).rows == 0
        assert (await world.a.sweep_inbox(now=T0 + days * DAY + TICK)).rows == swept
        left = {outcome for outcome, row in rows.items() if await world.b.dead_letter(row.id)}
        assert left == (LETTERS if days == 7 and not dismissed else set())
    assert await world.b.unanswered(key_of(ANN), ended=True) == []
    assert await world.b.dead_letters() == []


async def test_a_message_that_waits_is_kept_however_old_it_is(world: World) -> None:
    """The number of a row that is gone is never given again."""
    row, tried_again = await letter(world, None), await letter(world, Outcome.FAILED)
    await world.a.retry_dead_letters([tried_again.id], now=T0)
    assert await world.a.sweep_inbox(now=YEARS) == RetentionReport(0, None)
    pending = await todo(world, now=YEARS)
    assert [one.id for one in pending] == [row.id, tried_again.id]
    old, told = await letter(world, Outcome.COMPLETED), await sent(world)
    assert (await world.a.sweep_inbox(now=YEARS)).rows == 1
    assert (await world.a.sweep_outbox(now=YEARS)).rows == 1
    assert (await letter(world, None)).id > old.id
    assert (await sent(world)).id > told.id


async def test_a_message_counts_as_known_until_it_is_forgotten(world: World) -> None:
    """Telegram repeats an update for a day, so nothing comes twice."""
    for kind in InboxKind:
        new = replace(inbox(str(kind), kind=kind), outcome=Outcome.COMPLETED)
        external_id = new.message.external_id
        await world.a.accept([new], node=A, now=T0)
        await world.a.sweep_inbox(now=T0 + 7 * DAY)
        again = await world.a.accept([new], node=A, now=T0 + 7 * DAY)
        assert again.duplicates == {external_id}
        assert (await world.a.sweep_inbox(now=T0 + 7 * DAY + TICK)).rows == 1
        assert not await world.b.is_known("telegram", "default", external_id)
        again = await world.a.accept([new], node=A, now=T0 + 7 * DAY)
        assert again.duplicates == frozenset()


async def test_a_message_is_kept_as_long_as_a_run_works_on_it(world: World) -> None:
    """Its end is read when the run is cut: a stopped one ends as cancelled."""
    row = await letter(world, None)
    await world.a.begin_run(new_run("r", row), node=A)
    await world.a.settle([row.id], Outcome.CANCELLED, now=T0)
    assert (await world.a.sweep_inbox(now=YEARS)).rows == 0
    now = await world.kill(A)
    recovery = await world.b.recover(now=now, max_attempts=3, apology="sorry")
    assert [cut.outcome for cut in recovery.cut_runs] == [Outcome.CANCELLED]
    assert (await world.b.sweep_inbox(now=YEARS)).rows == 1


async def test_a_message_is_kept_as_long_as_its_draft_is_open(world: World) -> None:
    done, waits = await letter(world, None), await letter(world, None)
    await world.a.begin_run(new_run("r", done, waits), node=A)
    await world.a.open_draft(RunId("r"), ANN, now=T0)
    await world.a.draft_posted(RunId("r"), "draft")
    await world.a.finish_run(end("r", Outcome.INTERRUPTED), node=A)
    await world.a.settle([done.id], Outcome.CANCELLED, now=T0)
    assert (await world.a.sweep_inbox(now=YEARS)).rows == 0
    assert await world.a.sweep_runs(now=YEARS) == 0
    await world.a.settle([waits.id], Outcome.COMPLETED, now=T0)
    (closing,) = await world.a.outbox()
    # One was stopped, and the draft says so.
    assert closing.message.text
    assert (await world.a.sweep_inbox(now=YEARS)).rows == 2
    assert await world.a.sweep_runs(now=YEARS) == 1


# ---------------------------------------------------------------------------- messages that went


async def dead(world: World, row: OutboxRow) -> None:
    await world.a.mark_dead(row, "blocked", now=T0)


async def delivered(world: World, row: OutboxRow) -> None:
    await world.a.mark_sent(row, "id", now=T0)


async def put_back(world: World, row: OutboxRow) -> None:
    await world.a.mark_failed(row, "later", retry_at=T0, maybe_sent=False)


End = Callable[[World, OutboxRow], Awaitable[None]]


async def dropped(world: World, row: OutboxRow) -> None:
    await dead(world, row)
    await world.a.drop_outbox([row.id], now=T0)


async def nothing(_world: World, _row: OutboxRow) -> None:
    """It is being sent."""


@pytest.mark.parametrize(("ending", "days"), [(delivered, 7), (dropped, 7), (dead, 30)])
async def test_what_was_said_is_kept_for_a_week_and_for_a_month_if_it_is_dead(
    world: World, ending: End, days: int
) -> None:
    await world.put(say("hello"))
    row = await world.claimed()
    await ending(world, row)
    assert (await world.a.sweep_outbox(now=T0 + days * DAY)).rows == 0
    assert await world.b.outbox_row(row.id) is not None
    assert (await world.a.sweep_outbox(now=T0 + days * DAY + TICK)).rows == 1
    assert await world.b.outbox() == []
    assert await world.b.retry_outbox([row.id], now=T0) == 0


@pytest.mark.parametrize("ending", [put_back, nothing])
async def test_what_is_not_sent_is_kept_however_old_it_is(world: World, ending: End) -> None:
    await world.put(say("hello"), say("you"))
    await ending(world, await world.claimed())
    assert await world.a.sweep_outbox(now=YEARS) == RetentionReport(0, None)
    states = [row.state for row in await world.b.outbox()]
    first = OutboxState.WAITING if ending is put_back else OutboxState.SENDING
    assert states == [OutboxState.WAITING, first]


CONSOLE, GUEST = Target("console", "default", "bob"), Target("web", "default", "eve")


async def answered(world: World, target: Target, texts: Sequence[str], at: datetime) -> None:
    """A run has answered in this chat."""
    name = f"{target.chat} {texts[0]}"
    say = tuple(OutboundMessage(target, text, run_id=RunId(name)) for text in texts)
    await world.a.begin_run(new_run(name, target=target, started_at=at), node=A)
    await world.a.finish_run(RunEnd(RunId(name), Outcome.COMPLETED, at, say=say), node=A)


async def waiting_in(world: World, target: Target) -> list[str]:
    rows = await world.b.outbox(OutboxQuery(OutboxState.WAITING, limit=1000))
    return [row.message.text for row in reversed(rows) if row.message.target == target]


@pytest.mark.parametrize("target", [CONSOLE, GUEST])
async def test_an_answer_that_no_terminal_fetches_waits_for_a_day(
    world: World, target: Target
) -> None:
    """SPEC IO-6: its session's history has it, so a backlog would help nobody."""
    await answered(world, target, ["old"], T0)
    await answered(world, target, ["young"], T0 + TICK)
    await answered(world, BOB, ["of telegram"], T0)
    assert await world.a.end_unread(now=T0 + DAY) == 0
    assert await world.a.end_unread(now=T0 + DAY + TICK) == 1
    assert await waiting_in(world, target) == ["young"]
    assert await waiting_in(world, BOB) == ["of telegram"]
    (ended,) = await world.b.outbox(OutboxQuery(OutboxState.SENT))
    assert (ended.message.text, ended.sent_at) == ("old", T0 + DAY + TICK)
    row = await world.claimed(target=target, now=T0 + 2 * DAY)
    assert row.message.text == "young"
    assert await world.a.end_unread(now=YEARS) == 0, "a terminal is being shown it"


async def test_of_each_chat_the_newest_answers_wait_for_a_terminal(world: World) -> None:
    most = upkeep_rules.MOST_UNREAD
    texts = [str(n) for n in range(most + 5)]
    await answered(world, CONSOLE, texts, T0)
    await answered(world, GUEST, texts[:most], T0)
    assert await world.a.end_unread(now=T0) == 5
    assert await waiting_in(world, CONSOLE) == texts[5:]
    assert await waiting_in(world, GUEST) == texts[:most]
    assert await world.a.end_unread(now=T0) == 0


async def test_what_no_history_has_waits_for_its_terminal(world: World) -> None:
    """What is about an incident, or the result of a job."""
    told = OutboundMessage(CONSOLE, "tea", run_id=RunId("r"), occurrence=OccurrenceId(RUN))
    await world.put(say("an incident", CONSOLE))
    await world.a.begin_run(new_run("r", target=CONSOLE), node=A)
    await world.a.finish_run(replace(end("r"), say=(told,)), node=A)
    assert await world.a.end_unread(now=YEARS) == 0


async def test_what_a_job_has_said_is_kept_as_long_as_its_log_tells_of_it(world: World) -> None:
    claimed = await claimed_job(world.a)
    last = store_jobs.ended(claimed, now=T0)
    begun = store_jobs.run_for("r", claimed)
    await world.a.begin_run(begun, node=A)
    await world.a.finish_run(
        replace(end("r", Outcome.COMPLETED, "tea"), occurrence=last, finished_at=T0), node=A
    )
    await world.a.mark_sent(await world.claimed(now=at(9)), "id", now=T0)
    before = await world.a.logged(claimed.id)
    assert (await world.a.sweep_outbox(now=YEARS)).rows == 0
    assert await world.a.sweep_runs(now=YEARS) == 0
    assert await world.b.logged(claimed.id) == before
    assert before
    assert (before.delivery, before.runs) == ("sent", (RunId("r"),))
    while await world.a.sweep_jobs(now=YEARS):
        pass
    assert (await world.a.sweep_outbox(now=YEARS)).rows == 1
    assert await world.a.sweep_runs(now=YEARS) == 1


async def test_an_alert_is_kept_as_long_as_the_log_of_heartbeats_tells_of_it(world: World) -> None:
    await planned(world.a)
    claimed = await manual(world.a)
    assert claimed
    await world.a.begin_run(store_heartbeats.run_for("r", claimed), node=A)
    ended = replace(
        end("r"), heartbeat_run=alerted(claimed), say=(alert("fire", "key"),), finished_at=T0
    )
    await world.a.finish_run(ended, node=A)
    await world.a.mark_dead(await world.claimed(now=at(9)), "blocked", now=T0)
    before = await world.a.heartbeat_run(claimed.id)
    assert (await world.a.sweep_outbox(now=YEARS)).rows == 0
    assert await world.a.sweep_runs(now=YEARS) == 0
    assert await world.b.heartbeat_run(claimed.id) == before
    assert before
    assert (before.status, before.runs) == (HeartbeatRunStatus.DELIVERY_FAILED, (RunId("r"),))
    assert await world.a.sweep_heartbeat_runs(now=YEARS) == 1
    assert (await world.a.sweep_outbox(now=YEARS)).rows == 1
    assert await world.a.sweep_runs(now=YEARS) == 1
    assert not await world.b.alert_state("key", since=T0)


# ---------------------------------------------------------------------------- stretches


async def test_what_stays_hides_nothing_behind_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep_rules, "MOST_SWEPT", 2)
    for outcome in (None, None, None, Outcome.COMPLETED, None):
        await letter(world, outcome)
    assert (await world.a.sweep_inbox(now=YEARS)).rows == 0
    after, swept = 0, []
    for _ in range(3):
        report = await world.a.sweep_inbox(now=YEARS, after=after)
        swept.append((report.rows, report.after is None))
        after = report.after or 0
    assert swept == [(0, False), (1, False), (0, True)]


async def test_nobody_looks_behind_what_is_too_young(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep_rules, "MOST_SWEPT", 2)
    _, old = [await sent(world, now=T0), await sent(world, now=T0)]
    for _ in range(4):
        await sent(world, now=T0 + 3 * DAY)
    now = T0 + 8 * DAY
    assert await world.a.sweep_outbox(now=now) == RetentionReport(2, old.id)
    assert await world.a.sweep_outbox(now=now, after=old.id) == RetentionReport(0, None)
    assert len(await world.b.outbox()) == 4


async def test_warnings_of_a_day_are_kept_for_a_week(world: World) -> None:
    """Other incidents are closed when they end."""
    for key in ("chain:a:2026-01-01", "budget:main:2026-01-01", "channel:telegram/default"):
        assert await world.a.open_incident(key, "warning", say=(), now=T0)
    assert await world.a.sweep_incidents(now=T0 + 7 * DAY) == 0
    assert await world.a.sweep_incidents(now=T0 + 7 * DAY + TICK) == 2
    assert [one.key for one in await world.a.incidents()] == ["channel:telegram/default"]


async def test_an_empty_database_is_swept_at_once(world: World) -> None:
    for sweep in (world.a.sweep_inbox, world.a.sweep_outbox):
        assert await sweep(now=YEARS) == RetentionReport(0, None)
    for others in (world.a.sweep_runs, world.a.sweep_sessions, world.a.sweep_requests):
        assert await others(now=YEARS) == 0


# ---------------------------------------------------------------------------- runs


async def test_runs_are_kept_for_ninety_days(world: World) -> None:
    """What they have said stays in their chat, and a child outlives its parent."""
    hello = (entry("hello"),)
    await ran(world, new_run("old"), replace(end("old"), finished_at=T0, history=hello))
    await ran(world, new_run("young"), replace(end("young"), finished_at=at(9)))
    child = replace(new_run("works", started_at=at(1)), parent=RunId("old"))
    await world.a.begin_run(child, node=A)
    assert await world.a.sweep_runs(now=T0 + 90 * DAY) == 0
    assert await world.a.sweep_runs(now=T0 + 90 * DAY + TICK) == 1
    assert {run.id for run in await world.b.runs()} == {"young", "works"}
    assert await world.a.sweep_runs(now=YEARS) == 1
    await world.a.finish_run(end("works"), node=A)
    (left,) = await world.b.runs()
    assert (left.id, left.parent, left.outcome) == ("works", "old", Outcome.COMPLETED)
    assert [one.entry.text for one in await world.b.history(key_of(ANN))] == ["hello"]


async def test_the_steps_of_a_run_are_deleted_with_its_record(world: World) -> None:
    (row,) = await world.accept(ANN)
    await world.a.begin_run(new_run("r1", row), node=A)
    await world.a.note_run(RunId("r1"), RunSoFar(steps=STEPS), node=A)
    await crash(world)
    assert await world.a.sweep_runs(now=YEARS) == 1
    begun = await world.a.begin_run(new_run("r2", row), node=A)
    assert (begun.steps, begun.cut_calls) == ((), ())


async def test_the_steps_of_a_conversation_are_deleted_with_its_history(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = SessionKey(OF_ONE_RUN[1])
    begun = replace(new_run("r"), session=session, target=None)
    await world.a.begin_run(begun, node=A)
    await world.a.note_run(RunId("r"), RunSoFar(steps=STEPS), node=A)
    last = replace(end("r"), history=(entry("hello"),), finished_at=T0)
    await world.a.finish_run(last, node=A)
    await world.a.release_sessions(A, [session])
    assert await world.a.sweep_sessions(now=T0 + 30 * DAY) == 0
    monkeypatch.setattr(upkeep_rules, "MOST_SWEPT", 1)
    assert [await world.a.sweep_sessions(now=YEARS) for _ in range(3)] == [2, 2, 0]
    assert [run.id for run in await world.a.runs()] == ["r"]


async def test_one_sweep_of_runs_deletes_only_so_many_the_first_ones_first(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep_rules, "MOST_SWEPT", 2)
    for n in range(5):
        await ran(world, new_run(f"r{n}", started_at=at(n)), end(f"r{n}"))
    assert await world.a.sweep_runs(now=YEARS) == 2
    assert [run.id for run in await world.b.runs()] == ["r4", "r3", "r2"]
    assert [await world.a.sweep_runs(now=YEARS) for _ in range(3)] == [2, 1, 0]


# ---------------------------------------------------------------------------- conversations


@pytest.mark.parametrize("key", OF_ONE_RUN)
async def test_the_conversation_of_a_single_run_is_kept_for_thirty_days(
    world: World, key: str
) -> None:
    """Its record is kept for longer."""
    session = await a_session(world, key, entries=3)
    assert await world.a.sweep_sessions(now=T0 + 30 * DAY) == 0
    assert len(await world.b.run_history(RunId("r"))) == 3
    assert await world.a.sweep_sessions(now=T0 + 30 * DAY + TICK) == 4
    assert await world.b.session(session) is None
    assert await world.b.run_history(RunId("r")) == []
    assert [run.session for run in await world.b.runs()] == [session]


async def test_every_other_conversation_is_kept_for_ever(world: World) -> None:
    for number, key in enumerate(FOR_EVER):
        await a_session(world, key, run=f"r{number}")
    assert await world.a.sweep_sessions(now=YEARS) == 0
    for key in FOR_EVER:
        assert len(await world.b.history(SessionKey(key))) == 1, key


@pytest.mark.parametrize("state", JobState)
async def test_the_conversation_of_a_job_is_kept_as_long_as_the_job(
    world: World, state: JobState
) -> None:
    job = replace(a_job("tea", due_at=None), id=JobId(JOB), state=state)
    await added(world.a, job)
    session = await a_session(world, f"agent:main:cron:{JOB}")
    assert await world.a.sweep_sessions(now=YEARS) == 0
    await world.a.delete_job(job.id, forget=False)
    assert await world.a.sweep_sessions(now=T0 + 30 * DAY) == 0
    assert await world.a.sweep_sessions(now=YEARS) == 2
    assert await world.b.session(session) is None


async def test_a_conversation_in_which_a_run_works_is_kept(world: World) -> None:
    session = SessionKey(OF_ONE_RUN[0])
    run = replace(new_run("r"), session=session, target=None)
    await world.a.begin_run(run, node=A)
    # Nobody owns it, as after a mistake of an operator.
    now = await recovered(world)
    assert await world.b.sweep_sessions(now=T0 + 30 * DAY + timedelta(seconds=1)) == 0
    assert await world.b.sweep_sessions(now=now + 30 * DAY + TICK) == 1


async def test_a_conversation_is_kept_while_a_node_owns_it_and_from_its_end(world: World) -> None:
    session = await a_session(world, OF_ONE_RUN[0], entries=0)
    again = replace(new_run("again", started_at=at(1)), session=session, target=None)
    await ran(world, again, replace(end("again"), finished_at=T0 + 3 * DAY))
    assert await world.a.sweep_sessions(now=YEARS) == 0
    await world.a.release_sessions(A, [session])
    assert await world.a.sweep_sessions(now=T0 + 33 * DAY) == 0
    assert await world.a.sweep_sessions(now=T0 + 33 * DAY + TICK) == 1


@pytest.mark.parametrize("outcome", [None, Outcome.FAILED, Outcome.CANCELLED])
async def test_a_conversation_with_a_message_that_may_still_run_is_kept(
    world: World, outcome: Outcome | None
) -> None:
    session = SessionKey(OF_ONE_RUN[1])
    new = replace(inbox(1), session=session)
    (row,) = (await world.a.accept([new], node=A, now=T0)).rows
    if outcome is not None:
        await world.a.settle([row.id], outcome, now=T0)
    await world.a.leave(A, now=T0)
    assert await world.b.sweep_sessions(now=YEARS) == 0
    await world.b.settle([row.id], Outcome.COMPLETED, now=T0)
    await world.b.sweep_inbox(now=YEARS)
    assert await world.b.sweep_sessions(now=YEARS) == 1


async def test_a_long_history_goes_in_steps_and_its_session_at_last(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sweep takes only so many sessions."""
    monkeypatch.setattr(upkeep_rules, "MOST_SWEPT", 4)
    for n, key in enumerate(OF_ONE_RUN[:2]):
        await a_session(world, key, entries=3, run=f"r{n}")
    assert [await world.a.sweep_sessions(now=YEARS) for _ in range(3)] == [5, 3, 0]
    assert await world.b.sessions() == []
    monkeypatch.setattr(upkeep_rules, "MOST_SESSIONS", 2)
    for n in range(3):
        await a_session(world, f"agent:main:heartbeat:{an_id(n)}", run=f"s{n}", entries=0)
    assert await world.a.sweep_sessions(now=YEARS) == 2
    assert [one.key[-1] for one in await world.b.sessions()] == ["2"]


async def test_a_chat_may_move_after_that_with_its_subagent_is_forgotten(world: World) -> None:
    session = SessionKey(OF_ONE_RUN[1])
    await ran(world, replace(new_run("r"), session=session), replace(end("r"), finished_at=T0))
    await world.a.release_sessions(A, [session])
    assert await world.a.sweep_sessions(now=YEARS) == 1
    await world.accept(ANN)
    assert await world.a.move_chat("telegram", "default", old="100", new="900", now=T0)
    assert [run.target for run in await world.b.runs()] == [ANN]


# ---------------------------------------------------------------------------- pairing requests


async def test_a_request_for_pairing_is_forgotten_a_day_after_it_has_expired(world: World) -> None:
    requests = [pairing("7", "old"), pairing("8", "young", minutes=120)]
    await world.a.accept([], node=A, now=T0, pairings=requests)
    expired = T0 + timedelta(minutes=60)
    assert await world.a.sweep_requests(now=expired + DAY) == 0
    assert await world.a.sweep_requests(now=expired + DAY + TICK) == 1
    # The clock of another node may be late: what is left may still be approved there.
    left = await world.b.pairing_requests(now=T0)
    assert [one.code_hash for one in left] == ["young"]
