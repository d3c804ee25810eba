"""The loop of a gateway's process: how it ends, and what it changes for the process."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from goclaw_py.app.loop import end

_PROGRAM = """
import asyncio, gc, logging, sys
from goclaw_py.app.loop import run

async def exits():
    asyncio.create_task(leaves())
    await asyncio.sleep(0.01)

async def leaves():
    raise {error}

async def stubborn():
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass

async def main():
    print(gc.get_threshold()[0], gc.get_freeze_count() > 0, flush=True)
    left = asyncio.create_task({task}, name="the rest")
    await asyncio.sleep(0.05)
    return 7

to_stderr = logging.StreamHandler()
to_stderr.setFormatter(logging.Formatter("%(message)s %(tasks)s", defaults={"tasks": "-"}))
logging.basicConfig(handlers=[to_stderr])
sys.exit(run(main()))
"""


def _run(task: str, *, error: str = "") -> subprocess.CompletedProcess[str]:
    program = _PROGRAM.replace("{task}", task).replace("{error}", error)
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.real_time
def test_what_is_left_is_cancelled_and_the_code_is_that_of_the_main_task() -> None:
    ended = _run("asyncio.sleep(60)")
    assert (ended.returncode, ended.stdout, ended.stderr) == (7, "20000 True\n", "")


@pytest.mark.real_time
def test_what_cannot_be_cancelled_does_not_keep_the_process() -> None:
    """SPEC CMD-4: a run that ignores its cancellation."""
    ended = _run("stubborn()")
    assert (ended.returncode, ended.stdout) == (7, "20000 True\n")
    assert ended.stderr == "tasks_left_running ['the rest']\n"


@pytest.mark.real_time
@pytest.mark.parametrize("error", ["SystemExit(3)", "KeyboardInterrupt"])
def test_a_task_that_exits_ends_alone(error: str) -> None:
    """SPEC QUEUE-10: agents may call ``sys.exit`` in tasks of their own."""
    ended = _run("exits()", error=error)
    assert (ended.returncode, ended.stdout) == (7, "20000 True\n")
    assert "task_tried_to_exit" in ended.stderr


async def _ignores(cancellations: int) -> None:
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            if not cancellations:
                raise
            cancellations -= 1


@pytest.mark.parametrize(("ignored", "stuck"), [(0, []), (2, []), (3, ["it"])])
async def test_a_lost_cancellation_comes_again_for_a_while(ignored: int, stuck: list[str]) -> None:
    """SPEC QUEUE-11: an orderly end ends."""
    task = asyncio.create_task(_ignores(ignored), name="it")
    await asyncio.sleep(0)
    assert await end([task], every_s=10.0, times=3) == stuck
    task.cancel()
    await asyncio.wait([task])


async def test_what_has_ended_is_not_waited_for() -> None:
    task = asyncio.create_task(asyncio.sleep(0))
    await task
    assert await end([task], every_s=10.0, times=3) == []
