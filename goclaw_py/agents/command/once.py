"""A program that a job runs (SPEC CRON-0, SEC-4). Its output is the job's result."""

from __future__ import annotations

import os
from collections.abc import Mapping

from goclaw_py.agents.command.output import PlainOutput
from goclaw_py.agents.command.process import USUAL, NotStarted, program
from goclaw_py.agents.command.talk import Talk, too_much
from goclaw_py.agents.models.scrub import hide
from goclaw_py.core.errors import AgentError
from goclaw_py.core.run_events import NO_USAGE, TextDelta
from goclaw_py.core.text import truncate
from goclaw_py.runs.agent_loop import AgentLoop, AgentResult, Emit, ModelStep, RunRequest

MAX_OUTPUT = 1_000_000
"""The longest output in characters; a program that writes more is ended."""

_LINE_CHARS = 200
_COMPLAINT_CHARS = 4_000


def program_loop(argv: tuple[str, ...], *, environ: Mapping[str, str] = os.environ) -> AgentLoop:
    """Return a loop that runs a program in each run, in the agent's workspace.

    The program can read the prompt on its standard input; its arguments are used as they are,
    without a shell and without the prompt. It gets a minimal environment. The runtime limits its
    time: cancelling a run ends it with everything that it has started.
    """
    return _ProgramLoop(argv, environ)


class _ProgramLoop:
    """See ``program_loop``."""

    def __init__(self, argv: tuple[str, ...], environ: Mapping[str, str]) -> None:
        self._argv = argv
        self._env = {name: environ[name] for name in USUAL if name in environ}

    async def run(self, request: RunRequest, emit: Emit) -> AgentResult:
        """Run the program.

        Raises ``AgentError`` if it cannot be started, fails, or writes too much.
        """
        heard = _Output(emit)
        prompt = request.prompt.encode(errors="replace")
        running = program(
            self._argv,
            folder=request.workspace,
            env=self._env,
            run_id=request.run_id,
            takes_input=bool(prompt),
        )
        try:
            async with running as process:
                talk = Talk(process, prompt, heard)
                code = await talk.run()
        except NotStarted as error:
            friendly = f"The program {self._name} could not be started."
            raise AgentError(friendly, str(error)) from error
        if code != 0:
            raise self._failed(code, talk.errors or heard.text)
        emit(ModelStep(NO_USAGE, done=True))
        return AgentResult(heard.text)

    async def warm_up(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing: programs end with their runs."""

    @property
    def _name(self) -> str:
        return self._argv[0].rpartition("/")[2] or self._argv[0]

    def _failed(self, code: int, output: str) -> AgentError:
        complaint = hide(output[-_COMPLAINT_CHARS:])
        lines = [line.strip() for line in complaint.splitlines() if line.strip()]
        last = f": {truncate(lines[-1], _LINE_CHARS)}" if lines else "."
        return AgentError(
            f"The program {self._name} failed (exit code {code}){last}",
            f"{self._name} ended with {code}: {complaint}",
        )


class _Output:
    """The output of a program so far."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._output = PlainOutput()
        self._pieces: list[str] = []
        self._length = 0

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def on_output(self, data: bytes, *, last: bool = False) -> None:
        """Emit its text. Raises ``AgentError`` if there is too much."""
        piece = self._output.feed(data, last=last)
        if not piece:
            return
        self._pieces.append(piece)
        self._length += len(piece)
        self._emit(TextDelta(piece))
        if self._length > MAX_OUTPUT:
            raise too_much(f"more than {MAX_OUTPUT:,} characters")
