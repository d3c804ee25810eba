"""Jobs whose run has asked a person about a tool call (SPEC AGENT-11, CRON-10)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from goclaw_py.core.approvals import ApprovalRequest, Decision, about_approval
from goclaw_py.core.errors import Fenced
from goclaw_py.core.ids import ApprovalId, RunId, SessionKey
from goclaw_py.core.messages import Button
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.run_events import Usage
from goclaw_py.core.run_steps import DecisionStep, ResponseStep
from goclaw_py.records import ApprovalQuery, NewApproval, Notice, RunEnd, RunSoFar
from goclaw_py.schedule.jobs.execution_models import OccurrenceClaim, OccurrenceStatus, Why
from goclaw_py.schedule.jobs.models import JobState
from tests.support.store_jobs import (
    a_job,
    added,
    by_hand,
    claim,
    claim_manual,
    claimed_job,
    ended,
    row_of,
    run_end,
    run_for,
    stored_job,
)
from tests.support.stores import (
    ANN,
    APOLOGY,
    BOB,
    T0,
    A,
    B,
    World,
    at,
    key_of,
    listen,
    new_run,
    say,
    until,
)

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

Q1, Q2 = ApprovalId("q1"), ApprovalId("q2")
RESPONSE = ResponseStep(b"{}", Usage(1))
SESSION = SessionKey("agent:default:cron:job-tea")


def asking(name: str, *questions: ApprovalId) -> RunEnd:
    """The end of a run that asks in Ann's chat, until second 100."""
    request = ApprovalRequest("c1", "pay", "{}", timeout_s=91.0)
    approvals = tuple(NewApproval(one, request, at(100), ANN) for one in questions)
    asks = tuple(
        replace(say(f"May I? {one}"), buttons=((Button("Yes", "x"),),), alert=about_approval(one))
        for one in questions
    )
    end = RunEnd(RunId(name), Outcome.INTERRUPTED, at(9), Reason.APPROVAL)
    return replace(end, say=asks, approvals=approvals)


async def asked(world: World, claimed: OccurrenceClaim, *questions: ApprovalId) -> OccurrenceClaim:
    """One whose run on node A has asked these questions."""
    await world.a.begin_run(run_for("r1", claimed), node=A)
    await world.a.note_run(RunId("r1"), RunSoFar(steps=(RESPONSE,)), node=A)
    await world.a.finish_run(asking("r1", *questions), node=A)
    await world.a.release_sessions(A, [SESSION])
    return claimed


async def waiting(world: World, *questions: ApprovalId) -> OccurrenceClaim:
    return await asked(world, await claimed_job(world.a), *(questions or (Q1,)))


async def decide(world: World, question: ApprovalId = Q1, second: float = 12) -> Decision | None:
    done = await world.b.decide_approval(question, Decision.ONCE, by="Ann", now=at(second))
    return None if done is None else done.decision


async def decided(world: World, question: ApprovalId = Q1) -> Decision | None:
    found = await world.b.approval(question)
    assert found is not None
    return found.decision


async def claimable(world: World, second: float = 13) -> list[OccurrenceClaim]:
    return await world.b.claim_waiting(B, now=at(second))


async def sent(world: World) -> list[str]:
    texts = []
    while (row := await world.a.claim_next(ANN, node=A, now=at(20))) is not None:
        texts.append(row.message.text)
        await world.a.mark_sent(row, f"m{row.id}", now=at(20))
    return texts


async def test_it_waits_on_no_node_and_its_job_stays_marked(world: World) -> None:
    claimed = await waiting(world)
    row = await row_of(world.b, claimed)
    assert (row.status, row.why) == (OccurrenceStatus.WAITING, Why.APPROVAL)
    assert (row.node, row.waits_for, row.finished_at, row.runs) == (None, None, None, ("r1",))
    # Lists of runs show what the job asks, although the run has left no history.
    assert await world.b.run_prompts([RunId("r1")]) == {"r1": claimed.job.spec.payload.text}  # type: ignore[union-attr]
    job = await stored_job(world.a, claimed.job)
    assert (job.running, job.next_run_at) == (claimed.id, T0)
    assert await claim_manual(world.a, job) is None
    assert await world.a.next_job_due() is None
    assert await claimable(world, 50) == []
    found = await world.a.waiting_occurrences()
    assert found == [replace(claimed, waited=True, began_at=T0)]
    assert await world.a.waiting_occurrences(asking_in=SESSION) == found
    assert await world.a.waiting_occurrences(asking_in=SessionKey("agent:default:x")) == []


async def test_after_the_answer_any_node_claims_it_once_and_goes_on(world: World) -> None:
    claimed = await waiting(world)
    heard = listen(world.a)
    assert await decide(world) is Decision.ONCE
    await until(heard.expect(Notice.CRON))
    found = await asyncio.gather(
        world.a.claim_waiting(A, now=at(13)), world.b.claim_waiting(B, now=at(13))
    )
    assert [*found[0], *found[1]] == [replace(claimed, waited=True, began_at=T0)]
    node, store = (A, world.a) if found[0] else (B, world.b)
    begun = await store.begin_run(run_for("r2", claimed, started_at=at(14)), node=node)
    assert begun.steps == (RESPONSE, DecisionStep("c1", Decision.ONCE))
    await store.finish_run(run_end("r2", ended(claimed)), node=node)
    row = await row_of(world.b, claimed)
    assert (row.status, row.claims, row.runs) == (OccurrenceStatus.OK, 1, ("r1", "r2"))
    assert (await stored_job(world.a, claimed.job)).running is None


async def test_all_questions_need_an_answer_and_each_takes_one(world: World) -> None:
    claimed = await waiting(world, Q1, Q2)
    answers = await asyncio.gather(*(decide(world) for _ in range(20)))
    assert [one for one in answers if one is not None] == [Decision.ONCE]
    assert await claimable(world) == []
    await decide(world, Q2)
    assert [one.id for one in await claimable(world)] == [claimed.id]


async def test_a_question_that_nobody_answers_lets_it_go_on(world: World) -> None:
    claimed = await waiting(world)
    assert await world.a.expire_approvals(now=at(99)) == 0
    assert await world.a.expire_approvals(now=at(100)) == 1
    assert [one.id for one in await claimable(world, 101)] == [claimed.id]


async def test_the_answer_to_a_child_may_come_before_its_parent_ends(world: World) -> None:
    claimed = await claimed_job(world.a)
    await world.a.begin_run(run_for("r1", claimed), node=A)
    session = SessionKey("agent:default:delegate:c1")
    child = replace(new_run("c1"), session=session, parent=RunId("r1"), call_key="r1-0")
    await world.a.begin_run(child, node=A)
    await world.a.finish_run(asking("c1", Q1), node=A)
    await decide(world)
    assert (await row_of(world.a, claimed)).node == A
    heard = listen(world.b)
    await world.a.finish_run(asking("r1"), node=A)
    await until(heard.expect(Notice.CRON))
    row = await row_of(world.a, claimed)
    assert (row.status, row.why, row.waits_for) == (OccurrenceStatus.WAITING, None, SESSION)
    await world.a.release_sessions(A, [SESSION])
    assert [one.id for one in await claimable(world)] == [claimed.id]


async def test_it_does_not_begin_while_another_node_holds_its_session(world: World) -> None:
    await waiting(world)
    await world.a.begin_run(replace(new_run("x"), session=SESSION, target=None), node=A)
    await decide(world)
    assert await claimable(world) == []
    await world.a.finish_run(run_end("x"), node=A)
    assert len(await world.a.claim_waiting(A, now=at(13))) == 1


async def test_an_end_that_is_stored_twice_parks_it_once(world: World) -> None:
    """The answer to the first was lost; meanwhile a person has answered."""
    claimed = await waiting(world)
    await decide(world)
    assert len(await world.a.claim_waiting(A, now=at(13))) == 1
    await world.a.finish_run(asking("r1", Q1), node=A)
    row = await row_of(world.a, claimed)
    assert (row.status, row.node) == (OccurrenceStatus.RUNNING, A)


async def test_an_end_of_a_run_that_wanted_to_ask_can_end_it(world: World) -> None:
    """It was stopped while it asked."""
    claimed = await claimed_job(world.a)
    await world.a.begin_run(run_for("r1", claimed), node=A)
    stopped = replace(ended(claimed, OccurrenceStatus.CANCELLED), why=Why.STOPPED)
    await world.a.finish_run(replace(asking("r1"), occurrence=stopped), node=A)
    assert (await row_of(world.b, claimed)).status is OccurrenceStatus.CANCELLED
    assert await world.a.waiting_occurrences() == []
    assert (await stored_job(world.a, claimed.job)).running is None


async def test_a_node_that_dies_takes_nothing_of_it(world: World) -> None:
    claimed = await waiting(world)
    now = await world.kill(A)
    await world.b.recover(now=now, max_attempts=3, apology=APOLOGY)
    assert (await row_of(world.b, claimed)).why is Why.APPROVAL
    await decide(world)
    assert [(one.id, one.claims) for one in await claimable(world, 500)] == [(claimed.id, 1)]


async def ended_by_a_stop(world: World, claimed: OccurrenceClaim) -> None:
    stopped = replace(ended(claimed, OccurrenceStatus.CANCELLED, now=at(12)), why=Why.STOPPED)
    with pytest.raises(Fenced):
        await world.a.end_occurrence(stopped, node=A)
    await world.a.end_occurrence(stopped, node=None)


async def paused(world: World, claimed: OccurrenceClaim) -> None:
    job = await stored_job(world.a, claimed.job)
    await world.a.change_job(replace(job, state=JobState.PAUSED, next_run_at=None))


async def moved(world: World, claimed: OccurrenceClaim) -> None:
    job = await stored_job(world.a, claimed.job)
    await world.a.change_job(replace(job, next_run_at=T0 + timedelta(hours=1)))


async def deleted(world: World, claimed: OccurrenceClaim) -> None:
    await world.a.delete_job(claimed.job.id, forget=False)


@pytest.mark.parametrize("sends", [True, False], ids=["sent", "unsent"])
@pytest.mark.parametrize("end", [ended_by_a_stop, paused, moved, deleted])
async def test_its_end_answers_its_questions(
    world: World, end: Callable[[World, OccurrenceClaim], Awaitable[None]], *, sends: bool
) -> None:
    claimed = await waiting(world)
    assert await sent(world) == ["May I? q1"] if sends else True
    await end(world, claimed)
    row = await row_of(world.b, claimed)
    assert (row.status, row.why) == (OccurrenceStatus.CANCELLED, Why.STOPPED)
    assert row.finished_at is not None
    assert await decided(world) is Decision.STOPPED
    assert await sent(world) == (["May I? q1\n\n⏹ Stopped."] if sends else [])
    assert await decide(world) is None
    assert await claimable(world) == []
    found = await world.a.job(claimed.job.id)
    assert (found is None) == (end is deleted)
    assert found is None or found.running is None


async def test_a_change_of_its_words_changes_nothing(world: World) -> None:
    claimed = await waiting(world)
    job = await stored_job(world.a, claimed.job)
    await world.a.change_job(replace(job, spec=replace(job.spec, name="Tea")))
    await decide(world)
    (again,) = await claimable(world)
    assert again.job.spec == claimed.job.spec


async def test_a_job_that_is_forgotten_asks_nothing_more(world: World) -> None:
    claimed = await waiting(world)
    await world.a.delete_job(claimed.job.id, forget=True)
    assert await decided(world) is Decision.STOPPED
    assert await world.a.logged(claimed.id) is None


async def test_a_stop_of_turns_spares_it(world: World) -> None:
    await waiting(world)
    assert await world.a.stop_approvals(SESSION, everything=True, sender=None, now=at(12)) == 0
    assert await decided(world) is None


async def test_it_is_kept_however_little_is_kept_of_its_job(world: World) -> None:
    claimed = await waiting(world)
    await world.a.sweep_jobs(now=at(400 * 86400))
    await world.a.sweep_runs(now=at(400 * 86400))
    assert await decided(world) is None
    await decide(world)
    assert [one.id for one in await claimable(world)] == [claimed.id]


async def test_one_by_hand_waits_through_any_change_until_its_job_is_gone(world: World) -> None:
    (job,) = await added(world.a, a_job("tea"))
    claimed = await asked(world, await by_hand(world.a, job), Q1)
    await paused(world, claimed)
    assert await decided(world) is None
    await decide(world)
    (again,) = await claimable(world)
    assert (again.manual, again.began_at) == (True, T0)
    # The answer to this claim was lost.
    await world.b.release_unclaimed([], node=B)
    assert [one.id for one in await claimable(world)] == [claimed.id]
    await world.b.begin_run(run_for("r2", claimed, started_at=at(14)), node=B)
    await world.b.finish_run(asking("r2", Q2), node=B)
    await deleted(world, claimed)
    assert await decided(world, Q2) is Decision.STOPPED
    assert (await row_of(world.a, claimed)).why is Why.STOPPED


async def test_questions_are_found_by_the_chat_that_is_asked(world: World) -> None:
    await waiting(world)
    other = SessionKey("agent:default:x")
    for chat, found in ((ANN, [Q1]), (BOB, []), (replace(ANN, thread="5"), [])):
        asked = await world.a.approvals(ApprovalQuery(session=other, asked_in=chat))
        assert [one.id for one in asked] == found
    here = ApprovalQuery(session=SESSION, asked_in=BOB)
    assert [one.id for one in await world.a.approvals(here)] == [Q1]


@pytest.mark.parametrize("session", [SESSION, key_of(ANN)], ids=["of the job", "of the chat"])
async def test_it_moves_with_its_chat(world: World, session: SessionKey) -> None:
    claimed = await claimed_job(world.a)
    await world.a.begin_run(replace(run_for("r1", claimed), session=session, target=ANN), node=A)
    await world.a.finish_run(asking("r1", Q1), node=A)
    await world.a.move_chat("telegram", "default", old=ANN.chat, new="300", now=at(11))
    there = replace(ANN, chat="300")
    moved = key_of(there) if session == key_of(ANN) else session
    elsewhere = ApprovalQuery(SessionKey("agent:default:x"), asked_in=there)
    (asked,) = await world.a.approvals(elsewhere)
    assert (asked.session, asked.target) == (moved, there)
    (found,) = await world.a.waiting_occurrences(asking_in=moved)
    await decide(world)
    assert [one.id for one in await world.a.claim_waiting(A, now=at(13))] == [found.id]


async def test_a_crash_after_the_answer_lets_it_go_on_elsewhere(world: World) -> None:
    claimed = await waiting(world)
    await decide(world)
    assert len(await claimable(world)) == 1
    now = await world.kill(B)
    await world.a.recover(now=now, max_attempts=3, apology=APOLOGY)
    (again,) = await claim(world.a, now=now)
    assert (again.id, again.claims, again.attempts) == (claimed.id, 1, 0)
    begun = await world.a.begin_run(run_for("r2", claimed, started_at=now), node=A)
    assert begun.steps == (RESPONSE, DecisionStep("c1", Decision.ONCE))
