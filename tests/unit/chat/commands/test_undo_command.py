"""``/undo``: the last turn leaves the conversation (SPEC CMD-7)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from goclaw_py.chat.commands.retry import NOT_STORED
from goclaw_py.chat.commands.undo import (
    NOTHING_TO_UNDO,
    UNDO_BUSY,
    UNDO_LATE,
    UNDO_REFUSED,
    UNDO_SUMMARIZED,
)
from goclaw_py.chat.outbound import texts
from goclaw_py.core.errors import AgentError
from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import Attachment, FileKind, InboundMessage, PeerKind
from goclaw_py.core.run_events import NOT_MADE, Compacted, ToolEnded, ToolStarted
from goclaw_py.core.session_keys import GroupPolicy, StopPolicy
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.testing.agents import Block, Emitting, Fail, Say, ScriptedAgent
from goclaw_py.testing.channel import RecordingChannel
from tests.support.harness import GatewayProcess, Ways, a_process, message, until
from tests.unit.chat.access.test_pairing import code_in

AT_ONCE = Ways(direct=QueuePolicy(), group=QueuePolicy(), groups=GroupPolicy.OPEN)
TEAM = "-100"


def undone(prompt: str) -> str:
    return f"I removed the last turn from this conversation: “{prompt}”."


async def prompts_read(gateway: GatewayProcess) -> list[str]:
    """What the agent reads of the conversation in its next run."""
    await gateway.ask("now?")
    return [entry.text for entry in gateway.scripted.requests[-1].history]


async def test_each_undo_takes_one_more_turn_until_there_is_none() -> None:
    async with a_process(ways=AT_ONCE) as gateway:
        assert await gateway.ask("/undo") == NOTHING_TO_UNDO
        for text in ("one", "two", "three"):
            await gateway.ask(text)
        assert await gateway.ask("/undo") == undone("three")
        assert await gateway.ask("/undo") == undone("two")
        assert await prompts_read(gateway) == ["one", "re: one"]
        for text in ("now?", "one"):
            assert await gateway.ask("/undo") == undone(text)
        assert await gateway.ask("/undo") == NOTHING_TO_UNDO
        assert await gateway.texts_in_history() == []


async def test_two_in_one_batch_undo_two_turns() -> None:
    async with a_process(ways=AT_ONCE) as gateway:
        for text in ("one", "two"):
            await gateway.ask(text)
        await gateway.gateway.accept([message("/undo"), message("/undo")])
        await until(lambda: len(gateway.channel.texts("ann")) == 4)
        assert gateway.channel.texts("ann")[2:] == [undone("two"), undone("one")]


async def test_it_does_not_go_beyond_a_new_conversation() -> None:
    async with a_process(ways=AT_ONCE) as gateway:
        await gateway.ask("one")
        await gateway.ask("/new")
        assert await gateway.ask("/undo") == NOTHING_TO_UNDO
        await gateway.ask("two")
        assert await gateway.ask("/undo") == undone("two")


async def test_it_does_not_go_into_a_summary() -> None:
    summed = Emitting((Compacted(2, "in short"),), Say("two!"))
    async with a_process(ScriptedAgent(Say("one!"), summed), AT_ONCE) as gateway:
        await gateway.ask("one")
        await gateway.ask("two")
        assert await gateway.ask("/undo") == undone("two")
        assert await gateway.ask("/undo") == UNDO_SUMMARIZED


async def test_what_tools_did_is_listed_and_stays() -> None:
    calls = (
        ToolStarted("1", "pay", '{"to":\n"ann"}', side_effects=True),
        ToolEnded("1", "pay", ok=True, result="paid"),
        ToolStarted("2", "look", "{}", side_effects=False),
        ToolEnded("2", "look", ok=True, result="seen"),
        ToolStarted("3", "book", "{}", side_effects=True),
        ToolEnded("3", "book", ok=False, result="full"),
        ToolStarted("4", "wipe", "{}", side_effects=True),
        ToolEnded("4", "wipe", ok=False, result=f"{NOT_MADE}a person has denied it."),
        ToolStarted("5", "mail", "{}", side_effects=True),
    )
    async with a_process(ScriptedAgent(Emitting(calls, Say("done"))), AT_ONCE) as gateway:
        await gateway.ask("one")
        assert (await gateway.ask("/undo")).splitlines() == [
            undone("one"),
            "What its tools did is not undone:",
            "- pay (to: ann): done",
            "- book: failed",
            "- mail: outcome unknown: it may have taken effect",
        ]


async def test_a_failed_turn_can_be_undone() -> None:
    agent = ScriptedAgent(Say("one!"), Fail(AgentError("It does not work.", "broken")))
    async with a_process(agent, AT_ONCE) as gateway:
        await gateway.ask("one")
        await gateway.ask("two")
        assert await gateway.ask("/undo") == undone("two")
        assert await gateway.texts_in_history() == ["one", "one!"]


async def test_a_turn_that_is_named_is_undone_while_it_is_the_last() -> None:
    async with a_process(ways=AT_ONCE) as gateway:
        for text in ("one", "two"):
            await gateway.ask(text)
        first, second = (request.run_id for request in gateway.scripted.requests)
        assert await gateway.ask(f"/undo {first}") == UNDO_LATE
        assert await gateway.ask(f"/undo {second}") == undone("two")
        assert await gateway.ask(f"/undo {second}") == UNDO_LATE
        assert await gateway.ask(f"/undo {first}") == undone("one")


BURST = Ways(direct=QueuePolicy(debounce_s=0.8))


async def a_turn_of_three(gateway: GatewayProcess) -> tuple[RunId, list[InboundMessage]]:
    """Three messages of a person in one turn, the last one with a picture, behind another turn."""
    await gateway.ask("before")
    picture = Attachment(FileKind.PHOTO, "ref-1", "cat.png")
    messages = [message("order 4711"), message("thanks"), message("how many?")]
    messages[2] = replace(messages[2], attachments=(picture,))
    await gateway.gateway.accept(messages)
    await until(lambda: len(gateway.scripted.requests) == 2 and gateway.pending == [])
    return gateway.scripted.requests[-1].run_id, messages


async def asked_again(gateway: GatewayProcess, command: InboundMessage) -> tuple[list[str], int]:
    """The texts that the agent gets for a command, and how many messages the chat has got."""
    known = len(gateway.scripted.requests)
    await gateway.gateway.accept([command])
    await until(lambda: len(gateway.scripted.requests) > known and gateway.pending == [])
    (asked,) = gateway.scripted.requests[known:]
    assert [entry.text for entry in asked.history] == ["before", "re: before"]
    return asked.prompt.split("\n"), len(gateway.channel.texts("ann"))


async def test_a_turn_of_several_messages_is_answered_again_with_all_of_them() -> None:
    """Found by use: Retry in the web chat sent only the last one again, and lost the others."""
    channel = RecordingChannel(files={"ref-1": b"png"})
    async with a_process(ways=BURST, channels=(channel,)) as gateway:
        run, _ = await a_turn_of_three(gateway)
        first = gateway.scripted.requests[-1]
        again = message(f"/undo {run} again")
        texts_read, said = await asked_again(gateway, again)
        assert texts_read == first.prompt.split("\n")
        assert {"order 4711", "thanks", "how many?"} <= set(texts_read)
        assert gateway.scripted.requests[-1].parts == first.parts, "also its file, as it was"
        assert said == 3, "three answers, and nothing about the undone turn"


@pytest.mark.parametrize("edited", [0, 1, 2])
async def test_an_edited_message_leaves_the_others_of_its_turn_as_they_are(edited: int) -> None:
    channel = RecordingChannel(files={"ref-1": b"png"})
    async with a_process(ways=BURST, channels=(channel,)) as gateway:
        run, messages = await a_turn_of_three(gateway)
        before = gateway.scripted.requests[-1].prompt.split("\n")
        own = messages[edited].external_id.rpartition(":")[2]
        read, said = await asked_again(gateway, message(f"/undo {run} edit {own}\nin  two\nlines"))
        at = before.index(messages[edited].text)
        assert read == [*before[:at], "in  two", "lines", *before[at + 1 :]]
        assert said == 3


async def test_the_words_of_a_whole_turn_are_edited_and_its_files_stay() -> None:
    channel = RecordingChannel(files={"ref-1": b"png"})
    async with a_process(ways=BURST, channels=(channel,)) as gateway:
        run, _ = await a_turn_of_three(gateway)
        file = gateway.scripted.requests[-1].prompt.split("\n")[-1]
        read, _ = await asked_again(gateway, message(f"/undo {run} edit\nall of it"))
        assert [line for line in read if line] == ["all of it", file]


async def test_what_cannot_be_answered_again_is_not_undone() -> None:
    async with a_process(ways=AT_ONCE) as gateway:
        await gateway.ask("one")
        run = gateway.scripted.requests[-1].run_id
        assert await gateway.ask(f"/undo {run} edit 4711\nother") == NOT_STORED
        assert await gateway.texts_in_history() == ["one", "re: one"]


async def test_a_member_edits_no_message_of_another_one() -> None:
    async with a_process(ways=replace(AT_ONCE, stop=StopPolicy.ANYONE)) as gateway:
        await gateway.gateway.accept([said("one", "ann")])
        await until(lambda: len(gateway.channel.texts(TEAM)) == 1)
        run = gateway.scripted.requests[-1].run_id
        await gateway.gateway.accept([said(f"/undo {run} edit\nother", "bob")])
        await until(lambda: len(gateway.channel.texts(TEAM)) == 2)
        assert gateway.channel.texts(TEAM)[-1] == NOT_STORED


async def test_while_something_runs_or_waits_nothing_is_undone() -> None:
    async with a_process(ScriptedAgent(Say("one!"), Block()), AT_ONCE) as gateway:
        await gateway.ask("one")
        await gateway.say("two")
        await gateway.scripted.until_active(1)
        assert await gateway.ask("/undo") == UNDO_BUSY
        gateway.scripted.release()
        await until(lambda: gateway.pending == [])
        assert await gateway.texts_in_history() == ["one", "one!", "two", "released"]


async def test_while_a_message_waits_for_a_provider_nothing_is_undone() -> None:
    down = AgentError("The model does not answer.", "503", retryable=True)
    async with a_process(ScriptedAgent(Say("one!"), Fail(down)), AT_ONCE) as gateway:
        await gateway.ask("one")
        assert await gateway.ask("two") == texts.KEPT
        assert await gateway.ask("/undo") == UNDO_BUSY


async def test_a_lost_answer_of_the_database_undoes_nothing_more() -> None:
    """The database has stored it, and the process does not know."""
    async with a_process(ways=AT_ONCE) as gateway:
        for text in ("one", "two"):
            await gateway.ask(text)
        gateway.store.lose_answer["undo_turn"] = 1
        assert await gateway.ask("/undo") == undone("two")
        await until(lambda: gateway.pending == [])
        assert await gateway.texts_in_history() == ["one", "re: one"]
        assert await gateway.ask("/undo") == undone("one")


def said(text: str, sender: str) -> InboundMessage:
    return message(text, chat=TEAM, sender=sender, peer=PeerKind.GROUP)


@pytest.mark.parametrize(
    ("sender", "stop", "may"),
    [
        ("bob", StopPolicy.OWN, False),
        ("ann", StopPolicy.OWN, False),
        ("ada", StopPolicy.OWN, True),
        ("olga", StopPolicy.OWN, True),
        ("bob", StopPolicy.ANYONE, True),
    ],
    ids=["member", "who asked", "admin", "owner", "anyone"],
)
async def test_in_a_group_owners_and_admins_undo(
    sender: str, stop: StopPolicy, *, may: bool
) -> None:
    channel = RecordingChannel(trusted=False, admins={TEAM: frozenset({"ada"})})
    ways = replace(AT_ONCE, stop=stop)
    async with a_process(ways=ways, channels=(channel,)) as gateway:
        code = code_in(await gateway.ask("hello", chat="olga"))
        await gateway.control.people.approve(code, guest=False)
        await gateway.gateway.accept([said("one", "ann")])
        await until(lambda: len(channel.texts(TEAM)) == 1)
        await gateway.gateway.accept([said("/undo", sender)])
        await until(lambda: len(channel.texts(TEAM)) == 2)
        answer = channel.texts(TEAM)[-1]
        assert answer.startswith("I removed the last turn") if may else answer == UNDO_REFUSED
