"""Programs that tests run as agents, and what may be left of them."""

from __future__ import annotations

import asyncio
import os
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from goclaw_py.agents.command import CommandAgent, CommandSpec
from goclaw_py.core.errors import AgentError
from goclaw_py.core.ids import AgentName, RunId, SessionKey
from goclaw_py.core.messages import HistoryEntry
from goclaw_py.core.outcomes import Trigger
from goclaw_py.runs.agent_loop import AgentResult, RunRequest, TextPart

NAME = AgentName("main")

NOTE = """
import os, sys, time

def note():
    with open("pids", "a") as file:
        file.write(f"{os.getpid()}\\n")

note()
"""
"""The begin of a program whose processes can be looked for afterwards."""


def python(code: str, *arguments: str) -> tuple[str, ...]:
    """A program of a few lines."""
    return (sys.executable, "-c", code, *arguments)


def agent(spec: CommandSpec, **environ: str) -> CommandAgent:
    return CommandAgent(NAME, spec, environ={"PATH": os.environ["PATH"], **environ})


def request(prompt: str, folder: Path, *history: HistoryEntry) -> RunRequest:
    return RunRequest(
        # Processes are found by it, and other tests run at the same time.
        run_id=RunId(f"run-{uuid.uuid4()}"),
        session=SessionKey("agent:main:api:test"),
        agent=NAME,
        trigger=Trigger.API,
        parts=(TextPart(prompt),),
        history=history,
        workspace=folder,
    )


async def ask(spec: CommandSpec, prompt: str, folder: Path, *history: HistoryEntry) -> AgentResult:
    return await agent(spec).run(request(prompt, folder, *history), lambda _: None)


async def refused(spec: CommandSpec, prompt: str, folder: Path) -> AgentError:
    with pytest.raises(AgentError) as caught:
        await ask(spec, prompt, folder)
    return caught.value


def alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def survivors(folder: Path, *, least: int = 1) -> list[int]:
    """The processes of a program with ``NOTE`` that live; at least so many were there."""
    pids = [int(line) for line in (folder / "pids").read_text().split()]
    assert len(pids) >= least
    return [pid for pid in pids if alive(pid)]


async def until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not reached():
            await asyncio.sleep(0.01)
