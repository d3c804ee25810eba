"""Standard input and output of a program."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Protocol

from goclaw_py.agents.command.process import StartedProgram
from goclaw_py.core.errors import AgentError

MAX_OUTPUT = 256 * 1024 * 1024
"""The number of bytes that a program may write in a run, including errors."""

_READ = 16 * 1024
"""How much is read in one turn of the event loop: short lines cost 10 µs each."""

_ERRORS_KEPT = 4_000
_REST_S = 0.5
"""Seconds for which the output of an ended program is still read."""


class OutputReader(Protocol):
    """Receives the standard output of a program."""

    def on_output(self, data: bytes, *, last: bool = False) -> None:
        """Take more output. Raises ``AgentError`` to end the program."""


class Talk:
    """The communication with a started program; ``run`` is called once.

    Without a standard input nothing is written to it.
    """

    def __init__(self, process: StartedProgram, prompt: bytes, reader: OutputReader) -> None:
        self._process = process
        self._prompt = prompt
        self._hearer = reader
        self._written = 0
        self._errors = bytearray()

    @property
    def errors(self) -> str:
        """Return the end of its standard error."""
        return self._errors.decode(errors="replace").strip()

    async def run(self) -> int:
        """Communicate until it has ended; return its exit code.

        Raises ``AgentError`` if it writes too much.
        """
        ended = asyncio.create_task(self._process.exit_code())
        reading = asyncio.create_task(self._read(), name="agent program")
        complaints = asyncio.create_task(self._collect_errors())
        writing = asyncio.create_task(self._write())
        tasks = {ended, reading, complaints, writing}
        try:
            await _until(ended, {reading, complaints})
            # What it has started may hold its output open for ever.
            done, _ = await asyncio.wait(tasks, timeout=_REST_S)
            for task in done:
                task.result()
            return ended.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _write(self) -> None:
        stdin = self._process.stdin
        if stdin is None:
            return
        # It need not read its prompt, nor live until that is written.
        with suppress(BrokenPipeError, ConnectionResetError):
            try:
                stdin.write(self._prompt)
                await stdin.drain()
            except RuntimeError:
                # uvloop's word for a pipe that is closed; asyncio has none for it.
                if not stdin.is_closing():
                    raise
        stdin.close()

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while data := await self._process.stdout.read(_READ):
            self._count(data)
            self._hearer.on_output(data)
            await asyncio.sleep(0)  # reading does not wait while there is something to read
        self._hearer.on_output(b"", last=True)

    async def _collect_errors(self) -> None:
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(_READ):
            self._count(data)
            self._errors += data
            del self._errors[:-_ERRORS_KEPT]

    def _count(self, data: bytes) -> None:
        self._written += len(data)
        if self._written > MAX_OUTPUT:
            raise too_much(f"more than {MAX_OUTPUT:,} bytes of output")


def too_much(cause: str) -> AgentError:
    """Return the error for a program that writes too much."""
    return AgentError("The agent program said far too much, so I stopped it.", cause)


async def _until(ended: asyncio.Task[int], others: set[asyncio.Task[None]]) -> None:
    """Wait for the end of a program. Raises errors of the other tasks."""
    waiting: set[asyncio.Task[int] | asyncio.Task[None]] = {ended, *others}
    while not ended.done():
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
