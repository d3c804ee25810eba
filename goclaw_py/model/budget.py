"""What a run may use up: model requests, tokens, money, time (SPEC AGENT-5)."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from goclaw_py.model.run_events import NO_USAGE, Usage


class Limit(StrEnum):
    """What of a budget is used up."""

    TURNS = "turns"
    TOKENS = "tokens"
    USD = "usd"
    SECONDS = "seconds"


class BudgetScope(StrEnum):
    """Whose budget it is."""

    RUN = "run"
    SESSION_DAY = "session_day"
    """Of one session on one day, in UTC, its subagents and delegates included."""
    AGENT_DAY = "agent_day"
    """Of one agent on one day, in UTC, over all its sessions."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that may be used; None is no limit.

    ``turns`` are model requests, ``tokens`` those that went in and came out, ``seconds`` the time
    from the start of a run. Money counts as far as prices are known: where they are not, only
    ``turns``, ``tokens`` and ``seconds`` hold.
    """

    turns: int | None = None
    tokens: int | None = None
    usd: Decimal | None = None
    seconds: float | None = None

    def reached(self, used: Usage) -> Limit | None:
        """What is used up, the first in the order of the fields; time is the caller's to watch."""
        if self.turns is not None and used.requests >= self.turns:
            return Limit.TURNS
        if self.tokens is not None and used.tokens >= self.tokens:
            return Limit.TOKENS
        if self.usd is not None and used.cost_usd is not None and used.cost_usd >= self.usd:
            return Limit.USD
        return None

    def less(self, used: Usage) -> Budget:
        """What is left of it, at least nothing of each."""
        cost = used.cost_usd or Decimal(0)
        return Budget(
            turns=None if self.turns is None else max(self.turns - used.requests, 0),
            tokens=None if self.tokens is None else max(self.tokens - used.tokens, 0),
            usd=None if self.usd is None else max(self.usd - cost, Decimal(0)),
            seconds=self.seconds,
        )


NO_BUDGET = Budget()
"""No limit at all."""


@dataclass(frozen=True, slots=True)
class Spent:
    """A budget with what has been used of it."""

    scope: BudgetScope
    budget: Budget
    used: Usage = NO_USAGE

    @property
    def reached(self) -> Limit | None:
        """What is used up."""
        return self.budget.reached(self.used)
