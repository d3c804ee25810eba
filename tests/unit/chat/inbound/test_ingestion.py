"""Messages that people edit, and context from a group without a mention (SPEC CHAN-6, CHAN-12)."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import replace
from datetime import timedelta

import pytest

from goclaw_py.chat.commands.registry import help_text
from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.messages import Attachment, FileKind, InboundMessage, PeerKind
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.session_keys import GroupPolicy
from goclaw_py.runs import speakers
from goclaw_py.runs.agent_loop import AgentResult, Emit, MessagePart, RunRequest, TextPart
from goclaw_py.scheduler.models import Mode, QueuePolicy
from goclaw_py.testing.agents import Block, Return, ScriptedAgent
from goclaw_py.testing.channel import RecordingChannel
from goclaw_py.testing.clock import START
from tests.support.harness import (
    GatewayProcess,
    Ways,
    a_process,
    message,
    session_of,
    until,
    working,
)
from tests.support.memory_store import MemoryDatabase

AT_ONCE = Ways(QueuePolicy())
BURSTS = Ways(QueuePolicy(debounce_s=0.8))


def edit(original: InboundMessage, text: str, **changes: object) -> InboundMessage:
    """A later version of a message."""
    later = message(text, chat=original.target.chat)
    later = replace(
        later,
        external_id=f"{original.external_id}:{later.message_id}",
        message_id=original.message_id,
        edits=original.external_id,
    )
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
        assert await gateway.texts_in_history() == ["hello\nworld", "re: hello\nworld"]


async def test_the_agent_reads_the_formatting_and_people_their_words() -> None:
    """SPEC CHAN-6: now, later in the history, and of an edit."""
    async with a_process(ways=AT_ONCE) as gateway:
        asked = replace(message("Read this"), formatted="Read [this](https://example.com)")
        await gateway.gateway.accept([asked])
        await gateway.channel.until_sent(1)
        await arrive(gateway, edit(asked, "Read it", formatted="Read [it](https://example.org)"))
        assert gateway.scripted.prompts == ["Read [this](https://example.com)"]
        told = ["Read [this](https://example.com)", noted("Read [it](https://example.org)")]
        assert [text for text in await gateway.texts_in_history() if "Read" in text][::2] == told
        cut = [replace(message("a"), cut=True, formatted="**a**"), message("b")]
        await gateway.gateway.accept(cut)
        await gateway.channel.until_sent(2)
        assert gateway.scripted.prompts[1] == "**a**b"


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
        assert await gateway.texts_in_history() == [*notes, "do this", "done"]
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


@pytest.mark.parametrize("times", [1, 3])
async def test_an_edit_that_changes_nothing_changes_nothing(times: int) -> None:
    """SPEC CHAN-6: Telegram sends some; of what is answered, works, was edited or is a command."""
    agent = ScriptedAgent(*[Return(AgentResult(text)) for text in "abc"], Block("d"))
    photo = Attachment(FileKind.PHOTO, "ref", size=5)
    async with a_process(agent, AT_ONCE) as gateway:
        gateway.channel.files["ref"] = b"x"
        one, command, two = message("one"), message("/help"), replace(message("2"), formatted="*2*")
        shown, unseen = replace(message("look"), attachments=(photo,)), message("x")
        await arrive(gateway, one, edit(one, "uno"))
        for said in (command, two):
            await arrive(gateway, said)
        await arrive(gateway, edit(unseen, "@bot hello"), shown)
        await agent.until_active(1)
        before = await gateway.texts_in_history()
        again = replace(photo, ref="another reference")
        for _ in range(times):
            await arrive(
                gateway,
                edit(one, "uno"),
                edit(command, "/help"),
                edit(two, "2", formatted="*2*"),
                edit(unseen, "@bot hello"),
                edit(shown, "look", attachments=(again,)),
            )
        await asyncio.sleep(30)
        assert await gateway.texts_in_history() == before
        assert len(agent.requests) == 4
        await arrive(gateway, edit(two, "2"), edit(shown, "look", attachments=()))
        notes = [text for text in await gateway.texts_in_history() if text not in before]
        assert notes == [noted("2"), noted("look")], "the formatting and the file are gone"
        agent.release()


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
    async with working("works", agent=agent, ways=Ways(QueuePolicy(capacity=1))) as gateway:
        dropped = message("dropped")
        await arrive(gateway, dropped, message("waits"))
        await asyncio.sleep(5)
        await arrive(gateway, edit(dropped, "still dropped"))
        agent.release()
        await agent.until_started(2)
        assert agent.prompts == ["works", "waits"]
        assert noted("still dropped") in await gateway.texts_in_history()


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
        assert gateway.channel.texts() == [help_text(owner=True)]
        assert gateway.scripted.prompts == []
        assert gateway.pending == []
        await arrive(gateway, one, edit(one, "/stop"))
        await gateway.channel.until_sent(2)
        assert gateway.scripted.prompts == ["/stop"]


@pytest.mark.parametrize("call", ["accept", "amend"])
async def test_an_edit_survives_a_lost_answer_of_the_database(call: str) -> None:
    """SPEC DB-4."""
    agent = ScriptedAgent(Block())
    async with working("works", agent=agent) as gateway:
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
        assert await gateway.texts_in_history() == [noted("due"), "one\ntwo", "done"]
        assert gateway.pending == []
        session = await gateway.store.session(session_of())
        assert session is not None
        assert session.waiting == 0


WAYS = Ways(group=QueuePolicy(concurrency=3), groups=GroupPolicy.OPEN)
GROUP = "-100"
SESSION = session_of(GROUP, peer=PeerKind.GROUP)
PHOTO = Attachment(FileKind.PHOTO, "ref")


def said(
    text: str, *, asks: bool = False, who: str = "bob", thread: str | None = None, at_s: float = 0
) -> InboundMessage:
    spoken = message(text, chat=GROUP, sender=who, thread=thread, peer=PeerKind.GROUP)
    return replace(spoken, addressed=asks, sent_at=START + timedelta(seconds=at_s))


def asked(
    text: str, *, who: str = "ann", thread: str | None = None, at_s: float = 9
) -> InboundMessage:
    return said(text, asks=True, who=who, thread=thread, at_s=at_s)


def a_group(
    agent: ScriptedAgent | None = None, ways: Ways = WAYS, database: MemoryDatabase | None = None
) -> AbstractAsyncContextManager[GatewayProcess]:
    channel = RecordingChannel(trusted=False)
    return a_process(agent, ways, channels=(channel,), database=database)


async def hears(gateway: GatewayProcess, *messages: InboundMessage) -> list[str]:
    """Let each arrive in a batch of its own and tell what the agent was asked by then."""
    for one in messages:
        await gateway.gateway.accept([one])
    await asyncio.sleep(5)
    return gateway.scripted.prompts


def before(*lines: str) -> str:
    """What the agent is told of lines such as ``bob: text``, and of what Ann asks then."""
    *context, last = lines
    spoken = [line.partition(": ") for line in context]
    entries = [f"2026-01-02 03:04 {who.title()} (id {who}): {text}" for who, _, text in spoken]
    head = speakers.background([said("x")] * len(entries), limit_chars=10_000).splitlines()
    return "\n".join([head[0], *entries, head[-1], f"Ann (id ann): {last}"])


async def test_what_was_said_before_a_mention_is_told_with_it_once_and_remembered() -> None:
    async with a_group() as gateway:
        photo = replace(said("", who="cid"), attachments=(PHOTO,))
        prompts = await hears(gateway, said("where?"), photo, said("Ann: here"), asked("which?"))
        told = before("bob: where?", "cid: [photo]", "bob: Ann: here", "which?")
        assert prompts == [told]
        (request,) = gateway.scripted.requests
        assert request.own_texts == "which?"
        assert request.parts[-1] == TextPart("Ann (id ann): which?")
        assert request.system == (speakers.GUIDE,)
        entries = await gateway.store.history(SESSION)
        assert entries[0].entry.text == told
        assert (await hears(gateway, said("so"), asked("and?")))[1:] == [before("bob: so", "and?")]
        assert (await hears(gateway, asked("then?")))[2:] == ["Ann (id ann): then?"]


async def test_chatter_costs_one_insert_a_batch_and_starts_nothing() -> None:
    async with a_group() as gateway:
        await gateway.gateway.accept([said("noted"), asked("x")])
        await asyncio.sleep(5)
        known = gateway.store.calls.copy()
        await gateway.gateway.accept([said(f"{number}") for number in range(30)])
        assert gateway.store.calls - known == {"note_unmentioned": 1}
        noted = await gateway.control.sessions.queue(SESSION)
        assert noted.unmentioned_at is not None, "the operator sees why nothing runs"
        await asyncio.sleep(60)
        assert len(gateway.scripted.requests) == 1
        assert gateway.pending == []


@pytest.mark.parametrize("ways", [replace(WAYS, context_messages=0), replace(WAYS, mention=False)])
async def test_nothing_is_kept_where_it_is_off_or_everything_is_answered(ways: Ways) -> None:
    async with a_group(ways=ways) as gateway:
        prompts = await hears(gateway, said("among us"), asked("you"))
        assert prompts[-1] == "Ann (id ann): you"
        assert gateway.database.unmentioned == {}


async def test_nothing_is_kept_of_groups_and_people_that_are_not_allowed() -> None:
    ways = replace(WAYS, groups=GroupPolicy.ALLOWLIST)
    async with a_group(ways=ways) as gateway:
        await hears(gateway, said("unknown group"))
        now = gateway.clock.now()
        await gateway.store.allow_chat("telegram", "default", GROUP, allowed=True, now=now)
        await gateway.store.allow_chat("telegram", "default", "eve", allowed=False, now=now)
        await gateway.access_control.refresh()
        prompts = await hears(gateway, said("a", who="eve"), said("b"), asked("you"))
        assert prompts == [before("bob: b", "you")]
        await gateway.store.allow_chat("telegram", "default", GROUP, allowed=False, now=now)
        await gateway.access_control.refresh()
        await hears(gateway, said("denied group"))
        assert len(gateway.database.unmentioned) == 1


async def test_only_the_last_ones_that_have_room_are_told() -> None:
    small = replace(WAYS, context_messages=3, group=QueuePolicy(turn_chars=80))
    async with a_group(ways=small) as gateway:
        chatter = [said(f"{number}") for number in range(9)]
        await gateway.gateway.accept(chatter)
        prompts = await hears(gateway, asked("you"))
        assert prompts == [before("bob: 7", "bob: 8", "you")]
        await gateway.gateway.accept([said("a"), said("b" * 100), asked("more")])
        await asyncio.sleep(5)
        assert gateway.scripted.prompts[1:] == ["Ann (id ann): more"]


async def test_each_topic_has_its_own_and_a_fresh_conversation_none() -> None:
    """SPEC CHAN-6, CMD-5."""
    async with a_group() as gateway:
        batch = said("here", thread="7"), said("elsewhere"), asked("you", thread="7")
        assert await hears(gateway, *batch) == [before("bob: here", "you")]
        prompts = await hears(gateway, asked("/new"), said("b"), asked("you"))
        assert prompts[1:] == [before("bob: b", "you")]


async def test_what_comes_behind_a_mention_is_for_the_next_one() -> None:
    agent = ScriptedAgent(Block())
    async with a_group(agent, replace(WAYS, group=QueuePolicy(debounce_s=0.8))) as gateway:
        first, one = said("a", at_s=1), asked("1", at_s=2)
        second, two = said("b", at_s=3), asked("2", at_s=4, who="cid")
        await gateway.gateway.accept([first, one, second, two])
        await agent.until_started(1)
        agent.release()
        await agent.until_started(2)
        told = [speakers.background([context], limit_chars=1000) for context in (first, second)]
        assert agent.prompts == [f"{told[0]}\nAnn (id ann): 1", f"{told[1]}\nCid (id cid): 2"]


async def test_a_run_that_a_crash_interrupted_gets_the_same_again() -> None:
    """SPEC IO-2: also where the message was said before the crash, and by another process."""
    agent = ScriptedAgent(Block())
    async with a_group(agent) as first:
        await first.gateway.accept([said("a"), asked("you")])
        await agent.until_active(1)
        await first.gateway.accept([said("b")])
        first.kill()
        await first.bury()
    async with a_group(database=first.database) as second:
        await second.channel.until_sent(1)
        assert second.scripted.prompts == [before("bob: a", "bob: b", "you")]


async def test_a_database_that_is_away_loses_nothing() -> None:
    """SPEC DB-4: the batch is not confirmed, and comes again."""
    async with a_group() as gateway:
        batch = [said("a"), asked("you")]
        gateway.store.broken = {"note_unmentioned"}
        with pytest.raises(StoreUnavailable):
            await gateway.gateway.accept(batch)
        gateway.store.broken = {"claim_unmentioned"}
        await gateway.gateway.accept(batch)
        await asyncio.sleep(3)
        gateway.store.broken = set()
        await gateway.channel.until_sent(1)
        assert gateway.scripted.prompts == [before("bob: a", "you")]


async def test_an_edit_changes_what_is_told() -> None:
    async with a_group() as gateway:
        one, two = said("helo"), said("lunch?")
        edits = [
            replace(said("hi"), formatted="hello", external_id="edit 1", edits=one.external_id),
            replace(asked("lunch, @bot?"), external_id="edit 2", edits=two.external_id),
        ]
        prompts = await hears(gateway, one, two, *edits)
        assert prompts == [before("bob: hello", "lunch, @bot?")], "it is no context of itself"


async def test_the_chat_of_a_direct_message_is_never_told_of() -> None:
    async with a_process(ways=WAYS) as gateway:
        await gateway.ask("hello")
        assert gateway.scripted.requests[0].system == ()
        assert gateway.store.calls["claim_unmentioned"] == 0
