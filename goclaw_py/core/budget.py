"""Budgets of runs: model requests, tokens, cost, time (SPEC AGENT-5)."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from goclaw_py.core.run_events import NO_USAGE, Usage


class Limit(StrEnum):
    """The part of a budget that is used up."""

    TURNS = "turns"
    TOKENS = "tokens"
    USD = "usd"
    SECONDS = "seconds"


class BudgetScope(StrEnum):
    """The runs that share a budget."""

    RUN = "run"
    SESSION_DAY = "session_day"
    """A session's runs of one UTC day, with their subagents and delegates."""
    AGENT_DAY = "agent_day"
    """An agent's runs of one UTC day, in all sessions."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of usage; None is no limit.

    ``turns`` are model requests, ``tokens`` input and output tokens, ``seconds`` the time since the
    start of a run. Unknown prices do not count towards the cost limit.
    """

    turns: int | None = None
    tokens: int | None = None
    usd: Decimal | None = None
    seconds: float | None = None

    def reached(self, used: Usage) -> Limit | None:
        """Return the first limit, in field order, that is reached; the caller checks the time."""
        if self.turns is not None and used.requests >= self.turns:
            return Limit.TURNS
        if self.tokens is not None and used.tokens >= self.tokens:
            return Limit.TOKENS
        if self.usd is not None and used.cost_usd is not None and used.cost_usd >= self.usd:
            return Limit.USD
        return None

    def less(self, used: Usage) -> Budget:
        """Return the remaining budget, at least zero of each."""
        cost = used.cost_usd or Decimal(0)
        return Budget(
            turns=None if self.turns is None else max(self.turns - used.requests, 0),
            tokens=None if self.tokens is None else max(self.tokens - used.tokens, 0),
            usd=None if self.usd is None else max(self.usd - cost, Decimal(0)),
            seconds=self.seconds,
        )


NO_BUDGET = Budget()
"""No limit."""


@dataclass(frozen=True, slots=True)
class Spent:
    """A budget with its usage."""

    scope: BudgetScope
    budget: Budget
    used: Usage = NO_USAGE

    @property
    def reached(self) -> Limit | None:
        """Return the first limit that is reached."""
        return self.budget.reached(self.used)
