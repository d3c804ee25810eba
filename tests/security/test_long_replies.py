"""An agent says more than anybody reads (SPEC AGENT-13).

Promised: its run ends with the reason, whatever kind of agent it is, and no long text is formatted
in the event loop. Tried: one text of 100 MB, a million small ones, a reply that is never emitted, a
function in a thread that emits faster than the loop can listen.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable

import pytest

from goclaw_py.agents.callable import MOST_WAITING, CallableAgent
from goclaw_py.core.concurrency import LONG as WORTH_A_THREAD
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.run_events import TextDelta
from goclaw_py.runs import agent_executor, thoughts
from goclaw_py.runs.agent_loop import Emit, LoopEvent, RunRequest
from goclaw_py.runs.replies import draft
from goclaw_py.testing.agents import Say, ScriptedAgent, Stream
from goclaw_py.testing.channel import RecordingChannel
from tests.support.harness import Ways, a_process, until
from tests.support.jobs import Wanted, ends, every, log_of, make, setup
from tests.support.model_agents import model_agents
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


async def test_a_long_reply_is_searched_for_thoughts_beside_the_event_loop(
    searched: list[tuple[int, bool]],
) -> None:
    """A reader of backticks and tags needs a second for a million characters."""

    async def target(_: RunRequest, _emit: Emit) -> str:
        return f"<think>{'` ' * 50_000}</think>fine"

    async with a_process(CallableAgent(target)) as gateway:
        assert await gateway.ask("hi") == "fine"
    assert in_loop(searched) == {False}


@pytest.mark.slow
@pytest.mark.real_time
async def test_a_long_reply_of_a_model_is_searched_for_thoughts_beside_the_event_loop(
    searched: list[tuple[int, bool]],
) -> None:
    """It may come in one event, too."""
    async with model_agents() as agents:
        text = f"<think>{'` ' * 5_000}</think>fine"
        delta = {"index": 0, "delta": {"content": text}, "finish_reason": "stop"}
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "choices": [delta]}
        event = f"data: {json.dumps(chunk)}\n\n"
        heard = thoughts.ThoughtFilter()

        def hear(event: LoopEvent) -> None:
            if isinstance(event, TextDelta):
                heard.feed(event.text)

        agent, orders = agents.make(), (f"exactly {json.dumps(text)}", f"raw {json.dumps([event])}")
        for order in orders:
            assert (await agent.run(request(order), hear)).text == "fine"
    assert in_loop(searched) == {False}


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bool]]:
    """The lengths of what was searched for thoughts, and whether it was in the event loop."""
    found, read = list[tuple[int, bool]](), thoughts.ThoughtFilter.feed

    def record(self: thoughts.ThoughtFilter, piece: str) -> str:
        found.append((len(piece), threading.current_thread() is threading.main_thread()))
        return read(self, piece)

    monkeypatch.setattr(thoughts.ThoughtFilter, "feed", record)
    return found


def in_loop(searched: list[tuple[int, bool]]) -> set[bool]:
    """Return whether long texts were searched in the event loop."""
    return {was_in_loop for length, was_in_loop in searched if length > WORTH_A_THREAD}


async def test_a_draft_shows_only_the_beginning_of_a_long_reply() -> None:
    """It is formatted at each edit."""
    pieces = ("a" * 1_000,) * 100
    channel = RecordingChannel(drafting=True)
    async with a_process(ScriptedAgent(Stream(pieces, every_s=1)), channels=(channel,)) as gateway:
        await gateway.ask("hi")
        (texts,) = channel.drafted.values()
        *drafted, _final = map(len, texts)
        assert drafted[-1] == draft.MOST_CHARS
        assert len(drafted) <= draft.MOST_CHARS // 1_000
