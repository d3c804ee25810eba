"""What waits becomes one turn, and who said what in a group (SPEC QUEUE-4, QUEUE-6)."""

from __future__ import annotations

import asyncio

import pytest

from goclaw_py.delivery import texts as wording
from goclaw_py.model.messages import PeerKind
from goclaw_py.model.outcomes import Outcome
from goclaw_py.ports.agent import Role
from goclaw_py.scheduler.models import Mode, QueuePolicy
from goclaw_py.testing.agents import Block, ScriptedAgent
from tests.support.harness import GatewayProcess, Ways, a_process, message, session_of

COLLECT = QueuePolicy(mode=Mode.COLLECT)
WAYS = Ways(direct=COLLECT, group=COLLECT)


async def in_group(gateway: GatewayProcess, *said: tuple[str, str], cut: bool = False) -> str:
    """What these people say; the id of the last message."""
    last_id = ""
    for sender, text in said:
        one = message(text, chat="club", sender=sender, peer=PeerKind.GROUP, cut=cut)
        await gateway.gateway.accept([one])
        last_id = one.message_id or ""
    return last_id


async def go_on(agent: ScriptedAgent, gateway: GatewayProcess) -> None:
    """Let the first run end, and the next."""
    await agent.until_active(1)
    agent.release()
    await gateway.channel.until_sent(2)


async def test_what_waited_during_a_run_is_one_turn_and_one_entry_in_its_order() -> None:
    agent = ScriptedAgent(Block("first"))
    async with a_process(agent, WAYS) as gateway:
        await gateway.say("works", "b", "a", "c")
        await go_on(agent, gateway)
        assert agent.prompts == ["works", "b\na\nc"]
        assert gateway.channel.texts() == ["first", "re: b\na\nc"]
        assert await gateway.outcomes() == [Outcome.COMPLETED] * 2
        assert gateway.pending == []
        turn = [(Role.USER, "b\na\nc"), (Role.ASSISTANT, "re: b\na\nc")]
        assert (await gateway.history())[2:] == turn


async def test_in_a_group_each_text_of_a_collected_turn_has_its_senders_name() -> None:
    """And the answer replies to the last of them."""
    agent = ScriptedAgent(Block("first"))
    async with a_process(agent, WAYS) as gateway:
        last = await in_group(gateway, ("ann", "works"), ("bob", "x"), ("ann", "y"), ("bob", "z"))
        await go_on(agent, gateway)
        said = ["Bob (id bob): x", "Ann (id ann): y", "Bob (id bob): z"]
        assert agent.prompts[1] == "\n".join(said)
        assert [part.text for part in agent.requests[1].parts] == said
        entries = await gateway.store.history(session_of("club", peer=PeerKind.GROUP))
        assert entries[2].entry.text == "\n".join(said)
        assert gateway.channel.sent[1].reply_to == last


async def test_a_cut_text_is_whole_again_and_never_glued_to_somebody_elses() -> None:
    agent = ScriptedAgent(Block("first"))
    async with a_process(agent, WAYS) as gateway:
        await in_group(gateway, ("ann", "works"))
        await in_group(gateway, ("bob", "long te"), cut=True)
        await in_group(gateway, ("bob", "xt"), ("cid", "hi"))
        await in_group(gateway, ("dan", "its rest is lost "), cut=True)
        await in_group(gateway, ("bob", "bye"))
        await asyncio.sleep(5)  # the rest of the second cut text is waited for no more
        assert len(gateway.dispatcher.runs()) == 5
        await go_on(agent, gateway)
        assert sorted(agent.prompts[1].splitlines()) == [
            "Bob (id bob): bye",
            "Bob (id bob): long text",
            "Cid (id cid): hi",
            "Dan (id dan): its rest is lost",
        ]


@pytest.mark.parametrize("waiting", [1, 3])
async def test_stopping_everything_counts_each_collected_message(waiting: int) -> None:
    """SPEC CMD-1: what waits is dropped one by one."""
    agent = ScriptedAgent(Block("first"))
    async with a_process(agent, WAYS) as gateway:
        await gateway.say("works", *"abc"[:waiting], "/stopall")
        await gateway.channel.until_sent(1)
        assert f"dropped {waiting} waiting message" in gateway.channel.texts()[0]


async def test_a_flood_becomes_turns_of_a_bounded_size_and_its_sender_is_told() -> None:
    async with a_process() as gateway:
        texts = [str(number) for number in range(120)]
        await gateway.gateway.accept([message(text) for text in texts])
        await gateway.channel.until_sent(4)
        prompts = gateway.scripted.prompts
        assert [len(prompt.split("\n")) for prompt in prompts] == [50, 50, 20]
        assert "\n".join(prompts).split("\n") == texts
        told = [text for text in gateway.channel.texts() if not text.startswith("re: ")]
        assert told == [wording.overflowed(["50"])]
