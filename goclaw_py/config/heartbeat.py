"""``[heartbeat]`` and ``[agents.NAME.heartbeat]``: the periodic checks of an agent (SPEC HB-1).

An agent inherits keys that are not set from ``[heartbeat]``, which has the defaults of
``HeartbeatPolicy``.
"""

from __future__ import annotations

from typing import Annotated, Final, TypeVar

from pydantic import AfterValidator, Field

from goclaw_py.chat.outbound.ok_token import AckPosition
from goclaw_py.config.scheduler import Zone
from goclaw_py.config.types import Duration, Flag, Matching, Number, Section, Whole, allowed
from goclaw_py.schedule.heartbeat.active_hours import (
    END_MEANING,
    END_PATTERN,
    START_MEANING,
    START_PATTERN,
)
from goclaw_py.schedule.heartbeat.decisions import LastScope
from goclaw_py.schedule.heartbeat.target import TARGET_MEANING, parse_heartbeat_target

_YEAR_S: Final = 366 * 86_400.0
_IN_QUOTES: Final = "in quotation marks"

AnySection = TypeVar("AnySection", bound=Section)


def _target(text: str) -> str:
    if parse_heartbeat_target(text) is None:
        raise allowed(f"must be {TARGET_MEANING}")
    return text


AlertTarget = Annotated[str, Matching(r"(?s).*", TARGET_MEANING), AfterValidator(_target)]


class HoursSettings(Section):
    """The hours of the day in which the heartbeat runs (SPEC HB-2)."""

    start: Annotated[str | None, Matching(START_PATTERN, f"{START_MEANING}, {_IN_QUOTES}")] = None
    """the start of the active hours, HH:MM"""
    end: Annotated[str | None, Matching(END_PATTERN, f"{END_MEANING}, {_IN_QUOTES}")] = None
    """the end of the active hours, up to 24:00; an end before the start is on the next day"""
    timezone: Zone | None = None
    """the time zone of the active hours; default: the one of jobs, which is scheduler.timezone or
    UTC"""


class HeartbeatDayBudget(Section):
    """Limits on all heartbeat runs of an agent on one day, in UTC (SPEC HB-12)."""

    usd: Annotated[float | None, Number(0, 100_000)] = None
    """the maximum cost in US dollars; default 1, 0: no limit"""
    tokens: Annotated[int | None, Whole(0)] = None
    """the maximum number of tokens of models without a known price; default 200000, 0: no limit"""


class HeartbeatRunBudget(Section):
    """Limits on one heartbeat run, including its subagents and delegates, and on one day."""

    turns: Annotated[int | None, Whole(0, 10_000)] = None
    """the maximum number of model requests; default 10, 0: no limit"""
    tokens: Annotated[int | None, Whole(0)] = None
    """the maximum number of tokens, input and output together; 0: no limit"""
    usd: Annotated[float | None, Number(0, 100_000)] = None
    """the maximum cost in US dollars; default 0.50, 0: no limit"""
    day: HeartbeatDayBudget = HeartbeatDayBudget()
    """the budget of all heartbeat runs of the agent for one day, in UTC"""


class HeartbeatSettings(Section):
    """``[heartbeat]``, and the same below an agent, where it overrides key by key."""

    enabled: Annotated[bool | None, Flag()] = None
    """true (default) or false: turn the heartbeat on or off"""
    interval_s: Annotated[float | None, Duration(1, _YEAR_S, or_off=True)] = Field(
        default=None, alias="interval"
    )
    """the time between heartbeat runs; default 30m, 0: off"""
    active_hours: HoursSettings = HoursSettings()
    """the hours in which the heartbeat runs; default: always"""
    target: AlertTarget | None = None
    """where alerts are sent. last (default): the chat with the newest message to the agent;
    telegram or telegram.work: the newest such chat there; telegram:<chat>[:<thread>]: this chat;
    none: nowhere"""
    last_scope: LastScope | None = None
    """which chats target = last considers: any (default) or direct"""
    ack_max_chars: Annotated[int | None, Whole(0, 10_000)] = None
    """a reply with HEARTBEAT_OK and at most this many other characters means that there is nothing
    to report; default 300"""
    ack_position: AckPosition | None = None
    """where in a reply HEARTBEAT_OK is recognized: anywhere (default) or edges"""
    lane: Annotated[str | None, Matching(r"\S+", "the name of a lane, such as cron")] = None
    """the lane of heartbeat runs; default cron"""
    model: Annotated[str | None, Matching(r"\s*\S+\s*", "a model such as openai:gpt-4o-mini")] = (
        None
    )
    """the model for heartbeat runs; default: the model of the agent"""
    budget: HeartbeatRunBudget = HeartbeatRunBudget()


def laid_over(base: AnySection, over: AnySection) -> AnySection:
    """Return ``base`` with the values that are set in ``over``; tables are merged key by key."""
    changed: dict[str, object] = {}
    for name in type(over).model_fields:
        value, below = getattr(over, name), getattr(base, name)
        if isinstance(value, Section):
            changed[name] = laid_over(below, value)
        elif value is not None:
            changed[name] = value
    return base.model_copy(update=changed)
