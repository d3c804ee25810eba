"""Programs whose run was interrupted: real processes (SPEC AGENT-10)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from goclaw_py.agents.command import CommandSpec, OutputKind
from goclaw_py.core.errors import AgentError, NotContinued
from goclaw_py.core.run_steps import NewMessagesStep, RunStep, ValueStep
from goclaw_py.runs.agent_loop import AgentResult, LoopEvent, RunRequest
from goclaw_py.runs.run_journal import step_of
from tests.unit.agents.programs import agent, python, request, until

pytestmark = pytest.mark.real_time

PROGRAM = python(
    """
import json, sys, time

def say(**line):
    print(json.dumps(line), flush=True)

arguments, asked = sys.argv[1:], sys.stdin.read()
if "--silent" not in arguments:
    say(id="c-7")
if "slow" in asked and "--resume" not in arguments:
    open("started", "w").close()
    time.sleep(60)
say(text=f"{arguments} {asked}")
"""
)
JSON = CommandSpec(PROGRAM, output=OutputKind.JSONL, text=("text",))
TELLS = replace(JSON, session="id", resume=("--resume", "{session}"))
GIVEN = replace(JSON, first=("--id={session}",), resume=("--resume", "{session}"))
RESUMED = "[You were interrupted while you worked on this message."


async def cut(spec: CommandSpec, asked: RunRequest) -> list[RunStep]:
    """The steps of a run that is killed while its program works."""
    steps: list[RunStep] = []
    recorded = asyncio.Event()

    def hear(event: LoopEvent) -> None:
        if (step := step_of(event)) is not None:
            steps.append(step)

    async def record() -> None:
        recorded.set()

    asked = replace(asked, recorded=record)
    running = asyncio.create_task(agent(spec).run(asked, hear))
    await until((asked.workspace / "started").exists)
    if spec.session and spec.resume:
        last = "program" if "--silent" in spec.run else "session"
        await until(lambda: any(isinstance(one, ValueStep) and one.name == last for one in steps))
    assert recorded.is_set() == spec.ends_interrupted
    running.cancel()
    await asyncio.wait([running])
    return steps


async def go_on(spec: CommandSpec, asked: RunRequest, steps: list[RunStep]) -> AgentResult:
    return await agent(spec).run(replace(asked, steps=tuple(steps)), lambda _: None)


@pytest.mark.parametrize("ends", [False, True])
async def test_a_conversation_that_the_program_has_told_is_resumed(
    tmp_path: Path, ends: bool
) -> None:
    spec, asked = replace(TELLS, ends_interrupted=ends), request("slow", tmp_path)
    steps = await cut(spec, asked)
    assert steps[-1] == ValueStep("session", '"c-7"')
    result = await go_on(spec, asked, [*steps, NewMessagesStep("and tea")])
    assert result.text.startswith(f"['--resume', 'c-7'] {RESUMED}")
    assert result.text.endswith("\n\nslow\nand tea")
    assert [entry.text for entry in result.entries] == ["slow\nand tea", result.text]


async def test_a_conversation_with_our_id_is_resumed_once_the_program_has_answered(
    tmp_path: Path,
) -> None:
    events: list[LoopEvent] = []
    result = await agent(GIVEN).run(request("quick", tmp_path), events.append)
    (told,) = [event for event in events if isinstance(event, ValueStep)]
    given = told.value.strip('"')
    assert result.text == f"['--id={given}'] quick"
    resumed = await go_on(GIVEN, request("slow", tmp_path), [told])
    assert resumed.text.startswith(f"['--resume', '{given}'] {RESUMED}")


@pytest.mark.parametrize(
    "spec",
    [JSON, replace(TELLS, run=(*PROGRAM, "--silent")), replace(TELLS, resume=())],
    ids=["knows no conversations", "has told none", "cannot resume"],
)
async def test_what_cannot_be_resumed_begins_again_or_ends_as_lost(
    tmp_path: Path, spec: CommandSpec
) -> None:
    ending, asked = replace(spec, ends_interrupted=True), request("slow", tmp_path)
    steps = await cut(ending, asked) if "--silent" in spec.run else [ValueStep("program", "null")]
    with pytest.raises(NotContinued, match="cannot be continued") as caught:
        await go_on(ending, asked, list(steps))
    assert "I did not start it again" in caught.value.friendly
    again = await go_on(spec, replace(asked, parts=request("quick", tmp_path).parts), list(steps))
    assert "--resume" not in again.text
    assert again.text.endswith("quick")


async def test_a_program_is_stored_as_started_before_it_starts(tmp_path: Path) -> None:
    spec, asked = replace(JSON, ends_interrupted=True), request("slow", tmp_path)
    assert await cut(spec, asked) == [ValueStep("program", "null")]
    assert await cut(JSON, asked) == []


async def test_a_program_that_cannot_find_its_conversation_fails(tmp_path: Path) -> None:
    """And a retry begins again, like after every failure."""
    spec = replace(TELLS, run=python("import sys; sys.exit('--resume' in sys.argv)"))
    with pytest.raises(AgentError, match="ended with 1"):
        await go_on(spec, request("slow", tmp_path), [ValueStep("session", '"gone"')])
