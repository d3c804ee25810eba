"""Programs as agents: real processes (SPEC AGENT-2b, SEC-4)."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from goclaw_py.agents.command import CommandAgent, CommandSpec, OutputKind
from goclaw_py.agents.command import process as processes
from goclaw_py.core.errors import AgentError
from goclaw_py.core.events import AgentEvent, TextDelta
from goclaw_py.core.ids import AgentName, RunId, SessionKey
from goclaw_py.core.outcomes import Trigger
from goclaw_py.ports.agent import AgentResult, HistoryEntry, RunRequest, TextPart

pytestmark = pytest.mark.real_time

NAME = AgentName("main")


def python(code: str, *arguments: str) -> tuple[str, ...]:
    """A program of a few lines."""
    return (sys.executable, "-c", code, *arguments)


def agent(spec: CommandSpec, **environ: str) -> CommandAgent:
    return CommandAgent(NAME, spec, environ={"PATH": os.environ["PATH"], **environ})


def request(prompt: str, folder: Path, *history: HistoryEntry, run: str = "run-1") -> RunRequest:
    return RunRequest(
        run_id=RunId(run),
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


async def until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not reached():
            await asyncio.sleep(0.01)


# ---------------------------------------------------------------------------- asking


async def test_the_prompt_comes_on_stdin_and_the_output_is_the_reply(tmp_path: Path) -> None:
    spec = CommandSpec(python("import sys; print(sys.stdin.read().upper(), end='')"))
    result = await ask(spec, "grüß dich\nzwei", tmp_path)
    assert result.text == "GRÜSS DICH\nZWEI"
    assert [entry.text for entry in result.entries] == ["grüß dich\nzwei", result.text]


async def test_the_prompt_may_be_an_argument_and_no_shell_sees_it(tmp_path: Path) -> None:
    spec = CommandSpec(python("import sys; print(sys.argv[1:], sys.stdin.read())", "-p={prompt}"))
    result = await ask(spec, "$(id); {session} 'x' {prompt}", tmp_path)
    assert result.text.strip() == str(["-p=$(id); {session} 'x' {prompt}"])


async def test_it_works_in_the_workspace_with_a_minimal_environment(tmp_path: Path) -> None:
    """SPEC SEC-4."""
    code = "import os, json; print(json.dumps([os.getcwd(), dict(os.environ)]))"
    made = agent(
        CommandSpec(python(code), env=("GIVEN", "MISSING")), GIVEN="yes", SECRET="no", HOME="/h"
    )
    result = await made.run(request("", tmp_path), lambda _: None)
    folder, environment = json.loads(result.text)
    assert Path(folder) == tmp_path.resolve()
    assert environment.keys() - {"LC_CTYPE"} == {"PATH", "HOME", "GIVEN", "GOCLAW_RUN_ID"}


async def test_the_reply_is_streamed(tmp_path: Path) -> None:
    code = "import time\nfor n in range(3): print(n, flush=True); time.sleep(0.1)"
    seen: list[AgentEvent] = []
    result = await agent(CommandSpec(python(code))).run(request("", tmp_path), seen.append)
    assert len(seen) == 3
    assert "".join(one.text for one in seen if isinstance(one, TextDelta)) == result.text


async def test_a_character_that_is_cut_between_two_reads_is_whole(tmp_path: Path) -> None:
    code = (
        "import sys, time\nfor b in '€ü𝄞'.encode(): "
        "sys.stdout.buffer.write(bytes([b])); sys.stdout.flush(); time.sleep(0.02)"
    )
    assert (await ask(CommandSpec(python(code)), "", tmp_path)).text == "€ü𝄞"


async def test_binary_output_is_no_error_and_what_is_no_text_is_marked(tmp_path: Path) -> None:
    code = "import sys; sys.stdout.buffer.write(bytes(range(256)))"
    assert "\ufffd" in (await ask(CommandSpec(python(code)), "", tmp_path)).text


# ---------------------------------------------------------------------------- JSON lines


def lines(*values: object, **paths: object) -> CommandSpec:
    """A program that prints these, and then what its arguments are."""
    code = (
        "import sys, json\nfor line in json.loads(sys.argv[1]): "
        "print(line if isinstance(line, str) else json.dumps(line))"
    )
    return CommandSpec(
        python(code, json.dumps(values)),
        output=OutputKind.JSONL,
        **paths,  # type: ignore[arg-type]  # the fields of a spec, by name
    )


async def test_the_pieces_of_json_lines_are_the_reply(tmp_path: Path) -> None:
    spec = lines(
        {"type": "start", "text": 7},
        "a line of a log",
        {"message": {"content": [{"type": "text", "text": "Hel"}, {"type": "tool"}]}},
        {"item": {"text": "lo"}},
        [1],
        text=("message.content.*.text", "item.text"),
    )
    assert (await ask(spec, "", tmp_path)).text == "Hello"


async def test_conditions_tell_which_lines_are_meant(tmp_path: Path) -> None:
    spec = lines(
        {"type": "message", "role": "user", "content": "my own question"},
        {"type": "message", "role": "assistant", "content": "One."},
        {"type": "item", "item": {"type": "reasoning", "text": "hm"}},
        {"type": "item", "item": {"type": "agent_message", "text": "Two."}},
        text=("type=message role=assistant content", "item.type=agent_message item.text"),
        join="\n\n",
    )
    assert (await ask(spec, "", tmp_path)).text == "One.\n\nTwo."


async def test_the_whole_reply_wins_over_the_pieces(tmp_path: Path) -> None:
    spec = lines({"t": "dra"}, {"t": "ft"}, {"result": "Final."}, text=("t",), result="result")
    assert (await ask(spec, "", tmp_path)).text == "Final."


async def test_a_line_that_is_too_long_is_passed_over(tmp_path: Path) -> None:
    code = "print('{\"t\": \"' + 'y' * 5_000_000 + '\"}')\nprint('{\"t\": \"after it\"}')"
    spec = CommandSpec(python(code), output=OutputKind.JSONL, text=("t",))
    assert (await ask(spec, "", tmp_path)).text == "after it"


# ---------------------------------------------------------------------------- conversations


async def test_a_conversation_has_an_id_of_its_own_until_it_begins_anew(tmp_path: Path) -> None:
    spec = CommandSpec(
        python("import sys; print(*sys.argv[1:])"),
        first=("new", "{session}"),
        later=("resume", "{session}"),
    )
    first = await ask(spec, "", tmp_path)
    later = await ask(spec, "", tmp_path, *first.entries)
    again = await ask(spec, "", tmp_path, *first.entries, *later.entries)
    other = await ask(spec, "", tmp_path)
    word, session = first.text.split()
    assert word == "new"
    assert later.text.split() == again.text.split() == ["resume", session]
    assert other.text.split()[1] != session


async def test_the_id_may_be_the_programs_own(tmp_path: Path) -> None:
    spec = lines({"thread": {"id": "t-77"}}, {"t": "hi"}, text=("t",), session="thread.id")
    first = await ask(spec, "", tmp_path)
    later = CommandSpec(python("import sys; print(*sys.argv[1:])"), later=("{session}",))
    assert (await ask(later, "", tmp_path, *first.entries)).text.strip() == "t-77"


# ---------------------------------------------------------------------------- failing


async def test_an_exit_code_is_told_and_what_it_complained_of_is_for_the_log(
    tmp_path: Path,
) -> None:
    code = "import sys; print('half'); print('x' * 9000 + 'no key', file=sys.stderr); sys.exit(3)"
    error = await refused(CommandSpec(python(code)), "", tmp_path)
    assert error.friendly == "The agent program failed (exit code 3)."
    assert str(error).endswith("no key")
    assert len(str(error)) < 5_000


async def test_a_program_that_is_missing_or_gets_what_nobody_can_give_it_is_a_failure(
    tmp_path: Path,
) -> None:
    for run in (("no-such-program",), python("", "{prompt}")):
        error = await refused(CommandSpec(run), "nul: \0", tmp_path)
        assert error.friendly == "The agent program could not be started."


async def test_one_that_floods_is_stopped(tmp_path: Path) -> None:
    code = "while True: print('x' * 1000)"
    error = await refused(CommandSpec(python(code)), "", tmp_path)
    assert "far too much" in error.friendly


async def test_one_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    spec = CommandSpec(python("import time; time.sleep(60)"), timeout_s=0.3)
    began = time.monotonic()
    error = await refused(spec, "", tmp_path)
    assert "too long" in error.friendly
    assert time.monotonic() - began < 10


async def test_one_that_does_not_read_a_long_prompt_is_no_failure(tmp_path: Path) -> None:
    spec = CommandSpec(python("print('no need')"))
    assert (await ask(spec, "x" * 5_000_000, tmp_path)).text == "no need\n"


# ---------------------------------------------------------------------------- nothing survives

WAIT = "import time, os, sys\nprint(os.getpid(), flush=True)\n"
FAMILIES: Sequence[tuple[str, str]] = [
    ("one that ends", WAIT + "time.sleep(60)"),
    (
        "one that ignores SIGTERM",
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + WAIT + "time.sleep(60)",
    ),
    ("one with a child", WAIT + "pid = os.fork()\nprint(os.getpid(), flush=True)\ntime.sleep(60)"),
    (
        "one whose child leaves the group",
        WAIT
        + "if os.fork() == 0:\n os.setsid()\n if os.fork() == 0:\n"
        + "  print(os.getpid(), flush=True)\n  time.sleep(60)\n os._exit(0)\ntime.sleep(60)",
    ),
]


@pytest.mark.parametrize(("kind", "code"), FAMILIES)
async def test_nothing_survives_a_cancellation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, code: str
) -> None:
    """SPEC CMD-4."""
    monkeypatch.setattr(processes, "END_S", 0.5)
    said: list[str] = []

    def hear(event: AgentEvent) -> None:
        assert isinstance(event, TextDelta)
        said.append(event.text)

    expected = 1 if "child" not in kind else 2
    run = asyncio.create_task(agent(CommandSpec(python(code))).run(request("", tmp_path), hear))
    await until(lambda: len(set("".join(said).split())) >= expected)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert not [pid for pid in map(int, "".join(said).split()) if alive(pid)]


async def test_what_a_program_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    """And its open output keeps nobody waiting."""
    code = (
        "import os, time\nif os.fork() == 0:\n os.setsid()\n time.sleep(60)\n os._exit(0)\n"
        "print('done', flush=True)"
    )
    began = time.monotonic()
    assert (await ask(CommandSpec(python(code)), "", tmp_path)).text == "done\n"
    assert time.monotonic() - began < 10
    assert list(processes._family(-1, "run-1")) == []
