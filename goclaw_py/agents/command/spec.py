"""What the settings say about a program that answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

PROMPT = "{prompt}"
SYSTEM = "{system}"
SESSION = "{session}"
WORKSPACE = "{workspace}"


class OutputKind(StrEnum):
    """How a program answers."""

    TEXT = "text"
    """What it writes is the reply."""
    JSONL = "jsonl"
    """Each line is a JSON object; paths tell where the reply is in it."""


@dataclass(frozen=True, slots=True)
class UsagePaths:
    """Where a program tells what it has used; see ``CommandSpec`` for paths.

    The last number at a path counts, those of several paths are added up: ``input`` and ``output``
    are tokens, ``cost`` is US dollars, ``turns`` are model requests.
    """

    input: tuple[str, ...] = ()
    output: tuple[str, ...] = ()
    cost: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProgramInput:
    """What one run has for its program.

    Args:
        prompt: What it answers.
        system: Its instructions, which are not the words of whom it answers (SPEC AGENT-7).
        session: The id of the conversation.
    """

    prompt: str
    system: str
    session: str
    workspace: str


@dataclass(frozen=True, slots=True)
class Call:
    """What a program is started with; ``stdin`` is what it can read."""

    arguments: tuple[str, ...]
    stdin: bytes


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """A program that is started for each run, in the agent's workspace.

    Arguments may hold ``{prompt}`` (else the prompt goes to its standard input), ``{system}`` (the
    run's instructions, else they stand before the prompt), ``{session}`` (an id that stays the same
    until ``/new``) and ``{workspace}``. Nothing is given to a shell.

    Args:
        run: The program and its arguments.
        first: More arguments for the first run of a conversation.
        later: More arguments for all others, to go on with it.
        text: With ``jsonl``, paths to pieces of the reply. A path is keys with dots between them,
            ``*`` for each element of a list; conditions may stand before it, as in
            ``type=assistant message.content.*.text``.
        join: What stands between two pieces.
        result: With ``jsonl``, the path to the whole reply, which wins over the pieces.
        session: With ``jsonl``, the path to the program's own id of the conversation, for
            ``{session}`` in ``later``.
        usage: With ``jsonl``, where it tells what it has used.
        env: Names of variables of the gateway's environment that it gets beside the usual ones.
        timeout_s: How long a run may take; None: as long as any run.
    """

    run: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    later: tuple[str, ...] = ()
    output: OutputKind = OutputKind.TEXT
    text: tuple[str, ...] = ()
    join: str = ""
    result: str = ""
    session: str = ""
    usage: UsagePaths = field(default_factory=UsagePaths)
    env: tuple[str, ...] = ()
    timeout_s: float | None = None

    def call(self, told: ProgramInput, *, is_first: bool) -> Call:
        """What is started for a run; a value is put in as it is, whatever stands in it."""
        written = (*self.run, *(self.first if is_first else self.later))
        prompt = told.prompt if _has(written, SYSTEM) else _below(told.system, told.prompt)
        values = {
            PROMPT: prompt,
            SYSTEM: told.system,
            SESSION: told.session,
            WORKSPACE: told.workspace,
        }
        stdin = b"" if _has(written, PROMPT) else prompt.encode(errors="replace")
        return Call(tuple(_filled(argument, values) for argument in written), stdin)


def _has(arguments: tuple[str, ...], placeholder: str) -> bool:
    return any(placeholder in argument for argument in arguments)


def _below(system: str, prompt: str) -> str:
    """A prompt below the instructions of its run, if there are any."""
    if not system:
        return prompt
    return f"<instructions>\n{system}\n</instructions>\n\n{prompt}"


def _filled(argument: str, values: Mapping[str, str]) -> str:
    """Each placeholder replaced once: one in a prompt stays as it is."""
    pieces: list[str] = []
    while argument:
        found = [(at, name) for name in values if (at := argument.find(name)) >= 0]
        if not found:
            break
        at, name = min(found)
        pieces += [argument[:at], _given(values[name])]
        argument = argument[at + len(name) :]
    return "".join([*pieces, argument])


def _given(text: str) -> str:
    """As much of a text as an argument can hold: no lone surrogate, and no NUL, which ends it."""
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()
