"""What runs may use up, in a whole gateway and in the tracker (SPEC AGENT-5)."""

from __future__ import annotations

import asyncio
from datetime import datetime
from decimal import Decimal
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.core.budget import NO_BUDGET, Budget, BudgetScope, Limit, Spent
from goclaw_py.core.errors import BudgetReached
from goclaw_py.core.ids import MAIN_AGENT, AgentName, NodeId, RunId, SessionKey
from goclaw_py.core.messages import HistoryEntry, PeerKind, Role
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.run_events import NO_USAGE, TextDelta, Usage
from goclaw_py.core.session_keys import DirectPolicy, GroupPolicy
from goclaw_py.records import Store
from goclaw_py.records.bound import bind
from goclaw_py.runs.agent_loop import AgentResult, Emit, RunRequest
from goclaw_py.runs.agent_loop import ModelStep as LoopStep
from goclaw_py.runs.budget_tracker import BudgetAccount, BudgetTracker, Limits
from goclaw_py.testing.agents import Block, Do, Emitting, Return, Say, ScriptedAgent
from goclaw_py.testing.channel import RecordingChannel
from goclaw_py.testing.clock import LoopClock
from tests.support.harness import Ways, a_process, here, session_of, until
from tests.support.memory_store import MemoryDatabase


def used(turns: int, tokens: int = 0, usd: str | None = None) -> Usage:
    cost = None if usd is None else Decimal(usd)
    return Usage(requests=turns, input_tokens=tokens, cost_usd=cost)


def with_run(budget: Budget) -> Ways:
    return Ways(limits=Limits(run=budget))


async def go_on(request: RunRequest, emit: Emit) -> str:
    """Ask a model again and again, 100 tokens and ten cents each time, a second apart."""
    for turn in range(1, 1000):
        emit(TextDelta(f"{turn} "))
        emit(LoopStep(used(turn, turn * 100, f"{turn * 0.1:.1f}")))
        await asyncio.sleep(1)
    return "never"


@pytest.mark.parametrize(
    ("budget", "said", "amount"),
    [
        (Budget(turns=3), "1 2 3", "3 model requests"),
        (Budget(tokens=200), "1 2", "200 tokens"),
        (Budget(usd=Decimal("0.35")), "1 2 3 4", "$0.35"),
        (Budget(seconds=2.5), "1 2 3", "2.5 seconds"),
    ],
)
async def test_a_run_ends_with_what_it_had_so_far(budget: Budget, said: str, amount: str) -> None:
    async with a_process(ScriptedAgent(Do(go_on)), with_run(budget)) as gateway:
        answer = await gateway.ask("go")
        assert answer == f"{said}\n\nI stopped here: this task reached its limit of {amount}."
        (run,) = await gateway.store.runs()
        assert (run.outcome, run.reason) == (Outcome.FAILED, Reason.BUDGET)
        assert run.usage is not None
        assert run.usage.requests == len(said.split())


async def test_a_reply_that_is_complete_counts_whatever_it_has_used() -> None:
    last = Emitting((LoopStep(used(3), done=True),), Say("complete"))
    async with a_process(ScriptedAgent(last), with_run(Budget(turns=3))) as gateway:
        assert await gateway.ask("go") == "complete"


async def test_what_was_used_by_a_run_that_was_stopped_is_recorded() -> None:
    """And the entries of its last step are left."""

    def entries(note: str) -> tuple[HistoryEntry, ...]:
        return (HistoryEntry(Role.USER, "go"), HistoryEntry(Role.ASSISTANT, f"native {note}"))

    step = LoopStep(used(2, 50), model="m", entries=entries)
    async with a_process(ScriptedAgent(Emitting((step,), Block()))) as gateway:
        await gateway.say("go")
        await gateway.scripted.until_active(1)
        await gateway.say("/stop")
        await gateway.scripted.until_active(0)
        await asyncio.sleep(1)
        (run,) = await gateway.store.runs()
        assert (run.outcome, run.usage, run.model) == (Outcome.CANCELLED, used(2, 50), "m")
        assert await gateway.texts_in_history() == ["go", "native [cancelled]"]


def spending(usage: Usage) -> ScriptedAgent:
    return ScriptedAgent(otherwise=lambda _: Return(AgentResult("spent", usage=usage)))


async def test_a_session_has_a_budget_for_each_day_in_utc() -> None:
    ways, database = Ways(limits=Limits(session_day=Budget(tokens=100))), MemoryDatabase()
    async with a_process(spending(used(1, 60)), ways, database=database) as gateway:
        assert await gateway.ask("a") == "spent"
        assert await gateway.ask("b") == "spent"
        assert await gateway.ask("c") == (
            "I stopped here: this conversation has used its budget for today, 100 tokens. "
            "It starts again at 00:00 UTC."
        )
        assert await gateway.ask("d", chat="bob") == "spent"
        await gateway.shut_down()
    await asyncio.sleep(24 * 3600)
    async with a_process(spending(used(1, 60)), ways, database=database) as gateway:
        assert await gateway.ask("e") == "spent"


async def test_an_agent_has_a_budget_over_all_its_sessions_and_restarts() -> None:
    ways, database = Ways(limits=Limits(agent_day=Budget(turns=2))), MemoryDatabase()
    async with a_process(spending(used(1)), ways, database=database) as gateway:
        assert await gateway.ask("a") == "spent"
        await gateway.shut_down()
    async with a_process(spending(used(1)), ways, database=database) as gateway:
        assert await gateway.ask("b", chat="bob") == "spent"
        stopped = (
            "I stopped here: I have used my budget for today, 2 model requests. It starts again at "
            "00:00 UTC."
        )
        await gateway.say("c", chat="cid")
        await until(lambda: stopped in gateway.channel.texts("cid"))


async def test_what_is_left_of_the_day_is_what_a_run_is_told() -> None:
    ways = Ways(limits=Limits(Budget(turns=9), agent_day=Budget(turns=10, usd=Decimal(1))))
    agent = ScriptedAgent(Return(AgentResult("spent", usage=used(4, usd="0.3"))))
    async with a_process(agent, ways) as gateway:
        await gateway.ask("a")
        await gateway.ask("b")
        first, second = (request.budget for request in agent.requests)
        assert (first.turns, first.usd) == (9, Decimal(1))
        assert (second.turns, second.usd) == (6, Decimal("0.7"))


async def test_runs_that_work_together_share_what_is_left_of_the_day() -> None:
    """None of them alone uses it up. A request that is under way counts when it has ended."""
    ways = Ways(limits=Limits(agent_day=Budget(turns=5)), main_lane=3)
    async with a_process(ScriptedAgent(otherwise=lambda _: Do(go_on)), ways) as gateway:
        for chat in ("ann", "bob", "cid"):
            await gateway.say("go", chat=chat)
        await gateway.channel.until_sent(3)
        runs = await gateway.store.runs()
        assert {run.reason for run in runs} == {Reason.BUDGET}
        assert sum(run.usage.requests for run in runs if run.usage) <= 5 + 2


async def test_what_subagents_use_counts_for_the_run_that_asked_for_them() -> None:
    async def ask(request: RunRequest, emit: Emit) -> str:
        return await here(request).children.subagent("work")

    agent = ScriptedAgent(otherwise=lambda asked: Do(ask if asked.prompt == "ask" else go_on))
    limits = Limits(Budget(turns=4), session_day=Budget(turns=100))
    async with a_process(agent, Ways(limits=limits)) as gateway:
        told = "I stopped here: this task reached its limit of 4 model requests."
        assert await gateway.ask("ask") == told
        assert agent.active == set()
        today = gateway.clock.now().replace(hour=0)
        assert (await gateway.store.spent(since=today, payer=session_of())).requests == 4


async def test_a_run_that_the_loop_itself_has_stopped_ends_for_want_of_budget() -> None:
    async def stop(request: RunRequest, emit: Emit) -> str:
        emit(TextDelta("so far"))
        raise BudgetReached("Too much.", "turns")

    async with a_process(ScriptedAgent(Do(stop))) as gateway:
        assert await gateway.ask("go") == "so far\n\nToo much."
        (run,) = await gateway.store.runs()
        assert (run.outcome, run.reason) == (Outcome.FAILED, Reason.BUDGET)


async def test_people_can_ask_what_was_used_today() -> None:
    """SPEC CMD-5."""
    limits = Limits(session_day=Budget(tokens=1000), agent_day=Budget(usd=Decimal(1)))
    agent = spending(used(2, 60, "0.25"))
    async with a_process(agent, Ways(limits=limits)) as gateway:
        await gateway.ask("a")
        await gateway.ask("b", chat="bob")
        assert await gateway.ask("/usage") == (
            "Used since today 00:00 (UTC):\n"
            "This conversation: 2 model requests, 60 of 1,000 tokens, $0.25\n"
            "Agent main, all conversations: 4 model requests, 120 tokens, $0.50 of $1.00"
        )


async def test_guests_and_groups_read_only_what_their_own_conversation_used() -> None:
    """SPEC CMD-5: what the agent used in all is about the chats of others."""
    ways = Ways(access=DirectPolicy.OPEN, groups=GroupPolicy.OPEN)
    channels = (RecordingChannel(trusted=False),)
    async with a_process(spending(used(2, 60, "0.25")), ways, channels=channels) as gateway:
        await gateway.ask("a")
        await gateway.ask("b", chat="bob")
        for chat, peer, own in (("bob", PeerKind.DIRECT, 2), ("g", PeerKind.GROUP, 0)):
            assert (await gateway.ask("/usage", chat, peer)).splitlines()[1:] == [
                f"This conversation: {own} model requests, {own * 30} tokens"
                + (", $0.25" if own else "")
            ]


async def test_usage_of_a_model_whose_price_is_not_known_says_so() -> None:
    async with a_process(spending(used(1, 60))) as gateway:
        await gateway.ask("a")
        assert (await gateway.ask("/usage")).endswith("I do not know the price of this model.")


async def test_a_cost_of_less_than_a_cent_is_not_said_to_be_nothing() -> None:
    async with a_process(spending(used(1, 60, "0.0042"))) as gateway:
        await gateway.ask("a")
        assert (await gateway.ask("/usage")).splitlines()[1].endswith(", $0.0042")


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

    async def alert(_key: str, _text: str) -> None: ...

    return BudgetTracker(
        bind(cast("Store", books), lambda: NodeId("n")),
        LoopClock(),
        {MAIN_AGENT: limits},
        stop,
        alert,
    )


async def test_nothing_is_asked_where_no_day_has_a_budget() -> None:
    """SPEC AGENT-5: scheduled runs have a budget of their own."""
    books = Books()
    book = budget_tracker(books, Limits(Budget(turns=99)))
    assert await book.open(A, ANN) == Budget(turns=99)
    assert await book.open(B, ANN, budget=Budget(turns=10)) == Budget(turns=10)
    assert books.asked == 0


async def test_interrupted_attempts_at_the_same_work_count() -> None:
    stopped: list[RunId] = []
    book = budget_tracker(Books(), Limits(Budget(turns=5)), stopped)
    assert await book.open(A, ANN, before=turns(3)) == Budget(turns=2)
    book.note(A, turns(1))
    assert stopped == []
    book.note(A, turns(2))
    assert stopped == [A]
    with pytest.raises(BudgetReached, match="turns"):
        await book.open(B, ANN, before=turns(5))


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
def test_a_budget_is_reached_if_nothing_is_left(used: Usage, turns: int, tokens: int) -> None:
    budget = Budget(turns=turns, tokens=tokens, usd=Decimal(5))
    left = budget.less(used)
    nothing_left = 0 in (left.turns, left.tokens, left.usd)
    assert (budget.reached(used) is not None) is nothing_left


def test_money_of_unknown_amount_reaches_no_budget_and_no_budget_is_never_reached() -> None:
    assert Budget(usd=Decimal(1)).reached(Usage(requests=9, cost_usd=None)) is None
    assert Spent(BudgetScope.RUN, NO_BUDGET, turns(10**9)).reached is None
    assert Spent(BudgetScope.RUN, Budget(turns=1), turns(1)).reached is Limit.TURNS
