"""The settings of a program that answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

PROMPT = "{prompt}"
SYSTEM = "{system}"
SESSION = "{session}"
WORKSPACE = "{workspace}"


class OutputKind(StrEnum):
    """The format of a program's output."""

    TEXT = "text"
    """The output is the reply."""
    JSONL = "jsonl"
    """Each line is a JSON object; paths select the reply."""


@dataclass(frozen=True, slots=True)
class UsagePaths:
    """Paths to the usage that a program reports; see ``CommandSpec`` for paths.

    The last number at a path counts, and several paths are added up: ``input`` and ``output`` are
    tokens, ``cost`` is US dollars, ``turns`` are model requests.
    """

    input: tuple[str, ...] = ()
    output: tuple[str, ...] = ()
    cost: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProgramInput:
    """The input of a run's program.

    Args:
        prompt: The prompt.
        system: The instructions, separate from the words of people (SPEC AGENT-7).
        session: The id of the conversation.
    """

    prompt: str
    system: str
    session: str
    workspace: str


@dataclass(frozen=True, slots=True)
class Call:
    """The arguments of a program; ``stdin`` is its standard input."""

    arguments: tuple[str, ...]
    stdin: bytes


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """A program that is started for each run, in the agent's workspace.

    Arguments may contain ``{prompt}`` (otherwise the prompt goes to its standard input),
    ``{system}`` (the instructions, otherwise they precede the prompt), ``{session}`` (an id that
    stays the same until ``/new``) and ``{workspace}``. No shell is used.

    Args:
        run: The program and its arguments.
        first: Additional arguments for the first run of a conversation.
        later: Additional arguments for later runs, which continue it.
        resume: Additional arguments, in place of ``first`` and ``later``, for a run that continues
            an interrupted one; empty: the program cannot do that.
        ends_interrupted: Whether a message ends ``lost`` if its interrupted run cannot be
            continued; otherwise the program begins again.
        text: With ``jsonl``, paths to pieces of the reply. A path is keys separated by dots, ``*``
            for each element of a list; conditions may precede it, as in ``type=assistant
            message.content.*.text``.
        join: The separator of pieces.
        result: With ``jsonl``, the path to the whole reply, used in place of the pieces.
        session: With ``jsonl``, the path to the program's id of the conversation, for ``{session}``
            in ``later``.
        usage: With ``jsonl``, the paths to its usage.
        env: Variables of the gateway's environment that it gets besides the usual ones.
        timeout_s: The time limit of a run; None: that of any run.
    """

    run: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    later: tuple[str, ...] = ()
    resume: tuple[str, ...] = ()
    ends_interrupted: bool = False
    output: OutputKind = OutputKind.TEXT
    text: tuple[str, ...] = ()
    join: str = ""
    result: str = ""
    session: str = ""
    usage: UsagePaths = field(default_factory=UsagePaths)
    env: tuple[str, ...] = ()
    timeout_s: float | None = None

    def call(self, given: ProgramInput, more: tuple[str, ...]) -> Call:
        """Return the arguments for a run, ``run`` and ``more``; values are inserted unchanged."""
        written = (*self.run, *more)
        prompt = given.prompt if _has(written, SYSTEM) else _below(given.system, given.prompt)
        values = {
            PROMPT: prompt,
            SYSTEM: given.system,
            SESSION: given.session,
            WORKSPACE: given.workspace,
        }
        stdin = b"" if _has(written, PROMPT) else prompt.encode(errors="replace")
        return Call(tuple(_filled(argument, values) for argument in written), stdin)


def _has(arguments: tuple[str, ...], placeholder: str) -> bool:
    return any(placeholder in argument for argument in arguments)


def _below(system: str, prompt: str) -> str:
    """Return a prompt after the instructions of its run, if there are any."""
    if not system:
        return prompt
    return f"<instructions>\n{system}\n</instructions>\n\n{prompt}"


def _filled(argument: str, values: Mapping[str, str]) -> str:
    """Replace each placeholder once: one in a prompt stays as it is."""
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
    """Return as much of a text as an argument can contain: no lone surrogates, no NUL."""
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()
