"""Messages that people edit (SPEC CHAN-6)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

import pytest

from goclaw_py.delivery import texts as wording
from goclaw_py.model.errors import StoreUnavailable
from goclaw_py.model.messages import Attachment, FileKind, InboundMessage
from goclaw_py.model.outcomes import Outcome
from goclaw_py.ports.agent import AgentResult, Emit, MessagePart, RunRequest
from goclaw_py.scheduler.models import Mode, QueuePolicy
from goclaw_py.store.memory import MemoryDatabase
from goclaw_py.testing.agents import Block, ScriptedAgent
from tests.support.harness import GatewayProcess, Ways, a_process, message, session_of, until

AT_ONCE = Ways(QueuePolicy())
BURSTS = Ways(QueuePolicy(debounce_s=0.8))


def edit(original: InboundMessage, text: str, **changes: object) -> InboundMessage:
    """A later version of a message."""
    later = message(text, chat=original.target.chat)
    later = replace(later, message_id=original.message_id, edits=original.external_id)
    return replace(later, **changes)  # type: ignore[arg-type]  # fields of the class


async def arrive(gateway: GatewayProcess, *messages: InboundMessage) -> None:
    """Each in a batch of its own."""
    for one in messages:
        await gateway.gateway.accept([one])


def noted(text: str) -> str:
    return f"[I have edited an earlier message; it now reads:]\n{text}"


async def test_an_edit_of_a_message_in_its_burst_changes_what_is_asked() -> None:
    async with a_process(ways=BURSTS) as gateway:
        one, two = message("helo"), message("world")
        await arrive(gateway, one, two, edit(one, "hello"))
        await gateway.channel.until_sent(1)
        await asyncio.sleep(30)
        assert gateway.scripted.prompts == ["hello\nworld"]
        assert gateway.pending == []
        assert await gateway.said_in_history() == ["hello\nworld", "re: hello\nworld"]


async def test_an_edit_of_a_message_that_waits_changes_what_is_asked() -> None:
    agent = ScriptedAgent(Block())
    async with a_process(agent, AT_ONCE) as gateway:
        waiting, photo = message("wats"), Attachment(FileKind.PHOTO, "ref")
        await gateway.say("works")
        await agent.until_active(1)
        gateway.channel.files["ref"] = b"x"
        last = edit(waiting, "waits longer", quote="a quote", attachments=(photo,))
        await arrive(gateway, waiting, edit(waiting, "waits"), last)
        agent.release()
        await gateway.channel.until_sent(2)
        assert agent.prompts[1].startswith("> a quote\n\nwaits longer\n[photo")
        assert await gateway.outcomes() == [Outcome.COMPLETED, Outcome.COMPLETED]


@pytest.mark.parametrize("again", [True, False])
async def test_an_edit_of_a_message_that_is_worked_on_is_noted(*, again: bool) -> None:
    """SPEC IO-1: once, also if it is offered again."""
    agent = ScriptedAgent(Block("done"))
    async with a_process(agent, AT_ONCE) as gateway:
        one = message("do this")
        await arrive(gateway, one)
        await agent.until_active(1)
        first, second = edit(one, "now this"), edit(one, "no, that")
        await arrive(gateway, first, first if again else second)
        agent.release()
        await gateway.channel.until_sent(1)
        await asyncio.sleep(30)
        assert agent.prompts == ["do this"]
        notes = [noted("now this")] if again else [noted("now this"), noted("no, that")]
        assert await gateway.said_in_history() == [*notes, "do this", "done"]
        assert gateway.pending == []


async def test_an_edit_of_an_answered_message_is_noted_and_read_by_the_next_run() -> None:
    async with a_process(ways=AT_ONCE) as gateway:
        one = message("one")
        await arrive(gateway, one)
        await gateway.channel.until_sent(1)
        await arrive(gateway, edit(one, "uno"))
        await asyncio.sleep(30)
        assert gateway.channel.texts() == ["re: one"]
        await gateway.ask("next")
        history = [entry.text for entry in gateway.scripted.requests[1].history]
        assert history == ["one", "re: one", noted("uno")]


async def test_an_edit_of_a_message_that_was_never_seen_is_a_message() -> None:
    """In a group: one that addresses the agent only since its edit."""
    async with a_process(ways=AT_ONCE) as gateway:
        await arrive(gateway, edit(message("never seen"), "@bot hello"))
        await gateway.channel.until_sent(1)
        # After an outage a message and its edit come at once.
        one = message("helo")
        await gateway.gateway.accept([one, edit(one, "hello")])
        await gateway.channel.until_sent(2)
        assert gateway.channel.texts() == ["re: @bot hello", "re: hello"]


async def test_an_edit_of_a_message_that_was_dropped_is_noted() -> None:
    agent = ScriptedAgent(Block())
    async with a_process(agent, Ways(QueuePolicy(capacity=1))) as gateway:
        await gateway.say("works")
        await agent.until_active(1)
        dropped = message("dropped")
        await arrive(gateway, dropped, message("waits"))
        await asyncio.sleep(5)
        await arrive(gateway, edit(dropped, "still dropped"))
        agent.release()
        await agent.until_started(2)
        assert agent.prompts == ["works", "waits"]
        assert noted("still dropped") in await gateway.said_in_history()


async def test_an_edit_of_a_stopped_message_starts_nothing() -> None:
    async with a_process(ways=BURSTS) as gateway:
        one = message("one")
        await arrive(gateway, one, message("/stop"), edit(one, "uno"))
        await asyncio.sleep(30)
        assert gateway.scripted.prompts == []
        assert gateway.channel.texts() == ["Dropped 1 waiting message."]


async def test_an_edit_of_a_command_and_one_into_a_command_execute_nothing() -> None:
    async with a_process(ways=BURSTS) as gateway:
        command, one = message("/help"), message("/shop")
        await arrive(gateway, command, edit(command, "/new"))
        await asyncio.sleep(30)
        assert gateway.channel.texts() == [wording.help_text()]
        assert gateway.scripted.prompts == []
        assert gateway.pending == []
        await arrive(gateway, one, edit(one, "/stop"))
        await gateway.channel.until_sent(2)
        assert gateway.scripted.prompts == ["/stop"]


@pytest.mark.parametrize("call", ["accept", "amend"])
async def test_an_edit_survives_a_lost_answer_of_the_database(call: str) -> None:
    """SPEC DB-4."""
    agent = ScriptedAgent(Block())
    async with a_process(agent, AT_ONCE) as gateway:
        await gateway.say("works")
        await agent.until_active(1)
        one = message("wats")
        await arrive(gateway, one)
        gateway.store.lose_answer[call] = 1
        with suppress(StoreUnavailable):  # the channel would offer it again
            await arrive(gateway, edit(one, "waits"))
        await asyncio.sleep(10)
        agent.release()
        await agent.until_started(2)
        assert agent.prompts == ["works", "waits"]


async def test_an_edited_message_runs_again_as_it_was_edited_after_a_crash() -> None:
    """SPEC IO-2."""
    database = MemoryDatabase()
    one, waiting = message("one"), message("wats")
    async with a_process(ScriptedAgent(Block()), AT_ONCE, database=database) as first:
        await arrive(first, one, waiting)
        await first.scripted.until_active(1)
        await arrive(first, edit(waiting, "waits"))
        first.kill()
    await asyncio.sleep(20)
    async with a_process(ways=AT_ONCE, database=database) as second:
        await arrive(second, edit(waiting, "waits, too"))
        await second.channel.until_sent(2)
        assert second.scripted.prompts[0] == "one"
        assert second.scripted.prompts[1] in ("waits", "waits, too")
        assert second.pending == []


class Taking:
    """Takes in what waits as soon as there is something, then waits to be told."""

    def __init__(self) -> None:
        self.taken: list[MessagePart] = []
        self.finish = asyncio.Event()

    async def run(self, request: RunRequest, emit: Emit) -> AgentResult:
        while not self.taken:
            await asyncio.sleep(0.1)
            self.taken += request.take_messages()
        await self.finish.wait()
        return AgentResult("done")

    async def warm_up(self) -> None: ...

    async def close(self) -> None: ...


async def test_an_edit_of_a_message_that_a_run_has_taken_in_is_noted() -> None:
    """SPEC QUEUE-4: for the database it waits, but the agent has read it."""
    agent = Taking()
    async with a_process(agent, Ways(QueuePolicy(mode=Mode.STEER))) as gateway:
        two = message("two")
        await arrive(gateway, message("one"), two)
        await until(lambda: bool(agent.taken))
        await arrive(gateway, edit(two, "due"))
        agent.finish.set()
        await gateway.channel.until_sent(1)
        assert await gateway.said_in_history() == [noted("due"), "one\ntwo", "done"]
        assert gateway.pending == []
        session = await gateway.store.session(session_of())
        assert session is not None
        assert session.waiting == 0
