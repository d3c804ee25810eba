"""What a session's runs may do to each other, and in a long conversation (SPEC QUEUE-7)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from goclaw_py.chat.outbound import texts
from goclaw_py.chat.stop.plan import Stop
from goclaw_py.core.ids import MAIN_AGENT, AgentName, SessionKey
from goclaw_py.core.messages import PeerKind
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.run_events import TextDelta
from goclaw_py.runs.agent_loop import AgentResult, Emit, RunRequest, TextPart
from goclaw_py.runs.context_usage import ContextUsage
from goclaw_py.scheduler.models import Mode, QueuePolicy
from goclaw_py.testing.agents import (
    Block,
    Emitting,
    Ignore,
    Return,
    Say,
    ScriptedAgent,
    Step,
    Stream,
)
from tests.support.harness import (
    GatewayProcess,
    Ways,
    a_process,
    message,
    session_of,
    until,
    working,
)

AT_ONCE = QueuePolicy()


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


async def test_nothing_that_an_abandoned_run_says_reaches_history_or_chat() -> None:
    """SPEC QUEUE-2: events, result and history are fenced."""

    class Stubborn(ScriptedAgent):
        async def run(self, request: RunRequest, emit: Emit) -> AgentResult:
            result = await super().run(request, emit)
            emit(TextDelta("and one thing more"))
            return result

    agent = Stubborn(Emitting((TextDelta("early"),), Ignore(for_s=50, reply="too late")))
    async with working("one", agent=agent, ways=Ways(AT_ONCE)) as gateway:
        await gateway.say("/stop")
        await asyncio.sleep(200)
        assert len(agent.finished) == 1
        assert gateway.channel.shown(agent.requests[0].run_id) == "early"
        assert gateway.channel.texts() == ["Stopped."]
        assert await gateway.texts_in_history() == ["one", "[abandoned]"]
        (run,) = await gateway.store.runs()
        assert (run.outcome, run.reason) == (Outcome.ABANDONED, Reason.STOPPED)
        assert gateway.pending == []


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
        assert await gateway.texts_in_history() == [turn, f"re: {turn}"]


async def test_bursts_of_two_people_in_a_group_are_two_turns() -> None:
    """SPEC QUEUE-6: one sender, one session."""
    async with a_process() as gateway:
        for sender in ("ann", "bob", "ann", "bob"):
            said = message(f"from {sender}", chat="club", sender=sender, peer=PeerKind.GROUP)
            await gateway.gateway.accept([said])
        await gateway.channel.until_sent(2)
        turns = ["from ann\nfrom ann", "from bob\nfrom bob"]
        assert sorted(gateway.scripted.texts) == turns


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


@pytest.mark.parametrize(
    ("step", "outcome", "entry"),
    [
        (Block(), Outcome.TIMED_OUT, "[timed out]"),
        (Ignore(for_s=50, reply="too late"), Outcome.ABANDONED, "[abandoned]"),
    ],
)
async def test_a_run_that_takes_too_long_is_stopped_or_abandoned_and_told(
    step: Step, outcome: Outcome, entry: str
) -> None:
    """SPEC QUEUE-9: no question is left without an answer."""
    async with a_process(ScriptedAgent(step), Ways(AT_ONCE, run_timeout_s=20)) as gateway:
        await gateway.say("work", apart_s=200)
        assert gateway.channel.texts() == [texts.timed_out(Reason.RUN_TIMEOUT)]
        (run,) = await gateway.store.runs()
        assert (run.outcome, run.reason) == (outcome, Reason.RUN_TIMEOUT)
        assert await gateway.texts_in_history() == ["work", entry]


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
    exits = SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()
    errors = ValueError("broken"), Strange(), TimeoutError(), *exits
    async with a_process(Raising(*errors), Ways(AT_ONCE)) as gateway:
        for _ in errors:
            assert await gateway.ask("one") == texts.FAILED
        assert gateway.pending == []
        assert await gateway.ask("three") == "fine"
        ends = [*[Outcome.FAILED] * len(errors), Outcome.COMPLETED]
        assert await gateway.outcomes() == ends


WINDOW = 1000
WAYS = Ways(group=QueuePolicy(concurrency=3), main_lane=9, context_window=WINDOW)
CHAT, OTHER = SessionKey("chat"), SessionKey("other")
GROUP = session_of(peer=PeerKind.GROUP)


def told(request: RunRequest) -> Step:
    """``used N`` ends with so many tokens; anything else blocks."""
    match request.own_texts.split():
        case ["used", tokens]:
            return Return(AgentResult("ok", context_tokens=int(tokens)))
        case ["silent"]:
            return Return(AgentResult("ok"))
        case _:
            return Block()


async def say(gateway: GatewayProcess, *texts: str) -> None:
    for number, text in enumerate(texts):
        await gateway.gateway.accept([message(text, sender=f"p{number}", peer=PeerKind.GROUP)])
        await asyncio.sleep(0.05)


async def works_at_once(gateway: GatewayProcess) -> int:
    """How many of five more messages are worked on at once; then all is stopped."""
    assert not gateway.scripted.active
    await say(gateway, *"abcde")
    await asyncio.sleep(1)
    active = len(gateway.scripted.active)
    gateway.container.stops.local.stop(Stop(GROUP, everything=True))
    await asyncio.sleep(1)
    return active


@pytest.mark.parametrize(
    ("texts", "at_once"),
    [
        (["used 0"], 3),
        (["used 599"], 3),
        (["used 600"], 1),
        (["used 5000"], 1),
        (["used 900", "silent"], 1),
    ],
)
async def test_from_sixty_percent_on_a_session_runs_one_by_one(
    texts: list[str], at_once: int
) -> None:
    """A run that does not tell changes nothing; another session is not slowed down."""
    async with a_process(ScriptedAgent(otherwise=told), WAYS) as gateway:
        await gateway.gateway.accept([message("used 900", chat="club", peer=PeerKind.GROUP)])
        await say(gateway, *texts)
        assert await works_at_once(gateway) == at_once


async def test_a_run_that_fills_the_context_slows_down_what_waits_already() -> None:
    """SPEC QUEUE-7: nothing is cancelled, but the next one waits until all have ended."""
    agent = ScriptedAgent(otherwise=told)
    async with a_process(agent, WAYS) as gateway:
        await say(gateway, "first", "second", "used 900", "third", "fourth")
        first, second, _ = (request.run_id for request in agent.requests)
        assert agent.active == {first, second}
        agent.release(first)
        await asyncio.sleep(1)
        assert agent.active == {second}
        agent.release(second)
        await asyncio.sleep(1)
        assert agent.texts[3:] == ["third"]


async def test_a_context_that_was_made_small_again_lets_what_waits_start() -> None:
    agent = ScriptedAgent(otherwise=told)
    async with a_process(agent, WAYS) as gateway:
        await say(gateway, "used 900", "works", "used 100", "a", "b", "c", "d")
        assert agent.texts == ["used 900", "works"]
        agent.release()
        await asyncio.sleep(1)
        assert agent.texts[2:] == ["used 100", "a", "b", "c"]


@pytest.mark.parametrize("by", ["/new", "the operator"])
async def test_a_fresh_conversation_is_fast_again(by: str) -> None:
    async with a_process(ScriptedAgent(otherwise=told), WAYS) as gateway:
        await say(gateway, "used 900")
        if by == "/new":
            await say(gateway, "/new")
            await gateway.channel.until_sent(2)
        else:
            await gateway.control.sessions.reset(GROUP)
        assert await works_at_once(gateway) == 3


async def test_what_a_stopped_run_tells_does_not_reach_the_fresh_conversation() -> None:
    """SPEC QUEUE-2, CMD-5: it goes on for a while and then gives its result."""

    class Late(ScriptedAgent):
        async def run(self, request: RunRequest, emit: object) -> AgentResult:
            result = await ScriptedAgent.run(self, request, lambda _: None)
            return AgentResult(result.text, context_tokens=900)

    agent = Late(Ignore(3, reply="late"), otherwise=told)
    async with a_process(agent, WAYS) as gateway:
        await say(gateway, "works", "/new")
        await asyncio.sleep(10)
        assert agent.finished != []
        assert gateway.gateway._policies.contexts.used(GROUP) is None


async def test_the_chats_own_mode_and_the_throttle_hold_together() -> None:
    async with a_process(ScriptedAgent(otherwise=told), WAYS) as gateway:
        await say(gateway, "used 900", "/queue collect", "works", "a", "b")
        gateway.scripted.release()
        await until(lambda: len(gateway.scripted.prompts) == 3)
        assert gateway.scripted.prompts[2] == "P3 (id p3): a\nP4 (id p4): b"
        assert gateway.gateway._policies.chosen(GROUP) is Mode.COLLECT


async def test_the_status_tells_how_much_of_the_context_is_used() -> None:
    async with a_process(ScriptedAgent(otherwise=told), WAYS) as gateway:
        assert "context" not in await gateway.ask("/status")
        await gateway.ask("used 431")
        assert "43% of the context used" in await gateway.ask("/status")


async def test_a_process_that_has_expired_forgets_how_full_its_conversations_are() -> None:
    """SPEC QUEUE-7: another process may have begun them anew."""
    async with a_process(ScriptedAgent(otherwise=told), WAYS) as gateway:
        await say(gateway, "used 700")
        gateway.gateway.forget_everything(gateway.node())
        assert await works_at_once(gateway) == 3


def test_a_crossing_is_told_once_in_each_direction_by_the_window_of_the_agent() -> None:
    contexts = ContextUsage({MAIN_AGENT: WINDOW, AgentName("large"): 10_000})
    crossed = [contexts.note(CHAT, MAIN_AGENT, tokens) for tokens in (599, 600, 700, 599, 1, 700)]
    assert crossed == [False, True, False, True, False, True]
    contexts.note(OTHER, AgentName("large"), 700)
    assert (contexts.used(CHAT), contexts.used(OTHER)) == (0.7, 0.07)


def test_the_throttle_leaves_all_but_the_number_of_runs_alone() -> None:
    contexts = ContextUsage({MAIN_AGENT: WINDOW})
    contexts.forget(CHAT)  # unknown, which is harmless
    policy = QueuePolicy(Mode.COLLECT, 7, debounce_s=0.5, concurrency=3)
    assert contexts.throttled(CHAT, policy) is policy
    contexts.note(CHAT, MAIN_AGENT, WINDOW)
    assert contexts.throttled(CHAT, policy) == replace(policy, concurrency=1)


def test_what_is_remembered_is_bounded_and_the_longest_quiet_goes_first() -> None:
    contexts = ContextUsage({MAIN_AGENT: WINDOW})
    contexts.note(CHAT, MAIN_AGENT, 700)
    contexts.note(OTHER, MAIN_AGENT, 700)
    for number in range(9_998):
        contexts.note(SessionKey(f"s{number}"), MAIN_AGENT, 700)
    contexts.note(CHAT, MAIN_AGENT, 800)
    contexts.note(SessionKey("one more"), MAIN_AGENT, 700)
    assert contexts.used(OTHER) is None
    assert contexts.used(CHAT) == 0.8
