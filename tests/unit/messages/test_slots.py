"""Slots, bursts, interruptions, limits: what a session's runs may do to each other."""

from __future__ import annotations

import asyncio

from goclaw_py.delivery import texts
from goclaw_py.model.messages import PeerKind
from goclaw_py.model.outcomes import Outcome, Reason
from goclaw_py.model.run_events import TextDelta
from goclaw_py.ports.agent import AgentResult, Emit, RunRequest, TextPart
from goclaw_py.scheduler.models import Drop, Mode, QueuePolicy
from goclaw_py.scheduler.views import RunState
from goclaw_py.testing.agents import Block, Emitting, Ignore, Say, ScriptedAgent, Stream
from tests.support.harness import GatewayProcess, Ways, a_process, message, session_of, until

AT_ONCE = QueuePolicy()


def states(gateway: GatewayProcess) -> list[RunState]:
    return [run.state for run in gateway.dispatcher.runs()]


async def test_the_slot_is_held_until_the_clean_up_of_a_stopped_run_has_ended() -> None:
    """SPEC QUEUE-2."""
    agent = ScriptedAgent(Ignore(for_s=9))
    async with a_process(agent, Ways(AT_ONCE)) as gateway:
        await gateway.say("one", "two")
        await agent.until_active(1)
        loop = asyncio.get_running_loop()
        stopped_at = loop.time()
        await gateway.say("/stop")
        assert states(gateway) == [RunState.STOPPING, RunState.QUEUED]
        await agent.until_started(2)
        assert loop.time() - stopped_at >= 9
        assert agent.overlaps[session_of()] == 1


async def test_the_slot_is_held_until_the_outcome_is_stored() -> None:
    """SPEC QUEUE-2: the next run must see the history of the one before."""
    async with a_process(ways=Ways(AT_ONCE)) as gateway:
        agent = gateway.scripted
        gateway.store.slow_before_s["finish_run"] = 20.0
        await gateway.say("one", "two")
        await asyncio.sleep(19)
        assert states(gateway) == [RunState.FINISHING, RunState.QUEUED]
        assert agent.prompts == ["one"]
        await agent.until_started(2)
        assert [entry.text for entry in agent.requests[1].history] == ["one", "re: one"]


async def test_runs_of_a_session_never_overlap_through_stops_timeouts_and_failures() -> None:
    """SPEC QUEUE-2."""
    slow = Stream(("x", "y"), every_s=40)
    agent = ScriptedAgent(Say("a", after_s=3), Ignore(for_s=5), slow, Say("b"))
    async with a_process(agent, Ways(AT_ONCE, run_timeout_s=30)) as gateway:
        await gateway.say("1", "2", "3", "4", "5", apart_s=1)
        await agent.until_started(2)
        await gateway.say("/stop")
        await agent.until_started(5)
        await asyncio.sleep(5)
        assert agent.overlaps == {session_of(): 1}
        completed, *ends = Outcome.COMPLETED, Outcome.CANCELLED, Outcome.TIMED_OUT
        assert await gateway.outcomes() == [completed, *ends, completed, completed]


async def test_a_run_that_ignores_its_cancellation_is_abandoned_and_makes_room() -> None:
    """SPEC QUEUE-2."""
    agent = ScriptedAgent(Ignore(for_s=100, reply="too late"))
    async with a_process(agent, Ways(AT_ONCE, main_lane=1)) as gateway:
        await gateway.say("one", "two")
        await agent.until_active(1)
        await gateway.say("/stop")
        await asyncio.sleep(9.9)
        assert agent.prompts == ["one"]
        await asyncio.sleep(0.2)
        assert agent.prompts == ["one", "two"]
        assert states(gateway) == [RunState.ABANDONED]
        await asyncio.sleep(100)
        assert states(gateway) == []


async def test_nothing_that_an_abandoned_run_says_reaches_history_or_chat() -> None:
    """SPEC QUEUE-2: events, result and history are fenced."""

    class Stubborn(ScriptedAgent):
        async def run(self, request: RunRequest, emit: Emit) -> AgentResult:
            result = await super().run(request, emit)
            emit(TextDelta("and one thing more"))
            return result

    agent = Stubborn(Emitting((TextDelta("early"),), Ignore(for_s=50, reply="too late")))
    async with a_process(agent, Ways(AT_ONCE)) as gateway:
        await gateway.say("one")
        await agent.until_active(1)
        await gateway.say("/stop")
        await asyncio.sleep(200)
        assert len(agent.finished) == 1
        assert gateway.channel.shown(agent.requests[0].run_id) == "early"
        assert gateway.channel.texts() == ["Stopped."]
        assert await gateway.said_in_history() == ["one", "[abandoned]"]
        (run,) = await gateway.store.runs()
        assert (run.outcome, run.reason) == (Outcome.ABANDONED, Reason.STOPPED)
        assert gateway.pending == []


async def test_a_run_that_a_time_limit_abandons_is_told_to_its_sender() -> None:
    """SPEC QUEUE-9: no question is left without an answer."""
    agent = ScriptedAgent(Ignore(for_s=50, reply="too late"))
    async with a_process(agent, Ways(AT_ONCE, run_timeout_s=20)) as gateway:
        await gateway.say("one")
        await asyncio.sleep(200)
        assert await gateway.outcomes() == [Outcome.ABANDONED]
        assert gateway.channel.texts() == [texts.timed_out(Reason.RUN_TIMEOUT)]


async def test_a_burst_becomes_one_turn_with_all_texts_and_ends_all_its_rows() -> None:
    """SPEC QUEUE-6."""
    async with a_process() as gateway:
        await gateway.say("one", "two", "three", apart_s=0.5)
        await gateway.channel.until_sent(1)
        (request,) = gateway.scripted.requests
        assert request.parts == (TextPart("one"), TextPart("two"), TextPart("three"))
        turn = "one\ntwo\nthree"
        assert (request.prompt, gateway.channel.texts()) == (turn, [f"re: {turn}"])
        assert gateway.pending == []
        assert await gateway.said_in_history() == [turn, f"re: {turn}"]


async def test_bursts_of_two_people_in_a_group_are_two_turns() -> None:
    """SPEC QUEUE-6: one sender, one session."""
    async with a_process() as gateway:
        for sender in ("ann", "bob", "ann", "bob"):
            said = message(f"from {sender}", chat="club", sender=sender, peer=PeerKind.GROUP)
            await gateway.gateway.accept([said])
        await gateway.channel.until_sent(2)
        turns = ["from ann\nfrom ann", "from bob\nfrom bob"]
        assert sorted(gateway.scripted.said) == turns


async def test_a_message_that_follows_a_waiting_one_closely_joins_it() -> None:
    """SPEC QUEUE-6."""
    agent = ScriptedAgent(Block())
    async with a_process(agent) as gateway:
        await gateway.say("work", apart_s=2)
        await gateway.say("and", "then", apart_s=0.3)
        await asyncio.sleep(2)
        await gateway.say("last")
        agent.release()
        await agent.until_started(3)
        assert agent.prompts == ["work", "and\nthen", "last"]


async def test_pieces_of_a_cut_text_are_one_turn_without_any_debounce() -> None:
    """SPEC QUEUE-6."""
    async with a_process(ways=Ways(AT_ONCE)) as gateway:
        await gateway.gateway.accept([message("a", cut=True)])
        await asyncio.sleep(0.5)
        await gateway.say("b")
        await gateway.channel.until_sent(1)
        assert gateway.scripted.prompts == ["ab"]


async def test_interrupt_cancels_the_run_drops_what_waits_and_waits_for_the_end() -> None:
    """SPEC QUEUE-3."""
    agent = ScriptedAgent(Ignore(for_s=3), otherwise=lambda _: Say("new"))
    async with a_process(agent, Ways(QueuePolicy(mode=Mode.INTERRUPT))) as gateway:
        await gateway.say("old")
        await agent.until_active(1)
        await gateway.say("waits", "newest")
        await until(lambda: "new" in gateway.channel.texts())
        await asyncio.sleep(5)
        assert agent.prompts == ["old", "newest"]
        assert agent.overlaps[session_of()] == 1
        first = (await gateway.store.runs())[-1]
        assert (first.outcome, first.reason) == (Outcome.CANCELLED, Reason.NEWER_MESSAGE)
        assert texts.dropped(["waits"], Reason.NEWER_MESSAGE) in gateway.channel.texts()
        assert gateway.pending == []


async def test_a_run_that_takes_too_long_is_stopped_and_told() -> None:
    """SPEC QUEUE-9."""
    agent = ScriptedAgent(Block())
    async with a_process(agent, Ways(AT_ONCE, run_timeout_s=300)) as gateway:
        assert await gateway.ask("work") == texts.timed_out(Reason.RUN_TIMEOUT)
        (run,) = await gateway.store.runs()
        assert (run.outcome, run.reason) == (Outcome.TIMED_OUT, Reason.RUN_TIMEOUT)
        assert await gateway.said_in_history() == ["work", "[timed out]"]


async def test_a_deadline_ends_a_message_that_still_waits_and_tells_so() -> None:
    """SPEC QUEUE-9."""
    agent = ScriptedAgent(Ignore(for_s=8))
    async with a_process(agent, Ways(AT_ONCE, main_lane=1, deadline_s=60)) as gateway:
        await gateway.say("one", apart_s=1)
        await gateway.say("two", chat="bob")
        await asyncio.sleep(60.5)
        assert agent.prompts == ["one"]
        assert gateway.channel.texts("bob") == [texts.timed_out(Reason.DEADLINE)]
        assert gateway.pending == ["one"]
        await asyncio.sleep(60)
        assert gateway.channel.texts("ann") == [texts.timed_out(Reason.DEADLINE)]
        assert agent.prompts == ["one"]


class Raising:
    """An agent that raises errors one after the other, then works."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)

    async def run(self, request: RunRequest, emit: Emit) -> AgentResult:
        await asyncio.sleep(1)
        if self.errors:
            raise self.errors.pop(0)
        return AgentResult("fine")

    async def warm_up(self) -> None: ...

    async def close(self) -> None: ...


class Strange(BaseException):
    """Derived from the root, as some libraries' control flow is."""


async def test_whatever_an_agent_raises_is_an_outcome_and_the_queue_lives_on() -> None:
    """SPEC QUEUE-10."""
    errors = ValueError("broken"), SystemExit(3), KeyboardInterrupt(), Strange(), TimeoutError()
    async with a_process(Raising(*errors), Ways(AT_ONCE)) as gateway:
        for _ in errors:
            assert await gateway.ask("one") == texts.FAILED
        assert await gateway.ask("two") == "fine"
        assert await gateway.outcomes() == [*[Outcome.FAILED] * len(errors), Outcome.COMPLETED]


async def test_an_agent_that_cancels_itself_ends_as_cancelled() -> None:
    """SPEC QUEUE-10."""
    async with a_process(Raising(asyncio.CancelledError()), Ways(AT_ONCE)) as gateway:
        await gateway.say("one")
        await asyncio.sleep(10)
        assert await gateway.outcomes() == [Outcome.CANCELLED]
        assert gateway.pending == []
        assert await gateway.ask("two") == "fine"


async def test_a_full_queue_may_refuse_the_newest_and_says_so() -> None:
    """SPEC QUEUE-5."""
    agent = ScriptedAgent(Block())
    async with a_process(agent, Ways(QueuePolicy(capacity=1, drop=Drop.NEW))) as gateway:
        await gateway.say("works", "waits", "comes too late")
        await gateway.channel.until_sent(1)
        assert gateway.channel.texts() == [texts.dropped(["comes too late"], Reason.QUEUE_FULL)]
        agent.release()
        await agent.until_started(2)
        assert agent.prompts == ["works", "waits"]
