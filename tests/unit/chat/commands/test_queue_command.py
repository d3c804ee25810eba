"""``/queue``: a chat chooses how its messages wait (SPEC CMD-5)."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from goclaw_py.chat.access.access_control import AccessControl
from goclaw_py.chat.commands.queue import NOT_AN_OWNER, unknown_mode
from goclaw_py.core.ids import MAIN_AGENT
from goclaw_py.core.messages import Target
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.run_events import PressAnswered
from goclaw_py.core.session_keys import AccessRules, DirectPolicy
from goclaw_py.records import Standing
from goclaw_py.scheduler.models import Drop, Mode, QueuePolicy
from goclaw_py.testing.agents import Block, ScriptedAgent
from goclaw_py.testing.channel import RecordingChannel
from goclaw_py.testing.clock import LoopClock
from tests.support.harness import GatewayProcess, Ways, a_process, message, session_of, until
from tests.support.memory_store import MemoryDatabase, MemoryStore
from tests.unit.chat.access.test_pairing import code_in

AT_ONCE = Ways(direct=QueuePolicy())
DUTIES = {
    *("open_calls", "claim_pending", "claim_waiting", "ended", "next_job_due", "nodes", "people"),
    *("recover", "release_sessions", "renew", "settle_results"),
}
"""What a process asks the database now and then, whatever happens."""
OWNERS_ONLY = NOT_AN_OWNER
OFFERED = [mode for mode in Mode if mode is not Mode.FOLLOWUP]
"""The other one is ``queue`` by another name."""


ANN = Target("telegram", "default", "ann")


def with_strangers(ways: Ways | None = None) -> AbstractAsyncContextManager[GatewayProcess]:
    return a_process(ways=ways, channels=(RecordingChannel(trusted=False),))


async def collects(gateway: GatewayProcess) -> bool:
    """Whether what waits in Ann's chat becomes one turn."""
    agent = gateway.scripted
    agent.script = (*([Block()] * (len(agent.requests) + 1)),)
    before = len(agent.requests)
    await gateway.say("works", "x", "y")
    await agent.until_active(1)
    agent.release()
    await until(lambda: gateway.pending == [])
    return agent.prompts[before + 1 :] == ["x\ny"]


async def test_without_a_word_it_tells_mode_numbers_and_what_else_there_is() -> None:
    policy = QueuePolicy(Mode.STEER, 7, Drop.NEW, concurrency=1)
    agent = ScriptedAgent(otherwise=lambda _: Block())
    async with a_process(agent, Ways(direct=policy)) as gateway:
        await gateway.say("works", "waits", "waits too")
        mode, *numbers, head, queue, interrupt, collect = (await gateway.ask("/queue")).splitlines()
        assert mode.startswith("Mode: steer (from the settings): a new message is added to the run")
        assert numbers == [
            "Running: 1 (at most 1 at a time)",
            "Waiting: 2 (at most 7; when the queue is full, new ones are rejected)",
        ]
        assert head == "Other modes:"
        assert queue == "- queue: messages wait for their turn"
        assert interrupt.startswith("- interrupt: a new message stops the running task")
        assert collect == "- collect: waiting messages are merged into one turn"


async def test_it_tells_that_the_mode_was_chosen_here_and_that_the_context_is_full() -> None:
    """SPEC CMD-5, QUEUE-7."""
    async with a_process() as gateway:
        await gateway.ask("/queue collect")
        gateway.gateway._policies.contexts.note(session_of(), MAIN_AGENT, 900)
        mode, running, _, bursts, *_, back = (await gateway.ask("/queue")).splitlines()
        assert back == "/queue default restores the settings."
        chosen = "Mode: collect (chosen in this chat): waiting messages are merged into one turn"
        assert mode == chosen
        assert running == "Running: 0 (at most 1 at a time, because this conversation is long)"
        assert bursts == "Bursts: messages sent within 0.8 s are merged"


async def pressed(gateway: GatewayProcess, mode: str, chat: str = "ann") -> None:
    """Press a button below the message 7 of the bot."""
    await gateway.gateway.accept(
        [replace(message("", chat=chat), press=f"queue:{mode}", reply_to="7")]
    )


async def test_a_button_below_queue_chooses_its_mode() -> None:
    """SPEC CMD-5."""
    async with a_process() as gateway:
        await gateway.ask("/queue")
        buttons = [button for row in gateway.channel.sent[-1].buttons for button in row]
        assert [button.text for button in buttons] == [*OFFERED, "✅ default"]
        await pressed(gateway, "steer")
        await until(lambda: "Mode: steer (chosen in this chat)" in gateway.channel.texts()[-1])
        await pressed(gateway, "nothing")
        await asyncio.sleep(30)
        assert (await gateway.ask("/queue")).startswith("Mode: steer (chosen")


async def test_a_button_below_queue_is_for_owners() -> None:
    """SPEC CMD-5: the data of a press can be forged."""
    ways = Ways(access=DirectPolicy.OPEN)
    async with with_strangers(ways) as gateway:
        answer = await gateway.ask("/queue")
        assert not any(sent.buttons for sent in gateway.channel.sent)
        assert "modes:" not in answer
        await pressed(gateway, "steer")
        await asyncio.sleep(30)
        answered = [one for one in gateway.channel.signals if isinstance(one, PressAnswered)]
        assert [one.text for one in answered] == [NOT_AN_OWNER]
        assert await gateway.ask("/queue") == answer


async def test_an_unknown_word_gets_one_line_that_lists_the_modes() -> None:
    async with a_process() as gateway:
        for word in ("fast", "colect", "mode", "queue,", "-"):
            answer = await gateway.ask(f"/queue {word}")
            assert answer == unknown_mode(word)
            assert len(answer.splitlines()) == 1
            assert all(mode in answer for mode in (*OFFERED, "default"))


async def test_a_chosen_mode_holds_for_the_messages_to_come_until_default_is_chosen() -> None:
    """SPEC CMD-5, section 2: chat wins over channel; a fresh conversation keeps the mode."""
    async with a_process(ScriptedAgent(), AT_ONCE) as gateway:
        assert await gateway.ask("/queue collect", chat="bob")
        assert not await collects(gateway)
        answer = await gateway.ask("/queue collect")
        assert answer == "Queue mode: collect, waiting messages are merged into one turn."
        assert await collects(gateway)
        await gateway.ask("/new")
        assert await collects(gateway)
        answer = await gateway.ask("/queue DEFAULT")
        assert answer == "Queue mode, as in the settings: queue, messages wait for their turn."
        assert not await collects(gateway)
        assert "from the settings" in await gateway.ask("/queue")


async def test_every_mode_can_be_chosen() -> None:
    async with a_process() as gateway:
        for mode in Mode:
            assert (await gateway.ask(f"/queue {mode.value}")).startswith(f"Queue mode: {mode}")
            assert (await gateway.ask("/queue")).startswith(f"Mode: {mode} (chosen")


async def test_a_chosen_interrupt_interrupts() -> None:
    """SPEC QUEUE-3, CMD-5."""
    agent = ScriptedAgent(Block())
    async with a_process(agent, AT_ONCE) as gateway:
        await gateway.ask("/queue interrupt")
        await gateway.say("works", "newer", apart_s=0.1)
        await until(lambda: agent.prompts == ["works", "newer"])
        await until(lambda: gateway.pending == [])
        assert await gateway.outcomes() == [Outcome.CANCELLED, Outcome.COMPLETED]


async def test_the_choice_holds_for_what_follows_in_the_same_batch() -> None:
    """SPEC CMD-1: commands act in the batch's order."""
    agent = ScriptedAgent(Block("first"))
    async with a_process(agent, AT_ONCE) as gateway:
        batch = [message(text) for text in ("works", "/queue collect", "x", "y")]
        await gateway.gateway.accept(batch)
        await agent.until_active(1)
        agent.release()
        await until(lambda: agent.prompts == ["works", "x\ny"])


async def test_the_choice_survives_a_restart() -> None:
    database = MemoryDatabase()
    async with a_process(ways=AT_ONCE, database=database) as first:
        await first.ask("/queue collect")
        await first.shut_down()
    async with a_process(ScriptedAgent(), AT_ONCE, database=database) as second:
        assert await collects(second)


async def test_a_process_that_takes_the_chat_over_knows_the_newest_choice() -> None:
    """SPEC NODE-1: what another process has changed meanwhile is not overlooked."""
    database = MemoryDatabase()
    async with (
        a_process(ScriptedAgent(), AT_ONCE, database=database) as first,
        a_process(ScriptedAgent(), AT_ONCE, database=database) as second,
    ):

        async def answer(process: GatewayProcess, text: str) -> str:
            """Which of the two sends the answer is anybody's guess."""
            await process.say(text)
            await asyncio.sleep(60)  # by then the idle chat belongs to nobody
            return (await process.store.outbox())[0].message.text

        await answer(first, "/queue collect")
        assert (await answer(second, "/queue")).startswith("Mode: collect (chosen")
        await answer(second, "/queue steer")
        assert (await answer(first, "/queue")).startswith("Mode: steer (chosen")


async def test_a_message_asks_the_database_no_more_than_before() -> None:
    """SPEC CMD-5: the choice comes with the commit."""

    async def asked(*first: str) -> set[str]:
        async with a_process(ScriptedAgent(), AT_ONCE) as gateway:
            for text in ("hi", *first):
                await gateway.ask(text)
            gateway.store.calls.clear()
            await gateway.ask("hello")
            return set(gateway.store.calls) - DUTIES

    assert await asked() == await asked("/queue collect")


async def test_while_the_database_is_away_the_choice_waits_and_then_holds() -> None:
    """SPEC DB-4."""
    async with a_process(ScriptedAgent(), AT_ONCE) as gateway:
        gateway.store.broken = {"choose_mode"}
        await gateway.say("/queue collect")
        await asyncio.sleep(10)
        assert gateway.channel.texts() == []
        gateway.store.broken = set()
        await gateway.channel.until_sent(1)
        assert await collects(gateway)


async def test_a_process_that_has_expired_forgets_what_it_knew() -> None:
    """SPEC NODE-1."""
    async with a_process(ScriptedAgent(), AT_ONCE) as gateway:
        await gateway.ask("/queue collect")
        gateway.gateway.forget_everything(gateway.node())
        assert gateway.gateway._policies.chosen(session_of()) is None
        assert (await gateway.ask("/queue")).startswith("Mode: collect (chosen")


async def approved(gateway: GatewayProcess, chat: str, *, guest: bool) -> None:
    code = code_in(await gateway.ask("hello", chat))
    await gateway.control.people.approve(code, guest=guest)
    await until(lambda: gateway.channel.texts(chat)[-1] == "re: hello")


async def test_only_an_owner_may_choose_but_a_guest_may_look() -> None:
    """SPEC CMD-5, CHAN-5: whoever the operator has let in, not as a guest."""
    async with with_strangers() as gateway:
        await approved(gateway, "ann", guest=False)
        await approved(gateway, "bob", guest=True)
        people = await gateway.store.people()
        assert {person.standing for person in people} == {Standing.OWNER, Standing.GUEST}
        assert await gateway.ask("/queue steer", "bob") == OWNERS_ONLY
        assert (await gateway.ask("/queue", "bob")).startswith("Mode: queue (from the settings)")
        assert (await gateway.ask("/queue steer", "ann")).startswith("Queue mode: steer")
        is_owner = gateway.access_control.is_owner
        for sender, rules, owner in (
            ("ann", AccessRules(), True),
            ("bob", AccessRules(), False),
            ("cid", AccessRules(), False),
            ("cid", AccessRules(allow=frozenset({"cid"})), True),
            ("cid", AccessRules(trusted=True), True),
            ("cid", AccessRules(direct=DirectPolicy.OPEN), False),
        ):
            assert is_owner(ANN, sender, rules) is owner
        assert not is_owner(replace(ANN, channel="web"), "ann", AccessRules())


async def test_in_an_open_chat_a_stranger_may_not_choose() -> None:
    """SPEC CMD-5: whoever may talk is no owner by that."""
    ways = Ways(access=DirectPolicy.OPEN)
    async with a_process(ways=ways, channels=(RecordingChannel(trusted=False),)) as gateway:
        assert await gateway.ask("/queue steer") == OWNERS_ONLY


async def test_before_the_people_are_known_nobody_is_an_owner() -> None:
    """SPEC CHAN-5: a policy store failure denies."""
    access_control = AccessControl(MemoryStore(), LoopClock())
    assert not access_control.is_owner(ANN, "ann", AccessRules())
