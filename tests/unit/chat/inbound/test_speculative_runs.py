"""A run starts at once, and begins again when its sender writes more (SPEC QUEUE-6)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from goclaw_py.core.ids import MAIN_AGENT, RunId, SessionKey
from goclaw_py.core.messages import PeerKind
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.run_events import NO_USAGE, TextDelta, ToolStarted, Usage
from goclaw_py.core.run_steps import ResponseStep, ValueStep
from goclaw_py.records import RunQuery
from goclaw_py.runs.agent_loop import LoopEvent, ModelStep, RequestSent
from goclaw_py.runs.turn import Turn
from goclaw_py.scheduler.models import Debounce, Mode, QueuePolicy
from goclaw_py.testing.agents import Block, Emitting, Ignore, Say, ScriptedAgent
from goclaw_py.testing.channel import RecordingChannel
from tests.support.harness import DIRECT, GROUP, GatewayProcess, Ways, a_process, message, until

EAGER = replace(DIRECT, debounce=Debounce.SPECULATIVE)
WAYS = Ways(direct=EAGER, group=replace(GROUP, debounce=Debounce.SPECULATIVE))
RESPONSE = ModelStep(NO_USAGE, response=ResponseStep(b"{}", NO_USAGE))


async def ends(gateway: GatewayProcess) -> list[tuple[Outcome | None, Reason | None]]:
    return [
        (run.outcome, run.reason) for run in reversed(await gateway.store.runs(RunQuery(limit=9)))
    ]


async def test_a_message_starts_its_run_at_once_and_a_further_one_lets_it_begin_again() -> None:
    agent = ScriptedAgent(Block())
    async with a_process(agent, WAYS) as gateway:
        began = asyncio.get_running_loop().time()
        await gateway.say("one")
        await until(lambda: agent.prompts == ["one"])
        assert asyncio.get_running_loop().time() - began < 0.1
        await gateway.say("two", "three", apart_s=0.3)
        await gateway.channel.until_sent(1)
        assert agent.prompts == ["one", "one\ntwo\nthree"]
        assert gateway.channel.texts() == ["re: one\ntwo\nthree"]
        assert await gateway.texts_in_history() == ["one\ntwo\nthree", "re: one\ntwo\nthree"]
        assert await ends(gateway) == [
            (Outcome.INTERRUPTED, Reason.MERGED),
            (Outcome.COMPLETED, None),
        ]
        assert {row.attempts for row in gateway.database.inbox.values()} == {1}


@pytest.mark.parametrize(
    ("policy", "late", "durable"),
    [(EAGER, False, False), (EAGER, True, True), (DIRECT, False, True)],
    ids=["speculative", "after a crash", "fixed window"],
)
def test_only_the_first_start_of_a_speculative_run_need_not_survive_a_crash_of_the_database(
    policy: QueuePolicy, late: bool, durable: bool
) -> None:
    """SPEC IO-2: so an attempt is lost at most once."""
    turn = Turn(RunId("r"), SessionKey("s"), MAIN_AGENT, [], policy, late)
    assert turn.starts_durably is durable


async def test_the_request_of_a_run_that_begins_again_counts() -> None:
    """SPEC AGENT-5: it is paid for, although nobody knows its tokens."""
    agent = ScriptedAgent(Emitting((RequestSent(),), Block()))
    async with a_process(agent, WAYS) as gateway:
        await gateway.say("one", "two", apart_s=0.1)
        await gateway.channel.until_sent(1)
        _, merged = await gateway.store.runs(RunQuery(limit=2))
        assert merged.usage == Usage(requests=1)


async def test_messages_of_one_batch_cost_one_run() -> None:
    """The run of the first has not begun when the others join it."""
    agent = ScriptedAgent()
    async with a_process(agent, WAYS) as gateway:
        await gateway.gateway.accept([message("one"), message("two")])
        await gateway.channel.until_sent(1)
        assert agent.prompts == ["one\ntwo"]
        assert await ends(gateway) == [(Outcome.COMPLETED, None)]


@pytest.mark.parametrize(
    ("event", "drafting", "merges"),
    [
        pytest.param(ToolStarted("c", "read", "{}", side_effects=False), True, False, id="tool"),
        pytest.param(ValueStep("paid", "1"), True, False, id="named step"),
        pytest.param(TextDelta("Well"), False, False, id="text that may be shown at once"),
        pytest.param(TextDelta("Well"), True, True, id="text before its draft is posted"),
        pytest.param(RESPONSE, True, True, id="response whose tools have not started"),
    ],
)
async def test_a_run_that_has_had_an_effect_does_not_begin_again(
    event: LoopEvent, drafting: bool, merges: bool
) -> None:
    agent = ScriptedAgent(Emitting((event,), Say("first", after_s=5)))
    channel = RecordingChannel(drafting=drafting)
    async with a_process(agent, WAYS, channels=(channel,)) as gateway:
        await gateway.say("one", apart_s=0.5)
        await gateway.say("two")
        await channel.until_sent(1 if merges else 2)
        assert agent.prompts == (["one", "one\ntwo"] if merges else ["one", "two"])
        assert channel.texts() == (["re: one\ntwo"] if merges else ["first", "re: two"])
        assert len(agent.requests[-1].steps or ()) == 0


async def test_a_run_whose_draft_is_posted_does_not_begin_again() -> None:
    agent = ScriptedAgent(Emitting((TextDelta("Well"),), Say("Well", after_s=5)))
    channel = RecordingChannel(drafting=True)
    ways = replace(WAYS, direct=replace(EAGER, debounce_s=2.0))
    async with a_process(agent, ways, channels=(channel,)) as gateway:
        await gateway.say("one", apart_s=1.0)
        assert list(channel.drafted.values()) == [["Well"]]
        await gateway.say("two")
        await until(lambda: len(agent.prompts) == 2)
        assert agent.prompts == ["one", "two"]


async def test_text_of_a_run_that_begins_again_is_never_shown() -> None:
    agent = ScriptedAgent(Emitting((TextDelta("Well"),), Ignore(5.0)))
    channel = RecordingChannel(drafting=True)
    async with a_process(agent, WAYS, channels=(channel,)) as gateway:
        await gateway.say("one", apart_s=0.5)
        await gateway.say("two")
        await channel.until_sent(1)
        assert channel.texts() == ["re: one\ntwo"]
        assert channel.drafted == {}


async def test_a_run_that_ignores_its_cancellation_does_not_end_its_message() -> None:
    agent = ScriptedAgent(Ignore(60.0, reply="late"))
    async with a_process(agent, WAYS) as gateway:
        await gateway.say("one", "two", apart_s=0.1)
        await gateway.channel.until_sent(1)
        assert gateway.channel.texts() == ["re: one\ntwo"]
        await asyncio.sleep(60)
        assert gateway.channel.texts() == ["re: one\ntwo"]


async def test_in_a_group_the_turn_waits_for_the_end_of_its_first_run() -> None:
    """Other runs of the group go on meanwhile."""
    agent = ScriptedAgent(Ignore(3.0))
    async with a_process(agent, WAYS) as gateway:
        for text, sender in (("one", "ann"), ("other", "bob"), ("two", "ann")):
            said = message(text, chat="-1", sender=sender, peer=PeerKind.GROUP)
            await gateway.gateway.accept([said])
            await asyncio.sleep(0.1)
        await asyncio.sleep(2)
        assert agent.texts == ["one", "other"]
        await gateway.channel.until_sent(2)
        assert agent.texts == ["one", "other", "one\ntwo"]


@pytest.mark.parametrize("command", ["/stop", "/stopall"])
@pytest.mark.parametrize("stubborn", [False, True])
async def test_a_stop_ends_both_messages(command: str, stubborn: bool) -> None:
    agent = ScriptedAgent(Ignore(2.0) if stubborn else Block())
    async with a_process(agent, WAYS) as gateway:
        await gateway.say("one", "two", apart_s=0.1)
        await gateway.say(command)
        await asyncio.sleep(20)
        assert agent.prompts == ["one"]
        assert gateway.pending == []
        outcomes = {row.outcome for row in gateway.database.inbox.values() if row.outcome}
        assert outcomes == {Outcome.CANCELLED, Outcome.COMPLETED}
        assert gateway.channel.texts() == ["Dropped 2 waiting messages."]


async def test_a_crash_and_a_shutdown_lose_nothing_and_answer_nothing_twice() -> None:
    for kill in (True, False):
        agent = ScriptedAgent(Block())
        async with a_process(agent, WAYS) as gateway:
            await gateway.say("one", "two", apart_s=0.1)
            if kill:
                gateway.kill()
            else:
                await gateway.shut_down(wait_s=0)
            async with a_process(ScriptedAgent(), WAYS, database=gateway.database) as other:
                await other.channel.until_sent(2)
                assert other.channel.texts() == ["re: one", "re: two"]


async def test_a_steered_message_begins_the_turn_again_within_the_window_only() -> None:
    agent = ScriptedAgent(Block(), Block())
    ways = Ways(direct=replace(EAGER, mode=Mode.STEER))
    async with a_process(agent, ways) as gateway:
        await gateway.say("one", apart_s=0.1)
        await gateway.say("two", apart_s=2)
        assert agent.prompts == ["one", "one\ntwo"]
        await gateway.say("three", apart_s=2)
        assert [part.text for part in agent.requests[1].take_messages()] == ["three"]


async def test_the_steps_of_a_run_that_begins_again_are_not_replayed_after_a_crash() -> None:
    agent = ScriptedAgent(Emitting((RESPONSE,), Block()), Block())
    async with a_process(agent, WAYS) as gateway:
        await gateway.say("one", "two", apart_s=0.1)
        await until(lambda: len(agent.prompts) == 2)
        gateway.kill()
        again = ScriptedAgent()
        async with a_process(again, WAYS, database=gateway.database) as other:
            await other.channel.until_sent(1)
            assert [request.steps for request in again.requests] == [()]
