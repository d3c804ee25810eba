"""``/usage``: what was used today, and the limits."""

from __future__ import annotations

from goclaw_py.chat.commands.command import ChatCommand, CommandUse, Everybody, HelpGroup
from goclaw_py.chat.commands.jobs import asker
from goclaw_py.core.budget import Spent
from goclaw_py.core.ids import AgentName
from goclaw_py.core.time.zones import utc_day
from goclaw_py.runs.budget_tracker import BudgetAccount


async def _usage(use: CommandUse) -> str:
    row = use.row
    today = await use.services.budget_tracker.today(BudgetAccount(row.session, row.agent))
    zone, now = await use.services.jobs.zone(asker(row)), use.services.clock.now()
    # Budgets are per day in UTC, which begins at another time for most people.
    return _text(row.agent, zone.when(utc_day(now), now), *today)


def _text(agent: AgentName, since: str, session: Spent, whole: Spent) -> str:
    """Return the answer to ``/usage``."""
    lines = [
        f"Used since {since}:",
        f"This conversation: {_spent(session)}",
        f"Agent {agent}, all conversations: {_spent(whole)}",
    ]
    if whole.used.tokens and whole.used.cost_usd is None:
        lines.append("I do not know the price of this model.")
    return "\n".join(lines)


def _spent(spent: Spent) -> str:
    used, budget = spent.used, spent.budget
    of_turns = f" of {budget.turns:,}" if budget.turns else ""
    of_tokens = f" of {budget.tokens:,}" if budget.tokens else ""
    requests = "request" if used.requests == 1 and not budget.turns else "requests"
    parts = [f"{used.requests:,}{of_turns} model {requests}", f"{used.tokens:,}{of_tokens} tokens"]
    if used.cost_usd is not None or budget.usd is not None:
        of_usd = f" of ${budget.usd:.2f}" if budget.usd is not None else ""
        parts.append(f"${used.cost_usd or 0:.2f}{of_usd}")
    return ", ".join(parts)


COMMANDS = (ChatCommand("usage", Everybody(), HelpGroup.CONVERSATION, _usage),)
