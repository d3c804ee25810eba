"""Programs that jobs run: real processes, of which nothing may survive (SPEC CRON-0, SEC-4)."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import uvloop

from goclaw_py.agents import program_loop
from goclaw_py.agents.command import once
from goclaw_py.core.errors import AgentError
from goclaw_py.core.run_events import NO_USAGE, TextDelta
from goclaw_py.runs.agent_loop import AgentLoop, AgentResult, LoopEvent, ModelStep
from tests.unit.agents.programs import NOTE, python, request, survivors, until

pytestmark = pytest.mark.real_time


def loop(code: str, *arguments: str, **environ: str) -> AgentLoop:
    return program_loop(python(code, *arguments), environ={"PATH": os.environ["PATH"], **environ})


async def said(code: str, folder: Path, *arguments: str, prompt: str = "") -> AgentResult:
    return await loop(code, *arguments).run(request(prompt, folder), lambda _: None)


async def failed(running: AgentLoop, folder: Path) -> AgentError:
    with pytest.raises(AgentError) as caught:
        await running.run(request("", folder), lambda _: None)
    return caught.value


async def test_what_it_writes_is_the_reply_and_it_is_streamed(tmp_path: Path) -> None:
    heard: list[LoopEvent] = []
    code = "print('grüß'); print('Gott', end='')"
    result = await loop(code).run(request("", tmp_path), heard.append)
    assert result.text == "grüß\nGott"
    deltas = [event.text for event in heard if isinstance(event, TextDelta)]
    assert "".join(deltas) == result.text
    assert heard[-1] == ModelStep(NO_USAGE, done=True)
    assert result.usage == NO_USAGE
    assert result.entries == ()


async def test_the_prompt_is_on_its_standard_input_and_in_no_argument(tmp_path: Path) -> None:
    code = "import sys; print(sys.argv[1:], sys.stdin.read())"
    result = await said(code, tmp_path, "{prompt}", "$(id)", prompt="work; {session}")
    assert result.text == "['{prompt}', '$(id)'] work; {session}\n"


async def test_what_an_agent_is_told_is_nothing_for_a_program(tmp_path: Path) -> None:
    asked = replace(request("x", tmp_path), system=("Be brief.",), pinned=("Ann is 7.",))
    result = await loop("import sys; print(sys.stdin.read(), end='')").run(asked, lambda _: None)
    assert result.text == "x"


async def test_it_works_in_the_workspace_with_a_minimal_environment(tmp_path: Path) -> None:
    """SPEC SEC-4."""
    code = "import os, json; print(json.dumps([os.getcwd(), dict(os.environ)]))"
    running = loop(code, HOME="/h", OPENAI_API_KEY="sk-secret")
    result = await running.run(request("", tmp_path), lambda _: None)
    folder, environment = json.loads(result.text)
    assert Path(folder) == tmp_path.resolve()
    assert environment.keys() - {"LC_CTYPE"} == {"PATH", "HOME", "GOCLAW_RUN_ID"}


async def test_each_run_starts_it_once_and_runs_do_not_mix(tmp_path: Path) -> None:
    running = loop("import sys; print(sys.stdin.read(), end='')")
    asked = [running.run(request(f"run {n}", tmp_path), lambda _: None) for n in range(3)]
    results = await asyncio.gather(*asked)
    assert [result.text for result in results] == ["run 0", "run 1", "run 2"]


async def test_an_exit_code_is_a_failure_with_the_last_thing_it_complained_of(
    tmp_path: Path,
) -> None:
    code = "import sys; print('half'); sys.exit('first\\n\\ndisk is full\\n \\n')"
    error = await failed(loop(code), tmp_path)
    name = Path(python("")[0]).name
    assert error.friendly == f"The program {name} failed (exit code 1): disk is full"
    assert "first" in str(error)
    assert not error.retryable


@pytest.mark.parametrize(
    ("code", "end"),
    [
        ("print('only said'); raise SystemExit(7)", "(exit code 7): only said"),
        ("raise SystemExit(7)", "(exit code 7)."),
        ("import os; os.kill(os.getpid(), 9)", "(exit code -9)."),
        ("import sys; sys.exit('x' * 9000)", "x…"),
        ("import sys; sys.exit('bad key sk-' + 'a' * 20)", "bad key [hidden]"),
    ],
)
async def test_how_it_failed_is_told_in_one_short_line_without_keys(
    tmp_path: Path, code: str, end: str
) -> None:
    """SPEC AGENT-8."""
    error = await failed(loop(code), tmp_path)
    assert error.friendly.endswith(end)
    assert len(error.friendly) < 300
    assert len(str(error)) < 5_000


async def test_one_that_cannot_be_started_is_a_failure_that_names_it(tmp_path: Path) -> None:
    error = await failed(program_loop(("/no/such/program", "secret")), tmp_path)
    assert error.friendly == "The program program could not be started."
    assert "/no/such/program: No such file" in str(error)


async def test_one_that_floods_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(once, "MAX_OUTPUT", 1000)
    error = await failed(loop(NOTE + "while True: print('x' * 100)"), tmp_path)
    assert "said far too much" in error.friendly
    assert survivors(tmp_path) == []


FAMILY = """
import signal, subprocess
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen(["sh", "-c", "echo $$ >> pids; trap '' TERM; sleep 1000"], start_new_session=True)
while len(open("pids").read().split()) < 2: time.sleep(0.01)
print("ready", flush=True)
time.sleep(1000)
"""


async def test_cancelling_a_run_ends_the_program_and_all_that_it_has_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPEC CMD-4: one that ignores SIGTERM and one that has left its group, too."""
    monkeypatch.setattr("goclaw_py.agents.command.process.END_S", 0.2)
    heard: list[LoopEvent] = []
    run = asyncio.create_task(loop(NOTE + FAMILY).run(request("", tmp_path), heard.append))
    await until(lambda: TextDelta("ready\n") in heard)
    run.cancel()
    await asyncio.wait([run])
    assert run.cancelled()
    assert survivors(tmp_path, least=2) == []


async def test_a_time_limit_around_a_run_ends_the_program(tmp_path: Path) -> None:
    """The limit is the runtime's: it cancels what works."""
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await loop(NOTE + "time.sleep(1000)").run(request("", tmp_path), lambda _: None)
    assert survivors(tmp_path) == []


MANY = 5
"""Programs at once."""


@pytest.mark.parametrize("prompt", ["", "work", "w" * 1_000_000], ids=["none", "short", "long"])
@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_one_that_ends_without_reading_has_not_failed(
    tmp_path: Path, factory: Callable[[], asyncio.AbstractEventLoop], prompt: str
) -> None:
    """uvloop, which a gateway has, closes the pipe itself once nobody is at its other end."""

    async def runs() -> list[str]:
        running = program_loop(("true",))
        asked = [request(prompt, tmp_path) for _ in range(MANY)]
        ran = await asyncio.gather(*(running.run(each, lambda _: None) for each in asked))
        return [result.text for result in ran]

    with asyncio.Runner(loop_factory=factory) as runner:
        assert runner.run(runs()) == [""] * MANY


async def test_without_a_prompt_its_standard_input_is_empty(tmp_path: Path) -> None:
    code = "import os, sys; print(os.readlink('/proc/self/fd/0'), repr(sys.stdin.read()))"
    assert (await said(code, tmp_path)).text == "/dev/null ''\n"
