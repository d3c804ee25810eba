"""What an agent loop reports while it works, and what a channel is told about a run."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from goclaw_py.model.ids import RunId
from goclaw_py.model.messages import Target
from goclaw_py.model.outcomes import Outcome


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and money of one run. ``cost_usd`` is None where the price is not known."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: Decimal | None = None

    @property
    def tokens(self) -> int:
        """Those that went in and those that came out."""
        return self.input_tokens + self.output_tokens

    def plus(self, other: Usage) -> Usage:
        """Both together. Money of unknown amount counts as nothing beside money that is known."""
        known = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(
            requests=self.requests + other.requests,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cost_usd=sum(known, Decimal(0)) if known else None,
        )

    def minus(self, other: Usage) -> Usage:
        """What was used since ``other``, an earlier state of the same."""
        cost = self.cost_usd
        return Usage(
            requests=self.requests - other.requests,
            input_tokens=self.input_tokens - other.input_tokens,
            output_tokens=self.output_tokens - other.output_tokens,
            cached_tokens=self.cached_tokens - other.cached_tokens,
            cost_usd=None if cost is None else cost - (other.cost_usd or Decimal(0)),
        )


NO_USAGE = Usage()
"""Nothing was used."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of the reply's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """The agent calls a tool; ``arguments`` is their JSON text.

    ``side_effects``: it may change something outside of the run, so that to do it again is not the
    same as to do it once (SPEC CRON-7).
    """

    call_id: str
    name: str
    arguments: str
    side_effects: bool = True


@dataclass(frozen=True, slots=True)
class ToolEnded:
    """A tool call came back; ``result`` is what the agent was told, or the beginning of it."""

    call_id: str
    name: str
    ok: bool
    result: str = ""


@dataclass(frozen=True, slots=True)
class Compacted:
    """The older part of the conversation became a summary (SPEC AGENT-4).

    ``replaced`` is how many entries of the request's history, the oldest ones, ``summary`` stands
    for from now on. It also stands for what the request's own summary stood for.
    """

    replaced: int
    summary: str


AgentEvent = TextDelta | ToolStarted | ToolEnded | Compacted


@dataclass(frozen=True, slots=True)
class RunWaits:
    """Messages wait for their run; ``messages`` are the channel's ids of them.

    ``late``: they have waited before this process took them up, and may be marked as waiting.
    """

    run_id: RunId
    target: Target
    messages: tuple[str, ...] = ()
    late: bool = False


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run works for this place: typing may begin. ``messages`` are those it answers."""

    run_id: RunId
    target: Target
    messages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunText:
    """A piece of the reply, for channels that show it while it grows."""

    run_id: RunId
    target: Target
    text: str


@dataclass(frozen=True, slots=True)
class RunTool:
    """A run calls a tool, or one of its calls came back; ``ok`` is None while it works."""

    run_id: RunId
    target: Target
    name: str
    ok: bool | None = None


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The run works no more: typing stops, status marks are cleared, a draft is closed.

    For a run that was cancelled this is the empty outbound message of SPEC CMD-3. It is a signal,
    never an outbox row; what the run says comes on its own as an ``OutboundMessage``.

    Args:
        messages: The channel's ids of the messages that it answered.
        draft: The channel's id of a draft that no message will finish: it is marked as cut off, or
            removed if the run completed without a word.
        shown: What that draft shows, in Markdown; "" if that is not known.
    """

    run_id: RunId
    target: Target
    outcome: Outcome
    messages: tuple[str, ...] = ()
    draft: str | None = None
    shown: str = ""


@dataclass(frozen=True, slots=True)
class ButtonsUsed:
    """A button below a message has done what it says: all buttons there go away.

    ``message`` is the channel's id of it.
    """

    target: Target
    message: str


@dataclass(frozen=True, slots=True)
class PressAnswered:
    """The press of a button was carried out: its presser sees ``text`` for a moment.

    ``press`` is the external id of the press.
    """

    target: Target
    press: str
    text: str


RunSignal = RunWaits | RunStarted | RunText | RunTool | RunEnded | ButtonsUsed | PressAnswered
