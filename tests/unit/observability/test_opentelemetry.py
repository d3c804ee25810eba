"""Runs of a whole gateway as OpenTelemetry spans (SPEC OPS-5)."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from itertools import pairwise

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode, format_trace_id

from goclaw_py.core.budget import Budget
from goclaw_py.core.errors import AgentError
from goclaw_py.core.ids import AgentName, RunId
from goclaw_py.core.messages import HistoryEntry, Role
from goclaw_py.core.run_events import TextDelta, ToolEnded, ToolStarted, Usage
from goclaw_py.observability import opentelemetry as tracing
from goclaw_py.observability.opentelemetry import Tracing
from goclaw_py.runs.agent_loop import AgentResult, Emit, ModelStep, RunRequest
from goclaw_py.runs.budget_tracker import Limits
from goclaw_py.testing.agents import Block, Do, Emitting, Fail, Ignore, Return, Say, ScriptedAgent
from goclaw_py.testing.agents import Step as Doing
from tests.support.harness import Ways, a_process, here, until

RESEARCHER = AgentName("researcher")
SECRET = "hunter2"


class Traced:
    """A tracer whose spans can be looked at when they have ended."""

    def __init__(self) -> None:
        self._memory = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._memory))
        self.spans = Tracing(provider.get_tracer("test"))

    @property
    def ended(self) -> tuple[ReadableSpan, ...]:
        """The oldest end first."""
        return self._memory.get_finished_spans()

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.ended if span.name == name]

    @property
    def run(self) -> ReadableSpan:
        """The only run."""
        (span,) = self.named("run")
        return span

    async def runs(self, count: int) -> list[ReadableSpan]:
        await until(lambda: len(self.named("run")) == count)
        return self.named("run")


@pytest.fixture
def traced() -> Traced:
    return Traced()


def facts(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


def ids(span: ReadableSpan) -> tuple[int, int]:
    assert span.context is not None
    return span.context.trace_id, span.context.span_id


def above(span: ReadableSpan) -> tuple[int, int] | None:
    return None if span.parent is None else (span.parent.trace_id, span.parent.span_id)


def times(span: ReadableSpan) -> tuple[int, int]:
    assert span.start_time is not None
    assert span.end_time is not None
    return span.start_time, span.end_time


def by_prompt(**steps: Doing) -> ScriptedAgent:
    def choose(request: RunRequest) -> Doing:
        return steps.get(request.prompt.split()[0].strip("[").lower(), Say("hm"))

    return ScriptedAgent(otherwise=choose)


WORK = Emitting(
    (
        ModelStep(Usage()),
        ModelStep(Usage(1, 100, 5), "gpt-4o"),
        ToolStarted("a", "read_file", '{"path": "hunter2"}', side_effects=False),
        ToolEnded("a", "read_file", ok=True, result="hunter2"),
        ModelStep(Usage(3, 300, 15, cost_usd=Decimal("0.25")), "gpt-4o"),
        ToolStarted("b", "send_message", "{}"),
        ToolEnded("b", "send_message", ok=False),
        TextDelta("hunter2"),
    ),
    Fail(AgentError("I cannot, hunter2.", "hunter2")),
)


async def test_a_run_is_a_span_that_tells_what_it_was_and_how_it_ended(traced: Traced) -> None:
    used = Usage(2, 1200, 34, cost_usd=Decimal("0.5"))
    result = AgentResult("hi", (HistoryEntry(Role.ASSISTANT, "hi"),), used, model="gpt-4o")
    async with a_process(ScriptedAgent(Return(result)), spans=traced.spans) as gateway:
        await gateway.ask("hello")
        (run,) = await gateway.store.runs()
    assert facts(traced.run) == {
        "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "main",
        "goclaw.run_id": run.id, "goclaw.session": run.session, "goclaw.agent": "main",
        "goclaw.trigger": "chat", "goclaw.lane": "main", "goclaw.waited_s": pytest.approx(0.8),
        "goclaw.outcome": "completed", "goclaw.requests": 2, "goclaw.cost_usd": 0.5,
        "gen_ai.usage.input_tokens": 1200, "gen_ai.usage.output_tokens": 34,
        "gen_ai.response.model": "gpt-4o",
    }  # fmt: skip
    assert traced.run.parent is None
    assert traced.run.status.status_code is StatusCode.UNSET


async def test_answers_of_the_model_and_calls_of_tools_are_below_their_run(traced: Traced) -> None:
    async with a_process(ScriptedAgent(WORK), spans=traced.spans) as gateway:
        await gateway.ask("hello")
    first, second = traced.named("chat gpt-4o")
    (read,) = traced.named("execute_tool read_file")
    (send,) = traced.named("execute_tool send_message")
    assert {above(span) for span in (first, second, read, send)} == {ids(traced.run)}
    assert facts(first)["gen_ai.usage.input_tokens"] == 100
    assert facts(second)["goclaw.requests"] == 2
    assert facts(second)["gen_ai.usage.output_tokens"] == 10
    assert (facts(read)["goclaw.tool.ok"], facts(send)["goclaw.tool.ok"]) == (True, False)
    assert facts(read)["goclaw.tool.side_effects"] is False
    assert send.status.status_code is StatusCode.ERROR
    # One after the other, as they were.
    moments = [times(span) for span in (first, read, second, send)]
    assert moments == sorted(moments)
    assert all(before[1] <= after[0] for before, after in pairwise(moments))


async def test_nothing_that_anybody_says_is_in_a_span(traced: Traced) -> None:
    """SPEC SEC-2: not the prompt, the answer, arguments or results of tools, nor an error."""
    made_up = ToolStarted("c", "hunter2 please", "{}")
    model = ModelStep(Usage(1), "hunter2 is my model")
    strange = Emitting((made_up, model, *WORK.events), WORK.then)
    agent = ScriptedAgent(strange, Fail(ValueError(SECRET)), Block())
    async with a_process(agent, spans=traced.spans) as gateway:
        for _ in range(2):
            await gateway.ask(f"my password is {SECRET}")
        await gateway.say(f"and {SECRET}")
        await agent.until_active(1)
        await gateway.say("/stop")
        await traced.runs(3)
    assert SECRET not in "".join(span.to_json() for span in traced.ended)
    failed, unknown, stopped = traced.named("run")
    assert failed.status.status_code is unknown.status.status_code is StatusCode.ERROR
    assert facts(failed)["error.type"] == "AgentError"
    assert facts(unknown)["error.type"] == "ValueError"
    assert stopped.status.status_code is StatusCode.UNSET


async def test_a_stopped_run_ends_with_the_tools_that_it_was_calling(traced: Traced) -> None:
    agent = ScriptedAgent(Emitting((ToolStarted("a", "slow", "{}"),), Block()))
    async with a_process(agent, spans=traced.spans) as gateway:
        await gateway.say("hello")
        await agent.until_active(1)
        await gateway.say("/stop")
        await traced.runs(1)
    assert facts(traced.run)["goclaw.outcome"] == "cancelled"
    assert facts(traced.run)["goclaw.reason"] == "stopped"
    (tool,) = traced.named("execute_tool slow")
    assert facts(tool)["goclaw.tool.ok"] is False


async def test_a_run_that_ignores_its_end_ends_as_a_span_all_the_same(traced: Traced) -> None:
    ways = Ways(run_timeout_s=5, cancel_grace_s=10)
    async with a_process(ScriptedAgent(Ignore(600, "late")), ways, spans=traced.spans) as gateway:
        await gateway.say("hello")
        await traced.runs(1)
        assert facts(traced.run)["goclaw.outcome"] == "abandoned"
        assert traced.run.status.status_code is StatusCode.ERROR
        await asyncio.sleep(700)
    assert len(traced.ended) == 1


async def test_the_end_is_told_as_it_is_stored(traced: Traced) -> None:
    """A budget that others have used up too is a reason that the task itself does not know."""
    over = Emitting((ModelStep(Usage(requests=9), "m"),), Block())
    ways = Ways(limits=Limits(run=Budget(turns=3)))
    async with a_process(ScriptedAgent(over), ways, spans=traced.spans) as gateway:
        await gateway.ask("hello")
        (run,) = await gateway.store.runs()
    assert run.reason is not None
    assert facts(traced.run)["goclaw.reason"] == run.reason.value == "budget"
    assert facts(traced.run)["goclaw.outcome"] == "failed"


async def test_the_work_of_the_agent_is_within_the_span(traced: Traced) -> None:
    """Spans of its own are below it, whoever exports them."""
    seen: list[int] = []

    async def look(request: RunRequest, emit: Emit) -> str:
        await asyncio.sleep(1)
        seen.append(trace.get_current_span().get_span_context().span_id)
        return "looked"

    async with a_process(ScriptedAgent(Do(look)), spans=traced.spans) as gateway:
        await gateway.ask("hello")
    assert seen == [ids(traced.run)[1]]


async def ask(request: RunRequest, emit: Emit) -> str:
    children = here(request).children
    both = children.subagent("work hard"), children.delegate(RESEARCHER, "look it up")
    return " ".join(await asyncio.gather(*both))


async def spawn(request: RunRequest, emit: Emit) -> str:
    await here(request).children.spawn("work hard", "hard work")
    return "started"


async def test_runs_that_a_run_asks_for_are_below_it(traced: Traced) -> None:
    agent = by_prompt(hello=Do(ask), work=Do(spawn_deeper), deeper=Say("deep"))
    others = {RESEARCHER: by_prompt(look=Say("found"))}
    async with a_process(agent, spans=traced.spans, others=others) as gateway:
        assert await gateway.ask("hello") == "it is deep found"
        spans = {facts(span)["goclaw.run_id"]: span for span in await traced.runs(4)}
        runs = await gateway.store.runs()
    for run in runs:
        parent = None if run.parent is None else ids(spans[run.parent])
        assert above(spans[run.id]) == parent
        assert facts(spans[run.id]).get("goclaw.parent") == run.parent
    triggers = sorted(str(facts(span)["goclaw.trigger"]) for span in spans.values())
    assert triggers == ["chat", "delegate", "subagent", "subagent"]


async def spawn_deeper(request: RunRequest, emit: Emit) -> str:
    return f"it is {await here(request).children.subagent('deeper')}"


async def test_one_that_begins_after_its_parent_has_ended_is_below_it_too(traced: Traced) -> None:
    agent = by_prompt(hello=Do(spawn), work=Say("done", after_s=60))
    async with a_process(agent, spans=traced.spans) as gateway:
        await gateway.ask("hello")
        parent = (await traced.runs(1))[0]
        # The message about it is a turn of its own, and a trace of its own.
        child, message = (await traced.runs(3))[1:]
    assert above(child) == ids(parent)
    assert above(message) is None


async def test_few_runs_are_remembered(traced: Traced, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "MOST_REMEMBERED", 2)
    async with a_process(spans=traced.spans) as gateway:
        for word in ("one", "two", "three"):
            await gateway.ask(word)
        newest, middle, oldest = await gateway.store.runs()
    # Turns of a chat are traces of their own.
    assert len({ids(span)[0] for span in await traced.runs(3)}) == 3
    assert [above(span) for span in traced.named("run")] == [None] * 3
    assert traced.spans.trace_of(newest.id) == format_trace_id(ids(traced.named("run")[2])[0])
    assert traced.spans.trace_of(middle.id) is not None
    assert traced.spans.trace_of(oldest.id) is None
    assert traced.spans.trace_of(RunId("nobody")) is None
    assert traced.spans._open == {}
