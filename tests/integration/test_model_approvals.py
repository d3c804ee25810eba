"""Model agents ask people about tool calls, and go on with their decisions (SPEC AGENT-11)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from goclaw_py.agents.models import ModelAgent
from goclaw_py.core.approvals import ApprovalPolicy, Decision, OnUncertain
from goclaw_py.core.errors import ApprovalNeeded
from goclaw_py.core.run_events import ToolEnded, ToolStarted
from goclaw_py.core.run_steps import DecisionStep, ResponseStep, RunStep
from goclaw_py.runs.agent_loop import LoopEvent
from goclaw_py.runs.run_journal import step_of
from goclaw_py.schedule.jobs.execution_models import OccurrenceStatus
from tests.support.continued import ORDER, pay
from tests.support.harness import a_process, until
from tests.support.jobs import OPERATOR, Wanted, every, service
from tests.support.jobs import make as make_job
from tests.support.memory_store import MemoryDatabase
from tests.support.model_agents import ModelAgents, look_up
from tests.support.model_server import ModelServer
from tests.support.toolbox import Armed, Functions
from tests.unit.agents.builders import request

pytestmark = pytest.mark.real_time

LOOKED, PAID = ("look_up", {"word": "owl"}), ("pay", {"to": "Ann"})

Make = Callable[[ApprovalPolicy], ModelAgent]


@dataclass
class Run:
    """A run and what it has left: its steps, its calls, and its result or questions."""

    steps: list[RunStep] = field(default_factory=list)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    ended: list[ToolEnded] = field(default_factory=list)
    text: str = ""
    asked: ApprovalNeeded | None = None

    def __call__(self, event: LoopEvent) -> None:
        if (step := step_of(event)) is not None:
            self.steps.append(step)
        if isinstance(event, ToolEnded):
            self.ended.append(event)

    @property
    def questions(self) -> list[tuple[str, bool]]:
        assert self.asked is not None
        return [(one.tool, one.uncertain) for one in self.asked.requests]

    def decided(self, decision: Decision) -> list[RunStep]:
        assert self.asked is not None
        return [*self.steps, *(DecisionStep(a.call_id, decision) for a in self.asked.requests)]


async def run(
    agent: ModelAgent,
    prompt: str = ORDER,
    steps: Sequence[RunStep] = (),
    *,
    can_ask: bool = True,
    granted: Sequence[str] = (),
    tools: Functions | None = None,
) -> Run:
    async def is_granted(tool: str) -> bool:
        return tool in granted

    made = Run()
    tools = Functions(pay, look_up, harmless=("look_up",)) if tools is None else tools
    asked = replace(
        request(prompt), tools=tools, steps=tuple(steps), can_ask=can_ask, is_granted=is_granted
    )
    try:
        made.text = (await agent.run(asked, made)).text
    except ApprovalNeeded as error:
        made.asked = error
    made.calls = tools.calls
    return made


@pytest.fixture
def make(agents: ModelAgents) -> Make:
    return lambda policy: agents.make(approval=policy)


ASK = ApprovalPolicy(ask=("pa?",))


async def test_a_call_that_needs_approval_ends_the_run_with_a_question(
    make: Make, server: ModelServer
) -> None:
    """The other calls of the response are made; the next run makes only the missing one."""
    agent = make(ASK)
    waits = await run(agent)
    assert waits.questions == [("pay", False)]
    assert waits.calls == [LOOKED]
    assert [step.name for step in waits.steps if isinstance(step, ToolStarted)] == ["look_up"]
    server.seen.clear()
    done = await run(agent, steps=waits.decided(Decision.ONCE))
    assert done.calls == [PAID]
    assert "paid Ann" in done.text
    assert "meaning of owl" in done.text
    assert len(server.seen) == 1


async def test_without_an_answer_the_next_run_asks_again(make: Make, server: ModelServer) -> None:
    agent = make(ASK)
    waits = await run(agent)
    again = await run(agent, steps=waits.steps)
    assert (again.questions, again.calls, len(server.seen)) == ([("pay", False)], [], 1)


@pytest.mark.parametrize(
    ("policy", "can_ask", "granted", "calls", "told"),
    [
        (ApprovalPolicy(), True, (), [PAID, LOOKED], "paid Ann"),
        (replace(ASK, deny=("*",)), True, (), [], "deny the tool"),
        (ApprovalPolicy(allow=("pay",)), True, (), [PAID, LOOKED], "paid Ann"),
        (ASK, True, ("pay",), [PAID, LOOKED], "paid Ann"),
        (ASK, False, ("pay",), [PAID, LOOKED], "paid Ann"),
        (ASK, False, (), [LOOKED], "nobody can be asked"),
    ],
    ids=["no rules", "denied", "allowed", "granted", "granted before", "nobody"],
)
async def test_no_question_is_asked(
    make: Make,
    policy: ApprovalPolicy,
    can_ask: bool,
    granted: tuple[str, ...],
    calls: list[object],
    told: str,
) -> None:
    done = await run(make(policy), can_ask=can_ask, granted=granted)
    assert (done.calls, done.asked) == (calls, None)
    assert told in done.text


async def test_a_tool_that_no_pattern_names_is_asked_about_if_it_has_side_effects(
    make: Make,
) -> None:
    waits = await run(make(ApprovalPolicy(allow=("other",))))
    assert (waits.questions, waits.calls) == ([("pay", False)], [LOOKED])


@pytest.mark.parametrize(
    ("decision", "told"),
    [
        (Decision.DENY, "a person has denied it"),
        (Decision.EXPIRED, "nobody answered in time"),
    ],
)
async def test_a_denied_call_is_told_to_the_model(
    make: Make, decision: Decision, told: str
) -> None:
    agent = make(ASK)
    waits = await run(agent)
    done = await run(agent, steps=waits.decided(decision))
    assert done.calls == []
    assert told in done.text
    # After a crash it stays denied.
    assert (await run(agent, steps=[*waits.decided(decision), *done.steps])).calls == []


@pytest.mark.parametrize("arguments", ['{"to": "Ann"}', '{"whom": "Ann"}'], ids=["gone", "changed"])
async def test_an_approved_call_of_a_tool_that_has_changed_fails(
    make: Make, arguments: str
) -> None:
    agent = make(ASK)
    waits = await run(agent, f"tool pay {arguments}")
    tools = Functions(look_up) if "to" in arguments else None
    steps = waits.decided(Decision.ONCE)
    done = await run(agent, f"tool pay {arguments}", steps, tools=tools)
    assert (done.calls, [one.ok for one in done.ended]) == ([], [False])


def cut(whole: Run) -> list[RunStep]:
    """The steps of a run that was killed during its first call of a tool."""
    started = next(i for i, step in enumerate(whole.steps) if isinstance(step, ToolStarted))
    assert isinstance(whole.steps[0], ResponseStep)
    return whole.steps[: started + 1]


@pytest.mark.parametrize(
    ("decision", "calls", "told"),
    [
        (Decision.HAPPENED, [], "confirmed that the call took effect"),
        (Decision.AGAIN, [PAID], "paid Ann"),
        (Decision.SKIP, [], "outcome of this call is unknown"),
        (Decision.EXPIRED, [], "outcome of this call is unknown"),
    ],
)
async def test_a_person_decides_about_an_interrupted_call(
    make: Make, decision: Decision, calls: list[object], told: str
) -> None:
    agent = make(ApprovalPolicy(on_uncertain=OnUncertain.ASK_USER))
    order = 'tool pay {"to": "Ann"}'
    steps = cut(await run(agent, order))
    waits = await run(agent, order, steps)
    assert (waits.questions, waits.calls) == ([("pay", True)], [])
    steps = [*steps, *waits.decided(decision)]
    done = await run(agent, order, steps)
    assert done.calls == calls
    assert told in done.text
    assert [one.uncertain for one in done.ended] == ["unknown" in told]
    if decision is Decision.AGAIN:
        # The answer held for one attempt.
        assert (await run(agent, order, [*steps, *cut_call(done)])).questions == [("pay", True)]


def cut_call(done: Run) -> list[RunStep]:
    return [step for step in done.steps if isinstance(step, ToolStarted)]


@pytest.mark.parametrize(
    ("on_uncertain", "can_ask", "calls"),
    [
        (OnUncertain.RETRY, True, [PAID]),
        (OnUncertain.TELL_MODEL, True, []),
        (OnUncertain.ASK_USER, False, []),
    ],
)
async def test_nobody_is_asked_about_an_interrupted_call(
    make: Make,
    on_uncertain: OnUncertain,
    can_ask: bool,
    calls: list[object],
) -> None:
    agent = make(ApprovalPolicy(on_uncertain=on_uncertain))
    order = 'tool pay {"to": "Ann"}'
    done = await run(agent, order, cut(await run(agent, order)), can_ask=can_ask)
    assert (done.calls, done.asked) == (calls, None)


async def test_the_call_of_a_job_is_made_once_on_the_node_that_is_left(
    make: Make, server: ModelServer
) -> None:
    """The node that has asked is killed while the job waits (SPEC CRON-10)."""
    tools = Functions(pay, look_up, harmless=("look_up",))
    agent, database = Armed(make(ASK), tools), MemoryDatabase()
    async with (
        a_process(agent, database=database) as first,
        a_process(agent, database=database) as second,
    ):
        job = await make_job(first, Wanted(every(3600), ORDER))
        await service(first).run_now(job.id, OPERATOR)
        await until(lambda: bool(database.approvals.questions))
        (asked,) = await second.store.approvals()
        await until(lambda: database.sessions[asked.session].owner is None)
        first.kill()
        assert tools.calls == [LOOKED]
        await second.control.approvals.decide(asked.id, Decision.ONCE)
        await until(lambda: "paid Ann" in " ".join(second.channel.texts()))
    assert tools.calls == [LOOKED, PAID]
    assert len(server.seen) == 2
    (row,) = database.cron.logs.values()
    assert (row.status, row.attempts, row.claims) == (OccurrenceStatus.OK, 1, 1)
    assert row.usage is not None
    assert row.usage.requests == 2
