"""Ways in which messages that wait for a provider could get lost, stuck or out of order (AGENT-8).

Each of these was a fault that a review found.
"""

from __future__ import annotations

import asyncio

import pytest

from goclaw_py.delivery import texts
from goclaw_py.model.errors import AgentError, StoreUnavailable
from goclaw_py.model.messages import Target
from goclaw_py.ports.agent import Emit, RunRequest
from goclaw_py.scheduler.models import Mode, QueuePolicy
from goclaw_py.testing.agents import Block, Do, Fail, Say, ScriptedAgent, Step
from tests.support.harness import Ways, a_process, here, message

DOWN = AgentError("The model does not answer.", "503", retryable=True)


class Switch:
    """A provider that is down until it is not."""

    def __init__(self) -> None:
        self.down = True
        self.asked = 0

    def agent(self, after_s: float = 0) -> ScriptedAgent:
        def choose(request: RunRequest) -> Step:
            self.asked += 1
            if self.down:
                return Fail(DOWN, after_s)
            return Say(f"re: {request.prompt}")

        return ScriptedAgent(otherwise=choose)


async def test_one_bad_conversation_holds_up_no_other() -> None:
    def choose(request: RunRequest) -> Step:
        return Fail(DOWN) if "bad" in request.session else Say(f"re: {request.prompt}")

    async with a_process(ScriptedAgent(otherwise=choose)) as gateway:
        await gateway.say("x", chat="bad", apart_s=3)
        await gateway.say("hello", apart_s=60)
        assert gateway.channel.texts("ann") == [texts.KEPT, "re: hello"]
        await asyncio.sleep(600)
        assert gateway.channel.texts("bad") == [texts.KEPT]


async def test_what_waited_in_the_queue_keeps_its_place() -> None:
    agent = ScriptedAgent(Fail(DOWN, after_s=5))
    async with a_process(agent) as gateway:
        await gateway.say("one", "two", apart_s=2)
        await gateway.channel.until_sent(3)
        assert gateway.channel.texts() == [texts.KEPT, "re: one", "re: two"]
        assert await gateway.said_in_history() == ["one", "re: one", "two", "re: two"]


async def test_one_at_a_time_asks_a_provider_that_is_down() -> None:
    switch = Switch()
    async with a_process(switch.agent(after_s=5)) as gateway:
        for number in range(12):
            await gateway.say("x", chat=f"chat {number}")
        await asyncio.sleep(60)
        assert switch.asked <= 6


async def test_as_many_are_kept_as_may_wait_and_none_of_those_is_dropped_later() -> None:
    """SPEC QUEUE-5."""
    switch = Switch()
    async with a_process(switch.agent(), Ways(QueuePolicy(capacity=3))) as gateway:
        await gateway.ask("m0")
        await asyncio.sleep(1)
        await gateway.say(*(f"m{number}" for number in range(1, 6)), apart_s=2)
        await asyncio.sleep(120)
        switch.down = False
        await asyncio.sleep(120)
        answers = [text for text in gateway.channel.texts() if text.startswith("re:")]
        assert len(answers) >= 3
        assert answers[-3:] == ["re: m3", "re: m4", "re: m5"]
        assert any("I dropped" in text for text in gateway.channel.texts())
        assert gateway.pending == []


async def test_a_text_that_the_channel_cut_stays_one() -> None:
    """SPEC QUEUE-6."""
    switch = Switch()
    async with a_process(switch.agent()) as gateway:
        await gateway.ask("first", chat="bob")
        await gateway.gateway.accept([message("part 1 ", cut=True)])
        await gateway.gateway.accept([message("part 2")])
        switch.down = False
        await asyncio.sleep(120)
        assert gateway.channel.texts("ann") == [texts.KEPT, "re: part 1 part 2"]


async def test_a_stop_holds_while_the_database_is_away() -> None:
    """SPEC CMD-1."""
    switch = Switch()
    async with a_process(switch.agent()) as gateway:
        await gateway.ask("one")
        gateway.store.away = True
        stop = message("/stop")
        with pytest.raises(StoreUnavailable):
            await gateway.gateway.accept([stop])
        gateway.store.away = switch.down = False
        await asyncio.sleep(30)
        await gateway.gateway.accept([stop])
        await asyncio.sleep(60)
        assert gateway.channel.texts() == [texts.KEPT, "Dropped 1 waiting message."]
        assert gateway.pending == []


@pytest.mark.parametrize("word", ["/stop", "/stopall", "/new"])
async def test_what_is_stopped_while_its_run_is_put_away_does_not_come_back(word: str) -> None:
    switch = Switch()
    async with a_process(switch.agent()) as gateway:
        gateway.store.slow_before_s["finish_run"] = 3
        await gateway.say("one")
        await asyncio.sleep(1.5)
        await gateway.say(word)
        gateway.store.slow_before_s["finish_run"] = 0
        await asyncio.sleep(4)
        switch.down = False
        await asyncio.sleep(120)
        assert not any(text.startswith("re:") for text in gateway.channel.texts())
        assert gateway.pending == []


async def test_one_that_another_node_owns_by_now_blocks_nobody() -> None:
    switch, other = Switch(), ScriptedAgent(Block())
    async with (
        a_process(switch.agent()) as gateway,
        a_process(other, database=gateway.database) as second,
    ):
        await gateway.ask("one")
        await second.say("busy", chat="new")
        await other.until_active(1)
        now = second.clock.now()
        await second.store.move_chat("telegram", "default", old="ann", new="new", now=now)
        switch.down = False
        await asyncio.sleep(30)
        other.release()
        await gateway.say("hello", chat="bob")
        await asyncio.sleep(120)
        assert gateway.channel.texts("bob")[-1] == "re: hello"
        assert gateway.container.outages.views() == ()


async def test_a_try_that_joins_a_running_turn_blocks_nobody() -> None:
    """SPEC QUEUE-4: in mode steer."""
    switch = Switch()

    async def slow(request: RunRequest, emit: Emit) -> str:
        await asyncio.sleep(12)
        request.take_messages()
        await asyncio.sleep(3)
        if switch.down:
            raise DOWN
        return "slow done"

    usual = switch.agent(after_s=2).otherwise
    agent = ScriptedAgent(
        otherwise=lambda asked: Do(slow) if "slow" in asked.prompt else usual(asked)
    )
    async with a_process(agent, Ways(QueuePolicy(mode=Mode.STEER))) as gateway:
        await gateway.say("one", "slow two")
        await asyncio.sleep(60)
        switch.down = False
        await gateway.say("hello", chat="bob")
        await asyncio.sleep(300)
        assert gateway.channel.texts("bob")[-1] == "re: hello"
        assert gateway.pending == []


async def test_what_was_stopped_sends_no_messages() -> None:
    """SPEC QUEUE-2: nothing that it still says reaches a chat."""

    async def ignore(request: RunRequest, emit: Emit) -> str:
        for _ in range(2):
            try:
                await asyncio.sleep(20)
            except asyncio.CancelledError:
                continue
        await here(request).post.send(Target("telegram", "default", "boss"), "still here")
        return "never"

    async with a_process(ScriptedAgent(otherwise=lambda _: Do(ignore))) as gateway:
        await gateway.say("go")
        await gateway.scripted.until_active(1)
        await gateway.say("/stop")
        await asyncio.sleep(100)
        assert gateway.channel.texts("boss") == []
