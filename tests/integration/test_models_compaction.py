"""A conversation that grows stays within what its model can take (SPEC AGENT-4)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
import pytest_asyncio
from aiohttp import web

from goclaw_py.agents import AgentSpec
from goclaw_py.agents.models import ModelAgent, Provider, RetryPolicy
from goclaw_py.agents.models.compaction import TASK
from goclaw_py.core.budget import Budget
from goclaw_py.core.errors import AgentError, BudgetReached
from goclaw_py.core.ids import AgentName
from goclaw_py.core.messages import HistoryEntry
from goclaw_py.core.run_events import Compacted, TextDelta
from goclaw_py.runs.agent_loop import AgentResult
from tests.support import model_server_openai as openai
from tests.support.model_agents import look_up
from tests.support.model_server import ModelServer, Seen
from tests.support.toolbox import Functions
from tests.unit.agents.builders import Events, request

pytestmark = pytest.mark.real_time

WAIT_S = 20
WINDOW = 100
"""The server counts ten tokens for a message: so many take ten of them."""


def is_question(seen: Seen) -> bool:
    """Whether it asks for a summary."""
    return bool(seen.texts[0] == TASK)


@dataclass(slots=True)
class SummingServer(ModelServer):
    """Sums up in a few words. Requests of more than ``most`` messages are too long for it."""

    most: int = 1000
    can_sum_up: bool = True
    answers: bool = True
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def _act(self, request: web.Request, seen: Seen) -> web.StreamResponse:
        if is_question(seen):
            self.asked.set()
            if not self.answers:
                await asyncio.Event().wait()
            number = sum(is_question(each) for each in self.seen)
            seen.order = f"say summary {number}" if self.can_sum_up else "status 500"
        elif len(seen.roles) > self.most:
            status, message, code = openai.OVERFLOW
            return web.json_response(openai.error(status, message, code), status=status)
        return await super(SummingServer, self)._act(request, seen)

    @property
    def questions(self) -> list[str]:
        return [str(seen.texts[1]) for seen in self.seen if is_question(seen)]

    @property
    def others(self) -> list[Seen]:
        return [seen for seen in self.seen if not is_question(seen)]


@pytest_asyncio.fixture
async def server() -> AsyncIterator[SummingServer]:
    async with SummingServer() as running:
        yield running


@pytest_asyncio.fixture
async def agent(server: SummingServer) -> AsyncIterator[ModelAgent]:
    spec = AgentSpec(AgentName("main"), base_url=server.base_url, context_window=WINDOW)
    made = ModelAgent(spec, Provider.OPENAI, "gpt-4o", retry=RetryPolicy(tries=1), environ={})
    yield made
    await made.close()


class Talk:
    """A conversation, kept as the runtime keeps it."""

    def __init__(self, agent: ModelAgent) -> None:
        self._agent = agent
        self.history: tuple[HistoryEntry, ...] = ()
        self.summary = ""
        self.events = Events()

    async def say(self, order: str, budget: Budget | None = None) -> AgentResult:
        self.events = Events()
        asked = request(
            order,
            history=self.history,
            summary=self.summary,
            tools=Functions(look_up),
            budget=budget or Budget(),
        )
        result = await self._agent.run(asked, self.events)
        for event in self.compacted:
            self.history, self.summary = asked.history[event.replaced :], event.summary
        self.history += result.entries
        return result

    async def say_all(self, *orders: str) -> None:
        for order in orders:
            await self.say(order)

    @property
    def compacted(self) -> list[Compacted]:
        return [event for event in self.events if isinstance(event, Compacted)]


@pytest.fixture
def talk(agent: ModelAgent) -> Talk:
    return Talk(agent)


FIVE = ("say one", "say two", "say three", "say four", "say five")


async def test_the_older_part_becomes_a_summary_before_the_window_is_full(
    server: SummingServer, talk: Talk
) -> None:
    await talk.say_all(*FIVE)
    assert server.questions == []
    assert len(server.seen[-1].roles) == 9
    result = await talk.say("say six")
    assert result.text == "six"
    assert talk.events == [Compacted(6, "summary 1"), TextDelta("six")]
    assert result.usage.requests == 2, "it is paid for"
    assert [(step.usage.requests, step.done) for step in talk.events.steps] == [
        (0, False),
        (1, False),
        (2, True),
    ]
    [question] = server.questions
    assert "Person: say one\nAssistant: one" in question
    assert "Person: say three\nAssistant: three" in question
    assert "four" not in question
    last = server.seen[-1]
    assert last.roles == ["user", "user", "assistant", "user", "assistant", "user"]
    assert "summary 1" in last.texts[0]
    assert last.texts[1:] == ["say four", "four", "say five", "five", "say six"]


async def test_a_conversation_may_go_on_for_ever(server: SummingServer, talk: Talk) -> None:
    for number in range(20):
        result = await talk.say(f"say number {number}")
        assert result.text == f"number {number}"
    assert max(len(seen.roles) for seen in server.others) <= 10
    assert len(server.questions) > 2
    # Each summary holds the one before it.
    assert "summary 1" in server.questions[1]


async def test_if_it_cannot_be_summed_up_the_begin_is_left_out_of_this_run_only(
    server: SummingServer, talk: Talk, caplog: pytest.LogCaptureFixture
) -> None:
    await talk.say_all(*FIVE)
    server.can_sum_up = False
    with caplog.at_level(logging.WARNING, "goclaw_py"):
        result = await talk.say("say six")
    assert result.text == "six"
    assert talk.compacted == []
    assert len(talk.history) == 12
    assert server.seen[-1].texts[0] == "[6 earlier messages left out]"
    assert "compaction_failed" in caplog.messages
    server.can_sum_up = True
    server.most = 8
    await talk.say("say seven")
    assert talk.compacted != []


async def test_what_the_server_finds_too_long_is_compacted_harder_and_tried_once_more(
    server: SummingServer, talk: Talk
) -> None:
    await talk.say_all("say one", "say two", "say three")
    server.most = 5
    result = await talk.say("say four")
    assert result.text == "four"
    assert [event.replaced for event in talk.compacted] == [6]
    assert [len(seen.roles) for seen in server.others[-2:]] == [7, 2]


@pytest.mark.parametrize(("before", "most", "requests"), [(3, 1, 5), (0, 0, 1)])
async def test_what_is_too_long_after_that_is_told(
    server: SummingServer, talk: Talk, before: int, most: int, requests: int
) -> None:
    """Of one message that does not fit nothing can be left out."""
    await talk.say_all(*FIVE[:before])
    server.most = most
    with pytest.raises(AgentError) as caught:
        await talk.say("say more")
    assert "too long" in caught.value.friendly
    assert len(server.others) == requests


async def test_a_summary_counts_for_the_budget(server: SummingServer, talk: Talk) -> None:
    """SPEC AGENT-5."""
    await talk.say_all(*FIVE)
    with pytest.raises(BudgetReached):
        await talk.say("say six", Budget(turns=1))
    assert len(server.questions) == 1
    assert len(server.others) == 5
    # The summary is worth keeping all the same.
    assert len(talk.compacted) == 1


async def test_a_run_can_be_stopped_while_it_sums_up(server: SummingServer, talk: Talk) -> None:
    """SPEC CMD-4."""
    await talk.say_all(*FIVE)
    server.answers = False
    task = asyncio.create_task(talk.say("say six"))
    await asyncio.wait_for(server.asked.wait(), WAIT_S)
    task.cancel()
    await asyncio.wait([task], timeout=WAIT_S)
    assert task.cancelled()
    await asyncio.wait_for(server.hung_up.wait(), WAIT_S)
    assert talk.compacted == []


async def test_the_model_hears_summary_and_facts(server: SummingServer, agent: ModelAgent) -> None:
    """What was said is never an instruction (SPEC AGENT-7); facts are what the agent has noted."""
    asked = request("say hi", summary="They like tea.", pinned=("Ann is 7", "Bob is 8"))
    await agent.run(asked, Events())
    assert server.seen[0].roles == ["system", "user", "user"]
    system, summary, prompt = server.seen[0].texts
    assert system == "Facts to remember:\n- Ann is 7\n- Bob is 8"
    assert "They like tea." in summary
    assert prompt == "say hi"


async def test_old_results_of_tools_are_left_out_when_a_run_fills_the_window(
    server: SummingServer,
) -> None:
    spec = AgentSpec(AgentName("main"), base_url=server.base_url, context_window=WINDOW)
    agent = ModelAgent(spec, Provider.OPENAI, "gpt-4o", environ={})

    async def again() -> str:
        return "x" * 40

    events = Events()
    with pytest.raises(BudgetReached):
        await agent.run(
            request("many again", tools=Functions(again), budget=Budget(turns=7)), events
        )
    await agent.close()
    given = [
        [m["content"] for m in seen.body["messages"] if m["role"] == "tool"] for seen in server.seen
    ]
    assert given[3] == ["x" * 40] * 3
    note = "[result of 40 characters left out]"
    assert given[5][0] == note
    assert given[6][-1] == "x" * 40
    assert all(len(results) == turn for turn, results in enumerate(given))
