"""A person writes, the agent works, the chat gets the answer (SPEC DB-4, CMD-5, IO-1)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from goclaw_py.chat.commands.retry import NOT_STORED, RETRIED
from goclaw_py.chat.commands.start import GREETING
from goclaw_py.chat.outbound import texts
from goclaw_py.chat.outbound.texts import NEW_SESSION
from goclaw_py.core.chat_commands import NAMES, retry_buttons
from goclaw_py.core.errors import AgentError, StoreUnavailable
from goclaw_py.core.messages import HistoryEntry, InboundMessage, PeerKind, Role
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.run_events import ButtonsUsed, RunEnded, RunStarted, RunText, RunWaits, Usage
from goclaw_py.records import OutboxQuery, OutboxState
from goclaw_py.runs.agent_loop import AgentResult
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.testing.agents import Block, Fail, Return, Say, ScriptedAgent, Stream
from goclaw_py.testing.channel import RecordingChannel
from tests.support.harness import GatewayProcess, Ways, a_process, message, session_of, until

AT_ONCE = Ways(direct=QueuePolicy())


async def test_a_message_is_answered_in_its_chat() -> None:
    agent = ScriptedAgent()
    async with a_process(agent) as gateway:
        assert await gateway.ask("hello") == "re: hello"
        assert agent.prompts == ["hello"]
        assert await gateway.history() == [(Role.USER, "hello"), (Role.ASSISTANT, "re: hello")]
        assert await gateway.outcomes() == [Outcome.COMPLETED]
        await gateway.ask("two")
        assert [entry.text for entry in agent.requests[1].history] == ["hello", "re: hello"]


async def test_entries_that_the_agent_made_go_into_the_history_as_they_are() -> None:
    native = HistoryEntry(Role.ASSISTANT, "native", b"{}", "some-loop")
    agent = ScriptedAgent(Return(AgentResult("said", (native,), Usage(input_tokens=7))))
    async with a_process(agent) as gateway:
        assert await gateway.ask("hello") == "said"
        assert [s.entry for s in await gateway.store.history(session_of())] == [native]
        (run,) = await gateway.store.runs()
        assert run.usage == Usage(input_tokens=7)


async def test_what_an_agent_streams_is_signalled_while_it_works() -> None:
    agent = ScriptedAgent(Stream(("one ", "two"), every_s=1))
    async with a_process(agent, AT_ONCE) as gateway:
        asked = message("count")
        await gateway.gateway.accept([asked])
        await gateway.channel.until_sent(1)
        run_id, target, ids = agent.requests[0].run_id, asked.target, (asked.message_id or "",)
        assert gateway.channel.signals == [
            RunWaits(run_id, target, ids),
            RunStarted(run_id, target, ids),
            RunText(run_id, target, "one "),
            RunText(run_id, target, "two"),
            RunEnded(run_id, target, Outcome.COMPLETED, ids),
        ]


async def test_an_answer_goes_to_the_thread_of_its_question() -> None:
    async with a_process() as gateway:
        await gateway.gateway.accept([message("hi", thread="7")])
        await gateway.channel.until_sent(1)
        assert gateway.channel.sent[0].target.thread == "7"
        assert gateway.scripted.requests[0].session == session_of(thread="7")


async def test_only_the_first_part_of_a_long_answer_replies_to_the_question_in_a_group() -> None:
    """SPEC CHAN-3."""
    channel = RecordingChannel(part_limit=10)
    async with a_process(ScriptedAgent(Say("one two three four")), channels=(channel,)) as gateway:
        question = message("count", peer=PeerKind.GROUP)
        await gateway.gateway.accept([question])
        await channel.until_sent(2)
        await asyncio.sleep(5)
        sent = [(part.text, part.reply_to) for part in channel.sent]
        assert sent == [("one two", question.message_id), ("three four", None)]


async def test_nothing_is_submitted_before_the_commit() -> None:
    async with a_process(ways=AT_ONCE) as gateway:
        gateway.store.slow_before_s["accept"] = 5.0
        accepting = asyncio.create_task(gateway.say("hello"))
        await asyncio.sleep(4.9)
        assert gateway.dispatcher.runs() == ()
        assert gateway.scripted.requests == []
        await accepting
        await gateway.scripted.until_started(1)


async def test_a_batch_that_was_not_committed_is_taken_when_it_comes_again() -> None:
    async with a_process() as gateway:
        batch = [message("one"), message("two", chat="bob")]
        gateway.store.away = True
        with pytest.raises(StoreUnavailable):
            await gateway.gateway.accept(batch)
        gateway.store.away = False
        await asyncio.sleep(60)
        assert (gateway.scripted.requests, gateway.pending) == ([], [])
        await gateway.gateway.accept(batch)
        await gateway.channel.until_sent(2)
        assert sorted(gateway.scripted.prompts) == ["one", "two"]


async def test_a_message_that_is_offered_again_is_answered_once() -> None:
    """SPEC IO-1, DB-4: at first its commit lost its answer."""
    async with a_process() as gateway:
        again = message("hello")
        gateway.store.lose_answer["accept"] = 1
        with pytest.raises(StoreUnavailable):
            await gateway.gateway.accept([again])
        for batch in ([again], [again, again]):
            await gateway.gateway.accept(batch)
            await asyncio.sleep(60)
        assert gateway.scripted.prompts == ["hello"]
        assert gateway.channel.texts() == ["re: hello"]


async def test_the_answer_enters_the_outbox_in_the_transaction_that_ends_the_run() -> None:
    """SPEC IO-3: while it is not committed, neither is there; afterwards both are."""
    async with a_process(channels=(RecordingChannel(unreachable={"ann"}),)) as gateway:
        gateway.store.slow_before_s["finish_run"] = 5.0
        await gateway.say("hello")
        await until(lambda: gateway.store.calls["finish_run"] == 1)
        assert await gateway.store.outbox() == []
        assert await gateway.outcomes() == [None]
        assert gateway.pending == ["hello"]
        await asyncio.sleep(5.1)
        (row,) = await gateway.store.outbox()
        (run,) = await gateway.store.runs()
        assert (row.message.text, row.message.run_id) == ("re: hello", run.id)
        assert run.outcome is Outcome.COMPLETED
        assert gateway.pending == []


async def test_a_failed_run_is_told_in_one_sentence() -> None:
    """SPEC QUEUE-10, AGENT-8: also one that cannot be begun."""
    busy, bug = AgentError("The model is busy.", "429"), ValueError("secret detail")
    async with a_process(ScriptedAgent(Fail(busy), Fail(bug))) as gateway:
        for error, told in ((busy, "The model is busy."), (bug, texts.FAILED)):
            assert await gateway.ask("hello") == told
            run, *_ = await gateway.store.runs()
            assert run.outcome is Outcome.FAILED
            assert run.error == f"{type(error).__name__}: {error}"
            assert (await gateway.texts_in_history())[-2:] == ["hello", "[failed]"]
        gateway.store.errors["begin_run"] = ValueError("a bug in the store")
        assert await gateway.ask("hello") == texts.FAILED
        assert gateway.pending == []
        assert [ended.outcome for ended in gateway.channel.ended()] == [Outcome.FAILED] * 3
        assert await gateway.ask("again") == "re: again"


async def test_an_answer_of_nothing_is_no_message() -> None:
    async with a_process(ScriptedAgent(Say("  "))) as gateway:
        await gateway.say("hello")
        await until(lambda: gateway.channel.ended() != [])
        await asyncio.sleep(10)
        assert gateway.channel.sent == []
        assert await gateway.store.outbox(OutboxQuery(OutboxState.WAITING)) == []


async def test_a_message_without_text_gets_a_polite_line_and_no_run() -> None:
    """SPEC CHAN-6."""
    async with a_process() as gateway:
        for text in ("", "  \n ", "\u200b"):
            assert await gateway.ask(text) == texts.EMPTY_MESSAGE
        assert (gateway.scripted.requests, gateway.pending) == ([], [])


async def test_commands_are_answered_without_a_run_if_they_are_ours() -> None:
    """SPEC CMD-2, CMD-5."""
    async with a_process() as gateway:
        assert await gateway.ask("/start") == GREETING
        answer = await gateway.ask("/help")
        assert "/stop - " in answer
        assert "/new - " in answer
        assert "This conversation: 0 messages" in await gateway.ask("/status")
        await gateway.say("/help@some_other_bot")
        await asyncio.sleep(30)
        assert len(gateway.channel.sent) == 3
        assert gateway.scripted.requests == []


async def test_status_shows_what_runs_and_waits_in_this_chat() -> None:
    """SPEC CMD-5."""
    agent = ScriptedAgent(Say("hi"), otherwise=lambda _: Block())
    async with a_process(agent, AT_ONCE) as gateway:
        await gateway.ask("hello")
        await gateway.say("work", "more", apart_s=30)
        await gateway.say("something else", chat="bob")
        await agent.until_active(2)
        assert await gateway.ask("/status") == (
            "Running:\n- “work”, for 1 min\nWaiting:\n- “more”\nElsewhere: 1 task (Bob)\n"
            "This conversation: 2 messages, with agent main"
        )


async def test_a_run_that_new_has_stopped_does_not_write_into_the_fresh_history() -> None:
    agent = ScriptedAgent(Say("one"), Block(), Say("fresh"))
    async with a_process(agent, AT_ONCE) as gateway:
        await gateway.ask("hello")
        await gateway.say("old")
        await agent.until_active(1)
        assert await gateway.ask("/new") == NEW_SESSION
        await gateway.ask("new")
        assert agent.requests[2].history == ()
        assert await gateway.texts_in_history() == ["new", "fresh"]
        completed, cancelled = Outcome.COMPLETED, Outcome.CANCELLED
        assert await gateway.outcomes() == [completed, cancelled, completed]


async def test_what_was_said_after_new_is_not_stopped_when_new_must_be_tried_again() -> None:
    """SPEC CMD-5: a command takes effect where it was said."""
    async with a_process(ways=AT_ONCE) as gateway:
        await gateway.ask("old")
        gateway.store.broken = {"reset_session"}
        await gateway.gateway.accept([message("/new"), message("new")])
        await asyncio.sleep(3)
        gateway.store.broken = set()
        await gateway.channel.until_sent(3)
        assert gateway.channel.texts() == ["re: old", NEW_SESSION, "re: new"]
        assert gateway.scripted.requests[1].history == ()
        assert await gateway.outcomes() == [Outcome.COMPLETED, Outcome.COMPLETED]


@pytest.mark.parametrize("name", NAMES)
async def test_a_command_of_the_menu_is_answered(name: str) -> None:
    async with a_process() as gateway:
        assert await gateway.ask(f"/{name}") not in ("", texts.FAILED)


async def failed(gateway: GatewayProcess) -> str:
    """Ask what fails; the data of the button below the answer."""
    assert await gateway.ask("hello") == texts.FAILED
    ((button,),) = gateway.channel.sent[-1].buttons
    assert button.text == "🔁 Try again"
    return button.data


def press(data: str, chat: str = "ann") -> InboundMessage:
    return replace(message("Try again", chat=chat), press=data, reply_to="5")


async def test_the_button_below_a_failure_tries_again_once() -> None:
    agent = ScriptedAgent(Fail(ValueError("a bug")), Say("hi"))
    async with a_process(agent, AT_ONCE) as gateway:
        data = await failed(gateway)
        await gateway.gateway.accept([press(data)])
        await until(lambda: gateway.channel.texts()[-1] == "hi")
        assert agent.prompts == ["hello", "hello"]
        assert any(isinstance(one, ButtonsUsed) for one in gateway.channel.signals)
        await gateway.gateway.accept([press(data)])
        await until(lambda: gateway.channel.texts()[-1] == RETRIED)
        assert agent.prompts == ["hello", "hello"]


async def test_a_press_that_names_messages_of_another_chat_tries_nothing() -> None:
    """SPEC SEC-3: what a press brings can be made up."""
    agent = ScriptedAgent(Fail(ValueError("a bug")))
    async with a_process(agent, AT_ONCE) as gateway:
        data = await failed(gateway)
        await gateway.gateway.accept([press(data, chat="bob")])
        await asyncio.sleep(30)
        assert gateway.channel.texts("bob") == [NOT_STORED]
        assert agent.prompts == ["hello"]


def test_the_data_of_the_button_fits_or_there_is_none() -> None:
    assert retry_buttons(range(10**6, 10**6 + 20)) == ()
    ((button,),) = retry_buttons([10**17])
    assert len(button.data) <= 64
