"""Events that an agent loop reports during a run, and signals about runs for channels."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Final

from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import Target
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.values import value


@value(frozen=True, slots=True)
class Usage:
    """Tokens and cost of a run. ``cost_usd`` is None if the price is unknown."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: Decimal | None = None

    @property
    def tokens(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens

    def plus(self, other: Usage) -> Usage:
        """Return the sum. An unknown cost counts as zero beside a known one."""
        known = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(
            requests=self.requests + other.requests,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cost_usd=sum(known, Decimal(0)) if known else None,
        )

    def minus(self, other: Usage) -> Usage:
        """Return the usage since ``other``, an earlier state."""
        cost = self.cost_usd
        return Usage(
            requests=self.requests - other.requests,
            input_tokens=self.input_tokens - other.input_tokens,
            output_tokens=self.output_tokens - other.output_tokens,
            cached_tokens=self.cached_tokens - other.cached_tokens,
            cost_usd=None if cost is None else cost - (other.cost_usd or Decimal(0)),
        )


NO_USAGE = Usage()
"""No usage."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of the reply's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """The agent calls a tool; ``arguments`` is JSON text.

    ``side_effects``: the tool may change something outside of the run, so that repeating the call
    may do harm (SPEC CRON-7). ``key``: the idempotency key of the call; "" before it is stored.
    """

    call_id: str
    name: str
    arguments: str
    side_effects: bool = True
    key: str = ""


NOT_MADE: Final = "This call was not made: "
"""How the result of a call begins that a person, or the settings, have denied."""


@dataclass(frozen=True, slots=True)
class ToolEnded:
    """A tool call returned; ``result`` is its whole result for the agent.

    ``uncertain``: an interrupted run had started the call, and its outcome is unknown.
    """

    call_id: str
    name: str
    ok: bool
    result: str = ""
    uncertain: bool = False


@dataclass(frozen=True, slots=True)
class Compacted:
    """The older part of the conversation was replaced by a summary (SPEC AGENT-4).

    ``summary`` replaces the oldest ``replaced`` entries of the request's history, and the request's
    own summary.
    """

    replaced: int
    summary: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """The run waits for something before it can go on, or does no longer; people see it."""

    what: str
    is_over: bool = False


class RunNote(StrEnum):
    """What operators should know of a run besides its outcome."""

    HISTORY_REPAIRED = "history_repaired"
    """The provider had refused the conversation and accepted it in other words (SPEC AGENT-12)."""

    USAGE_ESTIMATED = "usage_estimated"
    """The provider did not report the tokens of each response, or reported impossible ones."""

    ANSWER_CUT = "answer_cut"
    """The model reached its limit of length before its answer was complete."""


@dataclass(frozen=True, slots=True)
class RunNoted:
    """Reports something for the record of the run; repeated notes are recorded once."""

    note: RunNote


AgentEvent = TextDelta | ToolStarted | ToolEnded | Compacted | Waiting


@value(frozen=True, slots=True)
class RunWaits:
    """Messages wait for a run; ``messages`` are the channel's ids of them.

    ``late``: they waited before this process claimed them, and may be marked as waiting.
    """

    run_id: RunId
    target: Target
    messages: tuple[str, ...] = ()
    late: bool = False


@value(frozen=True, slots=True)
class RunStarted:
    """A run started: typing may begin. ``messages`` are the channel's ids of what it answers."""

    run_id: RunId
    target: Target
    messages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunText:
    """A piece of the reply, for channels that stream it."""

    run_id: RunId
    target: Target
    text: str


@dataclass(frozen=True, slots=True)
class RunTool:
    """A run calls a tool, or the call returned; ``ok`` is None while it is running.

    ``denied``: it was not made, as a person or the settings have denied it; ``ok`` is False then.
    """

    run_id: RunId
    target: Target
    name: str
    ok: bool | None = None
    denied: bool = False


@dataclass(frozen=True, slots=True)
class RunWaiting:
    """What a run waits for, as a line for people, without the tools in use; "" if it goes on.

    For channels in which a reply has no draft.
    """

    run_id: RunId
    target: Target
    text: str


@value(frozen=True, slots=True)
class RunEnded:
    """The run ended: typing stops, status marks are removed, a draft is closed.

    For a cancelled run this is the empty outbound message of SPEC CMD-3. It is a signal, never an
    outbox row; the run's reply is an ``OutboundMessage``.

    Args:
        messages: The channel's ids of the messages that it answered.
        draft: The channel's id of a draft that no message will complete: it is marked as
            incomplete, or removed if the run completed without text.
        shown: The text of that draft, in Markdown; "" if it is unknown.
        silent: Whether the run completed without anything to say, so that no message follows.
    """

    run_id: RunId
    target: Target
    outcome: Outcome
    messages: tuple[str, ...] = ()
    draft: str | None = None
    shown: str = ""
    silent: bool = False


@dataclass(frozen=True, slots=True)
class ButtonsUsed:
    """A button of a message was used: all its buttons are removed.

    ``message`` is the channel's id of it.
    """

    target: Target
    message: str


@dataclass(frozen=True, slots=True)
class PressAnswered:
    """A button press was handled: the person sees ``text`` in a short popup.

    ``press`` is the external id of the press.
    """

    target: Target
    press: str
    text: str


@dataclass(frozen=True, slots=True)
class LineReceived:
    """A terminal has sent a line: the other terminals of its chat show it.

    ``message_id`` is its id as that terminal has chosen it, ``files`` are the names of its files.
    """

    target: Target
    message_id: str
    text: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RoleChanged:
    """The person of a direct chat is an owner from now on, or no longer.

    ``target`` is the chat; its id is that of the person.
    """

    target: Target
    is_owner: bool


RunSignal = (
    RunWaits
    | RunStarted
    | RunText
    | RunTool
    | RunWaiting
    | RunEnded
    | ButtonsUsed
    | PressAnswered
    | RoleChanged
)
