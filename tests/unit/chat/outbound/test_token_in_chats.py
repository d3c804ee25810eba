"""HEARTBEAT_OK does not come into a chat from a run that nobody has spoken to (SPEC HB-6)."""

from __future__ import annotations

import asyncio

import pytest

from goclaw_py.core.errors import AgentError, ToolFailed
from goclaw_py.core.messages import Target
from goclaw_py.core.outcomes import Trigger
from goclaw_py.runs.agent_loop import Emit, RunRequest
from goclaw_py.schedule.jobs.models import Notify
from goclaw_py.testing.agents import Do, Fail, Say, ScriptedAgent, Step, Stream
from tests.support.harness import a_process, here
from tests.support.jobs import Wanted, at, log_of, make

BOSS = Target("telegram", "default", "boss")
TOKEN = "HEARTBEAT_OK"


def sender(text: str) -> ScriptedAgent:
    """An agent that sends this to the boss, and answers with what became of it."""

    async def send(request: RunRequest, emit: Emit) -> str:
        try:
            await here(request).post.send(BOSS, text)
        except ToolFailed as error:
            return f"refused: {error}"
        return "sent"

    return ScriptedAgent(otherwise=lambda _: Do(send))


def saying(reply: str) -> ScriptedAgent:
    return ScriptedAgent(otherwise=lambda _: Say(reply))


async def test_a_message_of_a_job_is_sent_without_the_token() -> None:
    async with a_process(sender(f"**{TOKEN}** The disk is full.")) as gateway:
        await make(gateway, Wanted(at(60)))
        await asyncio.sleep(100)
        assert gateway.channel.texts("boss") == ["The disk is full."]


@pytest.mark.parametrize("text", [TOKEN, f"> **{TOKEN}**", f"\u200b{TOKEN}\u200b"])
async def test_a_message_that_is_only_the_token_is_refused_in_words(text: str) -> None:
    async with a_process(sender(text)) as gateway:
        job = await make(gateway, Wanted(at(60)))
        await asyncio.sleep(100)
        assert gateway.channel.texts("boss") == []
        (row,) = await log_of(gateway, job)
        assert row.output.startswith("refused:")
        assert "nothing was sent" in row.output


async def test_a_subagent_sends_no_token_either() -> None:
    async def ask(request: RunRequest, emit: Emit) -> str:
        return await here(request).children.subagent("work")

    async def send(request: RunRequest, emit: Emit) -> str:
        await here(request).post.send(BOSS, f"{TOKEN}: done")
        return "sent"

    def step(request: RunRequest) -> Step:
        return Do(send if request.trigger is Trigger.SUBAGENT else ask)

    async with a_process(ScriptedAgent(otherwise=step)) as gateway:
        await gateway.ask("hello")
        await asyncio.sleep(10)
        assert gateway.channel.texts("boss") == ["done"]


async def test_who_asks_about_the_token_in_a_chat_is_answered() -> None:
    async with a_process(sender(f"Say {TOKEN} when all is well.")) as gateway:
        await gateway.ask("what is it?")
        await gateway.channel.until_sent(2)
        assert gateway.channel.texts("boss") == [f"Say {TOKEN} when all is well."]


@pytest.mark.parametrize("reply", [TOKEN, f"```\n{TOKEN}\n```", f"{TOKEN} NO_REPLY"])
async def test_a_job_that_says_only_the_token_is_silent(reply: str) -> None:
    async with a_process(saying(reply)) as gateway:
        job = await make(gateway, Wanted(at(60)))
        await asyncio.sleep(100)
        assert gateway.channel.texts("ann") == []
        (row,) = await log_of(gateway, job)
        assert row.output == reply


async def test_the_result_of_a_job_is_told_without_the_token() -> None:
    async with a_process(saying(f"{TOKEN}\n\nThe disk is full.")) as gateway:
        await make(gateway, Wanted(at(60)))
        await asyncio.sleep(100)
        (told,) = gateway.channel.texts("ann")
        assert told.endswith("The disk is full.")
        assert TOKEN not in told


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (f"[NOTIFY] {TOKEN} Rain!", "Rain!"),
        (f"{TOKEN} [NOTIFY] Rain!", "Rain!"),
        (f"[NOTIFY]{TOKEN}", None),
        (f"{TOKEN} all dry", None),
    ],
)
async def test_the_token_does_not_hide_that_a_job_has_to_say_something(
    reply: str, told: str | None
) -> None:
    async with a_process(saying(reply)) as gateway:
        await make(gateway, Wanted(at(60), notify=Notify.CONDITIONAL))
        await asyncio.sleep(100)
        texts = gateway.channel.texts("ann")
        assert [told is not None and text.endswith(told) for text in texts] == [True] * bool(told)
        assert not any(TOKEN in text for text in texts)


async def test_the_failure_of_a_job_is_told_without_the_token() -> None:
    failing = ScriptedAgent(otherwise=lambda _: Fail(AgentError(f"{TOKEN} I have no key.", "401")))
    async with a_process(failing) as gateway:
        await make(gateway, Wanted(at(60)))
        await asyncio.sleep(100)
        texts = gateway.channel.texts("ann")
        assert any("I have no key." in text for text in texts)
        assert not any(TOKEN in text for text in texts)


async def test_nothing_of_a_job_is_streamed_to_a_chat() -> None:
    """SPEC HB-6: what it says is seen when it is over, or never."""
    streaming = ScriptedAgent(otherwise=lambda _: Stream((TOKEN, " and", " more"), every_s=20))
    async with a_process(streaming) as gateway:
        gateway.channel.drafting = True
        await make(gateway, Wanted(at(60)))
        await asyncio.sleep(90)
        assert len(gateway.scripted.active) == 1
        assert gateway.channel.sent == []
        assert gateway.channel.drafted == {}
        assert gateway.channel.signals == []
        await asyncio.sleep(100)
        (told,) = gateway.channel.texts("ann")
        assert told.endswith("and more")
        assert TOKEN not in told
