"""A long conversation works on one thing at a time (SPEC QUEUE-7, CMD-5)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from goclaw_py.chats.context_usage import ContextUsage
from goclaw_py.model.ids import AgentName, SessionKey
from goclaw_py.model.messages import PeerKind
from goclaw_py.ports.agent import AgentResult, RunRequest
from goclaw_py.scheduler.models import Mode, QueuePolicy
from goclaw_py.testing.agents import Block, Ignore, Return, ScriptedAgent, Step
from tests.support.harness import GatewayProcess, Ways, a_process, message, session_of, until

WINDOW = 1000
WAYS = Ways(group=QueuePolicy(concurrency=3), main_lane=9, context_window=WINDOW)
MAIN = AgentName("main")
CHAT, OTHER = SessionKey("chat"), SessionKey("other")
GROUP = session_of(peer=PeerKind.GROUP)


def told(request: RunRequest) -> Step:
    """``used N`` ends with so many tokens; anything else blocks."""
    match request.said.split():
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
    before = len(gateway.scripted.active)
    assert before == 0
    await say(gateway, *"abcde")
    await asyncio.sleep(1)
    active = len(gateway.scripted.active)
    gateway.container.canceller.stop(GROUP, everything=True)
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
async def test_from_sixty_percent_on_a_session_works_on_one_run_at_a_time(
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
        assert agent.said[3:] == ["third"]


async def test_a_context_that_was_made_small_again_lets_what_waits_start() -> None:
    agent = ScriptedAgent(otherwise=told)
    async with a_process(agent, WAYS) as gateway:
        await say(gateway, "used 900", "works", "used 100", "a", "b", "c", "d")
        assert agent.said == ["used 900", "works"]
        agent.release()
        await asyncio.sleep(1)
        assert agent.said[2:] == ["used 100", "a", "b", "c"]


@pytest.mark.parametrize("by", ["/new", "the operator"])
async def test_a_fresh_conversation_is_fast_again(by: str) -> None:
    async with a_process(ScriptedAgent(otherwise=told), WAYS) as gateway:
        await say(gateway, "used 900")
        if by == "/new":
            await say(gateway, "/new")
            await gateway.channel.until_sent(2)
        else:
            await gateway.control.reset(GROUP)
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
        assert "Context" not in await gateway.ask("/status")
        await gateway.ask("used 431")
        assert "Context used: 43%" in await gateway.ask("/status")


async def test_a_process_that_was_declared_dead_forgets_how_full_its_conversations_are() -> None:
    """SPEC QUEUE-7: another process may have begun them anew."""
    async with a_process(ScriptedAgent(otherwise=told), WAYS) as gateway:
        await say(gateway, "used 700")
        gateway.gateway.forget_everything()
        assert await works_at_once(gateway) == 3


def test_a_crossing_is_told_once_in_each_direction_by_the_window_of_the_agent() -> None:
    contexts = ContextUsage({MAIN: WINDOW, AgentName("large"): 10_000})
    crossed = [contexts.note(CHAT, MAIN, tokens) for tokens in (599, 600, 700, 599, 1, 700)]
    assert crossed == [False, True, False, True, False, True]
    contexts.note(OTHER, AgentName("large"), 700)
    assert (contexts.used(CHAT), contexts.used(OTHER)) == (0.7, 0.07)


def test_the_throttle_leaves_all_but_the_number_of_runs_alone() -> None:
    contexts = ContextUsage({MAIN: WINDOW})
    contexts.forget(CHAT)  # unknown, which is harmless
    policy = QueuePolicy(Mode.COLLECT, 7, debounce_s=0.5, concurrency=3)
    assert contexts.throttled(CHAT, policy) is policy
    contexts.note(CHAT, MAIN, WINDOW)
    assert contexts.throttled(CHAT, policy) == replace(policy, concurrency=1)


def test_what_is_remembered_is_bounded_and_the_longest_quiet_goes_first() -> None:
    contexts = ContextUsage({MAIN: WINDOW})
    contexts.note(CHAT, MAIN, 700)
    contexts.note(OTHER, MAIN, 700)
    for number in range(9_998):
        contexts.note(SessionKey(f"s{number}"), MAIN, 700)
    contexts.note(CHAT, MAIN, 800)
    contexts.note(SessionKey("one more"), MAIN, 700)
    assert contexts.used(OTHER) is None
    assert contexts.used(CHAT) == 0.8
