"""Decides whether a heartbeat run asks its agent (SPEC HB-1 to HB-4, HB-12).

Pure, and lazy: the checks are in the order of what they cost, and ``decide`` asks for a fact only
when everything before it has let the run pass. Whoever runs it finds the fact out and asks again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Final, TypeVar

from goclaw_py.delivery.ok_token import AckPosition
from goclaw_py.heartbeat.active_hours import ActiveHours
from goclaw_py.heartbeat.checklist.checklist import Checklist, DueItems
from goclaw_py.heartbeat.models import HeartbeatEvent, PreconditionQuery, Skip
from goclaw_py.model.budget import Budget
from goclaw_py.model.ids import CRON_LANE, LaneName
from goclaw_py.model.messages import Target
from goclaw_py.model.outcomes import HeartbeatRunKind
from goclaw_py.model.run_events import Usage

BUSY_RETRY: Final = timedelta(seconds=30)
"""How long a heartbeat run of a busy agent waits before it looks again (SPEC HB-4)."""

HEARTBEATS_OF_A_DAY: Final = Budget(tokens=200_000, usd=Decimal(1))
"""What the heartbeat runs of an agent may use on one day (SPEC HB-12)."""

A_HEARTBEAT_RUN: Final = Budget(turns=10, usd=Decimal("0.50"))
"""What one may use (SPEC AGENT-5)."""


class LastScope(StrEnum):
    """Which chats count as the one used last (SPEC HB-8)."""

    ANY = "any"
    DIRECT = "direct"


@dataclass(frozen=True, slots=True)
class LastChat:
    """The chat used last; on one channel and account only, if they are named."""

    channel: str | None = None
    account: str | None = None


class NoTarget(StrEnum):
    """Run, log, do not send."""

    NONE = "none"


HeartbeatTarget = Target | LastChat | NoTarget


@dataclass(frozen=True, slots=True)
class HeartbeatPolicy:
    """How the heartbeat of an agent behaves, by the settings.

    Args:
        interval: None: it is off.
        hours: None: always.
        zone: Of the times that the agent and people read.
        day: What its runs may use on one day, in UTC: ``usd`` where the price of all of it is
            known, else ``tokens``.
        run: What one heartbeat run may use.
        model: What answers instead of the agent's own model, "" keeps that.
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
    """The known facts about a heartbeat run, or about a dry run.

    Args:
        is_on: Whether the heartbeat is on, by people and settings.
        next_at: The next heartbeat run by the grid; from then on it waits for no busy agent.
        checklist: What was read, or why nothing could be; None: not looked at yet.
        looks: What the database says; None: not asked yet.
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
    """The agent is not asked. ``noted`` are keys of items that are recorded nevertheless."""

    skip: Skip
    noted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Deferred:
    """The agent is busy: the decision is repeated after ``BUSY_RETRY``."""


@dataclass(frozen=True, slots=True)
class AskAgent:
    """The agent is asked about ``due`` items of the checklist and about ``events``."""

    due: DueItems
    events: tuple[HeartbeatEvent, ...]


Verdict = Skipped | Deferred | AskAgent


def decide(facts: HeartbeatFacts) -> Need | Verdict:
    """Decide whether a run comes to its agent, cheapest check first, or ask for what is missing.

    A run by hand heeds neither mute nor quiet hours. Waiting events are told even where there is
    no checklist. Source: SPEC HB-1.
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
    """Whether the heartbeat runs of an agent have used what they may on one day (SPEC HB-12).

    Money counts where the price of what was used is known, else tokens.
    """
    if spent is None:
        return False
    return priced(day, spent).reached(spent) is not None


def priced(day: Budget, spent: Usage | None) -> Budget:
    """The part of a day's budget that counts: tokens do not where money does."""
    if day.usd is None or spent is None or spent.cost_usd is None:
        return day
    return replace(day, tokens=None)


def for_one(policy: HeartbeatPolicy, spent: Usage | None) -> Budget:
    """What the next heartbeat run may use: as much as one may, and what is left of the day."""
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
