"""An agent goes on by itself without end, and spends (SPEC AGENT-14).

Promised: a conversation in which only results of subagents begin turns ends after some, with clear
words in the chat, in ``why`` and to the owners. Tried: a subagent in each turn, several in each
turn, restarts in between, a person who writes in between.
"""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest

from goclaw_py.app.gateway_config import budgets
from goclaw_py.chat.stop.plan import Stop
from goclaw_py.config import Settings
from goclaw_py.core.budget import Budget
from goclaw_py.core.ids import MAIN_AGENT
from goclaw_py.core.outcomes import Outcome, Reason, Trigger
from goclaw_py.core.run_events import Usage
from goclaw_py.records import RunQuery
from goclaw_py.runs.agent_loop import AgentResult, Emit, RunRequest
from goclaw_py.runs.budget_tracker import Limits
from goclaw_py.testing.agents import Do, Return, Say, ScriptedAgent, Step
from tests.support.harness import GatewayProcess, Ways, a_process, here, session_of, until
from tests.support.memory_store import MemoryDatabase
from tests.support.why import ask

MOST = 10
ENDED = (
    "I stopped here: I have answered 10 results of subagents in a row, without a message from you. "
    "I keep further results in mind: write anything, and I go on."
)


def going_on(at_once: int = 1, after_s: float = 1.0) -> ScriptedAgent:
    """An agent that starts subagents in each turn of its chat."""

    async def spawn(request: RunRequest, _emit: Emit) -> str:
        for number in range(at_once):
            assert await here(request).children.spawn("work", f"part {number}") is not None
        return "and on"

    def choose(request: RunRequest) -> Step:
        if request.prompt == "hello":
            return Say("hi")
        return Do(spawn) if request.trigger is Trigger.CHAT else Say("done", after_s=after_s)

    return ScriptedAgent(otherwise=choose)


async def ended(gateway: GatewayProcess, times: int = 1) -> None:
    await until(lambda: gateway.channel.texts().count(ENDED) == times)
    await until(lambda: not gateway.pending and not gateway.dispatcher.runs())


async def chat_turns(gateway: GatewayProcess) -> list[Outcome | None]:
    """The ends of the turns of the chat; one that was begun again for more messages counts once."""
    runs = await gateway.store.runs(RunQuery(limit=1000))
    chat = [run for run in runs if run.trigger is Trigger.CHAT and run.reason is not Reason.MERGED]
    return [run.outcome for run in reversed(chat)]


@pytest.mark.parametrize("at_once", [1, 2, 8])
async def test_a_chain_of_subagents_ends_with_clear_words(at_once: int) -> None:
    """And with a result that is not lost: the agent reads it when somebody writes again."""
    async with a_process(going_on(at_once)) as gateway:
        await gateway.say("go")
        await ended(gateway)
        turns = await chat_turns(gateway)
        assert turns.count(Outcome.COMPLETED) == 1 + MOST
        assert {*turns} == {Outcome.COMPLETED, Outcome.FAILED}
        assert gateway.channel.texts() == ["and on"] * (1 + MOST) + [ENDED]
        assert (await gateway.store.runs(RunQuery(limit=1)))[0].reason is Reason.CHAIN_LIMIT
        assert "finished]\ndone" in (await gateway.texts_in_history())[-2]
        why = await ask(gateway, str(session_of()))
        assert why.code == "ended.chain_limit"
        assert "max_chained_turns" in str(why.cures)


async def test_a_person_who_writes_lets_the_agent_go_on() -> None:
    async with a_process(going_on()) as gateway:
        await gateway.say("go")
        await ended(gateway)
        await gateway.say("and further")
        await ended(gateway, 2)
        assert (await chat_turns(gateway)).count(Outcome.COMPLETED) == 2 * (1 + MOST)


async def test_a_restart_does_not_begin_to_count_again() -> None:
    database, agent = MemoryDatabase(), going_on(after_s=30)
    async with a_process(agent, database=database) as before:
        await before.say("go")
        await until(lambda: len(before.channel.texts()) == 5)
        await before.shut_down()
    async with a_process(agent, database=database) as gateway:
        await ended(gateway)
        assert (await chat_turns(gateway)).count(Outcome.COMPLETED) == 1 + MOST


@pytest.mark.parametrize(("most", "turns"), [(3, 4), (0, 40)])
async def test_the_limit_is_a_setting(most: int, turns: int) -> None:
    async with a_process(going_on(), Ways(max_chained_turns=most)) as gateway:
        await gateway.say("go")
        await until(lambda: len(gateway.channel.texts()) > turns)
        assert gateway.channel.texts()[:turns] == ["and on"] * turns


async def test_the_other_owners_are_warned_once_not_each_time() -> None:
    """Whoever is in the chat of the chain reads it there."""
    async with a_process(going_on()) as gateway:
        await gateway.say("hello", chat="bob")
        await until(lambda: gateway.channel.texts("bob") == ["hi"])
        for times in (1, 2):
            await gateway.say("go")
            await ended(gateway, times)
        _, warning = gateway.channel.texts("bob")
        assert "went on by itself in a chat on Telegram: 10 turns in a row" in warning
        assert not any("went on by itself" in text for text in gateway.channel.texts("ann"))


@pytest.mark.parametrize("trouble", ["slow_before_s", "on_its_way_s", "slow_after_s"])
async def test_a_result_that_is_under_way_begins_no_turn_after_a_stop_of_everything(
    trouble: str,
) -> None:
    """Its subagent has ended, and its message is being stored when the stop comes."""
    async with a_process(going_on(2, after_s=10)) as gateway:
        assert await gateway.ask("go") == "and on"
        slow = getattr(gateway.store, trouble)
        slow["accept"] = 5.0
        await asyncio.sleep(12)
        begun = len(gateway.scripted.requests)
        stopping = asyncio.create_task(gateway.say("/stopall"))
        await asyncio.sleep(1)
        slow.clear()
        await stopping
        await asyncio.sleep(60)
        assert len(gateway.scripted.requests) == begun
        assert not gateway.pending
        assert not gateway.dispatcher.runs()


async def test_a_subagent_that_has_just_ended_says_nothing_after_a_stop_of_everything() -> None:
    """Its message is not even being stored yet."""
    async with a_process(going_on(after_s=10)) as gateway:
        assert await gateway.ask("go") == "and on"
        gateway.store.broken.add("accept")
        await asyncio.sleep(12)
        (child,) = gateway.container.children.in_background(session_of())
        stops = gateway.container.stops.local
        await stops.store(stops.stop(Stop(session_of(), everything=True)))
        gateway.store.broken.clear()
        await asyncio.sleep(60)
        assert not gateway.container.children.owns(child)
        assert gateway.channel.texts() == ["and on"]


@pytest.mark.parametrize(
    ("model", "day", "usd"),
    [
        ("openai:gpt-4o", {}, 20),
        ("openai:gpt-4o", {"usd": 0}, None),
        ("openai:gpt-4o", {"usd": 3}, 3),
        ("openai:gpt-4o", {"tokens": 1_000}, None),
        ("offline", {}, None),
    ],
)
def test_agents_with_a_paid_model_have_a_budget_of_the_day(
    model: str, day: dict[str, object], usd: int | None
) -> None:
    given = {"model": model, "budget": {"day": day}}
    settings = Settings.model_validate({"agents": {MAIN_AGENT: given}})
    limits = budgets(settings)[MAIN_AGENT]
    assert limits.agent_day.usd == usd
    assert limits.is_default_day == (usd == 20)


PAID = Return(AgentResult("ok", usage=Usage(requests=1, cost_usd=Decimal(8))))


async def test_the_owners_are_warned_once_a_day_that_a_budget_is_used_up() -> None:
    limits = Limits(agent_day=Budget(usd=Decimal(20)))
    async with a_process(ScriptedAgent(*[PAID] * 10), Ways(limits=limits)) as gateway:
        for _ in range(6):
            await gateway.ask("hi", chat="bob")
        (warning,) = [text for text in gateway.channel.texts("bob") if "starts no run" in text]
        assert "Agent main" in warning
        assert "$20.00" in warning
        (incident,) = await gateway.store.incidents()
        assert incident.key == f"budget:main:{incident.since:%Y-%m-%d}"
        assert gateway.store.calls["open_incident"] == 1  # not for each of those refused


async def test_the_default_budget_of_the_day_ends_runs_and_costs_no_query_for_each() -> None:
    limits = Limits(agent_day=Budget(usd=Decimal(20)), is_default_day=True)
    async with a_process(ScriptedAgent(PAID, PAID, PAID, PAID), Ways(limits=limits)) as gateway:
        said = [await gateway.ask("hi") for _ in range(4)]
        assert said[:3] == ["ok"] * 3
        assert "my budget for today, $20.00" in said[3]
        assert gateway.store.calls["spent"] == 1
