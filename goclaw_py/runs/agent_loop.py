"""The agent loop, as the runtime sees it (SPEC AGENT-1).

The rules of SPEC AGENT-1:

The loop is an interface: a request (session key, message parts, trigger, system additions, tools,
budget) → events (text delta, tool start/end, steps with the usage so far, compaction) → result
(text, files, usage, cost, tokens of the context). A loop may ask for messages that came meanwhile
(QUEUE-4). Tools in use are shown in the chat, below the growing reply. Only the composition root
imports a concrete loop. Text that comes in (from models with thoughts and arguments, tools,
programs, people) is well formed from then on: the halves of a UTF-16 pair that come one after the
other are joined, also over pieces of a stream; one alone becomes U+FFFD. Values of agents, tools
and programs that JSON cannot hold (integers beyond 64 bits, NaN, other keys than texts, nesting
without end) are written as the nearest thing that it can: no run, step or result is lost for them.
Thoughts that a model writes into its text (`<think>…</think>`; also `thinking`, `thought`,
`thoughts`, `reasoning`, `reflection`, `scratchpad`, `antthinking`, with a prefix such as `seed:`
or `redacted_`, with attributes, `<|begin_of_thought|>`, `[THINK]`, `◁think▷`) are separated in
whichever pieces the tags come, for every kind of agent: they are not shown, sent or judged (HB-6),
and the history of a `models` agent has them as thoughts. Tags in code are text. A block that
begins a line and does not end is a thought, and no answer of a heartbeat run; one within a line is
text. Text before a closing tag without an opening one is a thought; it is seen in a draft until
that tag comes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from goclaw_py.core.budget import NO_BUDGET, Budget
from goclaw_py.core.ids import AgentName, RunId, SessionKey
from goclaw_py.core.messages import FileKind, HistoryEntry, OutFile
from goclaw_py.core.outcomes import Trigger
from goclaw_py.core.run_events import AgentEvent, RunNoted, Usage
from goclaw_py.core.run_steps import NewMessagesStep, ResponseStep, RunStep, ValueStep
from goclaw_py.core.values import value
from goclaw_py.runs.toolbox import NO_TOOLS, Toolbox


@value(frozen=True, slots=True)
class TextPart:
    """The text of one message of a person.

    ``said`` is the sender's own text if ``text`` also names the sender; None: it is ``text``.
    ``rows`` are the inbox rows of the message, for ``NewMessagesStep``.
    """

    text: str
    said: str | None = field(default=None, compare=False)
    rows: tuple[int, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class FilePart:
    """A file of a person, stored in the agent's workspace at the absolute ``path``.

    ``quoted``: it belongs to the message that the person replies to.
    """

    kind: FileKind
    path: Path
    name: str
    mime: str = ""
    quoted: bool = False

    @property
    def text(self) -> str:
        """Its replacement for an agent where only text can be used."""
        return f"[{self._name}, saved as {self.path}]"

    @property
    def placeholder(self) -> str:
        """Its replacement for people, who need no place on this machine."""
        return f"[{self._name}]"

    @property
    def _name(self) -> str:
        name = " ".join(self.name.split())
        of = " of the message replied to" if self.quoted else ""
        return f"{self.kind.value} “{name}”{of}"


MessagePart = TextPart | FilePart

TakeMessages = Callable[[], tuple[MessagePart, ...]]
"""Returns the new messages for a run in progress (mode ``steer``, SPEC QUEUE-4).

A loop that supports it calls it in the event loop between two model requests, and adds the messages
to the next request. They then belong to this run and are not returned again. Never blocks or
raises; empty if there are none, and always after a stop.
"""


async def not_granted(tool: str) -> bool:
    """Return that nobody has allowed a tool; the default of ``RunRequest.is_granted``."""
    del tool
    return False


async def not_recorded() -> None:
    """Do nothing; the default of ``RunRequest.recorded``."""


def no_key(call_id: str) -> str:
    """Return no idempotency key; the default of ``RunRequest.call_key``."""
    del call_id
    return ""


def no_messages() -> tuple[MessagePart, ...]:
    """Return no messages; the default of ``RunRequest.take_messages``."""
    return ()


class StepFunction(Protocol):
    """Does a step of an agent in Python code once (SPEC AGENT-10)."""

    async def __call__(self, name: str, work: Callable[[], Awaitable[object]]) -> Any:
        """Await ``work()``, store its result, and return it.

        After a crash the next run for the same messages gets the stored result and does not call
        ``work``. Steps with the same name are told apart by the order in which they end. The result
        must be JSON; it is returned as JSON values, a tuple as a list. Raises ``TypeError`` if it
        is not, and what ``work`` raises; then nothing is stored. Of a result above a million
        characters only is stored that there was one; a later run raises ``AgentError``.
        """


async def _just_do(name: str, work: Callable[[], Awaitable[object]]) -> Any:
    """Store nothing; the default of ``RunRequest.step``."""
    del name
    return await work()


@value(frozen=True, slots=True)
class RunRequest:
    """The input of one run.

    Args:
        history: The session's history, the oldest entry first, without ``parts``.
        system: Additions to the agent's system prompt.
        take_messages: See ``TakeMessages``. A loop need not call it: messages that it does not take
            become a turn of their own.
        workspace: The absolute path of the agent's folder, which exists.
        summary: A summary of the conversation before ``history``, "" if there is none.
        pinned: Facts that the agent must know although compaction may have removed them.
        tools: The tools that it may call.
        budget: The budget of the run. A loop that makes several model requests checks it before
            each, and before it calls tools, and raises ``BudgetReached``.
        model: The model to use in place of the agent's own; "" is the agent's own. A loop without
            models ignores it.
        recorded: Returns when all reported events are stored. A loop awaits it after it reported a
            tool call and before it calls the tool, so that every call is known after a crash
            (SPEC AGENT-9). An exception from it ends the run.
        call_key: Returns the idempotency key of a reported tool call, given the id of the call.
        steps: The steps of interrupted runs for the same messages, in order. A loop that can
            continue takes their responses and results instead of repeating the work.
        interrupted: A text about the tool calls of these runs, for loops that cannot continue; ""
            if there were none.
        step: See ``StepFunction``; for ``async`` functions.
        can_ask: Whether the run may end with ``ApprovalNeeded``. Another run then continues it.
        is_granted: Returns whether a person has allowed all calls of a tool.
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
    call_key: Callable[[str], str] = field(default=no_key, repr=False, compare=False)
    steps: tuple[RunStep, ...] = ()
    interrupted: str = ""
    step: StepFunction = field(default=_just_do, repr=False, compare=False)
    can_ask: bool = False
    is_granted: Callable[[str], Awaitable[bool]] = field(
        default=not_granted, repr=False, compare=False
    )

    def begun_again(self) -> RunRequest:
        """Return the request for a loop that does not replay ``steps``.

        Its parts include the messages that had joined an interrupted run.
        """
        joined = [TextPart(step.text) for step in self.steps if isinstance(step, NewMessagesStep)]
        return replace(self, parts=(*self.parts, *joined)) if joined else self

    @property
    def prompt(self) -> str:
        """The texts of all parts, joined by newlines."""
        return "\n".join(part.text for part in self.parts)

    @property
    def stored_prompt(self) -> str:
        """The same as it is stored in the history, which people read."""
        return "\n".join(
            part.placeholder if isinstance(part, FilePart) else part.text for part in self.parts
        )

    @property
    def own_texts(self) -> str:
        """The senders' own texts, without names and quotes of earlier messages."""
        texts = (
            part.text if isinstance(part, FilePart) or part.said is None else part.said
            for part in self.parts
        )
        return "\n".join(filter(None, texts))


@value(frozen=True, slots=True)
class AgentResult:
    """The result of a run.

    Args:
        text: The whole reply.
        entries: Entries for the history. Empty: prompt and ``text`` are stored as plain entries.
        context_tokens: The size of the conversation with this reply; None if it is unknown.
        files: Files in the agent's workspace that are sent after the text.
        model: The model that answered, "" if there is none.
    """

    text: str
    entries: tuple[HistoryEntry, ...] = ()
    usage: Usage = field(default_factory=Usage)
    context_tokens: int | None = None
    files: tuple[OutFile, ...] = ()
    model: str = ""


@dataclass(frozen=True, slots=True)
class ModelStep:
    """Reports a model response, so that a run which ends early is recorded up to here.

    Args:
        usage: The usage of the run so far.
        done: Whether the reply is complete and nothing more will be used.
        entries: Returns the history entries up to now, ending with the given note about how the run
            ended. They must be valid: no tool call without a result.
        response: The response, if it is new and complete.
    """

    usage: Usage
    model: str = ""
    done: bool = False
    entries: Callable[[str], tuple[HistoryEntry, ...]] | None = field(default=None, compare=False)
    response: ResponseStep | None = None


@dataclass(frozen=True, slots=True)
class RequestSent:
    """Reports that a request to a model is about to be sent; its ``ModelStep`` has its usage."""


LoopEvent = AgentEvent | ModelStep | RequestSent | RunNoted | NewMessagesStep | ValueStep
"""The events that a loop reports during a run."""

Emit = Callable[[LoopEvent], None]
"""Reports an event of a run. Never blocks, never raises; events after a stop are discarded."""


class AgentLoop(Protocol):
    """Executes the runs of an agent, many at once."""

    async def run(self, request: RunRequest, emit: Emit) -> AgentResult:
        """Execute a run until its reply is complete.

        Cancelling the task must end everything that the run started. Raises ``AgentError`` for a
        failure with a message for the person; other exceptions are reported in general words.
        """

    async def warm_up(self) -> None:
        """Import and prepare what would delay the first run. Called while the database starts."""

    async def close(self) -> None:
        """Close connections. Called when no run is in progress."""
