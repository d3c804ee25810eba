"""What a ``/stop`` reaches: in a batch, as a reply, a caption or a button (SPEC CMD-1, CMD-2)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from goclaw_py.chat.commands.registry import help_text
from goclaw_py.chat.outbound import texts as wording
from goclaw_py.core.chat_commands import stop_data
from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import Attachment, FileKind, InboundMessage, PeerKind
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.run_events import RunEnded, RunStarted, RunWaits, TextDelta
from goclaw_py.scheduler.models import Drop, Mode, QueuePolicy
from goclaw_py.testing.agents import Block, Emitting, Fail, Say, ScriptedAgent
from tests.support.drafting import DraftingChannel
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

AT_ONCE = Ways(direct=QueuePolicy())


def blocking() -> ScriptedAgent:
    """An agent whose runs go on for ever."""
    return ScriptedAgent(otherwise=lambda _: Block())


async def said(gateway: GatewayProcess, texts: str, *, together: bool, again: bool = False) -> None:
    """Words said in one batch or each in its own; a channel has cut those that end in ``+``."""
    batch = [message(one, cut=one.endswith("+"), redelivered=again) for one in texts.split()]
    for part in [batch] if together else [[one] for one in batch]:
        await gateway.gateway.accept(part)
    await asyncio.sleep(60)


@pytest.mark.parametrize(
    ("texts", "dropped", "left"),
    [
        ("before /stop after", "Dropped 1 waiting message.", ["after"]),
        ("one two three /stop", "Dropped 3 waiting messages.", []),
        ("a+ b+ c /stop", "Dropped 1 waiting message.", []),
        ("a+ /stop", "Dropped 1 waiting message.", []),
    ],
    ids=["what came before", "a whole burst", "a text that was cut", "the beginning of one"],
)
@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("redelivered", [True, False])
async def test_stop_covers_the_burst_that_came_before_it_and_counts_its_messages(
    texts: str, dropped: str, left: list[str], *, together: bool, redelivered: bool
) -> None:
    """SPEC CMD-1, QUEUE-6: a burst is one turn, but people count messages."""
    async with a_process() as gateway:
        await said(gateway, texts, together=together, again=redelivered)
        assert gateway.scripted.prompts == left
        assert gateway.channel.texts() == [dropped, *(f"re: {text}" for text in left)]
        assert gateway.pending == []


@pytest.mark.parametrize(
    ("texts", "dropped", "left"),
    [
        ("one two three /stop", "Dropped 1 waiting message.", ["two", "three"]),
        ("a+ b+ c other /stop", "Dropped 1 waiting message.", ["other"]),
        ("one two /stopall three", "Dropped 2 waiting messages.", ["three"]),
    ],
)
async def test_stop_covers_the_oldest_and_stopall_each_message(
    texts: str, dropped: str, left: list[str]
) -> None:
    """SPEC CMD-1, QUEUE-8."""
    async with a_process(ways=AT_ONCE) as gateway:
        await said(gateway, texts, together=True)
        assert gateway.scripted.prompts == left
        assert dropped in gateway.channel.texts()


async def test_stop_takes_the_run_and_leaves_what_waits_in_its_batch_and_other_chats() -> None:
    """SPEC QUEUE-8."""
    agent = ScriptedAgent(Block())
    async with working(agent=agent) as gateway:
        batch = [message("hi", chat="bob"), message("next"), message("/stop")]
        await gateway.gateway.accept(batch)
        await gateway.channel.until_sent(3)
        assert gateway.channel.texts("ann") == ["Stopped.", "re: next"]
        assert gateway.channel.texts("bob") == ["re: hi"]


async def test_stop_covers_a_message_that_is_being_committed() -> None:
    async with a_process() as gateway:
        gateway.store.slow_before_s["accept"] = 5.0
        accepting = asyncio.create_task(gateway.say("work"))
        await asyncio.sleep(1)
        await gateway.say("/stop")
        await accepting
        await asyncio.sleep(60)
        assert (gateway.scripted.prompts, gateway.pending) == ([], [])
        assert gateway.channel.texts() == ["Dropped 1 waiting message."]


async def test_stop_still_covers_a_message_whose_commit_failed_and_is_repeated() -> None:
    """SPEC DB-4."""
    async with a_process() as gateway:
        batch = [message("work"), message("/stop")]
        gateway.store.away = True
        with pytest.raises(StoreUnavailable):
            await gateway.gateway.accept(batch)
        gateway.store.away = False
        await gateway.gateway.accept([*batch, message("after")])
        await asyncio.sleep(60)
        assert gateway.scripted.prompts == ["after"]


async def test_stop_covers_a_message_whose_commit_lost_its_answer() -> None:
    """SPEC DB-4: it is in the database, but nobody here knows that yet."""
    async with a_process() as gateway:
        work = message("work")
        gateway.store.broken = {"claim_pending"}
        gateway.store.lose_answer["accept"] = 1
        with pytest.raises(StoreUnavailable):
            await gateway.gateway.accept([work])
        await gateway.gateway.accept([work, message("/stop")])
        gateway.store.broken = set()
        await asyncio.sleep(60)
        assert (gateway.scripted.prompts, gateway.pending) == ([], [])


async def test_a_covered_message_does_not_hold_up_the_channel_while_the_database_is_away() -> None:
    """The next stop must get in."""
    async with a_process() as gateway:
        gateway.store.slow_before_s["accept"] = 5.0
        accepting = asyncio.create_task(gateway.say("work"))
        await asyncio.sleep(1)
        gateway.store.broken = {"settle"}
        stopping = asyncio.create_task(gateway.say("/stop"))
        await asyncio.wait_for(accepting, 4.5)
        assert gateway.pending == ["work"]
        await stopping
        assert gateway.pending == []  # its commit did it
        gateway.store.broken = set()
        await asyncio.sleep(60)
        assert gateway.scripted.prompts == []


async def test_a_message_that_is_already_worked_on_is_not_counted_as_dropped() -> None:
    async with a_process(ways=AT_ONCE) as gateway:
        gateway.store.slow_before_s["settle"] = 5.0
        accepting = asyncio.create_task(gateway.gateway.accept([message("hi"), message("/help")]))
        await gateway.channel.until_sent(1)
        assert not accepting.done()
        await gateway.say("/stop")
        await asyncio.sleep(60)
        assert gateway.channel.texts() == ["re: hi", wording.NOTHING_RUNNING, help_text(owner=True)]
        await accepting


@pytest.mark.parametrize("command", ["/stop", "/stopall"])
async def test_a_message_that_comes_again_while_it_is_answered_stays_so(command: str) -> None:
    async with a_process(ways=AT_ONCE) as gateway:
        asked = message("hi")
        gateway.store.slow_before_s["finish_run"] = 5.0
        await gateway.gateway.accept([asked])
        await until(lambda: len(gateway.scripted.finished) == 1)
        gateway.store.slow_before_s["accept"] = 1.0
        accepting = asyncio.create_task(gateway.gateway.accept([asked]))
        await asyncio.sleep(0.5)
        await gateway.say(command)
        await accepting
        await asyncio.sleep(60)
        assert sorted(gateway.channel.texts()) == sorted(["re: hi", wording.NOTHING_RUNNING])
        assert await gateway.store.unanswered(session_of(), ended=True) == []


async def test_a_redelivered_stop_acts_only_after_its_commit() -> None:
    """Another process may have acted on it."""
    agent = blocking()
    async with working(agent=agent) as gateway:
        gateway.store.slow_before_s["accept"] = 5.0
        stop = message("/stop", redelivered=True)
        stopping = asyncio.create_task(gateway.gateway.accept([stop]))
        await asyncio.sleep(4.9)
        assert len(agent.active) == 1
        await stopping
        await agent.until_active(0)
        await asyncio.sleep(1)
        assert gateway.channel.texts() == ["Stopped."]
        assert gateway.pending == []


async def test_a_redelivered_stop_that_was_committed_before_does_not_act_again() -> None:
    agent = blocking()
    async with a_process(agent, AT_ONCE) as gateway:
        stop = message("/stop")
        await gateway.gateway.accept([stop])
        await gateway.say("work")
        await agent.until_active(1)
        await gateway.gateway.accept([replace(stop, redelivered=True)])
        await asyncio.sleep(60)
        assert len(agent.active) == 1
        assert gateway.channel.texts() == [wording.NOTHING_RUNNING]


async def test_a_redelivered_stop_acts_once_although_its_end_must_be_stored_twice() -> None:
    """What was said afterwards is not stopped by the second try."""
    agent = blocking()
    async with working("one", "two", agent=agent) as gateway:
        gateway.store.broken = {"settle"}
        await gateway.gateway.accept([message("/stop", redelivered=True)])
        await agent.until_started(2)
        await asyncio.sleep(10)
        gateway.store.broken = set()
        await until(lambda: "/stop" not in gateway.pending)
        assert len(agent.active) == 1
        assert gateway.channel.texts() == ["Stopped."]


async def test_stopall_counts_messages_wherever_they_wait() -> None:
    """One that is being committed, two in a burst, two that wait for a run."""
    agent = blocking()
    async with working(agent=agent, ways=Ways()) as gateway:
        await gateway.say("a", "b")  # they join, and wait
        gateway.store.slow_before_s["accept"] = 5.0
        accepting = asyncio.create_task(gateway.say("c"))
        await asyncio.sleep(1)
        stopping = asyncio.create_task(gateway.say("/stopall"))
        await gateway.channel.until_sent(1)
        assert gateway.channel.texts() == ["Stopped 1 task and dropped 3 waiting messages."]
        await asyncio.gather(accepting, stopping)


async def test_a_message_that_failed_and_comes_again_with_a_stop_can_be_tried_again() -> None:
    """SPEC CMD-1: its end is not that of the stop, so an operator may undo it."""
    agent = ScriptedAgent(Fail(ValueError("a bug")))
    async with a_process(agent, AT_ONCE) as gateway:
        work = message("work")
        await gateway.gateway.accept([work])
        await gateway.channel.until_sent(1)
        await gateway.gateway.accept([work, message("/stopall")])
        (row,) = [row.id for row in gateway.database.inbox.values() if row.message is work]
        await gateway.control.deliveries.retry_dead_letters([row])
        await until(lambda: agent.prompts == ["work", "work"])


THREE = QueuePolicy(concurrency=3)
THREE_AT_ONCE = Ways(THREE, THREE, main_lane=3)


def talking() -> ScriptedAgent:
    return ScriptedAgent(otherwise=lambda _: Emitting((TextDelta("so far"),), Block()))


def press(run_id: str, chat: str = "ann", *, peer: PeerKind = PeerKind.DIRECT) -> InboundMessage:
    """The stop button below a draft is pressed."""
    return replace(message("Stop", chat=chat, peer=peer), press=stop_data(RunId(run_id)))


def stop(reply_to: str | None, chat: str = "ann", text: str = "/stop") -> InboundMessage:
    return replace(message(text, chat=chat), reply_to=reply_to)


async def asked(gateway: GatewayProcess, *texts: str) -> list[InboundMessage]:
    """Let several runs of one chat begin."""
    questions = [message(text) for text in texts]
    for question in questions:
        await gateway.gateway.accept([question])
    await gateway.scripted.until_active(len(texts))
    return questions


def stopped(gateway: GatewayProcess) -> list[str]:
    """The prompts of the runs that were stopped."""
    agent = gateway.scripted
    return [request.prompt for request in agent.requests if request.run_id in agent.cancelled]


@pytest.mark.parametrize(
    ("reply_to", "text", "answer", "met"),
    [
        (1, "/stop", "Stopped.", ["two"]),
        # In a topic each message is a reply to the topic's service message.
        (None, "/stop", "Stopped.", ["one"]),
        (0, "/stopall", "Stopped 2 tasks.", ["one", "two"]),
    ],
    ids=["the question", "something else", "stopall"],
)
@pytest.mark.parametrize("redelivered", [True, False])
async def test_a_reply_to_the_question_stops_its_run_and_no_other(
    reply_to: int | None, text: str, answer: str, met: list[str], *, redelivered: bool
) -> None:
    """SPEC CMD-1, CMD-2: also when only the commit tells that it is new."""
    async with a_process(talking(), THREE_AT_ONCE) as gateway:
        questions = await asked(gateway, "one", "two")
        replied = "the topic was created" if reply_to is None else questions[reply_to].message_id
        await gateway.gateway.accept([replace(stop(replied, text=text), redelivered=redelivered)])
        await until(lambda: gateway.channel.texts() == [answer], within_s=0.2)
        assert stopped(gateway) == met


async def test_a_reply_to_the_draft_stops_its_run() -> None:
    channel = DraftingChannel()
    async with a_process(talking(), THREE_AT_ONCE, channels=(channel,)) as gateway:
        await asked(gateway, "one", "two")
        await until(lambda: len(channel.drafted) == 2)
        (draft,) = [m for _, m in channel.asked if m.run_id == gateway.scripted.requests[1].run_id]
        drafts = {d.run_id: d.external_id for d in await gateway.store.drafts()}
        assert draft.run_id is not None
        await gateway.gateway.accept([stop(drafts[draft.run_id])])
        await until(lambda: "so far\n\n⏹ Stopped." in channel.visible(), within_s=1)
        assert stopped(gateway) == ["two"]


async def test_a_reply_to_a_message_that_still_waits_takes_that_one_back() -> None:
    """SPEC CMD-2, QUEUE-8: also while it is being debounced."""
    async with a_process(talking(), Ways(QueuePolicy(debounce_s=0.8))) as gateway:
        await gateway.say("works", "first", apart_s=2)
        second = message("second")
        await gateway.gateway.accept([second])
        await asyncio.sleep(1)
        await gateway.gateway.accept([stop(second.message_id)])
        await until(lambda: bool(gateway.channel.texts()), within_s=0.2)
        assert gateway.channel.texts() == ["Dropped 1 waiting message."]
        assert gateway.pending == ["works", "first"]


async def test_a_button_stops_the_run_that_it_names() -> None:
    """SPEC CMD-1: within 200 ms, before the commit; pressed twice it is answered once."""
    async with a_process(talking(), THREE_AT_ONCE) as gateway:
        await asked(gateway, "one", "two")
        gateway.store.slow_before_s.update(accept=5.0, finish_run=5.0)
        run_id = gateway.scripted.requests[1].run_id
        presses = (gateway.gateway.accept([press(run_id)]) for _ in range(2))
        pressing = asyncio.gather(*presses)
        await until(lambda: gateway.channel.texts() == ["Stopped."], within_s=0.2)
        assert stopped(gateway) == ["two"]
        await pressing
        await asyncio.sleep(30)
        assert gateway.channel.texts() == ["Stopped."]


async def test_a_button_of_an_ended_run_or_of_another_chat_stops_nothing_else() -> None:
    """SPEC SEC-1: who presses it means that run; what a button brings can be made up."""
    agent = ScriptedAgent(Say("quick"), Block())
    async with a_process(agent, THREE_AT_ONCE) as gateway:
        await gateway.ask("one")
        await gateway.say("two")
        await agent.until_active(1)
        ended, active = (request.run_id for request in agent.requests)
        before_restart = replace(press("long-gone"), redelivered=True)
        for one in (press(ended), before_restart, press(active, chat="mallory")):
            await gateway.gateway.accept([one])
            await asyncio.sleep(5)
        assert gateway.channel.texts("ann")[1:] == [wording.NOTHING_RUNNING] * 2
        assert gateway.channel.texts("mallory") == [wording.NOTHING_RUNNING]
        assert len(agent.active) == 1
        assert gateway.pending == ["two"]


async def test_a_press_without_meaning_for_us_is_said_to_the_agent() -> None:
    """Its text is what the button says."""
    async with a_process(ways=THREE_AT_ONCE) as gateway:
        await gateway.gateway.accept([replace(message("Yes"), press="answer:yes")])
        await gateway.channel.until_sent(1)
        assert gateway.channel.texts() == ["re: Yes"]


async def test_a_stop_may_be_a_caption_but_is_not_edited_in_later() -> None:
    photo = Attachment(FileKind.PHOTO, "ref")
    async with a_process(talking(), THREE_AT_ONCE) as gateway:
        (one,) = await asked(gateway, "one")
        await gateway.gateway.accept([replace(message("/stop"), edits=one.external_id)])
        await asyncio.sleep(30)
        assert stopped(gateway) == []
        await gateway.gateway.accept([replace(message("/stop this"), attachments=(photo,))])
        said = "Stopped.\nI did not read “this” and the file after the command. Send it by itself."
        await until(lambda: gateway.channel.texts() == [said], within_s=0.2)
        assert gateway.pending == []


async def test_whoami_tells_how_the_sender_is_known() -> None:
    """SPEC CMD-5."""
    async with a_process() as gateway:
        asking = replace(message("/whoami", peer=PeerKind.GROUP, sender="bob", thread="7"))
        await gateway.gateway.accept([asking])
        await gateway.channel.until_sent(1)
        (text,) = gateway.channel.texts()
        assert "You are Bob, owner." in text
        assert "this chat is telegram:ann:7." in text
        assert "agent:main:telegram:group:ann:thread:7" in text
        assert gateway.scripted.requests == []


@pytest.mark.parametrize("mode", [Mode.QUEUE, Mode.COLLECT, Mode.INTERRUPT, Mode.STEER])
@pytest.mark.parametrize("drop", Drop)
async def test_whatever_waits_is_told_to_end_or_joins_one_that_is(mode: Mode, drop: Drop) -> None:
    """SPEC CHAN-4, CMD-3: the marks on all messages are cleared in the end."""
    policy = QueuePolicy(mode=mode, capacity=2, drop=drop, debounce_s=0.5)
    agent = ScriptedAgent(otherwise=lambda r: Say(f"re: {r.prompt}", after_s=3))
    async with a_process(agent, Ways(policy)) as gateway:
        batch = [message(f"m{number}") for number in range(12)]
        for number, one in enumerate(batch):
            await gateway.gateway.accept([one])
            await asyncio.sleep(0.3 if number % 3 else 1.1)
        await gateway.say("/stop")
        await asyncio.sleep(60)
        signals = gateway.channel.signals
        waits = [s for s in signals if isinstance(s, RunWaits)]
        ended = [s for s in signals if isinstance(s, RunEnded)]
        assert [w.messages for w in waits] == [(one.message_id,) for one in batch]
        cleared = [one for end in ended for one in end.messages]
        assert sorted(cleared, key=int) == [one.message_id for one in batch]
        assert len({end.run_id for end in ended}) == len(ended)
        started = {s.run_id for s in signals if isinstance(s, RunStarted)}
        assert started <= {end.run_id for end in ended}


async def test_a_shutdown_tells_the_end_of_what_runs_and_of_what_waits() -> None:
    """SPEC CMD-3."""
    async with working("works", "waits", agent=talking(), ways=Ways(QueuePolicy())) as gateway:
        await gateway.shut_down(wait_s=0)
        assert [end.outcome for end in gateway.channel.ended()] == [Outcome.INTERRUPTED] * 2


@pytest.mark.parametrize("is_stored", [True, False])
async def test_stopall_meets_a_message_whose_commit_failed_at_least_for_us(
    *, is_stored: bool
) -> None:
    """SPEC CMD-1: it comes again after the stop, but was said before it."""
    async with a_process(blocking(), ways=AT_ONCE) as gateway:
        await gateway.say("works")
        await gateway.scripted.until_active(1)
        lost = message("lost")
        gateway.store.lose_answer["accept"] += is_stored
        if not is_stored:
            gateway.store.errors["accept"] = StoreUnavailable("refused")
        with pytest.raises(StoreUnavailable):
            await gateway.gateway.accept([lost])
        await gateway.say("/stopall")
        await gateway.gateway.accept([replace(lost, redelivered=True)])
        await asyncio.sleep(60)
        assert gateway.scripted.prompts == ["works"]
        assert gateway.pending == []


async def test_stopall_meets_what_another_node_has_stored_for_this_one() -> None:
    """SPEC CMD-1: the owner of a session may not know of a message yet."""
    database = MemoryDatabase()
    async with (
        a_process(blocking(), ways=AT_ONCE, database=database) as owner,
        a_process(blocking(), ways=AT_ONCE, database=database) as other,
    ):
        await owner.say("works")
        await owner.scripted.until_active(1)
        owner.store.slow_before_s["claim_pending"] = 5.0
        await other.gateway.accept([message("elsewhere")])
        await owner.gateway.accept([message("/stopall")])
        await asyncio.sleep(60)
        assert [*owner.scripted.prompts, *other.scripted.prompts] == ["works"]
        assert owner.pending == []
