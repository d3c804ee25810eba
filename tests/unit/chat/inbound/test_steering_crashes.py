"""A run that continues an interrupted one has the messages that it had taken in (SPEC QUEUE-4)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial

import pytest

from goclaw_py.chat.outbound import texts
from goclaw_py.core.messages import PeerKind
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.run_events import Usage
from goclaw_py.core.run_steps import NewMessagesStep, ResponseStep
from goclaw_py.runs.agent_loop import AgentResult, Emit, ModelStep, RunRequest, TextPart
from goclaw_py.scheduler.models import Mode, QueuePolicy
from tests.support.harness import GatewayProcess, Ways, a_process, message, until
from tests.support.memory_store import MemoryDatabase

STEER = QueuePolicy(mode=Mode.STEER)
WAYS = Ways(direct=STEER, group=STEER)


@dataclass(slots=True)
class Steered:
    """Replays what was taken in, as the loop of a model does, and takes more when it is told to."""

    replays: bool = True
    told: list[list[str]] = field(default_factory=list)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    finish: bool = False

    async def run(self, request: RunRequest, emit: Emit) -> AgentResult:
        stored = [step.text for step in request.steps if isinstance(step, NewMessagesStep)]
        told = [request.prompt, *stored] if self.replays else [request.begun_again().prompt]
        self.told.append(told)
        if not request.steps:
            emit(ModelStep(Usage(1), response=ResponseStep(b"[]", Usage(1))))
        while not self.finish:
            await self.go_on.wait()
            self.go_on.clear()
            for part in request.take_messages():
                assert isinstance(part, TextPart)
                told.append(part.text)
                emit(NewMessagesStep(part.text, part.rows))
            await request.recorded()
        return AgentResult(" + ".join(told))

    async def take(self) -> None:
        self.go_on.set()
        await asyncio.sleep(0.01)

    async def end(self) -> None:
        self.finish = True
        await self.take()

    async def warm_up(self) -> None: ...

    async def close(self) -> None: ...


async def hear(process: GatewayProcess, text: str, peer: PeerKind = PeerKind.DIRECT) -> None:
    await process.gateway.accept([message(text, peer=peer)])


async def cut(
    agent: Steered, database: MemoryDatabase, *said: str, peer: PeerKind = PeerKind.DIRECT
) -> None:
    """A process is killed; its run has taken in what was said after the first message."""
    async with a_process(agent, WAYS, database=database) as process:
        runs = len(agent.told)
        for text in said:
            await hear(process, text, peer)
        await until(lambda: len(agent.told) > runs)
        await agent.take()
        process.kill()


@pytest.mark.parametrize("peer", PeerKind)
@pytest.mark.parametrize("crashes", [1, 2])
async def test_the_next_run_has_what_the_interrupted_one_had_taken_in(
    peer: PeerKind, crashes: int
) -> None:
    """Also after the second crash, when other messages go first; equal texts are told apart."""
    database, agent = MemoryDatabase(), Steered()
    await cut(agent, database, "works", "more", peer=peer)
    if crashes == 2:
        await cut(agent, database, peer=peer)
    async with a_process(agent, WAYS, database=database) as process:
        await until(lambda: len(agent.told) > crashes)
        await hear(process, "more", peer)
        await agent.take()
        await agent.end()
        await process.channel.until_sent(1)
        await asyncio.sleep(60)
        (text,) = process.channel.texts()
        assert text.count("works") == 1
        assert text.count("more") == 2
        assert len(agent.told) == crashes + 1
        assert process.pending == []
        ends = [row.outcome for row in database.inbox.values()]
        assert ends == [Outcome.COMPLETED] * 3


async def test_a_loop_that_does_not_replay_is_told_of_it_once() -> None:
    database, agent = MemoryDatabase(), Steered()
    await cut(agent, database, "works", "more")
    agent.replays = False
    async with a_process(agent, WAYS, database=database) as process:
        await until(lambda: len(agent.told) == 2)
        await agent.end()
        await process.channel.until_sent(1)
        await asyncio.sleep(60)
        assert process.channel.texts() == ["works\nmore"]
        assert process.pending == []


async def test_a_message_that_was_not_stored_as_taken_is_answered_by_a_run_of_its_own() -> None:
    database, agent = MemoryDatabase(), Steered()
    async with a_process(agent, WAYS, database=database) as process:
        await hear(process, "works")
        await until(lambda: len(agent.told) == 1)
        process.store.broken = {"note_run"}
        await hear(process, "more")
        await agent.take()
        process.kill()
    async with a_process(agent, WAYS, database=database) as process:
        await until(lambda: len(agent.told) == 2)
        await agent.end()
        await process.channel.until_sent(2)
        await asyncio.sleep(60)
        assert process.channel.texts() == ["works", "more"]


async def test_in_a_group_each_sender_of_what_was_taken_in_may_stop_the_next_run() -> None:
    """SPEC CMD-6."""
    database, agent = MemoryDatabase(), Steered()
    club = partial(message, chat="club", peer=PeerKind.GROUP)
    async with a_process(agent, WAYS, database=database) as process:
        await process.gateway.accept([club("works", sender="ann")])
        await until(lambda: len(agent.told) == 1)
        await process.gateway.accept([club("more", sender="bob")])
        await agent.take()
        process.kill()
    async with a_process(agent, WAYS, database=database) as process:
        await until(lambda: len(agent.told) == 2)
        await process.gateway.accept([club("/stop", sender="bob")])
        await until(lambda: process.pending == [])
        assert process.channel.texts("club") == ["Stopped."]


async def test_a_stop_ends_what_the_interrupted_run_had_taken_in_too() -> None:
    database, agent = MemoryDatabase(), Steered()
    await cut(agent, database, "works", "more")
    async with a_process(agent, WAYS, database=database) as process:
        await until(lambda: len(agent.told) == 2)
        await process.say("/stop")
        await until(lambda: process.pending == [])
        await asyncio.sleep(60)
        assert process.channel.texts() == ["Stopped."]
        assert len(agent.told) == 2


async def test_what_a_given_up_run_had_taken_in_ends_with_it() -> None:
    database, agent = MemoryDatabase(), Steered()
    await cut(agent, database, "works", "more")
    await cut(agent, database)
    await cut(agent, database)
    async with a_process(agent, WAYS, database=database) as process:
        await process.channel.until_sent(1)
        await asyncio.sleep(60)
        assert process.channel.texts() == [texts.LOST]
        assert process.pending == []
        assert agent.told == [["works", "more"]] * 3
