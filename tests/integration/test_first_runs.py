"""First runs right after a start, while libraries are still being imported (SPEC AGENT-2)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from goclaw_py.agents.callable import CallableAgent
from goclaw_py.core.concurrency import in_import_thread
from goclaw_py.runs.agent_loop import Emit, RunRequest
from tests.support.process import ROOT
from tests.unit.agents.builders import Events, request

pytestmark = pytest.mark.real_time

FIRST_RUNS = """
import asyncio, sys, threading
from goclaw_py.agents.models import Provider
from tests.support.model_agents import model_agents
from tests.unit.agents.builders import Events, request

imported = set()

def note(event, arguments):
    if event == "import" and threading.current_thread() is threading.main_thread():
        imported.add(arguments[0].partition(".")[0])

async def first_runs():
    async with model_agents() as agents:
        made = [agents.make(provider) for provider in (Provider.OPENAI, Provider.ANTHROPIC)]
        sys.addaudithook(note)
        warm = [asyncio.create_task(agent.warm_up()) for agent in made]
        asked = [agent.run(request("say hi"), Events()) for agent in made * 3]
        print(*(answer.text for answer in await asyncio.gather(*asked)))
        await asyncio.gather(*warm)

asyncio.run(first_runs())
print(*sorted(imported & {"pydantic_ai", "openai", "anthropic", "mcp", "fastmcp", "aiogram"}))
"""


@pytest.mark.slow
def test_agents_that_start_together_import_in_one_thread() -> None:
    """Two threads that import ``pydantic_ai`` at once get modules that are not complete."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST_RUNS], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == ["hi hi hi hi hi hi", ""], done.stderr


@pytest.mark.parametrize("is_plain", [True, False], ids=["plain", "async"])
async def test_an_agent_in_python_does_not_import_beside_the_gateway(is_plain: bool) -> None:
    """Its function may import the same libraries as a language model."""
    imports = threading.Event()
    importing = asyncio.ensure_future(in_import_thread(imports.wait))
    called: list[bool] = []

    def plain(asked: RunRequest, emit: Emit) -> str:
        called.append(imports.is_set())
        return "done"

    async def waiting(asked: RunRequest, emit: Emit) -> str:
        return plain(asked, emit)

    agent = CallableAgent(plain if is_plain else waiting)
    run = asyncio.ensure_future(agent.run(request("hi"), Events()))
    await asyncio.sleep(0.05)
    assert called == []
    imports.set()
    assert (await run).text == "done"
    await importing
    assert called == [True]
