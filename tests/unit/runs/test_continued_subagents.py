"""Background subagents continue after an interruption (SPEC AGENT-6, AGENT-10)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

import pytest

from goclaw_py.agents.callable import CallableAgent
from goclaw_py.core.outcomes import Outcome, Trigger
from goclaw_py.core.run_events import ToolEnded, ToolStarted
from goclaw_py.records import RunQuery, StoredRun
from goclaw_py.runs.agent_loop import Emit, RunRequest
from goclaw_py.testing.channel import RecordingChannel
from tests.support.harness import GatewayProcess, a_process, here, session_of, until
from tests.support.memory_store import MemoryDatabase

PAYEES = ("Ann", "Bob", "Eve")
RESULT = "re: [Subagent “bills” finished]\npaid Ann, Bob, Eve"
LOST = "re: [Subagent “bills” did not finish]\nThe program crashed each time it tried."


@dataclass
class Payer:
    """An agent whose subagent pays three bills; it hangs before the payment ``hangs_at``.

    ``hangs_at`` 3: after all payments. ``key`` is that of the call that starts the subagent.
    """

    hangs_at: int | None = None
    key: str = ""
    parent_hangs: bool = False
    subagents: int = 1
    paid: list[str] = field(default_factory=list)
    hanging: int = 0

    async def __call__(self, request: RunRequest, emit: Emit) -> str:
        match request.prompt.split()[0]:
            case "spawn":
                return await self._spawn(request)
            case "pay":
                return await self._pay(request, emit)
            case _:
                return f"re: {request.prompt}"

    async def _spawn(self, request: RunRequest) -> str:
        for _ in range(self.subagents):
            assert await here(request).children.spawn("pay bills", "bills", self.key) is not None
        if self.parent_hangs:
            await self._hang()
        return "started"

    async def _pay(self, request: RunRequest, emit: Emit) -> str:
        for number, payee in enumerate(PAYEES):
            if number == self.hangs_at:
                await self._hang()
            emit(ToolStarted(payee, "pay", f'"{payee}"'))
            await request.step(payee, partial(self._send, payee))
            emit(ToolEnded(payee, "pay", ok=True))
        if self.hangs_at == len(PAYEES):
            await self._hang()
        return f"paid {', '.join(PAYEES)}"

    async def _send(self, payee: str) -> str:
        self.paid.append(payee)
        return payee

    async def _hang(self) -> None:
        self.hanging += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.hanging -= 1


@asynccontextmanager
async def hanging(payer: Payer, database: MemoryDatabase) -> AsyncIterator[GatewayProcess]:
    """A process whose subagents hang."""
    wanted = payer.subagents + payer.parent_hangs
    async with a_process(CallableAgent(payer), database=database) as gateway:
        await gateway.say("spawn")
        await until(lambda: payer.hanging == min(wanted, 4))
        yield gateway


async def subagents(gateway: GatewayProcess) -> list[StoredRun]:
    """The runs of subagents, the oldest first."""
    runs = reversed(await gateway.store.runs(RunQuery(limit=100)))
    return [run for run in runs if run.trigger is Trigger.SUBAGENT]


@pytest.mark.parametrize("hangs_at", range(len(PAYEES) + 1))
@pytest.mark.parametrize("how", ["crash", "shutdown", "takeover"])
async def test_an_interrupted_subagent_continues_and_its_result_comes_once(
    how: str, hangs_at: int
) -> None:
    database, payer, rest = MemoryDatabase(), Payer(hangs_at), Payer()
    async with hanging(payer, database) as first:
        if how == "takeover":
            async with a_process(CallableAgent(rest), database=database) as other:
                first.kill()
                await check_that_it_finishes(other, payer.paid, rest)
            return
        if how == "crash":
            first.kill()
            await first.bury()
        else:
            await first.shut_down(wait_s=1.0)
    async with a_process(CallableAgent(rest), database=database) as again:
        await check_that_it_finishes(again, payer.paid, rest)
        await again.shut_down()
    async with a_process(CallableAgent(rest), database=database) as third:
        await asyncio.sleep(120)
        assert third.channel.texts() == []


async def check_that_it_finishes(gateway: GatewayProcess, paid: list[str], rest: Payer) -> None:
    await gateway.channel.until_sent(1)
    await asyncio.sleep(120)
    assert gateway.channel.texts() == [RESULT]
    assert [*paid, *rest.paid] == list(PAYEES)
    before, after = await subagents(gateway)
    assert after.outcome is Outcome.COMPLETED
    assert (after.session, after.parent, after.payer) == (
        before.session, before.parent, session_of(),
    )  # fmt: skip


async def test_all_interrupted_subagents_continue_also_those_that_waited_for_their_lane() -> None:
    database, payer = MemoryDatabase(), Payer(hangs_at=1, subagents=6)
    async with hanging(payer, database) as first:
        first.kill()
        await first.bury()
    assert len(payer.paid) == 4
    rest = Payer()
    async with a_process(CallableAgent(rest), database=database) as again:
        await again.channel.until_sent(6)
        assert sorted([*payer.paid, *rest.paid]) == sorted(PAYEES * 6)


async def test_a_subagent_that_crashes_each_time_is_announced_with_what_it_did() -> None:
    database = MemoryDatabase()
    async with hanging(Payer(hangs_at=1), database) as process:
        process.kill()
        await process.bury()
    for hangs_at in (2, 2):
        payer = Payer(hangs_at)
        async with a_process(CallableAgent(payer), database=database) as process:
            await until(partial(lambda payer: payer.hanging == 1, payer))
            process.kill()
            await process.bury()
    done = "Before that I had called tools (completed: pay 5 times)."
    for told in ([f"{LOST} {done}"], []):
        async with a_process(CallableAgent(Payer()), database=database) as process:
            await asyncio.sleep(120)
            assert process.channel.texts() == told
            await process.shut_down()


async def test_shutdowns_are_no_attempts() -> None:
    database = MemoryDatabase()
    async with hanging(Payer(hangs_at=1), database) as process:
        await process.shut_down(wait_s=1.0)
    for _ in range(4):
        payer = Payer(hangs_at=2)
        async with a_process(CallableAgent(payer), database=database) as process:
            await until(partial(lambda payer: payer.hanging == 1, payer))
            await process.shut_down(wait_s=1.0)
    async with a_process(CallableAgent(Payer()), database=database) as process:
        await process.channel.until_sent(1)
        assert process.channel.texts() == [RESULT]


async def test_a_repeated_call_starts_no_second_subagent() -> None:
    """The parent was interrupted before it knew that the subagent had started."""
    database, payer = MemoryDatabase(), Payer(hangs_at=1, key="call", parent_hangs=True)
    async with hanging(payer, database) as first:
        first.kill()
        await first.bury()
    rest = Payer(key="call")
    async with a_process(CallableAgent(rest), database=database) as again:
        await again.channel.until_sent(2)
        await asyncio.sleep(120)
        assert sorted(again.channel.texts()) == [RESULT, "started"]
        assert [*payer.paid, *rest.paid] == list(PAYEES)


async def test_a_node_without_the_channel_leaves_it_to_others() -> None:
    database, elsewhere = MemoryDatabase(), (RecordingChannel("web"),)
    other = CallableAgent(Payer())
    async with a_process(other, database=database, channels=elsewhere) as without:
        async with hanging(Payer(hangs_at=0), database) as first:
            first.kill()
            await asyncio.sleep(60)
            assert [run.outcome for run in await subagents(without)] == [Outcome.LOST]
        async with a_process(CallableAgent(Payer()), database=database) as later:
            await later.channel.until_sent(1)
            assert later.channel.texts() == [RESULT]


async def test_a_subagent_that_is_found_during_a_shutdown_is_left_to_the_next_process() -> None:
    database, elsewhere = MemoryDatabase(), (RecordingChannel("web"),)
    async with hanging(Payer(hangs_at=1), database) as first:
        first.kill()
        await first.bury()
    other = CallableAgent(Payer())
    async with a_process(other, database=database, channels=elsewhere) as ending:
        await asyncio.sleep(60)
        await ending.container.drain(1.0, asyncio.Event())
        since = ending.clock.now() - timedelta(days=1)
        await ending.container.children.resume(
            await ending.store.interrupted_subagents(since=since)
        )
        await until(lambda: not ending.dispatcher._records)
        outcomes = [run.outcome for run in await subagents(ending)]
        assert outcomes == [Outcome.LOST, Outcome.INTERRUPTED]
        await ending.shut_down()
    async with a_process(CallableAgent(Payer()), database=database) as process:
        await process.channel.until_sent(1)
        assert process.channel.texts() == [RESULT]


@pytest.mark.parametrize(
    ("typed", "elsewhere"),
    [
        ("stop", False),
        ("/stop", False),
        ("/stop", True),
        ("/stopall", False),
        ("/stopall", True),
        ("/new", False),
    ],
)
async def test_a_continued_subagent_is_stopped(typed: str, *, elsewhere: bool) -> None:
    """Also if the chat belongs to another node now (``elsewhere``)."""
    database, payer = MemoryDatabase(), Payer(hangs_at=1)
    async with hanging(Payer(hangs_at=1), database) as first:
        first.kill()
        await first.bury()
    async with a_process(CallableAgent(payer), database=database) as node:
        await until(lambda: payer.hanging == 1)
        async with a_process(CallableAgent(Payer()), database=database) as other:
            await (other if elsewhere else node).say(typed)
            await until(lambda: payer.hanging == 0)
            await asyncio.sleep(120)
            told = node.channel.texts() + other.channel.texts()
            assert not any("Subagent" in text for text in told)
            if typed != "/new":
                assert told == ["Stopped."]
            assert (await subagents(node))[-1].outcome is Outcome.CANCELLED


@pytest.mark.parametrize(("chat", "paid"), [("ann", []), ("bob", ["Bob", "Eve"])])
async def test_a_stop_of_everything_reaches_the_subagent_of_a_node_that_has_just_died(
    chat: str, paid: list[str]
) -> None:
    """SPEC CMD-1, CMD-2: nobody can ask that node, and another one would continue it."""
    database, rest = MemoryDatabase(), Payer()
    async with (
        hanging(Payer(hangs_at=1), database) as first,
        a_process(CallableAgent(rest), database=database) as second,
    ):
        await asyncio.sleep(30)  # The chat is of no node.
        first.kill()
        await second.say("/stopall", chat=chat)
        await asyncio.sleep(120)
        assert rest.paid == paid
        first_run, *_ = await subagents(second)
        assert first_run.outcome is (Outcome.LOST if paid else Outcome.CANCELLED)
