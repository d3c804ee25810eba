"""A program that answers: started for each run, ended with it."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Mapping
from contextlib import suppress

import orjson

from goclaw_py.agents.command.output import Output, output_of
from goclaw_py.agents.command.process import exit_code, program
from goclaw_py.agents.command.spec import CommandSpec
from goclaw_py.core.errors import AgentError
from goclaw_py.core.events import TextDelta
from goclaw_py.core.ids import AgentName
from goclaw_py.ports.agent import AgentResult, Emit, HistoryEntry, Role, RunRequest

FORMAT = "command"
"""Names our entries in a history; their native form holds the id of the conversation."""

MAX_REPLY = 1_000_000
"""Characters of a reply; a program that says more is ended."""

_USUAL = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
_READ = 64 * 1024
_ERRORS_KEPT = 4_000
_REST_S = 0.5
"""How long the output of a program that has ended is still read."""


class CommandAgent:
    """Runs a program for each request (SPEC AGENT-2b).

    The program gets the prompt, a minimal environment (SPEC SEC-4) and the agent's workspace as
    its folder. Cancelling a run ends it with everything that it has started.
    """

    def __init__(
        self, name: AgentName, spec: CommandSpec, *, environ: Mapping[str, str] = os.environ
    ) -> None:
        self._name = name
        self._spec = spec
        self._environ = environ

    async def run(self, request: RunRequest, emit: Emit) -> AgentResult:
        """Raises ``AgentError`` if the program cannot be started, fails, or takes too long."""
        known = _conversation(request)
        session = known or str(uuid.uuid4())
        arguments = self._spec.arguments(
            request.prompt, session, str(request.workspace), is_first=known is None
        )
        output = output_of(self._spec)
        try:
            async with asyncio.timeout(self._spec.timeout_s):
                text = await self._answer(request, emit, arguments, output)
        except TimeoutError:
            raise AgentError(
                "The agent program took too long, so I stopped it.",
                f"agent {self._name}: no end after {self._spec.timeout_s} s",
            ) from None
        native = orjson.dumps({"session": output.session or session})
        return AgentResult(
            text,
            entries=(
                HistoryEntry(Role.USER, request.prompt, native, FORMAT),
                HistoryEntry(Role.ASSISTANT, text, native, FORMAT),
            ),
        )

    async def warm_up(self) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """Nothing is left: programs end with their runs."""

    async def _answer(
        self, request: RunRequest, emit: Emit, arguments: list[str], output: Output
    ) -> str:
        prompt = b"" if self._spec.takes_prompt else request.prompt.encode(errors="replace")
        running = program(
            arguments, folder=request.workspace, env=self._env(), run_id=request.run_id
        )
        try:
            process = await running.__aenter__()
        except (OSError, ValueError) as error:
            raise AgentError(
                "The agent program could not be started.",
                f"agent {self._name}: {arguments[0]}: {error}",
            ) from error
        talk = _Talk(process, prompt, output, emit)
        try:
            code = await talk.run()
        finally:
            await running.__aexit__(None, None, None)
        if code != 0:
            raise AgentError(
                f"The agent program failed (exit code {code}).",
                f"agent {self._name}: {arguments[0]} ended with {code}: {talk.errors}",
            )
        return talk.text if output.result is None else output.result

    def _env(self) -> dict[str, str]:
        names = (*_USUAL, *self._spec.env)
        return {name: self._environ[name] for name in names if name in self._environ}


class _Talk:
    """What goes into a program and what comes out of it."""

    def __init__(
        self, process: asyncio.subprocess.Process, prompt: bytes, output: Output, emit: Emit
    ) -> None:
        self._process = process
        self._prompt = prompt
        self._output = output
        self._emit = emit
        self._pieces: list[str] = []
        self._length = 0
        self._errors = bytearray()

    @property
    def text(self) -> str:
        """What it has said so far."""
        return "".join(self._pieces)

    @property
    def errors(self) -> str:
        """The end of what it wrote to its standard error."""
        return self._errors.decode(errors="replace").strip()

    async def run(self) -> int:
        """Talk until it has ended; its exit code. Raises ``AgentError`` if it says too much."""
        reading = asyncio.create_task(self._read(), name="agent program")
        rest = [asyncio.create_task(self._write()), asyncio.create_task(self._keep_errors())]
        ended = asyncio.create_task(exit_code(self._process))
        try:
            await asyncio.wait({reading, ended}, return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                reading.result()
            code = await ended
            # What it has started may hold its output open for ever.
            await asyncio.wait({reading, *rest}, timeout=_REST_S)
            if reading.done():
                reading.result()
            return code
        finally:
            for task in (reading, ended, *rest):
                task.cancel()
            await asyncio.wait({reading, ended, *rest})

    async def _write(self) -> None:
        assert self._process.stdin is not None
        # It need not read its prompt.
        with suppress(BrokenPipeError, ConnectionResetError):
            self._process.stdin.write(self._prompt)
            await self._process.stdin.drain()
        self._process.stdin.close()

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while data := await self._process.stdout.read(_READ):
            self._say(self._output.feed(data))
        self._say(self._output.feed(b"", last=True))

    def _say(self, piece: str) -> None:
        if not piece:
            return
        self._pieces.append(piece)
        self._length += len(piece)
        self._emit(TextDelta(piece))
        if self._length > MAX_REPLY:
            raise AgentError(
                "The agent program said far too much, so I stopped it.",
                f"more than {MAX_REPLY:,} characters",
            )

    async def _keep_errors(self) -> None:
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(_READ):
            self._errors += data
            del self._errors[:-_ERRORS_KEPT]


def _conversation(request: RunRequest) -> str | None:
    """The id of the conversation that a run goes on with."""
    for entry in reversed(request.history):
        if entry.format == FORMAT and entry.native is not None:
            with suppress(orjson.JSONDecodeError, KeyError, TypeError):
                return str(orjson.loads(entry.native)["session"])
    return None
