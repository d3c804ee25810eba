"""Which run a ``/stop`` means that is a reply, a caption or a button (SPEC CMD-1, CMD-2)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from goclaw_py.delivery import texts as wording
from goclaw_py.model.chat_commands import stop_data
from goclaw_py.model.ids import RunId
from goclaw_py.model.messages import Attachment, FileKind, InboundMessage, PeerKind
from goclaw_py.model.outcomes import Outcome
from goclaw_py.model.run_events import RunEnded, RunStarted, RunWaits, TextDelta
from goclaw_py.scheduler.models import Drop, Mode, QueuePolicy
from goclaw_py.testing.agents import Block, Emitting, Say, ScriptedAgent
from tests.support.drafting import DraftingChannel
from tests.support.harness import GatewayProcess, Ways, a_process, message, until

THREE = QueuePolicy(concurrency=3)
AT_ONCE = Ways(THREE, THREE, main_lane=3)


def blocking() -> ScriptedAgent:
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
    async with a_process(blocking(), AT_ONCE) as gateway:
        questions = await asked(gateway, "one", "two")
        replied = "the topic was created" if reply_to is None else questions[reply_to].message_id
        await gateway.gateway.accept([replace(stop(replied, text=text), redelivered=redelivered)])
        await until(lambda: gateway.channel.texts() == [answer], within_s=0.2)
        assert stopped(gateway) == met


async def test_a_reply_to_the_draft_stops_its_run() -> None:
    channel = DraftingChannel()
    async with a_process(blocking(), AT_ONCE, channels=(channel,)) as gateway:
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
    async with a_process(blocking(), Ways(QueuePolicy(debounce_s=0.8))) as gateway:
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
    async with a_process(blocking(), AT_ONCE) as gateway:
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
    async with a_process(agent, AT_ONCE) as gateway:
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
    async with a_process(ways=AT_ONCE) as gateway:
        await gateway.gateway.accept([replace(message("Yes"), press="answer:yes")])
        await gateway.channel.until_sent(1)
        assert gateway.channel.texts() == ["re: Yes"]


async def test_a_stop_may_be_a_caption_but_is_not_edited_in_later() -> None:
    photo = Attachment(FileKind.PHOTO, "ref")
    async with a_process(blocking(), AT_ONCE) as gateway:
        (one,) = await asked(gateway, "one")
        await gateway.gateway.accept([replace(message("/stop"), edits=one.external_id)])
        await asyncio.sleep(30)
        assert stopped(gateway) == []
        await gateway.gateway.accept([replace(message("/stop this"), attachments=(photo,))])
        await until(lambda: gateway.channel.texts() == ["Stopped."], within_s=0.2)
        assert gateway.pending == []


async def test_whoami_tells_how_the_sender_is_known() -> None:
    """SPEC CMD-5."""
    async with a_process() as gateway:
        asking = replace(message("/whoami", peer=PeerKind.GROUP, sender="bob", thread="7"))
        await gateway.gateway.accept([asking])
        await gateway.channel.until_sent(1)
        (text,) = gateway.channel.texts()
        assert "Your id: bob, an owner" in text
        assert "topic 7" in text
        assert "agent:main:telegram:group:ann:thread:7" in text
        assert gateway.scripted.requests == []


@pytest.mark.parametrize("mode", [Mode.QUEUE, Mode.COLLECT, Mode.INTERRUPT, Mode.STEER])
@pytest.mark.parametrize("drop", Drop)
async def test_whatever_waits_is_told_to_end_once_or_joins_one_that_is(
    mode: Mode, drop: Drop
) -> None:
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
    async with a_process(blocking(), Ways(QueuePolicy())) as gateway:
        await gateway.say("works", "waits")
        await gateway.scripted.until_active(1)
        await gateway.shut_down(wait_s=0)
        assert [end.outcome for end in gateway.channel.ended()] == [Outcome.INTERRUPTED] * 2
