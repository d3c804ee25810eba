"""``/usage``: what was used today, and the limits; to guests and groups only their own."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from goclaw_py.chat.commands.command import ChatCommand, CommandUse, Everybody, HelpGroup
from goclaw_py.chat.commands.jobs import asker
from goclaw_py.core.budget import Spent
from goclaw_py.core.text import usd
from goclaw_py.core.time.zones import utc_day
from goclaw_py.runs.budget_tracker import BudgetAccount


async def _usage(use: CommandUse) -> str:
    row, tracker = use.row, use.services.budget_tracker
    shown = [await tracker.session_today(BudgetAccount(row.session, row.agent))]
    lines = [f"This conversation: {_spent(shown[0])}"]
    if use.is_private:
        shown.append(await tracker.agent_today(row.agent))
        lines.append(f"Agent {row.agent}, all conversations: {_spent(shown[1])}")
    if any(one.used.tokens and one.used.cost_usd is None for one in shown):
        lines.append("I do not know the price of this model.")
    zone, now = await use.services.jobs.zone(asker(row)), use.services.clock.now()
    # Budgets are per day in UTC, which begins at another time for most people.
    return "\n".join([f"Used since {zone.when(utc_day(now), now)}:", *lines])


_CENT: Final = Decimal("0.01")


def _spent(spent: Spent) -> str:
    used, budget = spent.used, spent.budget
    of_turns = f" of {budget.turns:,}" if budget.turns else ""
    of_tokens = f" of {budget.tokens:,}" if budget.tokens else ""
    requests = "request" if used.requests == 1 and not budget.turns else "requests"
    parts = [f"{used.requests:,}{of_turns} model {requests}", f"{used.tokens:,}{of_tokens} tokens"]
    if used.cost_usd is not None or budget.usd is not None:
        of_usd = f" of ${budget.usd:.2f}" if budget.usd is not None else ""
        cost = used.cost_usd or Decimal()
        parts.append(f"{usd(cost, 2 if cost >= _CENT else None)}{of_usd}")
    return ", ".join(parts)


COMMANDS = (ChatCommand("usage", Everybody(), HelpGroup.CONVERSATION, _usage),)
