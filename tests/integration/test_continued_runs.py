"""Model agents continue interrupted runs after their last finished step (SPEC AGENT-10)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from goclaw_py.agents import AgentSpec
from goclaw_py.agents.models import ModelAgent, Provider
from goclaw_py.core.approvals import ApprovalPolicy, Decision, OnUncertain
from goclaw_py.core.budget import Budget
from goclaw_py.core.errors import ApprovalNeeded, BudgetReached
from goclaw_py.core.ids import AgentName
from goclaw_py.core.messages import HistoryEntry, Role
from goclaw_py.core.run_events import Compacted, ToolEnded, ToolStarted, Usage
from goclaw_py.core.run_steps import (
    MOST_STORED,
    DecisionStep,
    NewMessagesStep,
    ResponseStep,
    RunStep,
)
from goclaw_py.runs.agent_loop import LoopEvent, TextPart
from tests.support.continued import ALL_CALLS, ORDER, STEERED, Journal, execute, pay, steered
from tests.support.model_agents import ModelAgents, look_up
from tests.support.model_server import ModelServer
from tests.support.toolbox import Functions
from tests.unit.agents.builders import Coming, request

pytestmark = pytest.mark.real_time


@pytest.fixture
def agent(agents: ModelAgents) -> ModelAgent:
    return agents.make(context_window=2_000)


async def test_a_run_reports_each_response_call_and_result(agent: ModelAgent) -> None:
    done = await execute(agent, steered())
    kinds = [type(step) for step in done.journal.steps]
    first = [ResponseStep, ToolStarted, ToolStarted, ToolEnded, ToolEnded]
    assert kinds == [*first, NewMessagesStep, ResponseStep, ToolStarted, ToolEnded, ResponseStep]
    used = [step.usage for step in done.journal.steps if isinstance(step, ResponseStep)]
    assert used[0].plus(used[1]).plus(used[2]) == done.result.usage
    assert done.calls == ALL_CALLS


async def test_a_call_with_an_unknown_outcome_is_told_to_the_model_and_not_repeated(
    agent: ModelAgent, server: ModelServer
) -> None:
    steps = (await execute(agent, request('tool pay {"to": "Ann"}'))).journal.steps
    server.seen.clear()
    rest = await execute(agent, request('tool pay {"to": "Ann"}'), steps[:2])
    assert rest.calls == []
    (asked,) = server.seen
    assert "outcome of this call is unknown" in str(asked.texts[-1])
    started = [one for one in rest.journal.events if isinstance(one, ToolStarted)]
    (ended,) = [one for one in rest.journal.events if isinstance(one, ToolEnded)]
    assert (len(started), ended.ok) == (1, False)
    # After another crash its result is known: that it is unknown.
    again = await execute(
        agent, request('tool pay {"to": "Ann"}'), [*steps[:2], *rest.journal.steps[:2]]
    )
    assert again.calls == []
    assert not [one for one in again.journal.events if isinstance(one, ToolEnded)]


async def test_a_harmless_or_idempotent_call_with_an_unknown_outcome_is_repeated(
    agent: ModelAgent,
) -> None:
    asked = request('tool look_up {"word": "owl"}')
    steps = (await execute(agent, asked)).journal.steps
    assert (await execute(agent, asked, steps[:2])).calls == [("look_up", {"word": "owl"})]
    tools = Functions(look_up, idempotent=("look_up",))
    await agent.run(replace(asked, tools=tools, steps=tuple(steps[:2])), Journal())
    assert tools.calls == [("look_up", {"word": "owl"})]


async def test_two_messages_with_the_same_text_are_told_apart(
    agent: ModelAgent, server: ModelServer
) -> None:
    """SPEC QUEUE-4: one that the interrupted run had taken in, and one that came later."""
    waiting = [TextPart(STEERED, rows=(2,))]
    asked = request(ORDER, take=lambda: (waiting.pop(),) if waiting else ())
    steps = (await execute(agent, asked)).journal.steps
    taken = next(
        number for number, step in enumerate(steps, 1) if isinstance(step, NewMessagesStep)
    )
    assert steps[taken - 1] == NewMessagesStep(STEERED, (2,))
    for new in ((), (STEERED,)):
        server.seen.clear()
        rest = await execute(agent, request(ORDER, take=Coming(*new)), steps[:taken])
        texts = [entry.text for entry in rest.result.entries]
        assert sum(text.count(STEERED) for text in texts) == 1 + len(new)


async def test_budgets_count_what_the_interrupted_run_has_used(agent: ModelAgent) -> None:
    asked = request("many look_up", budget=Budget(turns=2))
    with pytest.raises(BudgetReached):
        await execute(agent, asked)
    steps = (await execute(agent, request('tool look_up {"word": "owl"}'))).journal.steps
    with pytest.raises(BudgetReached):
        await execute(agent, replace(asked, budget=Budget(turns=1)), steps[:3])
    # What is stored already is not refused.
    used_up = request('tool look_up {"word": "owl"}', budget=Budget(turns=2))
    assert "meaning of owl" in (await execute(agent, used_up, steps)).result.text


async def test_a_crash_loop_ends_at_the_budget(agent: ModelAgent, server: ModelServer) -> None:
    """Each run is cut after its first new call; all attempts together have one budget."""

    async def order() -> str:
        """Order something."""
        return "ordered"

    asked = request("many order", budget=Budget(turns=3))
    steps: list[RunStep] = []
    ordered = 0
    while True:
        tools, journal = Functions(order), Journal()

        def until_called(event: LoopEvent, journal: Journal = journal) -> None:
            journal(event)
            if isinstance(event, ToolEnded):
                raise ConnectionAbortedError

        try:
            await agent.run(replace(asked, tools=tools, steps=tuple(steps)), until_called)
        except ConnectionAbortedError:
            steps += journal.steps
            ordered += len(tools.calls)
        except BudgetReached:
            break
    assert (ordered, len(server.seen)) == (2, 3)


async def test_a_budget_counts_steps_that_cannot_be_read(agent: ModelAgent) -> None:
    damaged = [ResponseStep(b"{", Usage(1))]
    with pytest.raises(BudgetReached):
        await execute(agent, request("say yes", budget=Budget(turns=1)), damaged)


async def test_a_tool_that_no_longer_exists_gives_its_stored_result(
    agent: ModelAgent, server: ModelServer
) -> None:
    asked = request('tool pay {"to": "Ann"}')
    steps = (await execute(agent, asked)).journal.steps
    server.seen.clear()
    tools = Functions(look_up)
    result = await agent.run(replace(asked, tools=tools, steps=tuple(steps[:3])), Journal())
    assert "paid Ann" in result.text
    assert len(server.seen) == 1


@pytest.mark.parametrize("has_effects", [True, False])
@pytest.mark.parametrize("on_uncertain", ["tell_model", "retry"])
async def test_a_started_call_of_a_tool_that_is_missing_now_is_never_said_not_to_have_been_made(
    agents: ModelAgents, server: ModelServer, on_uncertain: str, *, has_effects: bool
) -> None:
    """Its server may start slowly after a reboot; what is recorded was begun."""
    approval = ApprovalPolicy(on_uncertain=OnUncertain(on_uncertain))
    agent = agents.make(approval=approval)
    asked = request('tool pay {"to": "Ann"}')
    response, started, *_ = (await execute(agent, asked)).journal.steps
    assert isinstance(started, ToolStarted)
    steps = (response, replace(started, side_effects=has_effects))
    server.seen.clear()
    journal = Journal()
    await agent.run(replace(asked, tools=Functions(look_up), steps=steps), journal)
    told = str(server.seen[0].texts[-1])
    assert "outcome of this call is unknown" in told
    assert "not made" not in told
    begun, ended = [one for one in journal.events if isinstance(one, ToolStarted | ToolEnded)]
    assert isinstance(begun, ToolStarted)
    assert begun.side_effects is has_effects
    assert isinstance(ended, ToolEnded)
    assert (ended.ok, ended.uncertain) == (False, True)
    # A call without a recorded start was not made, whatever its tool.
    server.seen.clear()
    await agent.run(replace(asked, tools=Functions(look_up), steps=steps[:1]), Journal())
    assert "outcome of this call is unknown" not in str(server.seen[0].texts[-1])


async def test_a_started_call_is_not_repeated_because_its_tool_is_harmless_now(
    agents: ModelAgents, server: ModelServer
) -> None:
    """SPEC AGENT-10: the call was made to what the tool was when it started."""
    agent = agents.make()
    asked = request('tool pay {"to": "Ann"}')
    steps = tuple((await execute(agent, asked)).journal.steps[:2])
    server.seen.clear()
    now, journal = Functions(pay, harmless=("pay",)), Journal()
    await agent.run(replace(asked, tools=now, steps=steps), journal)
    assert now.calls == []
    assert "outcome of this call is unknown" in str(server.seen[0].texts[-1])
    assert [one.side_effects for one in journal.events if isinstance(one, ToolStarted)] == [True]


async def test_a_person_is_asked_about_a_started_call_of_a_tool_that_is_missing_now(
    agents: ModelAgents,
) -> None:
    agent = agents.make(approval=ApprovalPolicy(on_uncertain=OnUncertain.ASK_USER))
    asked = replace(request('tool pay {"to": "Ann"}'), can_ask=True)
    steps = tuple((await execute(agents.make(), asked)).journal.steps[:2])
    with pytest.raises(ApprovalNeeded) as needed:
        await agent.run(replace(asked, tools=Functions(look_up), steps=steps), Journal())
    (question,) = needed.value.requests
    assert (question.tool, question.uncertain) == ("pay", True)
    for decision, told in (
        (Decision.HAPPENED, "has confirmed that the call took effect"),
        (Decision.AGAIN, "outcome of this call is unknown"),
        (Decision.SKIP, "outcome of this call is unknown"),
    ):
        agents.server.seen.clear()
        decided = (*steps, DecisionStep(question.call_id, decision))
        await agent.run(replace(asked, tools=Functions(look_up), steps=decided), Journal())
        assert told in str(agents.server.seen[0].texts[-1])


async def test_a_tool_that_acts_on_the_run_is_called_again(agent: ModelAgent) -> None:
    asked = request('tool pay {"to": "Ann"}')
    steps = (await execute(agent, asked)).journal.steps
    attach = Functions(pay, acting_on_run=("pay",))
    result = await agent.run(replace(asked, tools=attach, steps=tuple(steps[:3])), Journal())
    assert attach.calls == [("pay", {"to": "Ann"})]
    assert "paid Ann" in result.text


async def test_a_run_goes_on_after_a_huge_result_and_continues_with_what_was_stored(
    agent: ModelAgent,
) -> None:
    calls = []

    async def read() -> str:
        """Read everything."""
        calls.append("read")
        return "word " * 10_000_000

    asked, journal = request("tool read {}"), Journal()
    whole = await agent.run(replace(asked, tools=Functions(read)), journal)
    (stored,) = [step for step in journal.steps if isinstance(step, ToolEnded)]
    assert len(stored.result) < MOST_STORED + 100
    rest = await agent.run(
        replace(asked, tools=Functions(read), steps=tuple(journal.steps[:3])), Journal()
    )
    assert calls == ["read"]
    assert whole.text[:1_000] == rest.text[:1_000] != ""


async def test_no_key_is_in_a_step(server: ModelServer) -> None:
    """SPEC SEC-2."""
    key = "sk-live-4242424242424242"
    spec = AgentSpec(AgentName("main"), base_url=server.base_url, api_key=key)
    agent = ModelAgent(spec, Provider.OPENAI, "gpt-4o", environ={})
    done = await execute(agent, steered())
    await agent.close()
    assert key in str(server.seen[0].headers)
    assert key not in str(done.journal.steps)


async def test_a_summary_is_not_requested_again(agent: ModelAgent, server: ModelServer) -> None:
    history = [HistoryEntry(role, "long " * 100) for _ in range(8) for role in Role]
    asked = request("say hello", history=history)
    whole = await execute(agent, asked)
    steps = whole.journal.steps
    summaries = [step for step in steps if isinstance(step, ResponseStep) and step.is_summary]
    assert summaries == steps[:-1] != []
    compacted = [event for event in whole.journal.events if isinstance(event, Compacted)]
    for cut in range(len(steps) + 1):
        server.seen.clear()
        rest = await execute(agent, asked, steps[:cut])
        assert len(server.seen) == rest.result.usage.requests == len(steps) - cut
        assert rest.result.text == "hello"
        assert [event for event in rest.journal.events if isinstance(event, Compacted)] == compacted


async def test_a_complete_answer_is_not_requested_again(
    agent: ModelAgent, server: ModelServer
) -> None:
    steps = (await execute(agent, request("say hello"))).journal.steps
    done = await execute(agent, request("say hello"), steps)
    assert (done.result.text, done.result.usage.requests, len(server.seen)) == ("hello", 0, 1)
