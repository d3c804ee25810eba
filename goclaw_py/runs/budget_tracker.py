"""Tracks the usage of runs, and stops those whose budget is used up (SPEC AGENT-5).

A run has three budgets: its own, that of its session on this day, and that of its agent on this
day. The usage of its child runs counts for its own and its session's budget. The agent loop
observes what is left when the run starts; usage by other runs meanwhile is checked here.

The rules of SPEC AGENT-5:

Budgets: turns (model requests), tokens, USD, wall clock; per run (scheduled runs: 10 turns, 0.50
USD), per session and day, per agent and day (days in UTC). Children use the run's and the
session's budget of their parent too. Reached → the run ends `failed` with reason `budget`, and the
chat gets what it had said so far and which budget it was; a reply that is complete counts. Runs in
progress at the same time may each exceed it by one request; what other nodes use is seen when a
run begins. Operator-only: no tool schema can change them. Enforced in the loop. With a model of
unknown price a token budget applies, and `doctor` says so. An agent with a provider's model for
which no limit of the day is set has 20 USD a day (`budget.day.usd = 0`: none); `doctor` shows it.
What other nodes use of this default is seen within a minute, so that a message costs no query for
it. Counts of tokens are checked where a response is read: what a provider does not report, or
reports as zero, negative, no whole number or above a billion, is estimated from the length (3
characters a token), counts like any other (also where there is no usage, or something else in its
place: no answer is lost for it), and is noted in the run's record (`usage_estimated`); `status`
warns of the agent until a run has all its counts, and `doctor` (newest 1,000 runs) says that its
limits are estimates. Impossible numbers of other agents (programs, Python code) count as zero.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final

from goclaw_py.chat.outbound import texts
from goclaw_py.core.budget import NO_BUDGET, Budget, BudgetScope, Limit, Spent
from goclaw_py.core.errors import BudgetReached
from goclaw_py.core.ids import AgentName, RunId, SessionKey
from goclaw_py.core.retry import retry_until_available
from goclaw_py.core.run_events import NO_USAGE, Usage
from goclaw_py.core.session_keys import agent_of
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.time.zones import utc_day
from goclaw_py.records.bound import BoundStore


@dataclass(frozen=True, slots=True)
class Limits:
    """The budgets of an agent: of each run, of each session per day, of itself per day.

    ``is_default_day``: nobody has chosen ``agent_day``. It is the bound of a mistake, so what other
    nodes use may be seen a minute late: a message costs no query for it.
    """

    run: Budget = NO_BUDGET
    session_day: Budget = NO_BUDGET
    agent_day: Budget = NO_BUDGET
    is_default_day: bool = False


_NO_LIMITS = Limits()
_MAX_AGE_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class BudgetAccount:
    """The session (for a child, its parent's) and the agent whose budgets a run uses."""

    session: SessionKey
    agent: AgentName


@dataclass(frozen=True, slots=True)
class _Day:
    """The usage that counts for a budget of one day."""

    scope: BudgetScope
    of: str
    since: datetime
    max_age_s: float = 0.0
    """How old the last query may be when a run begins."""


@dataclass(slots=True, eq=False)
class _Account:
    """A run that has started and whose end is not stored."""

    run_id: RunId
    budget: Budget
    parent: _Account | None
    days: Mapping[_Day, Budget]
    """The daily budgets that it uses."""
    before: Usage = NO_USAGE
    """The usage of interrupted attempts at the same work."""
    own: Usage = NO_USAGE
    below: Usage = NO_USAGE
    """The usage of its descendants."""

    @property
    def used(self) -> Usage:
        return self.before.plus(self.own).plus(self.below)

    def above(self) -> Iterator[_Account]:
        """Yield its ancestors, the parent first."""
        account = self.parent
        while account is not None:
            yield account
            account = account.parent


# By identity: several ask about the same day at once.
@dataclass(slots=True, eq=False)
class _Query:
    """A database query in progress."""

    day: _Day
    closed: Usage = NO_USAGE
    """Usage stored during the query, which may or may not be in its result."""


class BudgetTracker:
    """Tracks the usage of live runs.

    Args:
        limits: The budgets of each agent; other agents have none.
        stop: Called for a run that must end because a budget is used up.
        alert: Alerts the owners, unless that was done; gets a key and the text.
    """

    def __init__(
        self,
        store: BoundStore,
        clock: Clock,
        limits: Mapping[AgentName, Limits],
        stop: Callable[[RunId, BudgetReached], None],
        alert: Callable[[str, str], Awaitable[None]],
    ) -> None:
        self._store = store
        self._clock = clock
        self._limits = limits
        self._stop = stop
        self._alert = alert
        self._warned: dict[AgentName, datetime] = {}
        """The days whose owners were alerted."""
        self._accounts: dict[RunId, _Account] = {}
        self._bound: dict[RunId, _Account] = {}
        """The parents of runs that have not started; these may end before that."""
        self._stored: dict[_Day, Usage] = {}
        """The usage of each day in the last query, and what was stored since."""
        self._looks: list[_Query] = []
        self._asked_at: dict[_Day, float] = {}
        """When days with a ``max_age_s`` were queried, by the loop's clock."""

    def bind(self, run_id: RunId, parent: RunId) -> None:
        """Record the parent of a run, whose budget it also uses; ``close`` the run in any case."""
        account = self._accounts.get(parent)
        if account is not None:
            self._bound[run_id] = account

    async def open(
        self,
        run_id: RunId,
        payer: BudgetAccount,
        *,
        budget: Budget | None = None,
        before: Usage = NO_USAGE,
    ) -> Budget:
        """Start a run; return its budget.

        ``budget`` replaces the settings' budget of a run; ``before`` is the usage of interrupted
        attempts at the same work. Raises ``BudgetReached`` if nothing is
        left; ``close`` it all the same. Waits for the database.
        """
        limits = self._limits.get(payer.agent, _NO_LIMITS)
        account = _Account(
            run_id,
            limits.run if budget is None else budget,
            self._bound.pop(run_id, None),
            self._days_of(payer, limits),
            before,
        )
        self._accounts[run_id] = account
        for day in account.days:
            if not self._is_fresh(day):
                await self._ask(day)
        spent = self._spent_by(account)
        for one in spent:
            if one.scope is BudgetScope.AGENT_DAY and one.reached is not None:
                await self._warn(payer.agent, over(one.scope, one.reached, one.budget))
        _refuse(spent)
        return _least([one.budget.less(one.used) for one in spent])

    def note(self, run_id: RunId, used: Usage, *, done: bool = False) -> None:
        """Record the usage of a run. Runs that may not continue are stopped before this returns.

        ``done``: the run will use nothing more, so it is not stopped itself.
        """
        account = self._accounts.get(run_id)
        if account is None:
            return
        more = used.minus(account.own)
        account.own = used
        for above in account.above():
            above.below = above.below.plus(more)
        going_on = [*account.above()] if done else [account, *account.above()]
        for one in reversed(going_on):
            try:
                _refuse(self._spent_by(one))
            except BudgetReached as error:
                self._stop(one.run_id, error)
                if one.run_id not in self._accounts and not done:
                    self._stop(run_id, error)  # one that has ended takes nobody along

    def close(self, run_id: RunId) -> None:
        """Handle that the end of a run is stored, or never will be."""
        self._bound.pop(run_id, None)
        account = self._accounts.pop(run_id, None)
        if account is None or not account.days:
            return
        for look in self._looks:
            if look.day in account.days:
                look.closed = look.closed.plus(account.own)
        in_use = {day for other in self._accounts.values() for day in other.days}
        for day in account.days:
            if day in in_use or day.max_age_s:
                self._stored[day] = self._stored.get(day, NO_USAGE).plus(account.own)
            else:
                self._stored.pop(day, None)  # whoever is next asks anew

    async def session_today(self, payer: BudgetAccount) -> Spent:
        """Return the daily budget of a session, with today's usage. Raises ``StoreUnavailable``."""
        used = await self._store.spent(since=self._since(), payer=payer.session)
        budget = self._limits.get(payer.agent, _NO_LIMITS).session_day
        return Spent(BudgetScope.SESSION_DAY, budget, used)

    async def agent_today(self, agent: AgentName) -> Spent:
        """Return the daily budget of an agent, with today's usage. Raises ``StoreUnavailable``."""
        used = await self._store.spent(since=self._since(), agent=agent)
        budget = self._limits.get(agent, _NO_LIMITS).agent_day
        return Spent(BudgetScope.AGENT_DAY, budget, used)

    # ------------------------------------------------------------------ inside

    async def _warn(self, agent: AgentName, error: BudgetReached) -> None:
        """Alert the owners, once a day: jobs and other people's chats do not tell them."""
        text = (
            f"⚠️ Agent {agent} starts no run before tomorrow (UTC). It says: {error.friendly} "
            "/usage shows what was used; the operator can see by what on the page Usage of the "
            "dashboard."
        )
        day = self._since()
        if self._warned.get(agent) == day:
            return  # by this process, so the database need not be asked
        await retry_until_available(lambda: self._alert(f"budget:{agent}:{day:%Y-%m-%d}", text))
        self._warned[agent] = day

    def _days_of(self, payer: BudgetAccount, limits: Limits) -> dict[_Day, Budget]:
        # A session has the session budget of its own agent.
        of_session = self._limits.get(agent_of(payer.session) or payer.agent, _NO_LIMITS)
        age_s = _MAX_AGE_S if limits.is_default_day else 0.0
        budgets = (
            (BudgetScope.SESSION_DAY, payer.session, of_session.session_day, 0.0),
            (BudgetScope.AGENT_DAY, payer.agent, limits.agent_day, age_s),
        )
        return {
            _Day(scope, of, self._since(), max_age_s): budget
            for scope, of, budget, max_age_s in budgets
            if budget != NO_BUDGET
        }

    def _since(self) -> datetime:
        """Return the start of this day."""
        return utc_day(self._clock.now())

    def _is_fresh(self, day: _Day) -> bool:
        """Return whether the last query of a day is recent enough."""
        asked_at = self._asked_at.get(day, -math.inf)
        return asyncio.get_running_loop().time() - asked_at < day.max_age_s

    async def _ask(self, day: _Day) -> None:
        """Query the usage of a day, which other processes may have increased."""
        look = _Query(day)
        if day.max_age_s:
            for old in [one for one in self._asked_at if one.since < day.since]:
                del self._asked_at[old], self._stored[old]
            self._asked_at[day] = asyncio.get_running_loop().time()
            self._stored.setdefault(day, NO_USAGE)
        self._looks.append(look)
        try:
            if day.scope is BudgetScope.SESSION_DAY:
                payer = SessionKey(day.of)
                stored = await self._store.retried.spent(since=day.since, payer=payer)
            else:
                agent = AgentName(day.of)
                stored = await self._store.retried.spent(since=day.since, agent=agent)
        finally:
            self._looks.remove(look)
        # Counted twice for a moment rather than not at all.
        self._stored[day] = stored.plus(look.closed)

    def _spent_by(self, account: _Account) -> list[Spent]:
        """Return all budgets that a run uses and that have a limit, with their usage."""
        spent = [
            Spent(BudgetScope.RUN, one.budget, one.used)
            for one in (account, *account.above())
            if one.budget != NO_BUDGET
        ]
        spent += [
            Spent(day.scope, budget, self._used_on(day)) for day, budget in account.days.items()
        ]
        return spent

    def _used_on(self, day: _Day) -> Usage:
        used = self._stored.get(day, NO_USAGE)
        for account in self._accounts.values():
            if day in account.days:
                used = used.plus(account.own)
        return used


def _refuse(spent: list[Spent]) -> None:
    """Raise ``BudgetReached`` if one of these is used up."""
    for one in spent:
        if (limit := one.reached) is not None:
            raise over(one.scope, limit, one.budget)


def over(scope: BudgetScope, limit: Limit, budget: Budget) -> BudgetReached:
    """Return the error for a budget that is used up."""
    return BudgetReached(
        texts.over_budget(scope, limit, budget), f"budget: {limit.value} of {scope.value}"
    )


def _least(budgets: list[Budget]) -> Budget:
    """Return the smallest of these budgets."""
    if not budgets:
        return NO_BUDGET
    turns = [one.turns for one in budgets if one.turns is not None]
    tokens = [one.tokens for one in budgets if one.tokens is not None]
    usd: list[Decimal] = [one.usd for one in budgets if one.usd is not None]
    seconds = [one.seconds for one in budgets if one.seconds is not None]
    return Budget(
        turns=min(turns, default=None),
        tokens=min(tokens, default=None),
        usd=min(usd, default=None),
        seconds=min(seconds, default=None),
    )
