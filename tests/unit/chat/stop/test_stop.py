"""``/stop`` and ``/stopall`` (SPEC CMD-1 to CMD-4, QUEUE-8)."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext

import pytest

from goclaw_py.chat.outbound import texts
from goclaw_py.core.concurrency import worked_on
from goclaw_py.core.errors import (
    ChannelError,
    NotSent,
    RateLimited,
    StoreUnavailable,
    Undeliverable,
)
from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.run_events import RunEnded, RunStarted, RunWaits, TextDelta
from goclaw_py.records import OutboxQuery, OutboxState, RunQuery
from goclaw_py.runs.agent_loop import AgentResult, Emit, RunRequest
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.testing.agents import Block, Emitting, Ignore, Say, ScriptedAgent
from goclaw_py.testing.channel import RecordingChannel
from tests.support.harness import Ways, a_process, message, session_of, until, working

AT_ONCE = Ways(direct=QueuePolicy())
BLOCKED = Emitting((TextDelta("so far"),), Block())


def blocking() -> ScriptedAgent:
    """An agent whose runs say "so far" and go on for ever."""
    return ScriptedAgent(otherwise=lambda _: BLOCKED)


async def test_stop_cancels_the_run_and_says_so() -> None:
    """SPEC CMD-1, CMD-4: the answer is never an outbox row."""
    async with working(agent=blocking()) as gateway:
        assert await gateway.ask("/stop") == "Stopped."
        assert gateway.scripted.active == set()
        await until(lambda: not gateway.dispatcher.runs())
        (run,) = await gateway.store.runs()
        assert (run.outcome, run.reason) == (Outcome.CANCELLED, Reason.STOPPED)
        assert await gateway.texts_in_history() == ["work", "so far\n[cancelled]"]
        assert gateway.pending == []
        assert await gateway.ask("/stop") == texts.NOTHING_RUNNING
        assert await gateway.store.outbox() == []


async def test_stop_takes_effect_within_200_ms_while_lanes_are_full_and_100_messages_wait() -> None:
    """SPEC CMD-1, LANE-5."""
    agent = blocking()
    async with a_process(agent, AT_ONCE) as gateway:
        people = [f"p{number}" for number in range(12)]
        for person in people:
            await gateway.say(*("work" for _ in range(10)), chat=person)
        await agent.until_active(2)
        assert len(gateway.dispatcher.runs()) == 120
        gateway.channel.block("p0")  # the outbox and its pacing have no part in it
        loop = asyncio.get_running_loop()
        before = loop.time()
        stopping = asyncio.create_task(gateway.say("/stop", chat="p1"))
        await until(lambda: bool(agent.cancelled), within_s=0.2)
        await until(lambda: gateway.channel.texts("p1") == ["Stopped."], within_s=0.2)
        assert loop.time() - before <= 0.2
        await stopping


async def test_stop_takes_effect_before_its_commit() -> None:
    async with working(agent=blocking()) as gateway:
        gateway.store.slow_before_s["accept"] = 60.0
        stopping = asyncio.create_task(gateway.say("/stop"))
        await until(lambda: bool(gateway.scripted.cancelled), within_s=0.2)
        await until(lambda: gateway.channel.texts() == ["Stopped."], within_s=0.2)
        assert not stopping.done()
        await stopping


@pytest.mark.parametrize("away", [True, False])
async def test_a_stop_that_is_offered_again_acts_once(*, away: bool) -> None:
    """SPEC CMD-1, DB-4: the channel offers it again until it is committed."""
    async with working("one", "two", agent=blocking()) as gateway:
        agent, stop = gateway.scripted, message("/stop")
        gateway.store.away = away
        for _ in range(3):
            with pytest.raises(StoreUnavailable) if away else nullcontext():
                await gateway.gateway.accept([stop])
        await asyncio.sleep(1)
        assert gateway.channel.texts() == ["Stopped."]
        gateway.store.away = False
        await gateway.gateway.accept([stop, stop])
        await agent.until_started(2)
        await asyncio.sleep(30)
        assert agent.prompts == ["one", "two"]
        assert len(agent.active) == 1
        assert gateway.channel.texts() == ["Stopped."]


async def test_a_second_stop_while_the_first_still_works_takes_nothing_more() -> None:
    async with working("one", "two", agent=ScriptedAgent(Ignore(for_s=5))) as gateway:
        assert await gateway.ask("/stop") == "Stopped."
        assert await gateway.ask("/stop") == texts.ALREADY_STOPPING
        await gateway.scripted.until_started(2)
        assert gateway.scripted.prompts == ["one", "two"]


async def test_stop_in_a_thread_leaves_the_rest_of_the_chat_alone() -> None:
    """SPEC CMD-2, CMD-3: its end is signalled in the thread."""
    agent, work = blocking(), message("two", thread="7")
    async with a_process(agent, AT_ONCE) as gateway:
        await gateway.gateway.accept([message("one"), work])
        await agent.until_active(2)
        await gateway.gateway.accept([message("/stop", thread="7")])
        await agent.until_active(1)
        await asyncio.sleep(1)
        assert gateway.channel.sent[0].target.thread == "7"
        (stopped,) = (one for one in agent.requests if one.session == session_of(thread="7"))
        assert agent.cancelled == [stopped.run_id]
        (ended,) = gateway.channel.ended()
        assert (ended.run_id, ended.outcome) == (stopped.run_id, Outcome.CANCELLED)
        assert (ended.target, ended.messages) == (work.target, (work.message_id,))


async def test_nothing_of_a_cancelled_run_is_shown_after_its_cancellation() -> None:
    """SPEC CMD-3, QUEUE-2."""
    agent = ScriptedAgent(Emitting((TextDelta("before"),), Ignore(5, reply="I go on")))
    async with working(agent=agent) as gateway:
        await gateway.say("/stop")
        await asyncio.sleep(60)
        assert gateway.channel.shown(agent.requests[0].run_id) == "before"
        assert isinstance(gateway.channel.signals[-1], RunEnded)
        assert gateway.channel.texts() == ["Stopped."]
        assert await gateway.texts_in_history() == ["work", "before\n[cancelled]"]


async def test_the_end_of_a_run_that_the_database_never_began_is_signalled() -> None:
    """SPEC CMD-3: what began to show typing must hear of its end."""
    async with a_process(ways=Ways(direct=QueuePolicy(), run_timeout_s=20.0)) as gateway:
        gateway.store.broken = {"begin_run"}
        await gateway.say("work")
        await asyncio.sleep(30)
        assert gateway.scripted.requests == []
        waits, started, ended = gateway.channel.signals
        assert isinstance(waits, RunWaits)
        assert isinstance(started, RunStarted)
        assert isinstance(ended, RunEnded)
        assert ended.outcome is Outcome.TIMED_OUT


class Tidy:
    """An agent that looks at its context while it cleans up."""

    def __init__(self) -> None:
        self.seen: list[object] = []

    async def run(self, request: RunRequest, emit: Emit) -> AgentResult:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(1)
            self.seen.append(worked_on()["run_id"])
        raise AssertionError("it waits for ever")

    async def warm_up(self) -> None: ...

    async def close(self) -> None: ...


async def test_the_run_id_is_readable_in_clean_up_code_after_a_cancellation() -> None:
    agent = Tidy()
    async with a_process(agent, AT_ONCE) as gateway:
        await gateway.say("work")
        await asyncio.sleep(1)
        await gateway.say("/stop")
        await asyncio.sleep(60)
        (run,) = await gateway.store.runs()
        assert agent.seen == [run.id]
        assert worked_on() == {}


async def test_the_final_write_of_a_stopped_run_waits_for_the_database() -> None:
    async with working(agent=blocking()) as gateway:
        gateway.store.away = True
        with pytest.raises(StoreUnavailable):
            await gateway.say("/stop")
        await asyncio.sleep(5)
        gateway.store.away = False
        await asyncio.sleep(10)
        assert await gateway.outcomes() == [Outcome.CANCELLED]
        assert await gateway.texts_in_history() == ["work", "so far\n[cancelled]"]


@pytest.mark.parametrize("side", ["slow_before_s", "slow_after_s"])
async def test_a_run_that_is_stopped_while_its_start_is_being_stored_ends(side: str) -> None:
    """SPEC CMD-4: no run stays open in the database."""
    async with a_process(ways=AT_ONCE) as gateway:
        getattr(gateway.store, side)["begin_run"] = 3.0
        await gateway.say("work", "/stop", apart_s=1)
        await asyncio.sleep(60)
        gateway.store.slow_before_s.clear()
        assert gateway.scripted.requests == []
        assert await gateway.store.runs(RunQuery(active=True)) == []
        assert await gateway.outcomes() == [Outcome.CANCELLED]
        assert gateway.pending == []


async def test_the_answer_to_a_stop_is_tried_again() -> None:
    async with a_process() as gateway:
        gateway.channel.fail(NotSent("no route"), RateLimited("slow down", 20.0))
        await gateway.say("/stop")
        await asyncio.sleep(20)
        assert gateway.channel.texts() == []
        await asyncio.sleep(5)
        assert gateway.channel.texts() == [texts.NOTHING_RUNNING]


@pytest.mark.parametrize(
    ("errors", "tries"), [([Undeliverable("blocked")], 1), ([NotSent("no route")] * 9, 3)]
)
async def test_the_answer_to_a_stop_is_given_up(errors: list[ChannelError], tries: int) -> None:
    async with a_process() as gateway:
        gateway.channel.fail(*errors)
        await gateway.say("/stop")
        await asyncio.sleep(60)
        assert len(gateway.channel.attempts) == tries


@pytest.mark.parametrize("command", ["/stop", "/stopall"])
async def test_a_stop_cuts_an_answer_that_is_still_being_sent(command: str) -> None:
    """SPEC CMD-2: what is on its way arrives, and the rest is not sent."""
    channel = RecordingChannel(part_limit=20, slow_s={"ann": 1.0})
    agent = ScriptedAgent(Say("\n\n".join(f"paragraph {n}" for n in range(30))))
    async with a_process(agent, AT_ONCE, channels=(channel,)) as gateway:
        await gateway.say("tell me")
        await channel.until_sent(3)
        await gateway.gateway.accept([message(command)])
        await asyncio.sleep(30)
        *parts, last = channel.texts("ann")
        assert len(parts) <= 4
        rows = await gateway.store.outbox(OutboxQuery(limit=100))
        dropped = [row for row in rows if row.state is OutboxState.DROPPED]
        assert {row.error for row in dropped} == {"stopped"}
        assert last == f"⏹ Stopped. {len(dropped)} parts of my answer will not be sent."
        assert len(parts) + len(dropped) == 30


async def test_stopall_cuts_the_rest_of_an_answer_beside_a_run_whose_draft_shows_the_stop() -> None:
    """SPEC CMD-2: always with /stopall, also where the draft of the only run is the answer."""
    channel = RecordingChannel(part_limit=20, slow_s={"ann": 1.0})
    agent = ScriptedAgent(Say("\n\n".join(f"paragraph {n}" for n in range(30))), Block())
    async with a_process(agent, AT_ONCE, channels=(channel,)) as gateway:

        async def shows_stop(_run: RunId) -> bool:
            return True

        gateway.container.stop_answers._shows_stop = shows_stop
        await gateway.say("tell me")
        await channel.until_sent(3)
        await gateway.gateway.accept([message("and now?")])
        await agent.until_active(1)
        await gateway.gateway.accept([message("/stopall")])
        await asyncio.sleep(30)
        parts = [text for text in channel.texts("ann") if text.startswith("paragraph")]
        (answer,) = set(channel.texts("ann")) - set(parts)
        assert len(parts) <= 5
        assert answer == f"⏹ Stopped. {30 - len(parts)} parts of my answer will not be sent."


async def test_a_stop_leaves_what_jobs_and_tools_say() -> None:
    async with a_process(ways=AT_ONCE) as gateway:
        gateway.channel.block("ann")
        said = OutboundMessage(Target("telegram", "default", "ann"), "a notice")
        await gateway.store.settle((), Outcome.COMPLETED, now=gateway.clock.now(), say=[said])
        await gateway.gateway.accept([message("/stop")])
        await asyncio.sleep(5)
        gateway.channel.unblock("ann")
        await until(lambda: "a notice" in gateway.channel.texts("ann"))


@pytest.mark.parametrize("word", ["stop", "Stop!", "отмена"])
async def test_a_bare_word_stops_what_runs(word: str) -> None:
    async with working() as gateway:
        assert await gateway.ask(word) == "Stopped."
        await until(lambda: not gateway.dispatcher.runs())
        (run,) = await gateway.store.runs()
        assert (run.outcome, run.reason) == (Outcome.CANCELLED, Reason.STOPPED)
        assert gateway.scripted.prompts == ["work"]
        assert gateway.pending == []


async def test_a_bare_word_belongs_to_the_agent_unless_something_came_before_it() -> None:
    """In the same batch."""
    async with a_process(ways=AT_ONCE) as gateway:
        await gateway.ask("stop")
        await gateway.gateway.accept([message("work"), message("stop")])
        await asyncio.sleep(5)
        assert gateway.scripted.prompts == ["stop"]


async def test_the_setting_leaves_the_word_to_the_agent() -> None:
    async with working(ways=Ways(direct=QueuePolicy(), stop_words=False)) as gateway:
        await gateway.say("stop", "/stop")
        await gateway.scripted.until_started(2)
        assert gateway.scripted.prompts == ["work", "stop"]


async def test_a_word_that_is_offered_again_after_a_failed_commit_acts_once() -> None:
    async with working() as gateway:
        gateway.store.away = True
        stop = message("stop")
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                await gateway.gateway.accept([stop])
            await asyncio.sleep(1)
        gateway.store.away = False
        await gateway.gateway.accept([stop])
        await asyncio.sleep(30)
        assert gateway.channel.texts() == ["Stopped."]
        assert gateway.scripted.prompts == ["work"]


async def test_what_is_nearly_a_command_is_asked_about() -> None:
    async with working() as gateway:
        assert await gateway.ask("/stpo") == "Did you mean /stop?"
        assert gateway.scripted.prompts == ["work"]
        assert not gateway.scripted.cancelled
