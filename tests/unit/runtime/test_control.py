"""The operator's view."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from goclaw_py.core.ids import MAIN_AGENT, MAIN_LANE, RunId, SessionKey
from goclaw_py.core.outcomes import Outcome, Trigger
from goclaw_py.core.requests import QueuePolicy
from goclaw_py.core.status import Backlog, Status
from goclaw_py.ports.control import Control, NoGateway, NotFound, StopReport
from goclaw_py.ports.store import NewRun, OutboxState
from goclaw_py.runtime.control import GatewayControl, StoreControl
from goclaw_py.store.memory import MemoryStore
from goclaw_py.testing.agents import Block, ScriptedAgent
from goclaw_py.testing.clock import START, LoopClock
from tests.support.harness import GatewayProcess, Ways, a_process, session_of, until


@pytest.fixture
async def gateway() -> AsyncIterator[GatewayProcess]:
    agent = ScriptedAgent(otherwise=lambda _: Block())
    async with a_process(agent, Ways(QueuePolicy())) as process:
        yield process


def offline(process: GatewayProcess) -> Control:
    """What is left when no gateway runs."""
    return StoreControl(process.store, process.clock)


async def test_stopping_from_outside_is_a_stop_in_the_chat(gateway: GatewayProcess) -> None:
    """SPEC QUEUE-8: counts and ids."""
    await gateway.say("one", "two")
    await until(lambda: len(gateway.dispatcher.runs()) == 2)
    first, second = (run.id for run in gateway.dispatcher.runs())
    report = await gateway.control.stop(session_of(), everything=True)
    assert report == StopReport(stopped=(first,), dropped=(second,))
    again = await gateway.control.stop(session_of(), everything=False)
    assert again == StopReport(already_stopping=True)
    await until(lambda: not gateway.dispatcher.runs())
    assert await gateway.control.stop(session_of(), everything=False) == StopReport()


async def test_reset_stops_everything_and_begins_a_fresh_history(gateway: GatewayProcess) -> None:
    await gateway.say("one")
    await asyncio.sleep(1)
    await gateway.control.reset(session_of())
    await asyncio.sleep(1)
    assert await gateway.outcomes() == [Outcome.CANCELLED]
    assert await gateway.control.history(session_of()) == []


async def test_without_a_gateway_reset_still_begins_a_fresh_history() -> None:
    async with a_process() as gateway:
        await gateway.ask("one")
        control = offline(gateway)
        assert len(await control.history(session_of())) == 2
        await control.reset(session_of())
        assert await control.history(session_of()) == []


async def test_without_a_gateway_there_is_no_status_and_nothing_to_stop(
    gateway: GatewayProcess,
) -> None:
    control = offline(gateway)
    with pytest.raises(NoGateway, match="goclaw run"):
        await control.status()
    with pytest.raises(NoGateway, match="nothing runs in some:session"):
        await control.stop(SessionKey("some:session"), everything=True)


async def test_the_status_is_what_the_application_sees(gateway: GatewayProcess) -> None:
    seen = Status(
        node=gateway.node(),
        release="1",
        pid=1,
        started_at=START,
        now=START,
        database="embedded",
        draining=False,
        lanes=(),
        runs=(),
        channels=(),
        backlog=Backlog(0, 0, 0),
        warnings=(),
    )

    async def look() -> Status:
        return seen

    control = GatewayControl(gateway.store, gateway.clock, gateway.commands, look)
    assert await control.status() is seen


async def test_a_session_is_found_by_its_key_or_by_a_unique_part_of_it() -> None:
    """SPEC OPS-1."""
    async with a_process() as gateway:
        await gateway.ask("hi", chat="ann")
        await gateway.ask("hi", chat="anna")
        await gateway.ask("hi", chat="bob")
        control = offline(gateway)
        assert (await control.session(session_of("ann"))).key == session_of("ann")
        assert (await control.session("bob")).key == session_of("bob")
        with pytest.raises(NotFound, match="there is no session 'carl'"):
            await control.session("carl")
        with pytest.raises(NotFound, match=r"session 'ann' is not unique: .*anna") as caught:
            await control.session("ann")
        assert "…" not in str(caught.value)
        with pytest.raises(NotFound, match="not unique"):
            await control.session("telegram")
        await gateway.ask("hi", chat="dan")
        with pytest.raises(NotFound, match=r", …$"):
            await control.session("telegram")


async def test_a_run_is_found_by_a_unique_prefix() -> None:
    """SPEC OPS-1."""
    async with a_process() as gateway:
        await gateway.ask("hi")
        for name in ("aa-1", "aa-2"):
            run = NewRun(
                id=RunId(name),
                session=session_of(),
                agent=MAIN_AGENT,
                trigger=Trigger.API,
                lane=MAIN_LANE,
                inbox=(),
                target=None,
                started_at=gateway.clock.now(),
            )
            await gateway.store.begin_run(run, node=gateway.node())
        control = offline(gateway)
        assert (await control.run("aa-1")).id == "aa-1"
        assert (await control.run("0")).outcome is Outcome.COMPLETED
        with pytest.raises(NotFound, match="run 'aa' is not unique: aa-1, aa-2"):
            await control.run("aa")
        with pytest.raises(NotFound, match="there is no run 'zz'"):
            await control.run("zz")
        assert [run.id for run in await control.runs(active=True)] == ["aa-2", "aa-1"]
        assert await control.runs(session=SessionKey("other")) == []
        assert len(await control.runs(limit=1)) == 1


async def test_lists_go_to_the_database() -> None:
    async with a_process() as gateway:
        await gateway.ask("hi")
        control = offline(gateway)
        assert [session.key for session in await control.sessions()] == [session_of()]
        await asyncio.sleep(1)
        (row,) = await control.outbox(state=OutboxState.SENT)
        assert await control.outbox(state=OutboxState.DEAD) == []
        assert await control.retry_outbox([row.id]) == 0
        assert await control.people() == []


async def test_a_wrong_code_and_an_unknown_person_are_said_in_words() -> None:
    control = StoreControl(MemoryStore(), LoopClock())
    with pytest.raises(NotFound, match="no valid pairing request has the code 'ABCD'"):
        await control.approve("ABCD", guest=True)
    with pytest.raises(NotFound, match="nobody with the id '7' is known on telegram/default"):
        await control.revoke("telegram", "default", "7")


async def test_the_clock_of_a_loop_starts_at_its_instant_and_follows_the_loop() -> None:
    clock, other = LoopClock(), LoopClock()
    assert clock.now() == START
    await asyncio.sleep(90)
    assert clock.now() == other.now() == START + timedelta(seconds=90)
