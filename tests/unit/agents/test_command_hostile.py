"""Programs that misbehave: real processes, of which nothing may survive (SPEC AGENT-2b, CMD-4)."""

from __future__ import annotations

import asyncio
import time
import tracemalloc
from pathlib import Path

import pytest

from goclaw_py.agents.command import CommandSpec, OutputKind
from goclaw_py.agents.command import process as processes
from goclaw_py.agents.command import talk as talks
from goclaw_py.core.errors import AgentError
from tests.unit.agents.programs import (
    NOTE,
    agent,
    alive,
    ask,
    python,
    refused,
    request,
    survivors,
    until,
)

pytestmark = pytest.mark.real_time

PROMPT = "x" * 10_000_000


async def test_an_exit_code_is_told_and_what_it_complained_of_is_for_the_log(
    tmp_path: Path,
) -> None:
    code = "print('half'); print('x' * 9000 + 'no key', file=sys.stderr); sys.exit(3)"
    error = await refused(CommandSpec(python(NOTE + code)), "", tmp_path)
    assert error.friendly == "The agent program failed (exit code 3)."
    assert str(error).endswith("no key")
    assert len(str(error)) < 5_000
    assert survivors(tmp_path) == []


async def test_what_it_complains_of_is_logged_without_its_keys(tmp_path: Path) -> None:
    """SPEC SEC-2, AGENT-8."""
    code = "import os, sys; sys.exit('bad key ' + os.environ['AGENT_KEY'] + ', not sk-' + 'a' * 20)"
    made = agent(CommandSpec(python(code), env=("AGENT_KEY",)), AGENT_KEY="hunter2")
    with pytest.raises(AgentError) as caught:
        await made.run(request("", tmp_path), lambda _: None)
    assert str(caught.value).endswith("bad key [hidden], not [hidden]")


@pytest.mark.parametrize("prompt", ["", PROMPT], ids=["short", "long"])
@pytest.mark.parametrize(
    "code",
    ["time.sleep(60)", "os.close(0); os.close(1); os.close(2); time.sleep(60)"],
    ids=["silent", "closes its output"],
)
async def test_one_that_takes_too_long_is_stopped(tmp_path: Path, code: str, prompt: str) -> None:
    """Also if it neither reads a long prompt nor ends."""
    began = time.monotonic()
    error = await refused(CommandSpec(python(NOTE + code), timeout_s=1), prompt, tmp_path)
    assert "too long" in error.friendly
    assert time.monotonic() - began < 10
    assert survivors(tmp_path) == []


async def test_one_that_closes_its_output_and_works_on_is_waited_for(tmp_path: Path) -> None:
    code = "print('said'); sys.stdout.flush(); os.close(1); os.close(2); time.sleep(0.5)\n"
    result = await ask(CommandSpec(python(NOTE + code + "open('end', 'w')")), "", tmp_path)
    assert result.text == "said\n"
    assert (tmp_path / "end").exists()
    assert survivors(tmp_path) == []


@pytest.mark.parametrize(
    ("code", "prompt", "text"),
    [
        (
            "sys.stdout.buffer.write(bytes(range(256)) * 2000)",
            "",
            bytes(range(256)).decode(errors="replace") * 2000,
        ),
        ("print('no need')", PROMPT, "no need\n"),
    ],
    ids=["binary output", "does not read a long prompt"],
)
async def test_what_is_odd_but_no_failure(
    tmp_path: Path, code: str, prompt: str, text: str
) -> None:
    assert (await ask(CommandSpec(python(NOTE + code)), prompt, tmp_path)).text == text
    assert survivors(tmp_path) == []


async def test_binary_lines_are_passed_over_where_json_is_expected(tmp_path: Path) -> None:
    code = 'sys.stdout.buffer.write(bytes(range(256)) + b\'\\n{"t": "hi"}\\n{"t": "\\xff"}\\n\')'
    spec = CommandSpec(python(NOTE + code), output=OutputKind.JSONL, text=("t",))
    assert (await ask(spec, "", tmp_path)).text == "hi\ufffd"


async def test_one_that_answers_while_it_reads_a_long_prompt_stops_nothing(tmp_path: Path) -> None:
    code = "while data := sys.stdin.read(100_000): print(len(data) * '-', flush=True)"
    result = await ask(CommandSpec(python(NOTE + code)), PROMPT[:900_000], tmp_path)
    assert len(result.text) == 900_009


FLOOD = "while True: os.write({}, b'x' * 65536)"


@pytest.mark.parametrize(
    ("output", "stream"), [(OutputKind.TEXT, 1), (OutputKind.TEXT, 2), (OutputKind.JSONL, 1)]
)
async def test_one_that_floods_without_a_line_end_is_stopped_in_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: OutputKind, stream: int
) -> None:
    monkeypatch.setattr(talks, "MAX_OUTPUT", 64 * 1024 * 1024)
    spec = CommandSpec(python(NOTE + FLOOD.format(stream)), output=output)
    tracemalloc.start()
    try:
        error = await refused(spec, "", tmp_path)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert error.friendly == "The agent program said far too much, so I stopped it."
    assert most < 24 * 1024 * 1024
    assert survivors(tmp_path) == []


async def test_a_flood_of_lines_leaves_the_loop_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(talks, "MAX_OUTPUT", 4 * 1024 * 1024)
    spec = CommandSpec(
        python(NOTE + "while True: os.write(1, b'y\\n' * 32768)"),
        output=OutputKind.JSONL,
        text=("t",),
    )
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.001)
            ticks += 1

    beside = asyncio.create_task(tick())
    error = await refused(spec, "", tmp_path)
    beside.cancel()
    assert "far too much" in error.friendly
    assert ticks > 20
    assert survivors(tmp_path) == []


async def test_a_whole_reply_may_be_no_longer_than_one_in_pieces(tmp_path: Path) -> None:
    code = "print('{\"r\": \"' + 'y' * 1_000_001 + '\"}')"
    spec = CommandSpec(python(code), output=OutputKind.JSONL, result="r")
    assert "far too much" in (await refused(spec, "", tmp_path)).friendly


REST = "time.sleep(60)"
IGNORE = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
FAMILIES = {
    "one that ends": (1, NOTE + REST),
    "one that ignores SIGTERM": (1, IGNORE + NOTE + REST),
    "one with a child": (2, NOTE + "if os.fork() == 0: note()\n" + REST),
    "one whose child has a group of its own": (
        2,
        NOTE + "if os.fork() == 0: os.setpgid(0, 0); note()\n" + REST,
    ),
    "one whose grandchild has a session of its own and ignores SIGTERM": (
        2,
        IGNORE
        + NOTE
        + "if os.fork() == 0:\n os.setsid()\n if os.fork() == 0: note()\n else: os._exit(0)\n"
        + REST,
    ),
    "one that starts another one when it is ended": (
        1,
        NOTE
        + "import signal\ndef again(*_):\n if os.fork() == 0: note()\n"
        + "signal.signal(signal.SIGTERM, again)\nwhile True: time.sleep(1)",
    ),
}


@pytest.mark.parametrize(("least", "code"), FAMILIES.values(), ids=FAMILIES)
async def test_nothing_survives_a_cancellation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least: int, code: str
) -> None:
    """SPEC CMD-4."""
    monkeypatch.setattr(processes, "END_S", 0.5)
    pids = tmp_path / "pids"
    run = asyncio.create_task(ask(CommandSpec(python(code)), "", tmp_path))
    await until(lambda: pids.exists() and len(pids.read_text().split()) >= least)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert survivors(tmp_path, least=least) == []


async def test_nothing_survives_a_cancellation_while_it_starts(tmp_path: Path) -> None:
    """Whatever it is that has been started by then."""
    for steps in range(12):
        asked = request("", tmp_path)
        made = agent(CommandSpec(python(NOTE + "if os.fork() == 0: note()\n" + REST)))
        run = asyncio.create_task(made.run(asked, lambda _: None))
        for _ in range(steps):
            await asyncio.sleep(0)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert list(processes._family(-1, asked.run_id)) == []


async def test_a_second_cancellation_leaves_nothing_behind_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "END_S", 0.5)
    pids = tmp_path / "pids"
    run = asyncio.create_task(ask(CommandSpec(python(IGNORE + NOTE + REST)), "", tmp_path))
    await until(pids.exists)
    run.cancel()
    await asyncio.sleep(0)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    await until(lambda: survivors(tmp_path) == [])


LEFT = """
if os.fork() == 0:
    {leave}
    note()
    while True:
        {work}
while len(open("pids").read().split()) < 2: time.sleep(0.01)
print("done", flush=True)
"""


@pytest.mark.parametrize("leave", ["pass", "os.setsid()"])
@pytest.mark.parametrize("work", ["time.sleep(60)", "os.write(1, b'.'); time.sleep(0.01)"])
async def test_what_a_program_leaves_behind_ends_with_it(
    tmp_path: Path, leave: str, work: str
) -> None:
    """And its open output keeps nobody waiting, whether it is still written to or not."""
    began = time.monotonic()
    spec = CommandSpec(python(NOTE + LEFT.format(leave=leave, work=work)))
    result = await ask(spec, "", tmp_path)
    assert result.text.replace(".", "") == "done\n"
    assert time.monotonic() - began < 10
    assert survivors(tmp_path, least=2) == []


@pytest.mark.parametrize(
    ("work", "end", "words"),
    [
        ("time.sleep(60)", "sys.exit(1)", "The agent program failed (exit code 1)."),
        ("os.write(1, b'x' * 65536)", "", "far too much"),
    ],
    ids=["one that fails", "a flood"],
)
async def test_what_it_leaves_behind_ends_with_a_failure_too(
    tmp_path: Path, work: str, end: str, words: str
) -> None:
    code = NOTE + LEFT.format(leave="os.setsid()", work=work) + end
    assert words in (await refused(CommandSpec(python(code)), "", tmp_path)).friendly
    assert survivors(tmp_path, least=2) == []


async def test_a_run_does_not_end_the_programs_of_another_one(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = asyncio.create_task(
        ask(CommandSpec(python(NOTE + "sys.stdin.read(); " + REST)), "", tmp_path / "other")
    )
    pids = tmp_path / "other" / "pids"
    await until(pids.exists)
    await ask(CommandSpec(python(NOTE + "print('quick')")), "", tmp_path)
    assert alive(int(pids.read_text()))
    other.cancel()
    with pytest.raises(asyncio.CancelledError):
        await other
    assert survivors(tmp_path / "other") == []
