"""``[agents.NAME.budget]``: limits on the usage of an agent (SPEC AGENT-5)."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import Field

from goclaw_py.config.section import Section
from goclaw_py.config.types import Duration, Money, Whole


class DayBudget(Section):
    """Limits on the usage of one day, in UTC."""

    turns: Annotated[int | None, Whole(1)] = Field(
        default=None, description="the maximum number of model requests"
    )
    tokens: Annotated[int | None, Whole(1)] = Field(
        default=None, description="the maximum number of tokens, input and output together"
    )
    usd: Annotated[Decimal | None, Money()] = Field(
        default=None,
        description="the maximum cost in US dollars; models without a known price are not counted",
    )


class RunBudget(DayBudget):
    """Limits on one run, including its subagents and delegates, and on one day."""

    time: Annotated[float | None, Duration(1)] = Field(
        default=None, description="the maximum duration of a run"
    )
    session_day: DayBudget = Field(
        default_factory=DayBudget, description="the budget of one conversation for one day, in UTC"
    )
    day: DayBudget = Field(
        default_factory=DayBudget, description="the budget of the agent for one day, in UTC"
    )
