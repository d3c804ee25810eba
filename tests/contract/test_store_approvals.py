"""Questions of runs about their tool calls, and the answers (SPEC AGENT-11)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from goclaw_py.core.approvals import (
    NO_CONTEXT,
    ApprovalContext,
    ApprovalRequest,
    Asker,
    Decision,
    about_approval,
)
from goclaw_py.core.ids import ApprovalId, RunId, SessionKey
from goclaw_py.core.messages import Button, OutboundMessage, Target
from goclaw_py.core.outcomes import Outcome, Reason, Trigger
from goclaw_py.core.run_events import Usage
from goclaw_py.core.run_steps import DecisionStep, NewMessagesStep, ResponseStep
from goclaw_py.records import (
    ApprovalQuery,
    DeadLetterQuery,
    InboxKind,
    InboxRow,
    IncomingState,
    NewApproval,
    Notice,
    RunEnd,
    RunSoFar,
    SessionQuery,
    SessionState,
    SubagentTask,
)
from goclaw_py.records.rewind import CommandAnswer
from tests.support.harness import until
from tests.support.stores import (
    AGENT,
    ANN,
    BOB,
    PLACES,
    T0,
    A,
    World,
    at,
    inbox,
    key_of,
    listen,
    new_run,
    say,
)

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

HOUR = timedelta(hours=1)
RESPONSE = ResponseStep(b"{}", Usage(1))
ANN_S = key_of(ANN)
CONTEXT = ApprovalContext(
    (Asker("Ann\0", guest=True),), "group “G”", "pay\ud83d", "job", 2, 1, "a/b"
)


def question(name: str = "q1", call: str = "c1", expires: datetime = T0 + HOUR) -> NewApproval:
    request = ApprovalRequest(call, "pay", '{"to": "Bob"}', timeout_s=(expires - at(9)).seconds)
    return NewApproval(ApprovalId(name), request, expires, ANN, CONTEXT)


async def test_a_question_keeps_who_asked_and_for_what(world: World) -> None:
    """Texts that cannot be stored are repaired."""
    await waits(world, question(), replace(question("q2", "c2"), context=NO_CONTEXT))
    stored = [one.context for one in reversed(await world.b.approvals())]
    repaired = replace(CONTEXT, people=(Asker("Ann\ufffd", guest=True),), request="pay\ufffd")
    assert sorted(stored, key=repr) == sorted([repaired, NO_CONTEXT], key=repr)


def asking(name: str, *questions: NewApproval) -> RunEnd:
    asks = tuple(
        replace(
            say(f"May I? {one.id}"), buttons=((Button("Yes", "x"),),), alert=about_approval(one.id)
        )
        for one in questions
    )
    end = RunEnd(RunId(name), Outcome.INTERRUPTED, at(9), Reason.APPROVAL)
    return replace(end, say=asks, approvals=questions)


async def waits(world: World, *questions: NewApproval) -> InboxRow:
    """A message whose run has asked these questions."""
    (row,) = await world.accept(ANN)
    await world.a.begin_run(new_run("r1", row), node=A)
    await world.a.note_run(RunId("r1"), RunSoFar(steps=(RESPONSE,)), node=A)
    await world.a.finish_run(asking("r1", *questions), node=A)
    return row


async def waits_for_child(world: World) -> InboxRow:
    """A message whose run is in progress, and waits for a child run that has asked a question."""
    (row,) = await world.accept(ANN)
    await world.a.begin_run(new_run("r1", row), node=A)
    session = SessionKey("agent:main:delegate:c1")
    child = replace(new_run("c1"), session=session, parent=RunId("r1"), call_key="r1-0")
    await world.a.begin_run(child, node=A)
    await world.a.finish_run(asking("c1", question()), node=A)
    return row


async def pending(world: World) -> list[int]:
    rows = await world.a.claim_pending(A, now=at(10), places=PLACES)
    return [row.id for row in rows]


async def sent(world: World) -> list[str]:
    """Send what is due, with ids."""
    texts = []
    while (row := await world.a.claim_next(ANN, node=A, now=at(13))) is not None:
        texts.append(row.message.text)
        await world.a.mark_sent(row, f"m{row.id}", now=at(13))
    return texts


async def test_a_message_waits_for_the_answer_and_then_runs_again(world: World) -> None:
    row = await waits(world, question())
    assert await pending(world) == []
    (asked,) = await world.a.approvals()
    assert (asked.session, asked.agent, asked.run_id) == (ANN_S, AGENT, "r1")
    assert (asked.request, asked.target, asked.decision) == (question().request, ANN, None)
    assert await world.a.approval(asked.id) == asked
    done = await world.b.decide_approval(asked.id, Decision.ONCE, by="Ann", now=at(12))
    assert done is not None
    assert (done.decision, done.decided_by, done.decided_at) == (Decision.ONCE, "Ann", at(12))
    assert await world.a.approvals() == []
    assert await world.a.approvals(ApprovalQuery(waiting=False)) == [done]
    (again,) = await world.a.claim_pending(A, now=at(13), places=PLACES)
    assert (again.id, again.attempts) == (row.id, 0)
    begun = await world.a.begin_run(new_run("r2", again, started_at=at(14)), node=A)
    assert begun.steps == (RESPONSE, DecisionStep("c1", Decision.ONCE))


async def test_a_message_waits_before_its_run_and_while_its_run_asks_a_person(
    world: World,
) -> None:
    """The lists and numbers of sessions and of messages agree."""

    async def numbers() -> tuple[int, int]:
        states = IncomingState.WAITING, IncomingState.RUNNING
        waiting, running = [
            len(await world.b.dead_letters(DeadLetterQuery(state))) for state in states
        ]
        counts = await world.b.dead_letter_counts()
        assert (counts.waiting, counts.asking) == (waiting, 1)
        session = await world.b.session(ANN_S)
        assert session is not None
        assert (session.waiting, session.running) == (waiting, running)
        found = await world.b.sessions(SessionQuery(state=SessionState.WAITING))
        assert found == [session][:waiting]
        return waiting, running

    await waits(world, question())
    assert await numbers() == (1, 0)
    (second,) = await world.accept(ANN)
    assert await numbers() == (2, 0)
    await world.a.begin_run(new_run("r2", second, started_at=at(3)), node=A)
    assert await numbers() == (1, 1)
    await world.a.settle([second.id], Outcome.COMPLETED, now=at(4))
    assert await numbers() == (1, 0)


async def test_what_waits_is_listed_with_the_run_that_asked(world: World) -> None:
    row = await waits(world, question())
    for (listed,) in (
        await world.a.unanswered(ANN_S, ended=False),
        [one.row for one in await world.a.dead_letters(DeadLetterQuery(IncomingState.WAITING))],
    ):
        assert (listed.id, listed.run_id, listed.asking_run) == (row.id, None, "r1")
    letter = await world.a.dead_letter(row.id)
    assert letter is not None
    assert letter.row.asking_run == "r1"
    assert (await world.a.backlog()).approvals == 1
    await world.a.decide_approval(ApprovalId("q1"), Decision.DENY, by="Ann", now=at(12))
    (listed,) = await world.b.unanswered(ANN_S, ended=False)
    assert (listed.id, listed.asking_run) == (row.id, None)
    assert (await world.a.backlog()).approvals == 0


async def test_questions_are_found_by_a_prefix_and_listed_page_by_page(world: World) -> None:
    await waits(world, *(question(name, name) for name in ("aa1", "aa12", "b1", "b2", "b3")))
    assert [one.id for one in await world.a.find_approvals("aa1")] == ["aa1"], "the whole id"
    assert len(await world.a.find_approvals("aa")) == 2
    assert [one.id for one in await world.a.find_approvals("b")] == ["b1", "b2", "b3"]
    assert await world.a.find_approvals("x\0") == []
    await world.a.decide_approval(ApprovalId("b2"), Decision.DENY, by="Ann", now=at(12))
    first = await world.a.approvals(ApprovalQuery(limit=2))
    then = await world.a.approvals(ApprovalQuery(limit=9, before=first[-1].cursor))
    assert [one.id for one in (*first, *then)] == ["b3", "b1", "aa12", "aa1"]


async def test_a_question_is_answered_once_however_many_press(world: World) -> None:
    await waits(world, question())
    decisions = [Decision.ONCE, Decision.DENY] * 50
    answers = await asyncio.gather(
        *(
            store.decide_approval(ApprovalId("q1"), decision, by=str(i), now=at(12))
            for i, decision in enumerate(decisions)
            for store in (world.a, world.b)
        )
    )
    assert len([one for one in answers if one is not None]) == 1
    assert len(await pending(world)) == 1
    assert await world.a.decide_approval(ApprovalId("?"), Decision.ONCE, by="", now=at(12)) is None


async def test_all_questions_of_a_run_need_an_answer(world: World) -> None:
    row = await waits(world, question("q1", "c1"), question("q2", "c2"))
    await world.a.decide_approval(ApprovalId("q2"), Decision.DENY, by="Ann", now=at(12))
    assert await pending(world) == []
    await world.a.decide_approval(ApprovalId("q1"), Decision.ONCE, by="Ann", now=at(13))
    assert await pending(world) == [row.id]


async def test_the_question_shows_its_answer(world: World) -> None:
    await waits(world, question("q1", "c1"), question("q2", "c2"))
    assert await sent(world) == ["May I? q1", "May I? q2"]
    await world.a.decide_approval(ApprovalId("q1"), Decision.ONCE, by="Ann", now=at(12))
    await world.a.decide_approval(ApprovalId("q2"), Decision.DENY, by="", now=at(12))
    assert await sent(world) == [
        "May I? q1\n\n✅ Allowed once by Ann.",
        "May I? q2\n\n🚫 Denied by the operator.",
    ]


async def test_after_its_time_a_question_counts_as_denied(world: World) -> None:
    row = await waits(world, question(expires=at(12)))
    assert await world.a.expire_approvals(now=at(11)) == 0
    late = await world.a.decide_approval(ApprovalId("q1"), Decision.ONCE, by="Ann", now=at(12))
    assert late is None
    assert await world.a.expire_approvals(now=at(12)) == 1
    assert await pending(world) == [row.id]
    (done,) = await world.a.approvals(ApprovalQuery(waiting=False))
    assert done.decision is Decision.EXPIRED


@pytest.mark.parametrize("everything", [False, True])
async def test_a_stop_ends_what_waits_for_an_answer(world: World, *, everything: bool) -> None:
    context = replace(CONTEXT, said="I pay.")
    first = await waits(world, replace(question(), context=context))
    (second,) = await world.accept(ANN)
    await world.a.begin_run(new_run("r2", second, started_at=at(5)), node=A)
    await world.a.finish_run(asking("r2", question("q2")), node=A)
    assert await world.a.stop_approvals(
        ANN_S, everything=everything, sender="telegram/default/x", now=at(12)
    ) == 0  # fmt: skip
    unknown = SessionKey("unknown")
    assert await world.a.stop_approvals(unknown, everything=True, sender=None, now=at(12)) == 0
    done = await world.b.stop_approvals(ANN_S, everything=everything, sender=None, now=at(12))
    assert done == (2 if everything else 1)
    left = await world.a.approvals()
    assert [one.id for one in left] == ([] if everything else ["q2"])
    stopped = await world.a.decide_approval(ApprovalId("q1"), Decision.ONCE, by="Ann", now=at(13))
    assert stopped is None
    assert await pending(world) == []
    history = [(one.entry.text, one.run_id, one.at) for one in await world.a.history(ANN_S)]
    turns = (("r1", first, "I pay.\n[cancelled]"), ("r2", second, "[cancelled]"))[:done]
    assert history == [
        line
        for run, row, answer in turns
        for line in ((row.message.text, run, row.received_at), (answer, run, at(12)))
    ], "at its own time, as of the run that asked"
    ended = await world.a.unanswered(ANN_S, ended=True)
    assert [(one.id, one.run_id) for one in reversed(ended)] == [
        (row.id, run) for run, row, _ in turns
    ]


async def test_a_turn_that_was_stopped_while_it_waited_begins_again(world: World) -> None:
    """It may have been edited, so what its run had done by then is not continued."""
    row = await waits(world, question())
    await world.a.stop_approvals(ANN_S, everything=False, sender=None, now=at(12))
    edited = {row.id: replace(row.message, text="other")}
    typed = inbox("undo", kind=InboxKind.COMMAND)
    (command,) = (await world.a.accept([typed], node=A, now=at(13))).rows
    answer = CommandAnswer(command.id, ())
    assert await world.a.undo_turn(
        ANN_S, RunId("r1"), answer=answer, again=edited, now=at(13), node=A
    )
    begun = await world.a.begin_run(new_run("r3", row, started_at=at(14)), node=A)
    assert (begun.steps, begun.cut_calls) == ((), ())


async def test_what_is_allowed_for_longer_is_not_asked_again(world: World) -> None:
    other = SessionKey("agent:main:telegram:direct:2")
    await waits(world, question("q1", "c1"), question("q2", "c2"))
    assert not await world.a.is_granted(AGENT, ANN_S, "pay")
    await world.a.decide_approval(ApprovalId("q1"), Decision.SESSION, by="Ann", now=at(12))
    assert await world.b.is_granted(AGENT, ANN_S, "pay")
    assert not await world.b.is_granted(AGENT, other, "pay")
    assert not await world.b.is_granted(AGENT, ANN_S, "other")
    await world.a.reset_session(ANN_S, now=at(13))
    assert not await world.a.is_granted(AGENT, ANN_S, "pay")
    await world.a.decide_approval(ApprovalId("q2"), Decision.ALWAYS, by="Ann", now=at(14))
    assert await world.a.is_granted(AGENT, other, "pay")
    (grant,) = await world.a.grants()
    assert (grant.tool, grant.session, grant.granted_by) == ("pay", None, "Ann")
    assert await world.a.revoke_grant(AGENT, "pay", None)
    assert not await world.a.revoke_grant(AGENT, "pay", None)
    assert not await world.a.is_granted(AGENT, ANN_S, "pay")


async def test_the_messages_of_the_run_above_wait_for_the_answer_to_a_child(world: World) -> None:
    row = await waits_for_child(world)
    (asked,) = await world.a.approvals(ApprovalQuery(session=ANN_S))
    assert asked.run_id == "c1"
    await world.a.finish_run(asking("r1"), node=A)
    assert await pending(world) == []
    await world.a.decide_approval(asked.id, Decision.ONCE, by="Ann", now=at(12))
    assert await pending(world) == [row.id]


async def test_a_background_subagent_waits_for_the_answers_to_its_questions(world: World) -> None:
    """And for those of its child runs; the run that started it waits for nothing."""
    (row,) = await world.accept(ANN)
    await world.a.begin_run(new_run("r1", row), node=A)
    own, child = (SessionKey(f"agent:main:subagent:{name}") for name in ("s1", "c1"))
    subagent = replace(
        new_run("s1"), session=own, parent=RunId("r1"), payer=ANN_S, trigger=Trigger.SUBAGENT,
        task=SubagentTask("pay", "bills"),
    )  # fmt: skip
    await world.a.begin_run(subagent, node=A)
    below = replace(new_run("c1"), session=child, parent=RunId("s1"), payer=ANN_S, call_key="s1-0")
    await world.a.begin_run(below, node=A)
    await world.a.finish_run(asking("c1", question("q1")), node=A)
    await world.a.finish_run(asking("s1", question("q2")), node=A)
    heard = listen(world.b)
    for name, left in (("q1", ["q2"]), ("q2", [])):
        assert await world.a.interrupted_subagents(since=T0) == []
        await world.a.decide_approval(ApprovalId(name), Decision.ONCE, by="Ann", now=at(12))
        assert [one.id for one in await world.a.approvals(ApprovalQuery(session=ANN_S))] == left
    await until(heard.expect(Notice.SUBAGENTS))
    (found,) = await world.a.interrupted_subagents(since=T0)
    assert (found.run.id, found.crashes) == ("s1", 0)


async def test_a_background_subagent_that_is_stopped_while_it_waits_does_not_continue(
    world: World,
) -> None:
    own = SessionKey("agent:main:subagent:s1")
    await world.accept(ANN)
    subagent = replace(
        new_run("s1"), session=own, payer=ANN_S, trigger=Trigger.SUBAGENT,
        task=SubagentTask("pay", "bills"),
    )  # fmt: skip
    await world.a.begin_run(subagent, node=A)
    await world.a.finish_run(asking("s1", question()), node=A)
    stopped = await world.a.stop_approvals(ANN_S, everything=False, sender=None, now=at(12))
    assert stopped == 1
    assert await world.a.interrupted_subagents(since=T0) == []


async def test_what_the_run_has_taken_in_waits_with_its_message(world: World) -> None:
    row, taken = await world.accept(ANN, ANN)
    await world.a.begin_run(new_run("r1", row), node=A)
    step = NewMessagesStep("and Bob", (taken.id,))
    await world.a.note_run(RunId("r1"), RunSoFar(steps=(RESPONSE, step)), node=A)
    await world.a.finish_run(asking("r1", question()), node=A)
    assert await pending(world) == []
    await world.a.decide_approval(ApprovalId("q1"), Decision.ONCE, by="Ann", now=at(12))
    assert await pending(world) == [row.id, taken.id]


async def test_an_answer_that_comes_before_the_run_above_ends_leaves_nothing_waiting(
    world: World,
) -> None:
    row = await waits_for_child(world)
    await world.a.decide_approval(ApprovalId("q1"), Decision.ONCE, by="Ann", now=at(12))
    await world.a.finish_run(asking("r1"), node=A)
    assert await pending(world) == [row.id]


async def test_a_draft_that_the_question_removes_is_not_continued(world: World) -> None:
    (row,) = await world.accept(ANN)
    await world.a.begin_run(new_run("r1", row), node=A)
    await world.a.open_draft(RunId("r1"), ANN, now=at(2))
    await world.a.draft_posted(RunId("r1"), "d1")
    end = asking("r1", question())
    end = replace(end, say=(OutboundMessage(ANN, "", run_id=RunId("r1"), draft="d1"), *end.say))
    await world.a.finish_run(end, node=A)
    assert await world.a.drafts() == []
    await world.a.decide_approval(ApprovalId("q1"), Decision.ONCE, by="Ann", now=at(12))
    begun = await world.a.begin_run(new_run("r2", row, started_at=at(14)), node=A)
    assert begun.draft is None


async def test_a_conversation_has_the_questions_of_others_and_what_waits_elsewhere(
    world: World,
) -> None:
    """CHAN-9: its own questions have a card; of those of others, and of its waits, it has none."""
    about = about_approval(ApprovalId("q1"))
    await world.accept(BOB)
    (row,) = await world.accept(ANN)
    await world.a.begin_run(new_run("r1", row), node=A)
    asked = replace(say("May I?"), buttons=((Button("Yes", "x"),),), alert=about)
    say_all = asked, replace(asked, target=BOB), replace(say("I wait."), alert=about)
    end = replace(asking("r1", question()), say=say_all)
    await world.a.finish_run(end, node=A)
    for target in (ANN, BOB):
        while (out := await world.a.claim_next(target, node=A, now=at(13))) is not None:
            await world.a.mark_sent(out, f"m{out.id}", now=at(13))

    async def beside(target: Target) -> list[str]:
        return [one.text for one in await world.b.asides(key_of(target))]

    assert (await beside(ANN), await beside(BOB)) == (["I wait."], ["May I?"])
    await world.a.decide_approval(ApprovalId("q1"), Decision.ONCE, by="Ann", now=at(14))
    assert (await beside(ANN), await beside(BOB)) == ([], [])
