"""``[agents.NAME.budget]``: what an agent may use up (SPEC AGENT-5)."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import Field

from goclaw_py.config.section import Section
from goclaw_py.config.types import Duration, Money, Whole


class DayBudget(Section):
    """What may be used on one day, in UTC."""

    turns: Annotated[int | None, Whole(1)] = Field(default=None, description="model requests")
    tokens: Annotated[int | None, Whole(1)] = Field(
        default=None, description="tokens, those that go in and those that come out"
    )
    usd: Annotated[Decimal | None, Money()] = Field(
        default=None, description="US dollars, as far as the model's price is known"
    )


class RunBudget(DayBudget):
    """What one run may use, its subagents and delegates included; and what a day may cost."""

    time: Annotated[float | None, Duration(1)] = Field(
        default=None, description="how long the run may take"
    )
    session_day: DayBudget = Field(
        default_factory=DayBudget, description="of one conversation on one day, in UTC"
    )
    day: DayBudget = Field(default_factory=DayBudget, description="of the agent on one day, in UTC")
