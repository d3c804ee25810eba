"""``[heartbeat]`` and ``[agents.NAME.heartbeat]``: what an agent looks after by itself (SPEC HB-1).

A key that is not set says nothing: it is as in ``[heartbeat]``, and there as ``HeartbeatPolicy``
has it.
"""

from __future__ import annotations

from typing import Annotated, Final, TypeVar

from pydantic import AfterValidator, Field

from goclaw_py.config.scheduler import Zone
from goclaw_py.config.section import Section
from goclaw_py.config.types import DurationOrOff, Flag, Matching, Number, Whole, allowed
from goclaw_py.delivery.ok_token import AckPosition
from goclaw_py.heartbeat.active_hours import END_MEANING, END_PATTERN, START_MEANING, START_PATTERN
from goclaw_py.heartbeat.decisions import LastScope
from goclaw_py.heartbeat.target import TARGET_MEANING, parse_heartbeat_target

_YEAR_S: Final = 366 * 86_400.0
_IN_QUOTES: Final = "in quotation marks"

AnySection = TypeVar("AnySection", bound=Section)


def _target(text: str) -> str:
    if parse_heartbeat_target(text) is None:
        raise allowed(f"must be {TARGET_MEANING}")
    return text


AlertTarget = Annotated[str, Matching(r"(?s).*", TARGET_MEANING), AfterValidator(_target)]


class HoursSettings(Section):
    """The window of the day in which it beats (SPEC HB-2)."""

    start: Annotated[str | None, Matching(START_PATTERN, f"{START_MEANING}, {_IN_QUOTES}")] = Field(
        default=None, description="from when on, HH:MM"
    )
    end: Annotated[str | None, Matching(END_PATTERN, f"{END_MEANING}, {_IN_QUOTES}")] = Field(
        default=None, description="until when, up to 24:00; before the start it is after midnight"
    )
    timezone: Zone | None = Field(
        default=None, description="their zone; default as jobs have it: scheduler.timezone, or UTC"
    )


class HeartbeatDayBudget(Section):
    """What the beats of an agent may use on one day, in UTC (SPEC HB-12)."""

    usd: Annotated[float | None, Number(0, 100_000)] = Field(
        default=None, description="US dollars; default 1, 0: no limit"
    )
    tokens: Annotated[int | None, Whole(0)] = Field(
        default=None,
        description="tokens, where a price is not known; default 200000, 0: no limit",
    )


class HeartbeatRunBudget(Section):
    """What one beat may use, with its subagents and delegates; and what a day may cost."""

    turns: Annotated[int | None, Whole(0, 10_000)] = Field(
        default=None, description="model requests; default 10, 0: no limit"
    )
    tokens: Annotated[int | None, Whole(0)] = Field(
        default=None, description="tokens, those that go in and those that come out; 0: no limit"
    )
    usd: Annotated[float | None, Number(0, 100_000)] = Field(
        default=None, description="US dollars; default 0.50, 0: no limit"
    )
    day: HeartbeatDayBudget = Field(
        default_factory=HeartbeatDayBudget,
        description="of all heartbeat runs of the agent on one day, in UTC",
    )


class HeartbeatSettings(Section):
    """``[heartbeat]``, and the same below an agent, where it overrides key by key."""

    enabled: Annotated[bool | None, Flag()] = Field(
        default=None, description="true (default); false: the heartbeat is off"
    )
    interval_s: Annotated[float | None, DurationOrOff(1, _YEAR_S)] = Field(
        default=None,
        alias="interval",
        description="time between heartbeat runs; default 30m, 0: off",
    )
    active_hours: HoursSettings = Field(
        default_factory=HoursSettings, description="the hours in which it may run; default always"
    )
    target: AlertTarget | None = Field(
        default=None,
        description="where it alerts. last (default): the chat in which somebody last spoke to the "
        "agent; telegram or telegram.work: the last one there; telegram:<chat>[:<thread>]; none",
    )
    last_scope: LastScope | None = Field(
        default=None, description="which chats can be the last one: any (default) or direct"
    )
    ack_max_chars: Annotated[int | None, Whole(0, 10_000)] = Field(
        default=None,
        description="a reply with HEARTBEAT_OK and at most so many more characters says that all "
        "is well; default 300",
    )
    ack_position: AckPosition | None = Field(
        default=None, description="where HEARTBEAT_OK counts: anywhere (default) or edges"
    )
    lane: Annotated[str | None, Matching(r"\S+", "the name of a lane, such as cron")] = Field(
        default=None, description="the lane of its runs; default cron"
    )
    model: Annotated[str | None, Matching(r"\s*\S+\s*", "a model such as openai:gpt-4o-mini")] = (
        Field(default=None, description="what answers instead of the agent's own model")
    )
    budget: HeartbeatRunBudget = Field(default_factory=HeartbeatRunBudget)


def laid_over(base: AnySection, over: AnySection) -> AnySection:
    """``base`` with all that is set in ``over``, in tables key by key."""
    changed: dict[str, object] = {}
    for name in type(over).model_fields:
        value, below = getattr(over, name), getattr(base, name)
        if isinstance(value, Section):
            changed[name] = laid_over(below, value)
        elif value is not None:
            changed[name] = value
    return base.model_copy(update=changed)
