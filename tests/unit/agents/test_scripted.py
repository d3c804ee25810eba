from __future__ import annotations

import asyncio

import pytest

from goclaw_py.core.ids import RunId, SessionKey
from goclaw_py.testing.agents import Block, Ignore, ScriptedAgent
from tests.unit.agents.builders import Events, request


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_a_blocked_run_goes_on_when_released_by_id_or_all_at_once() -> None:
    agent = ScriptedAgent(otherwise=lambda _: Block("free"))
    tasks = [
        asyncio.create_task(agent.run(request("", run=run), Events())) for run in ("a", "b", "c")
    ]
    await agent.until_active(3)
    agent.release(RunId("b"))
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    assert agent.finished == ["b"]
    agent.release()
    await asyncio.gather(*tasks)
    assert sorted(agent.finished) == ["a", "b", "c"]
    assert agent.active == set()


async def test_it_records_cancelled_runs_and_overlaps_per_session() -> None:
    agent = ScriptedAgent(otherwise=lambda _: Block())
    first = asyncio.create_task(agent.run(request("1", run="1", session="s"), Events()))
    second = asyncio.create_task(agent.run(request("2", run="2", session="s"), Events()))
    third = asyncio.create_task(agent.run(request("3", run="3", session="t"), Events()))
    await agent.until_started(3)
    for task in (first, second, third):
        task.cancel()
    await asyncio.wait([first, second, third])
    assert agent.cancelled == ["1", "2", "3"]
    assert agent.prompts == ["1", "2", "3"]
    assert agent.overlaps == {SessionKey("s"): 2, SessionKey("t"): 1}


@pytest.mark.parametrize("reply", [None, "done anyway"])
async def test_a_stubborn_run_outlasts_every_cancel_for_its_time(reply: str | None) -> None:
    agent = ScriptedAgent(Ignore(for_s=10, reply=reply))
    task = asyncio.create_task(agent.run(request(""), Events()))
    await agent.until_started(1)
    task.cancel()
    await asyncio.sleep(3)
    task.cancel()
    await asyncio.wait([task])
    assert now() == 10
    assert task.cancelled() is (reply is None)


async def test_it_notes_warm_up_and_close() -> None:
    agent = ScriptedAgent()
    await agent.warm_up()
    await agent.close()
    assert (agent.warmed, agent.closed) == (1, True)
