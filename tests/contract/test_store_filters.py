"""What every store promises about filters of lists (SPEC OPS-3)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from goclaw_py.core.ids import AgentName, RunId, SessionKey
from goclaw_py.core.messages import Role, Target
from goclaw_py.core.outcomes import Outcome, Trigger
from goclaw_py.records import (
    ALL_MESSAGES,
    ALL_RUNS,
    NEWEST_SESSIONS,
    PROMPT_CHARS,
    DeadLetterCounts,
    DeadLetterQuery,
    IncomingState,
    MessageFilter,
    NewInbox,
    OutboxQuery,
    OutboxState,
    RunFilter,
    RunQuery,
    SessionQuery,
    SessionState,
)
from tests.support.stores import (
    AGENT,
    ANN,
    BOB,
    T0,
    A,
    World,
    at,
    end,
    entry,
    key_of,
    message,
    new_run,
    say,
)

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

WEB = Target("web", "default", "7")
TOPIC = replace(ANN, thread="5")
SELECTED = (
    (ALL_MESSAGES, "ABCD"),
    (MessageFilter("telegram"), "ABC"),
    (MessageFilter("web"), "D"),
    (MessageFilter("web", ANN), ""),
    (MessageFilter(chat=ANN), "AB"),
    (MessageFilter(chat=TOPIC), "AB"),
    (MessageFilter(chat=replace(ANN, account="x")), ""),
    (MessageFilter(text="HELLO"), "AB"),
    (MessageFilter(text="100%"), "A"),
    (MessageFilter(text="o_o"), ""),
    (MessageFilter(text="Ä"), "C"),
    (MessageFilter(text="ä"), ""),
    (MessageFilter(text="😀"), "C"),
    (MessageFilter(text="\x00' or ''='"), ""),
    (MessageFilter(since=T0), "ABCD"),
    (MessageFilter(since=at(1)), ""),
    (MessageFilter("telegram", ANN, T0, "hello \\"), "B"),
    (MessageFilter("telegram", account="default"), "ABC"),
    (MessageFilter(account="default"), "ABCD"),
    (MessageFilter("telegram", account="x"), ""),
)
TEXTS = ((ANN, "A: hello 100%"), (TOPIC, "B: Hello \\ there"), (BOB, "C: \u202eÄ 😀"), (WEB, "D"))


def letters(texts: list[str]) -> str:
    return "".join(sorted(text[0] for text in texts))


async def test_outgoing_messages_are_selected_and_counted(world: World) -> None:
    rows = await world.put(*(replace(say(text), target=target) for target, text in TEXTS))
    await world.a.drop_outbox([rows[0].id], now=T0)
    for only, wanted in SELECTED:
        found = await world.b.outbox(OutboxQuery(only=only))
        assert letters([row.message.text for row in found]) == wanted, only
        waiting = await world.b.outbox(OutboxQuery(OutboxState.WAITING, only=only))
        counts = await world.b.outbox_counts(only)
        assert counts.get(OutboxState.WAITING, 0) == len(waiting), only
        assert sum(counts.values()) == len(wanted), only
    dropped = {OutboxState.DROPPED: 1, OutboxState.WAITING: 3}
    assert await world.b.outbox_counts() == dropped


async def test_incoming_messages_are_selected_and_counted(world: World) -> None:
    sent = [
        NewInbox(replace(message(number, target), text=text), key_of(target), AGENT)
        for number, (target, text) in enumerate(TEXTS)
    ]
    rows = (await world.a.accept(sent, node=A, now=T0)).rows
    for only, wanted in SELECTED:
        found = await world.b.dead_letters(DeadLetterQuery(IncomingState.WAITING, only=only))
        assert letters([one.row.message.text for one in found]) == wanted, only
        assert await world.b.dead_letter_counts(only) == DeadLetterCounts(0, len(wanted), 0), only
    await world.a.settle([row.id for row in rows[:3]], Outcome.FAILED, now=T0)
    for only, wanted in SELECTED:
        found = await world.b.dead_letters(DeadLetterQuery(only=only))
        ended = wanted.replace("D", "")
        assert letters([one.row.message.text for one in found]) == ended, only
        assert await world.b.dead_letter_counts(only) == DeadLetterCounts(
            len(ended), "D" in wanted, 0
        ), only


async def test_runs_of_a_time_are_selected(world: World) -> None:
    other = AgentName("other")
    for number, agent in enumerate((AGENT, other, AGENT)):
        run = replace(new_run(f"r{number}", started_at=at(number)), agent=agent)
        trigger = Trigger.CRON if number == 2 else Trigger.CHAT
        await world.a.begin_run(replace(run, trigger=trigger), node=A)
    await world.a.finish_run(replace(end("r0", Outcome.FAILED), finished_at=at(9)), node=A)
    for only, wanted in (
        (ALL_RUNS, ["r0", "r1", "r2"]),
        (RunFilter(agent=other), ["r1"]),
        (RunFilter(trigger=Trigger.CRON), ["r2"]),
        (RunFilter(outcome=Outcome.FAILED), ["r0"]),
        (RunFilter(AGENT, Trigger.CHAT), ["r0"]),
        (RunFilter(sender="nobody"), []),
    ):
        for since in (T0 - timedelta(days=1), at(5)):
            found = await world.b.runs_between(since, at(20), only=only)
            assert [span.id for span in found] == wanted, only
        density = await world.b.run_density(T0, at(20), parts=2, only=only)
        assert sum(one.runs for one in density) == len(wanted), only


async def test_runs_are_found_by_their_prompts(world: World) -> None:
    prompts = ("Order 100% of \\ milk", "Ärger 😀", "x" * 300)
    for number, prompt in enumerate(prompts):
        await world.a.begin_run(new_run(f"r{number}", started_at=at(number)), node=A)
        said = (entry(prompt), entry("milk too", Role.ASSISTANT))
        done = end(f"r{number}", Outcome.FAILED if number else Outcome.COMPLETED)
        await world.a.finish_run(replace(done, history=said), node=A)
    await world.a.begin_run(new_run("r3", started_at=at(3)), node=A)
    for search, query, wanted in (
        ("", RunQuery(), "3210"),
        ("ORDER 100%", RunQuery(), "0"),
        ("\\ m", RunQuery(), "0"),
        ("o_d", RunQuery(), ""),
        ("Ä", RunQuery(), "1"),
        ("ä", RunQuery(), ""),
        ("😀", RunQuery(only=RunFilter(outcome=Outcome.FAILED)), "1"),
        ("😀", RunQuery(only=RunFilter(outcome=Outcome.COMPLETED)), ""),
        ("r", RunQuery(limit=1), "1"),
        ("r", RunQuery(since=at(1)), "1"),
        ("x", RunQuery(active=True), ""),
    ):
        found = await world.b.runs(replace(query, search=search))
        assert "".join(run.id[1] for run in found) == wanted, (search, query)
    known = await world.b.run_prompts([RunId(f"r{number}") for number in range(4)])
    assert known == {"r0": "Order 100% of \\ milk", "r1": "Ärger 😀", "r2": "x" * PROMPT_CHARS}


async def test_a_run_without_history_has_the_text_of_its_message(world: World) -> None:
    """OPS-2: what a crash or a question has interrupted, and what is in progress."""
    row = NewInbox(replace(message(1), text="pay Bob"), key_of(ANN), AGENT)
    (stored,) = (await world.a.accept([row], node=A, now=at(0))).rows
    await world.a.begin_run(new_run("r0", stored, started_at=at(0)), node=A)
    for _ in range(2):
        assert await world.b.run_prompts([RunId("r0")]) == {"r0": "pay Bob"}
        await world.a.finish_run(end("r0", Outcome.INTERRUPTED), node=A)
    await world.a.begin_run(new_run("r1", stored, started_at=at(1)), node=A)
    await world.a.finish_run(end("r1"), node=A)
    (letter,) = await world.b.letters_of(RunId("r0"))
    assert (letter.row.id, letter.row.run_id) == (stored.id, "r1")


async def test_sessions_are_selected(world: World) -> None:
    for number, target in enumerate((ANN, BOB, WEB)):
        row = NewInbox(message(number, target), key_of(target), AGENT)
        await world.a.accept([row], node=A, now=at(number))
    other = AgentName("other")
    run = replace(new_run("r"), session=SessionKey("agent:other:cron:j"), agent=other, target=None)
    await world.a.begin_run(run, node=A)
    ann, bob, web, cron = key_of(ANN), key_of(BOB), key_of(WEB), run.session
    running, waiting = SessionState.RUNNING, SessionState.WAITING
    for query, wanted in (
        (NEWEST_SESSIONS, {ann, bob, web, cron}),
        (SessionQuery(agent=other), {cron}),
        (SessionQuery(channel="telegram"), {ann, bob}),
        (SessionQuery(channel="telegram", search=ann[-3:]), {ann}),
        (SessionQuery(state=running), {cron}),
        (SessionQuery(state=waiting), {ann, bob, web}),
        (SessionQuery(agent=AGENT, channel="web", state=waiting), {web}),
        (SessionQuery(agent=AGENT, channel="web", state=running), set()),
        (SessionQuery(channel="\x00", search="%"), set()),
    ):
        assert {one.key for one in await world.b.sessions(query)} == wanted, query
    await world.a.finish_run(end("r"), node=A)
    assert await world.b.sessions(SessionQuery(state=running)) == []
