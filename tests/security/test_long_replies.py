"""An agent says more than anybody reads (SPEC AGENT-13).

Promised: its run ends with the reason, whatever kind of agent it is, and no long text is formatted
in the event loop. Tried: one text of 100 MB, a million small ones, a reply that is never emitted, a
function in a thread that emits faster than the loop can listen.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from goclaw_py.agents.callable import MOST_WAITING, CallableAgent
from goclaw_py.model.outcomes import Outcome
from goclaw_py.model.run_events import TextDelta
from goclaw_py.ports.agent import Emit, RunRequest
from goclaw_py.runs import agent_executor, streaming_reply
from goclaw_py.testing.agents import Say, ScriptedAgent, Stream
from goclaw_py.testing.channel import RecordingChannel
from tests.support.harness import Ways, a_process, until
from tests.support.jobs import Wanted, ends, every, log_of, make, setup
from tests.unit.agents.builders import request

FAR_TOO_MUCH = "The agent said far too much, so I stopped it."
MOST = agent_executor.MOST_CHARS
LONG = "All **work** and no play.\n\n" * 2_000


async def at_once(_: RunRequest, emit: Emit) -> str:
    emit(TextDelta("a" * 100 * MOST))
    return ""


async def in_pieces(_: RunRequest, emit: Emit) -> str:
    for _piece in range(100):
        emit(TextDelta("a" * (MOST // 50)))
    return "swallowed"


async def as_result(_: RunRequest, _emit: Emit) -> str:
    return "a" * (MOST + 1)


def from_a_thread(_: RunRequest, emit: Emit) -> str:
    for _piece in range(2 * MOST // 1_000):
        emit(TextDelta("a" * 1_000))
    return "swallowed"


@pytest.mark.parametrize("target", [at_once, in_pieces, as_result, from_a_thread])
async def test_a_reply_that_is_far_too_long_ends_the_run(
    target: Callable[[RunRequest, Emit], object],
) -> None:
    async with a_process(CallableAgent(target)) as gateway:
        said = await gateway.ask("hi")
        assert said.endswith(FAR_TOO_MUCH)
        assert len(said) <= MOST + 100
        assert await gateway.outcomes() == [Outcome.FAILED]


async def test_a_job_whose_result_is_far_too_long_fails() -> None:
    agent = ScriptedAgent(otherwise=lambda _: Say("a" * (MOST + 1)))
    async with a_process(agent, Ways(jobs=setup())) as gateway:
        job = await make(gateway, Wanted(every(10)))
        await until(lambda: len(agent.requests) == 3)
        assert set(await ends(gateway, job)) == {"failed"}
        assert "more than" in str((await log_of(gateway, job))[0].error)


async def test_a_thread_waits_until_the_loop_has_heard_what_it_says() -> None:
    """Else a million events would be handled in one turn of the loop."""
    unheard, most = 0, 0

    def target(_: RunRequest, emit: Emit) -> str:
        nonlocal unheard, most
        for _event in range(20_000):
            emit(TextDelta("a"))
            unheard += 1
            most = max(most, unheard)
        return ""

    def hear(_: object) -> None:
        nonlocal unheard
        unheard = 0

    await CallableAgent(target).run(request("hi"), hear)
    assert most <= 2 * MOST_WAITING


async def test_a_long_reply_is_formatted_beside_the_event_loop() -> None:
    threads = []

    class Recording(RecordingChannel):
        def parts(self, text: str) -> list[str]:
            threads.append(threading.current_thread())
            return super().parts(text)

    agent = ScriptedAgent(Say(LONG), Say("short"))
    async with a_process(agent, channels=(Recording(),)) as gateway:
        await gateway.ask("hi")
        assert threads == [one for one in threads if one is not threading.main_thread()] != []
        threads.clear()
        await gateway.ask("and?")
        assert set(threads) == {threading.main_thread()}


async def test_a_draft_shows_only_the_beginning_of_a_long_reply() -> None:
    """It is formatted at each edit."""
    pieces = ("a" * 1_000,) * 100
    channel = RecordingChannel(drafting=True)
    async with a_process(ScriptedAgent(Stream(pieces, every_s=1)), channels=(channel,)) as gateway:
        await gateway.ask("hi")
        (texts,) = channel.drafted.values()
        *drafted, _final = map(len, texts)
        assert drafted[-1] == streaming_reply.MOST_CHARS
        assert len(drafted) <= streaming_reply.MOST_CHARS // 1_000
