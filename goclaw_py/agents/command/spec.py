"""What the settings say about a program that answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

PROMPT = "{prompt}"
SESSION = "{session}"
WORKSPACE = "{workspace}"
PLACEHOLDERS = (PROMPT, SESSION, WORKSPACE)


class OutputKind(StrEnum):
    """How a program answers."""

    TEXT = "text"
    """What it writes is the reply."""
    JSONL = "jsonl"
    """Each line is a JSON object; paths tell where the reply is in it."""


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """A program that is started for each run, in the agent's workspace.

    Arguments may hold ``{prompt}`` (else the prompt goes to its standard input), ``{session}`` (an
    id that stays the same until ``/new``) and ``{workspace}``. Nothing is given to a shell.

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
    env: tuple[str, ...] = ()
    timeout_s: float | None = None

    def arguments(self, prompt: str, session: str, workspace: str, *, is_first: bool) -> list[str]:
        """What is started; a value is put in as it is, whatever stands in it."""
        values = {PROMPT: prompt, SESSION: session, WORKSPACE: workspace}
        more = self.first if is_first else self.later
        return [_filled(argument, values) for argument in (*self.run, *more)]

    @property
    def takes_prompt(self) -> bool:
        """Whether the prompt is an argument."""
        return any(PROMPT in argument for argument in (*self.run, *self.first, *self.later))


def _filled(argument: str, values: dict[str, str]) -> str:
    """Each placeholder replaced once: one in a prompt stays as it is."""
    pieces: list[str] = []
    while argument:
        found = [(at, name) for name in values if (at := argument.find(name)) >= 0]
        if not found:
            break
        at, name = min(found)
        pieces += [argument[:at], values[name]]
        argument = argument[at + len(name) :]
    return "".join([*pieces, argument])
