"""A program with everything that it starts: when it is ended, no process remains.

On Linux a guardian starts it, which finds all its descendants (see ``guardian``). Elsewhere, and if
the guardian is killed, they are found by their process group, and by a variable in their
environment, which children inherit.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from goclaw_py.core.errors import GoclawError

log = logging.getLogger(__name__)

MARK = "GOCLAW_RUN_ID"
"""The variable in the environment of all processes of a run."""

USUAL = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
"""The variables of the gateway that every program gets (SPEC SEC-4)."""

END_S = 5.0
"""Seconds that a program has to end after SIGTERM, before SIGKILL."""

_KILLED_S = 5.0
_LOOK_S = 0.02
_NO_GROUP = -1
_PROC = Path("/proc")
_GUARDIAN = str(Path(__file__).with_name("guardian.py"))

HAS_GUARDIAN = (
    sys.platform == "linux" and bool(sys.executable) and (_PROC / "self" / "environ").exists()
)
"""Whether programs are started by a guardian."""


class NotStarted(GoclawError):
    """A program could not be started; ``too_long``: an argument exceeds the system's limit."""

    def __init__(self, cause: str, *, too_long: bool = False) -> None:
        super().__init__(cause)
        self.too_long = too_long


class _Report:
    """What a guardian writes."""

    def __init__(self, reading: int) -> None:
        os.set_blocking(reading, False)
        self._file = os.fdopen(reading, "rb", 0)
        self._read = b""

    async def line(self) -> str:
        """Return the next line; "" if the guardian has been killed."""
        while b"\n" not in self._read:
            if (data := self._file.read(100)) == b"":
                return ""
            self._read += data or b""
            await asyncio.sleep(0 if data else _LOOK_S)
        line, _, self._read = self._read.partition(b"\n")
        return line.decode()

    def close(self) -> None:
        """Close it: the guardian notices when it writes."""
        self._file.close()


class StartedProgram:
    """A started program, with its pipes."""

    def __init__(self, process: asyncio.subprocess.Process, report: _Report | None) -> None:
        self.process = process
        """The guardian, if there is a ``report`` of it."""
        self.report = report
        self.stdin, self.stdout, self.stderr = process.stdin, process.stdout, process.stderr

    async def exit_code(self) -> int:
        """Wait until it has ended, even if another process has its output open.

        ``Process.wait`` also waits for the output.
        """
        if self.report is not None and (line := await self.report.line()):
            return int(line)
        while True:
            if self.process.returncode is not None:
                return self.process.returncode
            await asyncio.sleep(_LOOK_S)


@asynccontextmanager
async def program(
    arguments: Sequence[str],
    *,
    folder: Path,
    env: Mapping[str, str],
    run_id: str,
    takes_input: bool,
) -> AsyncIterator[StartedProgram]:
    """Start a program, which ends with everything that it has started when this is left.

    ``takes_input``: its standard input is a pipe, otherwise ``/dev/null``. Raises ``NotStarted``.
    """
    # In a separate task: a cancelled caller could not end a program that is about to start.
    starting = asyncio.create_task(
        _start(arguments, folder, {**env, MARK: run_id}, takes_input=takes_input)
    )
    try:
        yield await asyncio.shield(starting)
    finally:
        # Shielded: a second cancellation must not leave anything running.
        await asyncio.shield(_end_started(starting, run_id))


async def _start(
    arguments: Sequence[str], folder: Path, env: Mapping[str, str], *, takes_input: bool
) -> StartedProgram:
    if not HAS_GUARDIAN:
        return StartedProgram(
            await _process(arguments, arguments, folder, env, takes_input=takes_input), None
        )
    reading, writing = os.pipe()
    report = _Report(reading)
    guardian = (sys.executable, "-I", "-S", _GUARDIAN, str(writing), str(END_S), *arguments)
    try:
        process = await _process(
            arguments, guardian, folder, env, takes_input=takes_input, report=writing
        )
        os.close(writing)
        writing = -1
        if number := int(await report.line() or 0):
            await process.wait()
            raise _not_started(arguments[0], folder, OSError(number, os.strerror(number)))
    except BaseException:
        report.close()
        raise
    finally:
        if writing >= 0:
            os.close(writing)
    return StartedProgram(process, report)


async def _process(
    arguments: Sequence[str],
    started: Sequence[str],
    folder: Path,
    env: Mapping[str, str],
    *,
    takes_input: bool,
    report: int | None = None,
) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            *started,
            cwd=folder,
            env=env,
            stdin=asyncio.subprocess.PIPE if takes_input else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            pass_fds=() if report is None else (report,),
        )
    except OSError as error:
        raise _not_started(arguments[0], folder, error) from error


def _not_started(name: str, folder: Path, error: OSError) -> NotStarted:
    # Not every event loop tells which of the two does not exist.
    if not folder.is_dir():
        return NotStarted(f"{name}: the workspace {folder} is not there")
    return NotStarted(f"{name}: {error.strerror or error}", too_long=error.errno == errno.E2BIG)


async def _end_started(starting: asyncio.Task[StartedProgram], run_id: str) -> None:
    await asyncio.wait({starting})
    if not starting.cancelled() and starting.exception() is None:
        await _end(starting.result(), run_id)


async def end_marked(run_id: str) -> None:
    """End all processes with the mark of a run: SIGTERM, some time, SIGKILL.

    For programs that others have started with ``MARK`` in their environment, and have ended.
    Continues to the end if its caller is cancelled.
    """
    await asyncio.shield(_end_marked(run_id))


async def _end_marked(run_id: str) -> None:
    loop = asyncio.get_running_loop()
    for number, for_s in ((signal.SIGTERM, END_S), (signal.SIGKILL, _KILLED_S)):
        end = loop.time() + for_s
        is_first = True
        while (pids := list(_family(_NO_GROUP, run_id))) and loop.time() < end:
            # SIGKILL again and again: they may have started another one meanwhile.
            if is_first or number is signal.SIGKILL:
                _signal_all(pids, number)
            is_first = False
            await asyncio.sleep(_LOOK_S)
        if not pids:
            return
    log.error("program_not_killed", extra={"run_id": run_id})


async def _end(started: StartedProgram, run_id: str) -> None:
    """Send SIGTERM, wait, and send SIGKILL, to the group and to processes that left it."""
    process, loop = started.process, asyncio.get_running_loop()
    if started.report is not None:
        started.report.close()
        if process.returncode is None:
            # It ends all that it has found, which is more than can be found here.
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGTERM)
        with suppress(TimeoutError):
            async with asyncio.timeout(END_S + 2 * _KILLED_S):
                await StartedProgram(process, None).exit_code()
    for number, for_s in ((signal.SIGTERM, END_S), (signal.SIGKILL, _KILLED_S)):
        end = loop.time() + for_s
        _signal(process, run_id, number)
        while _is_there(process, run_id) and loop.time() < end:
            await asyncio.sleep(_LOOK_S)
            if number is signal.SIGKILL:
                # It may have started another one meanwhile.
                _signal(process, run_id, number)
    # Otherwise its pipes stay open while another process has them. There is no public API for it.
    process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001 - see above
    if _is_there(process, run_id):
        # For example a process that waits for a missing disk: the kernel ends it later.
        log.error("program_not_killed", extra={"run_id": run_id, "pid": process.pid})


def _is_there(process: asyncio.subprocess.Process, run_id: str) -> bool:
    return process.returncode is None or any(True for _ in _family(process.pid, run_id))


def _signal(process: asyncio.subprocess.Process, run_id: str, number: signal.Signals) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
    _signal_all(list(_family(process.pid, run_id)), number)


def _signal_all(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _family(group: int, run_id: str) -> Iterator[int]:
    """Yield the living processes of a run. None without ``/proc``."""
    mark = f"{MARK}={run_id}".encode()
    for folder in _PROC.glob("[0-9]*"):
        # A process may end while we look; others' are not ours to read.
        with suppress(OSError):
            text = (folder / "stat").read_text(errors="replace")
            state, _, its_group = text[text.rindex(")") + 2 :].split()[:3]
            if state in "ZX":
                continue
            if int(its_group) == group or mark in (folder / "environ").read_bytes().split(b"\0"):
                yield int(folder.name)
