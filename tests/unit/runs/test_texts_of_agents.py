"""Halves of UTF-16 pairs and thoughts in what agents say (SPEC AGENT-1)."""

from __future__ import annotations

import pytest

from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.run_events import RunText, ToolEnded, ToolStarted
from goclaw_py.testing.agents import Emitting, Say, ScriptedAgent, Stream
from goclaw_py.testing.channel import RecordingChannel
from tests.support.harness import Ways, a_process, until
from tests.support.jobs import Wanted, ends, every, log_of, make, setup

TEXTS = {
    "a pair in two pieces": (("party \ud83c", "\udf89 time"), "party 🎉 time"),
    "half of one alone": (("\ud83d",), "\ufffd"),
    "a second half alone": (("a", "\ude00", "b"), "a\ufffdb"),
}


@pytest.mark.parametrize(("pieces", "text"), TEXTS.values(), ids=list(TEXTS))
async def test_an_answer_with_halves_is_sent_and_remembered(
    pieces: tuple[str, ...], text: str
) -> None:
    async with a_process(ScriptedAgent(Stream(pieces, every_s=2), Say("next"))) as gateway:
        assert await gateway.ask("hi") == text
        assert await gateway.ask("and then?") == "next"
        assert await gateway.texts_in_history() == ["hi", text, "and then?", "next"]


async def test_what_is_streamed_never_has_a_half() -> None:
    pieces = ("party \ud83c", "\udf89 time", " \ud83d", "!")
    async with a_process(ScriptedAgent(Stream(pieces))) as gateway:
        await gateway.ask("hi")
        shown = [said.text for said in gateway.channel.signals if isinstance(said, RunText)]
        assert shown == ["party ", "🎉 time", " ", "\ufffd!"]


async def test_calls_with_halves_are_recorded() -> None:
    calls = (
        ToolStarted("call_\ud83d", "look\ud83d", '{"a": "\ud83d"}'),
        ToolEnded("call_\ud83d", "look\ud83d", ok=True, result="\ude00"),
    )
    async with a_process(ScriptedAgent(Emitting(calls, Say("done")))) as gateway:
        assert await gateway.ask("hi") == "done"
        assert await gateway.outcomes() == [Outcome.COMPLETED]


@pytest.mark.parametrize(("pieces", "text"), TEXTS.values(), ids=list(TEXTS))
async def test_a_job_whose_answer_has_halves_goes_on(pieces: tuple[str, ...], text: str) -> None:
    agent = ScriptedAgent(otherwise=lambda _: Stream(pieces))
    async with a_process(agent, Ways(jobs=setup())) as gateway:
        job = await make(gateway, Wanted(every(10)))
        await until(lambda: len(agent.requests) == 3)
        assert set(await ends(gateway, job)) == {"ok"}
        assert (await log_of(gateway, job))[0].output == text


THOUGHTS = (
    ("<think>hm, secret</think>Good day",),
    ("<think>hm, secret", "</think>", "Good day"),
    tuple("<think>hm, secret</think>Good day"),
)


@pytest.mark.parametrize("pieces", THOUGHTS, ids=["one piece", "tags", "characters"])
async def test_thoughts_are_neither_shown_nor_sent_nor_remembered(pieces: tuple[str, ...]) -> None:
    agent, channel = ScriptedAgent(Stream(pieces, every_s=2)), RecordingChannel(drafting=True)
    async with a_process(agent, channels=(channel,)) as gateway:
        assert await gateway.ask("hi") == "Good day"
        assert await gateway.texts_in_history() == ["hi", "Good day"]
        shown = [said.text for said in channel.signals if isinstance(said, RunText)]
        assert "".join(shown) == "Good day"
        assert not [text for text in channel.drafted if "secret" in str(text)]


async def test_an_answer_that_ends_like_a_tag_is_shown_whole() -> None:
    async with a_process(ScriptedAgent(Stream(("a <", "thi")))) as gateway:
        assert await gateway.ask("hi") == "a <thi"
        shown = [said.text for said in gateway.channel.signals if isinstance(said, RunText)]
        assert "".join(shown) == "a <thi"
