"""Runs are executed again for debugging, without effects (SPEC OPS-8)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest

from goclaw_py.agents import AgentSpec
from goclaw_py.agents.models import ModelAgent, Provider, RetryPolicy
from goclaw_py.core.budget import Budget
from goclaw_py.core.errors import NoGateway, NotFound, NotRewindable
from goclaw_py.core.ids import AgentName, RunId
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.run_events import NO_USAGE, ToolStarted, Usage
from goclaw_py.core.run_steps import ResponseStep, RunStep
from goclaw_py.gateway.store_control import StoreControl
from goclaw_py.runs.agent_loop import AgentLoop, HistoryEntry, Role
from goclaw_py.runs.budget_tracker import Limits
from goclaw_py.runs.step_views import RunReplay, StepKind
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.testing.agents import ScriptedAgent
from tests.support.continued import pay
from tests.support.harness import GatewayProcess, Ways, a_process, session_of, until
from tests.support.model_agents import look_up
from tests.support.model_server import ModelServer
from tests.support.toolbox import Armed, Functions

pytestmark = pytest.mark.real_time

PAY = 'tool pay {"to": "Ann"}'
KINDS = [StepKind.RESPONSE, StepKind.CALL, StepKind.RESULT, StepKind.RESPONSE]


@dataclass
class Place:
    """A gateway with an agent on a model of its own, and what its tools were called with."""

    gateway: GatewayProcess
    server: ModelServer
    tools: Functions
    agent: ModelAgent

    async def run(self, text: str) -> RunId:
        """Let the agent answer; returns its run, and forgets the calls and requests."""
        await self.gateway.ask(text)
        await until(lambda: not self.gateway.dispatcher.runs())
        self.tools.calls.clear()
        self.server.seen.clear()
        return (await self.gateway.store.runs(limit=1))[0].id

    async def replay(self, run: RunId, from_step: int | None = None) -> RunReplay:
        return await self.gateway.control.replay(run, from_step=from_step)

    def damage(self, run: RunId, *steps: RunStep) -> None:
        """Store other steps."""
        self.gateway.database.runs[run].steps[:] = steps

    @property
    def stored(self) -> object:
        """Everything that a replay must leave as it is."""
        database = self.gateway.database
        histories = [(key, len(one.history)) for key, one in database.sessions.items()]
        steps = [(key, len(run.steps), run.end) for key, run in database.runs.items()]
        return histories, steps, sorted(database.outbox), sorted(database.inbox)


@asynccontextmanager
async def a_place(ways: Ways | None = None, window: int = 100_000) -> AsyncIterator[Place]:
    async with ModelServer() as server:
        spec = AgentSpec(
            AgentName("main"), base_url=server.base_url, api_key="key", context_window=window
        )
        retry = RetryPolicy(3, first_wait_s=0.001)
        agent = ModelAgent(spec, Provider.OPENAI, "gpt-4o", retry=retry, environ={})
        tools = Functions(pay, look_up, harmless=("look_up",), acting_on_run=("pay",))
        ways = ways or Ways(direct=QueuePolicy())
        try:
            async with a_process(Armed(agent, tools), ways) as gateway:
                yield Place(gateway, server, tools, agent)
        finally:
            await agent.close()


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    async with a_place() as made:
        yield made


async def test_a_run_is_replayed_from_its_journal_alone(place: Place) -> None:
    await place.run("say before")
    run = await place.run(PAY)
    before = place.stored
    done = await place.replay(run)
    assert [step.kind for step in done.steps] == KINDS
    assert [step.number for step in done.steps] == [1, 2, 3, 4]
    assert (done.steps[1].name, done.steps[1].text) == ("pay", '{"to":"Ann"}')
    assert (done.steps[2].text, done.steps[2].ok) == ("paid Ann", True)
    assert "paid Ann" in done.text
    assert (done.error, done.new_from, done.usage) == ("", None, NO_USAGE)
    assert (place.tools.calls, place.server.seen) == ([], [])
    assert place.stored == before


@pytest.mark.parametrize(("first", "requests"), [(1, 2), (2, 1), (3, 1), (4, 1), (5, 0)])
async def test_from_a_step_on_the_model_is_requested_and_the_journal_answers_for_tools(
    place: Place, first: int, requests: int
) -> None:
    await place.run("say before")
    run = await place.run(PAY)
    before = place.stored
    done = await place.replay(run, first)
    assert [step.kind for step in done.steps] == KINDS
    assert "paid Ann" in done.text
    assert len(place.server.seen) == done.usage.requests == requests
    assert done.new_from == (None if not requests else 1 if first == 1 else 4)
    if requests:
        # What was said before the run, and its prompt, but nothing of what came of it.
        told = place.server.seen[0].texts
        assert [text for text in told if text in ("say before", "before", PAY)] == [
            *("say before", "before"), PAY
        ]  # fmt: skip
    assert place.tools.calls == []
    assert place.stored == before


async def test_a_call_that_is_not_in_the_journal_is_not_made(place: Place) -> None:
    run = await place.run(PAY)
    asked, *rest = place.gateway.database.runs[run].steps
    assert isinstance(asked, ResponseStep)
    place.damage(run, replace(asked, native=asked.native.replace(b"Ann", b"Bob")), *rest)
    done = await place.replay(run, 2)
    result = done.steps[2]
    assert (result.kind, result.ok) == (StepKind.RESULT, False)
    assert "not in the journal" in result.text
    assert place.tools.calls == []


async def test_a_run_without_an_end_is_replayed_as_far_as_its_journal_goes(place: Place) -> None:
    run = await place.run(PAY)
    steps = list(place.gateway.database.runs[run].steps)
    place.damage(run, *steps[:3])
    done = await place.replay(run)
    assert [step.kind for step in done.steps] == KINDS[:3]
    assert "journal of the run ends here" in done.error
    assert (done.text, place.server.seen, place.tools.calls) == ("", [], [])
    # With a step more the model goes on from there.
    assert "paid Ann" in (await place.replay(run, 4)).text
    # A call without a result may have taken effect.
    place.damage(run, *steps[:2])
    (result,) = [one for one in (await place.replay(run)).steps if one.kind is StepKind.RESULT]
    assert "outcome of this call is unknown" in result.text


async def test_a_run_is_replayed_with_the_steps_of_the_runs_that_it_continued(
    place: Place,
) -> None:
    lost = await place.run(PAY)
    steps = list(place.gateway.database.runs[lost].steps)
    run = await place.run(PAY)
    record = place.gateway.database.runs[lost]
    assert record.end is not None
    record.end = replace(record.end, outcome=Outcome.LOST)
    place.gateway.database.runs[run].follows = lost
    place.damage(lost, *steps[:3])
    place.damage(run, *steps[3:])
    assert [step.kind for step in (await place.replay(run)).steps] == KINDS
    # Steps are numbered within the run.
    assert (await place.replay(run, 1)).usage.requests == 1
    with pytest.raises(NotFound, match="it has steps 1 to 1"):
        await place.replay(run, 3)


async def test_a_summary_is_not_requested_again() -> None:
    async with a_place(window=2_000) as place:
        await place.run("say first")
        store, clock = place.gateway.store, place.gateway.clock
        runs = []
        # The second summary stands for more than the first run had read.
        for number in range(2):
            for role in list(Role) * 8:
                note = HistoryEntry(role, "long " * 100)
                await store.note(session_of(), note, rows=(), now=clock.now())
            runs.append(await place.run(f"say {number}"))
        for number, run in enumerate(runs):
            *summaries, answer = (await place.replay(run)).steps
            assert {step.kind for step in summaries} == {StepKind.SUMMARY}
            assert (answer.kind, answer.text) == (StepKind.RESPONSE, str(number))
        assert place.server.seen == []


async def test_a_tool_that_exists_no_longer_is_answered_for_by_the_journal(place: Place) -> None:
    run = await place.run(PAY)
    place.tools._specs = tuple(one for one in place.tools.specs if one.name != "pay")
    assert "paid Ann" in (await place.replay(run)).text
    # Before its call only the response is stored: the model is told.
    done = await place.replay(run, 2)
    assert "Unknown tool name: 'pay'" in done.steps[2].text


async def test_a_dry_run_does_nothing(place: Place) -> None:
    run = await place.run(PAY)
    control = place.gateway.control
    plan = await control.replay(run, from_step=4, dry_run=True)
    assert [step.kind for step in plan.steps] == KINDS[:3]
    assert (plan.requests_model, plan.dry_run, plan.text, plan.new_from) == (True, True, "", None)
    plan = await control.replay(run[:13], dry_run=True)
    assert (len(plan.steps), plan.requests_model) == (4, False)
    assert (place.server.seen, place.tools.calls) == ([], [])


async def test_a_replay_keeps_to_the_budget_of_runs() -> None:
    limits = Limits(run=Budget(turns=2))
    async with a_place(Ways(direct=QueuePolicy(), limits=limits)) as place:
        run = await place.run("many look_up")
        done = await place.replay(run, 1)
        assert "turns" in done.error
        assert len(place.server.seen) == 2
        # What is stored costs nothing.
        assert (await place.replay(run)).usage == NO_USAGE


@pytest.mark.parametrize(("steps", "why"), [
    ([], "has no stored steps"),
    ([None], "step 1 of run .* is damaged"),
    ([ToolStarted("c", "pay", "{}")], "not that of a language model"),
    ([ResponseStep(b"{", Usage(1))], "steps of run .* cannot be read"),
])  # fmt: skip
async def test_why_a_run_cannot_be_replayed_is_said(
    place: Place, steps: list[RunStep], why: str
) -> None:
    run = await place.run("say hello")
    place.damage(run, *steps)
    with pytest.raises(NotRewindable, match=why):
        await place.replay(run)
    assert place.server.seen == []


async def test_what_is_not_there_is_said(place: Place) -> None:
    run = await place.run("say hello")
    with pytest.raises(NotFound, match="there is no run 'none'"):
        await place.replay(RunId("none"))
    for step in (0, 3):
        with pytest.raises(NotFound, match=f"has no step {step}; it has steps 1 to 1"):
            await place.replay(run, step)
    agents: dict[AgentName, AgentLoop] = place.gateway.container.replayer._use.agents  # type: ignore[assignment]
    agents[AgentName("main")] = ScriptedAgent()
    with pytest.raises(NotRewindable, match=r"'main' of run .* is no language model"):
        await place.replay(run)
    agents.clear()
    with pytest.raises(NotRewindable, match=r"agent 'main' of run .* no longer exists"):
        await place.replay(run)
    with pytest.raises(NoGateway):
        await StoreControl(place.gateway.store, place.gateway.clock).replay(run)


async def test_a_run_whose_prompt_is_not_stored_cannot_be_replayed(place: Place) -> None:
    run = await place.run("say hello")
    record = place.gateway.database.runs[run]
    place.gateway.database.sessions[record.new.session].history.clear()
    with pytest.raises(NotRewindable, match=r"the prompt of run .* is not stored"):
        await place.replay(run)
    assert record.end is not None
    assert record.end.outcome is Outcome.COMPLETED
    record.end = None
    with pytest.raises(NotRewindable, match="is in progress"):
        await place.replay(run)
