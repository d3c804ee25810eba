"""An agent that is a program, started for each run."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Mapping
from contextlib import suppress

import orjson

from goclaw_py.agents.command.output import output_of
from goclaw_py.agents.command.process import USUAL, NotStarted, program
from goclaw_py.agents.command.spec import Call, CommandSpec, ProgramInput
from goclaw_py.agents.command.talk import Talk, too_much
from goclaw_py.agents.models.scrub import hide
from goclaw_py.core.errors import AgentError, NotContinued
from goclaw_py.core.ids import AgentName
from goclaw_py.core.messages import HistoryEntry, Role
from goclaw_py.core.run_events import NO_USAGE, TextDelta
from goclaw_py.core.run_steps import ValueStep
from goclaw_py.core.storable import storable_json
from goclaw_py.runs.agent_loop import AgentResult, Emit, ModelStep, RunRequest

FORMAT = "command"
"""The format of our history entries; their native form contains the conversation's id."""

_STARTED = "program"
"""The name of the step that says that a program is about to start."""

_SESSION = "session"
"""The name of the step with the id of the program's conversation."""

_RESUMED = (
    "[You were interrupted while you worked on this message. Continue where you stopped, and do "
    "not repeat what you have done.]"
)

MAX_REPLY = 1_000_000
"""The longest reply in characters; a program that writes more is ended."""


class CommandAgent:
    """Runs a program for each request (SPEC AGENT-2b).

    The program gets the prompt, a minimal environment (SPEC SEC-4) and the agent's workspace as its
    folder. Cancelling a run ends it with everything that it has started.
    """

    def __init__(
        self, name: AgentName, spec: CommandSpec, *, environ: Mapping[str, str] = os.environ
    ) -> None:
        self._name = name
        self._spec = spec
        self._environ = environ

    async def run(self, request: RunRequest, emit: Emit) -> AgentResult:
        """Run the program.

        Raises ``AgentError`` if it cannot be started, fails, or takes too long.
        """
        request, spec = request.begun_again(), self._spec
        known, resumed = _conversation(request), _interrupted(request) if spec.resume else None
        if resumed is None and spec.ends_interrupted:
            if _was_started(request):
                raise NotContinued(
                    "The agent program was interrupted while it worked on your message, so it may "
                    "have done a part of it. I did not start it again.",
                    f"agent {self._name}: its interrupted run cannot be continued",
                )
            emit(ValueStep(_STARTED, "null"))
            await request.recorded()
        is_first = known is None and resumed is None
        session = resumed or known or str(uuid.uuid4())
        answer = _Answer(request, emit, session, spec)
        told = ProgramInput(
            prompt=_prompt(request, is_first=is_first, is_resumed=resumed is not None),
            system=_system(request),
            session=session,
            workspace=str(request.workspace),
        )
        usual = spec.first if is_first else spec.later
        call = spec.call(told, usual if resumed is None else spec.resume)
        try:
            async with asyncio.timeout(self._spec.timeout_s):
                await self._answer(call, request, answer)
        except TimeoutError:
            raise AgentError(
                "The agent program took too long, so I stopped it.",
                f"agent {self._name}: no end after {self._spec.timeout_s} s",
            ) from None
        return answer.result()

    async def warm_up(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing: programs end with their runs."""

    async def _answer(self, call: Call, request: RunRequest, answer: _Answer) -> None:
        running = program(
            call.arguments,
            folder=request.workspace,
            env=self._env(),
            run_id=request.run_id,
            takes_input=bool(call.stdin),
        )
        try:
            async with running as process:
                talk = Talk(process, call.stdin, answer)
                try:
                    code = await talk.run()
                finally:
                    answer.report()
        except NotStarted as error:
            raise self._not_started(error) from error
        if code != 0:
            answer.forget()
            # A program that does not like its key may print it.
            complaint = hide(talk.errors, [self._environ.get(name, "") for name in self._spec.env])
            raise AgentError(
                f"The agent program failed (exit code {code}).",
                f"agent {self._name}: {call.arguments[0]} ended with {code}: {complaint}",
            )

    def _not_started(self, error: NotStarted) -> AgentError:
        if not error.too_long:
            friendly = "The agent program could not be started."
            return AgentError(friendly, f"agent {self._name}: {error}")
        return AgentError(
            "Your message is too long for this agent program. "
            "Please send it in parts, or as a file.",
            f"agent {self._name}: {error}: Linux gives no program an argument above 128 KiB; take "
            f"{{prompt}} out of agents.{self._name}.command, then it comes on standard input",
        )

    def _env(self) -> dict[str, str]:
        names = (*USUAL, *self._spec.env)
        return {name: self._environ[name] for name in names if name in self._environ}


class _Answer:
    """The output of a program, and what is known of its run.

    Once the program has started to answer, the session stores its conversation id, however the run
    ends, and continues it until ``/new``.
    """

    def __init__(self, request: RunRequest, emit: Emit, session: str, spec: CommandSpec) -> None:
        self.session = session
        self._prompt = request.prompt
        self._emit = emit
        self._output = output_of(spec)
        self._spec = spec
        self._pieces: list[str] = []
        self._length = 0
        self._told = ""

    def on_output(self, data: bytes, *, last: bool = False) -> None:
        """Emit its text. Raises ``AgentError`` if there is too much."""
        piece = self._output.feed(data, last=last)
        self._report_session(piece)
        if not piece:
            return
        has_begun = bool(self._pieces)
        self._pieces.append(piece)
        self._length += len(piece)
        self._emit(TextDelta(piece))
        if not has_begun:
            self._emit(ModelStep(NO_USAGE, entries=self._interrupted))
        if self._length > MAX_REPLY:
            raise too_much(f"more than {MAX_REPLY:,} characters")

    def _report_session(self, piece: str) -> None:
        """Report the conversation once the program has told its id, or uses ours and answers."""
        session = self._output.session
        if piece and not self._spec.session:
            session = self.session
        if self._spec.resume and session not in ("", self._told):
            self._told = session
            self._emit(ValueStep(_SESSION, storable_json(session).decode()))

    def report(self) -> None:
        """Report its usage, at or before its end."""
        entries = self._interrupted if self._pieces else None
        self._emit(ModelStep(self._output.usage, done=True, entries=entries))

    def forget(self) -> None:
        """Forget the conversation of a failed program, which may not exist."""
        self._emit(ModelStep(self._output.usage, done=True))

    def result(self) -> AgentResult:
        """Return the whole reply. Raises ``AgentError`` if it is too long."""
        told = self._output.result
        text = "".join(self._pieces) if told is None else told
        if len(text) > MAX_REPLY:
            raise too_much(f"a reply of {len(text):,} characters")
        return AgentResult(text, self._entries(text), self._output.usage)

    def _interrupted(self, note: str) -> tuple[HistoryEntry, ...]:
        return self._entries("\n".join(filter(None, ["".join(self._pieces), note])))

    def _entries(self, text: str) -> tuple[HistoryEntry, ...]:
        native = storable_json({"session": self._output.session or self.session})
        return (
            HistoryEntry(Role.USER, self._prompt, native, FORMAT),
            HistoryEntry(Role.ASSISTANT, text, native, FORMAT),
        )


def _conversation(request: RunRequest) -> str | None:
    """Return the id of the conversation that a run continues."""
    for entry in reversed(request.history):
        if entry.format == FORMAT and entry.native is not None:
            with suppress(orjson.JSONDecodeError, KeyError, TypeError):
                return str(orjson.loads(entry.native)["session"])
    return None


def _interrupted(request: RunRequest) -> str | None:
    """Return the id of the conversation of the interrupted run, if it is known."""
    for step in reversed(request.steps):
        if isinstance(step, ValueStep) and step.name == _SESSION:
            return str(orjson.loads(step.value))
    return None


def _was_started(request: RunRequest) -> bool:
    """Return whether an interrupted run for the same messages had started a program."""
    return any(isinstance(step, ValueStep) for step in request.steps)


def _system(request: RunRequest) -> str:
    """Return the instructions of each run. The program has its own memory, without pinned facts."""
    lines = [request.interrupted, *request.system]
    if request.pinned:
        lines.append("Facts to remember:\n" + "\n".join(f"- {fact}" for fact in request.pinned))
    return "\n\n".join(line for line in lines if line.strip())


def _prompt(request: RunRequest, *, is_first: bool, is_resumed: bool) -> str:
    """Return the prompt; the first one contains the earlier conversation (SPEC AGENT-7)."""
    if is_resumed:
        return f"{_RESUMED}\n\n{request.prompt}"
    if not is_first or not request.summary:
        return request.prompt
    return f"[What was said before this, in short]\n{request.summary}\n\n{request.prompt}"
