"""The agent loop, as the runtime sees it (SPEC AGENT-1)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from goclaw_py.model.budget import NO_BUDGET, Budget
from goclaw_py.model.ids import AgentName, RunId, SessionKey
from goclaw_py.model.messages import FileKind, OutFile
from goclaw_py.model.outcomes import Trigger
from goclaw_py.model.run_events import AgentEvent, Usage
from goclaw_py.ports.tools import NO_TOOLS, Toolbox


class Role(StrEnum):
    """Who speaks in an entry of the history."""

    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One turn's half of a session's history.

    ``text`` is readable by every loop and by people. ``native`` is the loop's own form of the same
    (JSON bytes), kept so that the loop that wrote it can read it back without loss; ``format``
    names the loop that can (for example ``"pydantic-ai"``).
    """

    role: Role
    text: str
    native: bytes | None = None
    format: str | None = None


@dataclass(frozen=True, slots=True)
class TextPart:
    """Text of one message that a person sent.

    ``said`` are the sender's own words, where ``text`` also tells who speaks; None: ``text`` is.
    """

    text: str
    said: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class FilePart:
    """A file that a person sent, in the agent's workspace under the absolute ``path``."""

    kind: FileKind
    path: Path
    name: str
    mime: str = ""

    @property
    def text(self) -> str:
        """What stands for it where only text is read."""
        name = " ".join(self.name.split())
        return f"[{self.kind.value} “{name}”, saved as {self.path}]"


MessagePart = TextPart | FilePart

TakeMessages = Callable[[], tuple[MessagePart, ...]]
"""Takes the messages that came for a run while it works (mode ``steer``, SPEC QUEUE-4).

A loop that can, calls it between two requests to its model, in the event loop, and tells the model
what it gets. Whatever it gets belongs to this run from then on and is not offered again. Never
blocks, never raises; empty when there is nothing, and always after a stop.
"""


async def not_recorded() -> None:
    """Nothing is recorded; see ``RunRequest.recorded``."""


def no_messages() -> tuple[MessagePart, ...]:
    """Nothing to take; see ``TakeMessages``."""
    return ()


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The request of one run. ``history`` is oldest first and does not contain ``parts``.

    A loop need not call ``take_messages``: what nobody takes becomes a turn of its own.
    ``workspace`` is the agent's folder, absolute; it exists.

    Args:
        system: What the agent is told beside its own system prompt.
        summary: What the conversation held before ``history`` begins; "" for nothing.
        pinned: What it must not forget, whatever becomes of the history.
        tools: What it may call.
        budget: What the run may use up. A loop that makes several model requests looks at it
            before each, and before it calls tools, and raises ``BudgetReached``.
        model: What is to answer instead of the agent's own model; "" keeps that. A loop without
            models need not look at it.
        recorded: Returns when everything that was reported is in the database. A loop awaits it
            between its report that a tool is called and the call, so that no call is unknown after
            a crash (SPEC AGENT-9). What it raises ends the run.
    """

    run_id: RunId
    session: SessionKey
    agent: AgentName
    trigger: Trigger
    parts: tuple[MessagePart, ...]
    history: tuple[HistoryEntry, ...] = ()
    system: tuple[str, ...] = ()
    take_messages: TakeMessages = field(default=no_messages, repr=False, compare=False)
    workspace: Path = Path()
    summary: str = ""
    pinned: tuple[str, ...] = ()
    tools: Toolbox = field(default=NO_TOOLS, repr=False, compare=False)
    budget: Budget = NO_BUDGET
    model: str = ""
    recorded: Callable[[], Awaitable[None]] = field(default=not_recorded, repr=False, compare=False)

    @property
    def prompt(self) -> str:
        """The texts of all parts, joined by newlines."""
        return "\n".join(part.text for part in self.parts)

    @property
    def said(self) -> str:
        """The same without what only tells who speaks and what was said before."""
        texts = (
            part.text if isinstance(part, FilePart) or part.said is None else part.said
            for part in self.parts
        )
        return "\n".join(filter(None, texts))


@dataclass(frozen=True, slots=True)
class AgentResult:
    """The result of a run. ``text`` is the whole reply; ``entries`` go into the history unchanged.

    Empty ``entries`` mean: store the prompt and ``text`` as a plain pair. ``context_tokens`` is how
    much the conversation takes by now, the last answer included; None if that is not known.
    ``files`` are sent after the text; they have to be in the agent's workspace. ``model`` is the
    one that has answered, "" if there is none.
    """

    text: str
    entries: tuple[HistoryEntry, ...] = ()
    usage: Usage = field(default_factory=Usage)
    context_tokens: int | None = None
    files: tuple[OutFile, ...] = ()
    model: str = ""


@dataclass(frozen=True, slots=True)
class ModelStep:
    """An agent loop has got an answer from its model; ``usage`` is what the run used so far.

    ``done``: with this answer the reply is complete, and nothing more will be used.

    Should the run end before its reply is complete, this is what is known of it. ``entries`` then
    makes its entries for the history, everything up to that moment included; it is given a note
    about how the run ended, which stands at the end of them. They must be valid: no call of a tool
    without a result.
    """

    usage: Usage
    model: str = ""
    done: bool = False
    entries: Callable[[str], tuple[HistoryEntry, ...]] | None = field(default=None, compare=False)


LoopEvent = AgentEvent | ModelStep
"""What a loop reports while it works."""

Emit = Callable[[LoopEvent], None]
"""Reports an event of a run. Never blocks, never raises; events after a stop are discarded."""


class AgentLoop(Protocol):
    """Runs one agent. One object serves many runs at once."""

    async def run(self, request: RunRequest, emit: Emit) -> AgentResult:
        """Work on the request until its reply is complete.

        Cancelling the task must end the work, with everything that it started. Raises
        ``AgentError`` for failures with something to say to the person; any other exception is a
        failure as well, told in general words.
        """

    async def warm_up(self) -> None:
        """Do what makes the first run slow (imports). Called after the gateway is ready."""

    async def close(self) -> None:
        """Give back connections. No run is active any more."""
