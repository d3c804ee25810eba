"""Decides whether a heartbeat run asks its agent (SPEC HB-1 to HB-4, HB-12).

Pure and lazy: the checks are ordered by their cost, and ``decide`` asks for a fact only if all
checks before it have passed. The caller finds the fact and calls it again.

The rules of SPEC HB-1:

Per agent; every 30 min (≥ 1 s; `0` or `enabled = false` is off). Claim first, then the checks,
cheapest first, no model call before the last: enabled → mute → active hours → meaningful content
(or waiting events) → agent idle → budget. The grid (first enabling + offset + k·interval, k ≥ 0,
offset = hash(agent) mod min(interval, 5 min)) is stored; restarts, skips, deferrals and wakes never
move it; times missed while down give one heartbeat run. When the clock goes back, and at the start,
a next run further ahead than one interval becomes the next point of the grid, and neither wakes nor
items of the checklist wait for the old time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Final, TypeVar

from goclaw_py.chat.outbound.ok_token import AckPosition
from goclaw_py.core.budget import Budget
from goclaw_py.core.ids import CRON_LANE, LaneName
from goclaw_py.core.messages import Target
from goclaw_py.core.outcomes import HeartbeatRunKind
from goclaw_py.core.run_events import Usage
from goclaw_py.schedule.heartbeat.active_hours import ActiveHours
from goclaw_py.schedule.heartbeat.checklist.checklist import Checklist, DueItems
from goclaw_py.schedule.heartbeat.models import HeartbeatEvent, PreconditionQuery, Skip

BUSY_RETRY: Final = timedelta(seconds=30)
"""How long a heartbeat run of a busy agent is deferred (SPEC HB-4)."""

FRESH: Final = timedelta(seconds=1)
"""A run starts without another decision this long after one, because its lane may be full."""

HEARTBEATS_OF_A_DAY: Final = Budget(tokens=200_000, usd=Decimal(1))
"""The budget of an agent's heartbeat runs of one day (SPEC HB-12)."""

A_HEARTBEAT_RUN: Final = Budget(turns=10, usd=Decimal("0.50"))
"""The budget of one heartbeat run (SPEC AGENT-5)."""


class LastScope(StrEnum):
    """The chats that count as last active (SPEC HB-8)."""

    ANY = "any"
    DIRECT = "direct"


@dataclass(frozen=True, slots=True)
class LastChat:
    """The last active chat; optionally of one channel and account only."""

    channel: str | None = None
    account: str | None = None


class NoTarget(StrEnum):
    """The target ``none``: run and log, but send nothing."""

    NONE = "none"


HeartbeatTarget = Target | LastChat | NoTarget


@dataclass(frozen=True, slots=True)
class HeartbeatPolicy:
    """The heartbeat policy of an agent, from the settings.

    Args:
        interval: None: it is off.
        hours: None: always.
        zone: The time zone for the agent and people.
        day: The budget of one UTC day: ``usd`` where all prices are known, otherwise ``tokens``.
        run: The budget of one heartbeat run.
        model: The model to use in place of the agent's own; "" is the agent's own.
    """

    interval: timedelta | None = timedelta(minutes=30)
    hours: ActiveHours | None = None
    zone: str = "UTC"
    target: HeartbeatTarget = LastChat()
    last_scope: LastScope = LastScope.ANY
    ack_max_chars: int = 300
    ack_position: AckPosition = AckPosition.ANYWHERE
    lane: LaneName = CRON_LANE
    day: Budget = HEARTBEATS_OF_A_DAY
    run: Budget = A_HEARTBEAT_RUN
    model: str = ""


# ---------------------------------------------------------------------------- the decision


class Need(StrEnum):
    """A fact that the decision needs next."""

    CHECKLIST = "checklist"
    LOOKS = "looks"


@dataclass(frozen=True, slots=True)
class HeartbeatFacts:
    """The known facts about a heartbeat run or a dry run.

    Args:
        is_on: Whether the heartbeat is on, by people and settings.
        next_at: The next run by the grid; from then on it does not wait for a busy agent.
        checklist: The checklist, or why it cannot be read; None: not read yet.
        looks: The facts from the database; None: not queried yet.
    """

    kind: HeartbeatRunKind
    now: datetime
    policy: HeartbeatPolicy
    is_on: bool = True
    muted_until: datetime | None = None
    next_at: datetime | None = None
    checklist: Checklist | Skip | None = None
    looks: PreconditionQuery | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """The agent is not asked. The items with the keys ``noted`` count as checked."""

    skip: Skip
    noted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Deferred:
    """The agent is busy: decide again after ``BUSY_RETRY``."""


@dataclass(frozen=True, slots=True)
class AskAgent:
    """The agent is asked about the ``due`` items of the checklist and about ``events``."""

    due: DueItems
    events: tuple[HeartbeatEvent, ...]


Verdict = Skipped | Deferred | AskAgent


def decide(facts: HeartbeatFacts) -> Need | Verdict:
    """Decide whether a heartbeat run asks its agent, or return the missing fact.

    Manual runs ignore mute and active hours. Waiting events are delivered even without a checklist.
    Source: SPEC HB-1.
    """
    policy = facts.policy
    if not facts.is_on:
        return Skipped(Skip.DISABLED)
    if facts.kind is not HeartbeatRunKind.MANUAL:
        if facts.muted_until is not None and facts.now < facts.muted_until:
            return Skipped(Skip.MUTED)
        if policy.hours is not None and not policy.hours.holds(facts.now):
            return Skipped(Skip.QUIET_HOURS)
    if facts.checklist is None:
        return Need.CHECKLIST
    if facts.looks is None:
        return Need.LOOKS
    return _with(facts, facts.checklist, facts.looks)


def _with(facts: HeartbeatFacts, checklist: Checklist | Skip, looks: PreconditionQuery) -> Verdict:
    policy = facts.policy
    due = DueItems("")
    nothing: Skip | None = None
    if isinstance(checklist, Skip):
        nothing = checklist
    elif checklist.is_empty:
        nothing = Skip.EMPTY
    else:
        due = checklist.due(looks.done, now=facts.now, zone=policy.zone)
        nothing = None if due.text else Skip.NOTHING_DUE
    if nothing is not None and not looks.events:
        return Skipped(nothing, due.keys)
    is_overdue = facts.next_at is not None and facts.now >= facts.next_at
    if looks.is_busy and not is_overdue:
        return Deferred()
    if is_used_up(policy.day, looks.spent):
        return Skipped(Skip.BUDGET)
    return AskAgent(due, looks.events)


def is_used_up(day: Budget, spent: Usage | None) -> bool:
    """Return whether an agent's budget for a day is used up (SPEC HB-12).

    Cost counts where all prices are known, otherwise tokens.
    """
    if spent is None:
        return False
    return priced(day, spent).reached(spent) is not None


def priced(day: Budget, spent: Usage | None) -> Budget:
    """Return the part of a day's budget that counts: tokens do not where cost does."""
    if day.usd is None or spent is None or spent.cost_usd is None:
        return day
    return replace(day, tokens=None)


def for_one(policy: HeartbeatPolicy, spent: Usage | None) -> Budget:
    """Return the budget of the next heartbeat run, at most what is left of the day."""
    left = priced(policy.day, spent)
    left = left if spent is None else left.less(spent)
    return Budget(
        turns=_least(policy.run.turns, left.turns),
        tokens=_least(policy.run.tokens, left.tokens),
        usd=_least(policy.run.usd, left.usd),
        seconds=policy.run.seconds,
    )


_N = TypeVar("_N", int, Decimal)


def _least(one: _N | None, other: _N | None) -> _N | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
