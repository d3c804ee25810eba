"""The one line that people see of a run that does not go on (SPEC CHAN-14)."""

from __future__ import annotations

import asyncio
from itertools import groupby

import pytest

from goclaw_py.core.errors import AgentError
from goclaw_py.core.run_events import RunWaiting, TextDelta, ToolEnded, ToolStarted, Waiting
from goclaw_py.runs.agent_loop import AgentResult, Emit, LoopEvent, RequestSent, RunRequest
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.testing.agents import Block, Emitting, Fail, Say, ScriptedAgent, Step
from tests.support.drafting import DraftingChannel, replying
from tests.support.harness import GatewayProcess, Ways, a_process, until
from tests.support.memory_store import MemoryDatabase

AT_ONCE = Ways(QueuePolicy())
SILENT = "⏳ Still waiting for the model …"
RESUMED = "↻ Continuing after a restart …"
PAY = ToolStarted("1", "pay", "{}")
PAID = ToolEnded("1", "pay", ok=True)
SERVER = Waiting("the tools of bank")
SERVER_BACK = Waiting("the tools of bank", is_over=True)


class Acting(ScriptedAgent):
    """Emits events in each run, and waits the seconds between them."""

    def __init__(self, *script: LoopEvent | float) -> None:
        super().__init__()
        self.events = script

    async def run(self, request: RunRequest, emit: Emit) -> AgentResult:
        self.requests.append(request)
        said = ""
        for one in self.events:
            if isinstance(one, float):
                await asyncio.sleep(one)
            else:
                emit(one)
                said += one.text if isinstance(one, TextDelta) else ""
        return AgentResult(said or "done")


def shown(channel: DraftingChannel) -> list[str]:
    """What the draft has shown, one after the other."""
    return [text for text, _ in groupby(one.text for _, one in channel.asked)]


@pytest.mark.parametrize(
    ("script", "seen"),
    [
        ((RequestSent(), 29.0), []),
        ((RequestSent(), 40.0), [SILENT]),
        # One line, however long it takes.
        ((RequestSent(), 400.0), [SILENT]),
        # Each long silence of a run, since the line is gone as soon as the model speaks.
        (
            (RequestSent(), 40.0, TextDelta("a"), 40.0, TextDelta("b"), 5.0),
            [SILENT, "a", f"a\n\n{SILENT}", "ab"],
        ),
        ((RequestSent(), 20.0, TextDelta("a"), 20.0, TextDelta("b"), 20.0), ["a", "ab"]),
        # A tool at work is no silent model, and the time is that of the model alone.
        ((RequestSent(), 1.0, PAY, 90.0, PAID, RequestSent(), 20.0), ["⚙ pay …"]),
        (
            (RequestSent(), 1.0, PAY, 90.0, PAID, RequestSent(), 40.0),
            ["⚙ pay …", SILENT],
        ),
        ((RequestSent(), 40.0, PAY, 9.0, PAID, RequestSent(), 9.0), [SILENT, "⚙ pay …"]),
        ((SERVER, 50.0, SERVER_BACK, RequestSent(), 9.0), ["⚙ waiting for the tools of bank …"]),
        # An agent that asks no model is not waited for in its name.
        ((90.0,), []),
    ],
)
async def test_a_silent_model_is_named_in_one_line(
    script: tuple[LoopEvent | float, ...], seen: list[str]
) -> None:
    async with replying(Acting(*script)) as (_, channel):
        await channel.until_sent(1)
        assert shown(channel) == seen
        assert len(channel.visible()) == 1, "the answer replaces the line"
        assert "…" not in channel.visible()[0]


async def test_a_channel_without_drafts_gets_the_line_as_a_state() -> None:
    """No message: that would stay in the chat, and ring."""
    agent = Acting(RequestSent(), 40.0, TextDelta("a"), 1.0, PAY, 50.0, PAID)
    async with a_process(agent, AT_ONCE) as process:
        assert await process.ask("hello") == "a"
        signals = [one for one in process.channel.signals if isinstance(one, RunWaiting)]
        assert [one.text for one in signals] == [SILENT, ""]
        assert len(process.channel.sent) == 1


@pytest.mark.parametrize("drained", [False, True])
@pytest.mark.parametrize(
    ("script", "seen"),
    [
        ((RequestSent(), 4.0), []),
        ((RequestSent(), 20.0), [RESUMED]),
        ((20.0,), [RESUMED]),
        # It is gone as soon as there is something new, and does not come again.
        ((RequestSent(), 9.0, TextDelta("a"), 9.0, TextDelta("b"), 9.0), [RESUMED, "a", "ab"]),
        ((RequestSent(), 2.0, TextDelta("a"), 9.0, TextDelta("b"), 9.0), ["a", "ab"]),
        # The causes do not pile up.
        (
            (SERVER, 9.0, SERVER_BACK, RequestSent(), 50.0, PAY, 9.0, PAID),
            [
                "⚙ waiting for the tools of bank …",
                "↻ Continuing after a restart: waiting for the tools of bank …",
                RESUMED,
                "↻ Continuing after a restart: still waiting for the model …",
                "↻ Continuing after a restart: pay …",
                RESUMED,
            ],
        ),
    ],
)
async def test_a_person_is_told_once_that_a_run_continues_after_a_restart(
    script: tuple[LoopEvent | float, ...], seen: list[str], *, drained: bool
) -> None:
    database, channel = MemoryDatabase(), DraftingChannel()
    async with a_process(
        ScriptedAgent(Emitting((RequestSent(),), Block())),
        AT_ONCE,
        database=database,
        channels=(channel,),
    ) as first:
        await first.say("hello", apart_s=5)
        if drained:
            await first.shut_down(wait_s=0)
    again = DraftingChannel().beside(channel)
    agent = Acting(*script)
    await asyncio.sleep(20)
    async with a_process(agent, AT_ONCE, database=database, channels=(again,)):
        await until(lambda: not database.pending and not database.unsent)
        await asyncio.sleep(60)
    assert len(agent.requests) == 1
    assert shown(again) == seen
    assert len(again.visible()) == 1
    assert "…" not in again.visible()[0]


async def test_each_restart_is_told_once() -> None:
    database, channels = MemoryDatabase(), [DraftingChannel()]
    agent = Acting(RequestSent(), 20.0)
    for life in range(3):
        channels.append(DraftingChannel().beside(channels[-1]))
        shown_by = (channels[-1],)
        async with a_process(agent, AT_ONCE, database=database, channels=shown_by) as process:
            if not life:
                await process.say("hello", apart_s=9)
            else:
                await until(lambda: bool(channels[-1].asked))
            if life < 2:
                process.kill()
            else:
                await until(lambda: not database.pending and not database.unsent)
        await asyncio.sleep(20)
    assert [shown(channel) for channel in channels] == [[], [], [RESUMED], [RESUMED]]
    assert channels[-1].visible() == ["done"]


@pytest.mark.parametrize(
    "first",
    [
        Fail(AgentError("The model is overloaded.", "503", retryable=True)),
        Fail(AgentError("No.", "400")),
    ],
)
async def test_a_run_that_begins_again_without_a_restart_says_nothing_of_one(first: Step) -> None:
    async with replying(ScriptedAgent(first, otherwise=lambda _: Say("done", after_s=20))) as (
        got,
        channel,
    ):
        await asyncio.sleep(5)
        await got.say("again", apart_s=0)
        await until(lambda: not got.database.pending and not got.database.unsent)
        assert not [text for text in shown(channel) if "restart" in text]


async def test_nothing_remains_of_a_run_that_is_stopped_while_its_model_is_silent() -> None:
    async with replying(Acting(RequestSent(), 400.0)) as (gateway, channel):
        await asyncio.sleep(45)
        assert shown(channel) == [SILENT]
        await gateway.say("/stop", apart_s=5)
        assert not [text for text in channel.visible() if SILENT in text]
        await until_quiet(gateway)
        assert shown(channel) == [SILENT]


async def until_quiet(process: GatewayProcess) -> None:
    await asyncio.sleep(90)
    assert not process.database.unsent
