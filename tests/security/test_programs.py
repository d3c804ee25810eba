"""A program as agent, or of a job, wants to stay and to know too much (SPEC AGENT-2b, SEC-4).

Promised: whatever it has started ends with its run, and it gets no secret of the gateway. Tried:
descendants with sessions of their own, with an empty environment, without any open file, that
ignore SIGTERM; after a normal end, a failure, a cancellation. A program that kills its guardian,
which has the same user, is not held.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from goclaw_py.agents.command import CommandSpec, process, program_loop
from goclaw_py.core.errors import AgentError
from tests.support.process import ROOT
from tests.unit.agents.programs import agent, ask, python, request, until

pytestmark = [
    pytest.mark.real_time,
    pytest.mark.skipif(sys.platform != "linux", reason="guardians are for Linux"),
]

HIDDEN = """
import os, signal, sys, time

def hide(depth):
    if os.fork():
        return
    os.setsid()
    if depth:
        hide(depth - 1)
        os._exit(0)
    {first}
    os.closerange(0, 100)
    code = "import os, time; open('pids', 'a').write(str(os.getpid()) + chr(10)); time.sleep(600)"
    os.execve(sys.executable, [sys.executable, "-I", "-c", code], {{}})

for depth in range(3):
    hide(depth)
while not os.path.exists("pids") or len(open("pids").read().split()) < 3:
    time.sleep(0.01)
{end}
"""
IGNORES = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"


@pytest.fixture
def pids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file with the ids of hidden processes. What is left of them ends here."""
    monkeypatch.setattr(process, "END_S", 0.5)
    file = tmp_path / "pids"
    yield file
    for pid in alive(file):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def alive(file: Path) -> list[int]:
    found = []
    for word in file.read_text().split() if file.exists() else ():
        with suppress(OSError):
            state = Path(f"/proc/{word}/stat").read_text().rpartition(")")[2].split()[0]
            found += [int(word)] if state not in "ZX" else []
    return found


def hidden(first: str = "pass", end: str = "print('done')") -> tuple[str, ...]:
    return python(HIDDEN.format(first=first, end=end))


@pytest.mark.parametrize("first", ["pass", IGNORES], ids=["", "ignores SIGTERM"])
async def test_no_hidden_process_outlives_a_program_that_ends(
    tmp_path: Path, pids: Path, first: str
) -> None:
    assert (await ask(CommandSpec(hidden(first)), "", tmp_path)).text == "done\n"
    assert len(pids.read_text().split()) == 3
    assert alive(pids) == []


@pytest.mark.parametrize("end", ["sys.exit(3)", "os.kill(os.getpid(), 9)"])
async def test_no_hidden_process_outlives_a_program_that_fails(
    tmp_path: Path, pids: Path, end: str
) -> None:
    with pytest.raises(AgentError, match=r"ended with (3|-9)"):
        await ask(CommandSpec(hidden(end=end)), "", tmp_path)
    assert alive(pids) == []


@pytest.mark.parametrize("first", ["pass", IGNORES], ids=["", "ignores SIGTERM"])
async def test_no_hidden_process_outlives_a_stopped_run(
    tmp_path: Path, pids: Path, first: str
) -> None:
    run = asyncio.create_task(
        ask(CommandSpec(hidden(first, "open('ready', 'w'); time.sleep(600)")), "", tmp_path)
    )
    await until((tmp_path / "ready").exists)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert alive(pids) == []


async def test_no_hidden_process_outlives_the_program_of_a_job(tmp_path: Path, pids: Path) -> None:
    loop = program_loop(hidden(), environ={"PATH": os.environ["PATH"]})
    await loop.run(request("", tmp_path), lambda _: None)
    assert len(pids.read_text().split()) == 3
    assert alive(pids) == []


GATEWAY = """
import asyncio, sys
from pathlib import Path
import uvloop
from goclaw_py.agents.command import CommandSpec
from tests.unit.agents.programs import ask

uvloop.run(ask(CommandSpec(tuple(sys.argv[2:])), "", Path(sys.argv[1])))
"""


async def test_no_hidden_process_outlives_a_gateway_that_is_killed(
    tmp_path: Path, pids: Path
) -> None:
    program = hidden(end="open('ready', 'w'); time.sleep(600)")
    gateway = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", GATEWAY, str(tmp_path), *program), cwd=ROOT
    )
    await until((tmp_path / "ready").exists)
    gateway.kill()
    await gateway.wait()
    await until(lambda: not alive(pids))


LOOKS = """
import json, os, sys
def environment(pid):
    return open(f"/proc/{pid}/environ").read().split(chr(0))[:-1]
found = {"own": environment(os.getpid()), "guardian": environment(os.getppid())}
found["files"] = [n for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}")]
found["signals"] = [w for w in open("/proc/self/status").read().split("\\n") if w[:6] == "SigBlk"]
print(json.dumps(found))
"""
SECRETS = {
    "GOCLAW_TELEGRAM_TOKEN": "1234:secret",
    "GOCLAW_DATABASE_URL": "postgresql://secret",
    "GOCLAW_WEB__TOKEN": "secret",
    "OPENAI_API_KEY": "secret",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "SSH_AUTH_SOCK": "/secret",
    "LD_PRELOAD": "/secret",
    "PYTHONPATH": "/secret",
}


async def test_a_program_gets_no_secret_and_no_open_file_of_the_gateway(tmp_path: Path) -> None:
    """Also not by looking at its guardian."""
    made = agent(CommandSpec(python(LOOKS)), **SECRETS)
    found = json.loads((await made.run(request("", tmp_path), lambda _: None)).text)
    for name in ("own", "guardian"):
        assert not any("secret" in pair for pair in found[name])
        assert {pair.partition("=")[0] for pair in found[name]} == {"PATH", "GOCLAW_RUN_ID"}
    assert set(found["files"]) <= {"0", "1", "2"}
    assert found["signals"] == ["SigBlk:\t0000000000000000"]
