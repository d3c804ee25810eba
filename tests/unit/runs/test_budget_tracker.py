"""What runs use of their budgets (SPEC AGENT-5)."""

from __future__ import annotations

import asyncio
from datetime import datetime
from decimal import Decimal
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.model.budget import NO_BUDGET, Budget, BudgetScope, Limit, Spent
from goclaw_py.model.errors import BudgetReached
from goclaw_py.model.ids import MAIN_AGENT, AgentName, RunId, SessionKey
from goclaw_py.model.run_events import NO_USAGE, Usage
from goclaw_py.ports.store import RunStore
from goclaw_py.runs.budget_tracker import BudgetAccount, BudgetTracker, Limits
from goclaw_py.testing.clock import LoopClock

ANN, BOB = (BudgetAccount(SessionKey(name), MAIN_AGENT) for name in ("ann", "bob"))
A, B, C = RunId("a"), RunId("b"), RunId("c")


class Books:
    """What the database has, and how long it takes to say so."""

    def __init__(self) -> None:
        self.stored = NO_USAGE
        self.takes_s = 0.0
        self.asked = 0

    async def spent(
        self, *, since: datetime, payer: SessionKey | None = None, agent: AgentName | None = None
    ) -> Usage:
        self.asked += 1
        found = self.stored
        await asyncio.sleep(self.takes_s)
        return found


def turns(number: int) -> Usage:
    return Usage(requests=number)


def budget_tracker(
    books: Books, limits: Limits, stopped: list[RunId] | None = None
) -> BudgetTracker:
    def stop(run_id: RunId, error: BudgetReached) -> None:
        if stopped is not None:
            stopped.append(run_id)

    return BudgetTracker(cast("RunStore", books), LoopClock(), {MAIN_AGENT: limits}, stop)


async def test_nothing_is_asked_where_no_day_has_a_budget() -> None:
    """SPEC AGENT-5: scheduled runs have a budget of their own."""
    books = Books()
    book = budget_tracker(books, Limits(Budget(turns=99)))
    assert await book.open(A, ANN) == Budget(turns=99)
    assert await book.open(B, ANN, budget=Budget(turns=10)) == Budget(turns=10)
    assert books.asked == 0


async def test_a_run_that_ends_while_the_database_is_asked_is_counted() -> None:
    """Its answer may be from before that run was stored."""
    books, stopped = Books(), list[RunId]()
    book = budget_tracker(books, Limits(agent_day=Budget(turns=5)), stopped)
    await book.open(A, ANN)
    book.note(A, turns(3))
    books.takes_s = 10
    opening = asyncio.create_task(book.open(B, BOB))
    await asyncio.sleep(5)
    book.close(A)
    assert await opening == Budget(turns=2)


async def test_what_is_stored_counts_while_another_run_works() -> None:
    books, stopped = Books(), list[RunId]()
    book = budget_tracker(books, Limits(agent_day=Budget(turns=5)), stopped)
    await book.open(A, ANN)
    await book.open(B, BOB)
    book.note(A, turns(4))
    book.close(A)
    book.note(B, turns(1))
    assert stopped == [B]


async def test_the_outer_run_is_stopped_first() -> None:
    """Its children end with it then, and are not told that they have used up a budget."""
    stopped: list[RunId] = []
    book = budget_tracker(Books(), Limits(Budget(turns=4)), stopped)
    await book.open(A, ANN)
    book.bind(B, A)
    await book.open(B, ANN)
    book.bind(C, B)
    await book.open(C, ANN)
    book.note(A, turns(1))
    book.note(C, turns(3))
    assert stopped[0] == A


async def test_a_child_that_begins_after_the_end_of_its_parent_uses_that_ones_budget() -> None:
    stopped: list[RunId] = []
    book = budget_tracker(Books(), Limits(Budget(turns=4)), stopped)
    await book.open(A, ANN)
    book.note(A, turns(2))
    book.bind(B, A)
    book.close(A)
    assert await book.open(B, ANN) == Budget(turns=2)
    book.note(B, turns(2))
    assert B in stopped


async def test_several_may_ask_about_a_day_at_once() -> None:
    """Found by a review: the second answer came first, and the first run failed by it."""
    books = Books()
    book = budget_tracker(books, Limits(agent_day=Budget(turns=9)))
    books.takes_s = 10
    first = asyncio.create_task(book.open(A, ANN))
    await asyncio.sleep(1)
    books.takes_s = 1
    second = asyncio.create_task(book.open(B, BOB))
    await second
    book.note(B, turns(3))
    book.close(B)
    assert await first == Budget(turns=6)


async def test_a_session_has_the_budget_of_its_own_agent_whoever_works_for_it() -> None:
    main = SessionKey("agent:main:console:direct:local")
    book = budget_tracker(Books(), Limits(session_day=Budget(turns=5)))
    assert await book.open(A, BudgetAccount(main, AgentName("helper"))) == Budget(turns=5)


async def test_a_run_with_nothing_left_does_not_begin() -> None:
    books = Books()
    books.stored = turns(5)
    book = budget_tracker(books, Limits(session_day=Budget(turns=5)))
    with pytest.raises(BudgetReached, match="turns of session_day"):
        await book.open(A, ANN)


async def test_a_run_that_is_not_known_changes_nothing() -> None:
    stopped: list[RunId] = []
    book = budget_tracker(Books(), Limits(Budget(turns=1)), stopped)
    book.note(A, turns(9))
    book.close(A)
    assert stopped == []


AMOUNTS = st.integers(0, 1000)
COUNTED = ("requests", "input_tokens", "output_tokens", "cached_tokens")
USAGES = st.builds(Usage, **dict.fromkeys(COUNTED, AMOUNTS), cost_usd=st.decimals(0, 10, places=3))


@given(USAGES, USAGES)
def test_what_was_used_since_is_the_difference(before: Usage, more: Usage) -> None:
    assert before.plus(more).minus(before) == more


@given(USAGES, st.integers(1, 500), st.integers(1, 500))
def test_a_budget_is_reached_exactly_if_nothing_is_left(
    used: Usage, turns: int, tokens: int
) -> None:
    budget = Budget(turns=turns, tokens=tokens, usd=Decimal(5))
    left = budget.less(used)
    nothing_left = 0 in (left.turns, left.tokens, left.usd)
    assert (budget.reached(used) is not None) is nothing_left


def test_money_of_unknown_amount_reaches_no_budget_and_no_budget_is_never_reached() -> None:
    assert Budget(usd=Decimal(1)).reached(Usage(requests=9, cost_usd=None)) is None
    assert Spent(BudgetScope.RUN, NO_BUDGET, turns(10**9)).reached is None
    assert Spent(BudgetScope.RUN, Budget(turns=1), turns(1)).reached is Limit.TURNS
