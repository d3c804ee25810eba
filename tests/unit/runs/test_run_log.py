"""One line when a run has ended, and at debug one when it starts (SPEC OPS-5)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from decimal import Decimal

import pytest

from goclaw_py.core.errors import AgentError
from goclaw_py.core.ids import AgentName
from goclaw_py.core.run_events import ToolEnded, ToolStarted, Usage
from goclaw_py.runs.agent_loop import AgentResult, Emit, RunRequest
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.testing.agents import Block, Do, Emitting, Fail, Return, Say, ScriptedAgent
from tests.support.harness import GatewayProcess, Ways, a_process, here, session_of, until
from tests.support.heartbeat_gateway import heartbeat_gateway, saying, until_ended, write
from tests.support.jobs import Wanted, at, make

RESEARCHER = AgentName("researcher")
AT_ONCE = Ways(QueuePolicy())


class Log(logging.Handler):
    """Keeps records, also those of level debug."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture(autouse=True)
def log() -> Iterator[Log]:
    logger, kept = logging.getLogger("goclaw_py.runs.run_log"), Log()
    logger.addHandler(kept)
    logger.setLevel(logging.DEBUG)
    yield kept
    logger.setLevel(logging.NOTSET)
    logger.removeHandler(kept)


def told(log: Log, event: str) -> list[dict[str, object]]:
    return [vars(record) for record in log.records if record.msg == event]


def pairs(log: Log) -> list[tuple[object, object]]:
    """Trigger and outcome of each run that has started; each has exactly one line of each kind."""
    started = {line["run_id"]: line for line in told(log, "run_started")}
    ended = {line["run_id"]: line for line in told(log, "run_ended")}
    assert len(started) == len(told(log, "run_started"))
    assert len(ended) == len(told(log, "run_ended"))
    assert started.keys() == ended.keys()
    for run_id, line in started.items():
        for name in ("session", "agent", "trigger", "lane", "waited_s"):
            assert line[name] == ended[run_id][name]
        for name in ("sender", "channel", "source", "parent", "occurrence", "heartbeat_run"):
            assert line.get(name) == ended[run_id].get(name)
    return sorted((str(line["trigger"]), str(line["outcome"])) for line in ended.values())


async def idle(gateway: GatewayProcess) -> None:
    await until(lambda: not gateway.dispatcher.runs())


async def test_the_lines_of_a_run_say_what_it_was_and_what_it_took(log: Log) -> None:
    usage = Usage(2, 100, 20, cost_usd=Decimal("0.25"))
    agent = ScriptedAgent(Return(AgentResult("hi", usage=usage, model="gpt-4o")))
    async with a_process(agent, AT_ONCE) as gateway:
        await gateway.ask("hello")
        await idle(gateway)
    (started,), (ended,) = told(log, "run_started"), told(log, "run_ended")
    assert started["run_id"] == ended["run_id"]
    facts = [started[name] for name in ("session", "agent", "trigger", "lane", "channel")]
    assert facts == [session_of(), "main", "chat", "main", "telegram"]
    assert started["waited_s"] == 0.0
    assert "reason" not in ended
    facts = [ended[name] for name in ("outcome", "tool_calls", "model", "cost_usd")]
    assert facts == ["completed", 0, "gpt-4o", 0.25]
    assert (ended["input_tokens"], ended["output_tokens"]) == (100, 20)


async def test_runs_that_fail_or_are_stopped_have_both_lines_too(log: Log) -> None:
    called = ToolStarted("a", "look", "{}"), ToolEnded("a", "look", ok=True)
    failing = Emitting(called, Fail(AgentError("no", "it broke")))
    agent = ScriptedAgent(failing, Fail(ValueError("a bug")), Block())
    async with a_process(agent, AT_ONCE) as gateway:
        await gateway.ask("one")
        await gateway.ask("two")
        await gateway.say("three")
        await asyncio.sleep(5)
        await gateway.ask("/stop")
        await idle(gateway)
    assert pairs(log) == [("chat", "cancelled"), ("chat", "failed"), ("chat", "failed")]
    first, _, last = told(log, "run_ended")
    assert first["tool_calls"] == 1
    assert (last["reason"], last["duration_s"]) == ("stopped", 5.0)
    assert told(log, "run_not_started") == []


async def test_a_message_of_a_program_names_its_source(log: Log) -> None:
    async with a_process(ways=AT_ONCE) as gateway:
        await gateway.ask("hello")
        await gateway.control.sessions.send_message(session_of(), "hello", queue=True)
        await idle(gateway)
    assert [line.get("source") for line in told(log, "run_started")] == [None, "api"]


async def test_a_message_that_is_dropped_has_a_line_of_its_own(log: Log) -> None:
    agent = ScriptedAgent(Say("slow", 60))
    async with a_process(agent, AT_ONCE) as gateway:
        await gateway.say("one", "two")
        await asyncio.sleep(5)
        await gateway.ask("/stopall")
        await idle(gateway)
    assert pairs(log) == [("chat", "cancelled")]
    (dropped,) = told(log, "run_not_started")
    assert (dropped["session"], dropped["reason"]) == (session_of(), "stopped_all")


async def _ask_others(request: RunRequest, emit: Emit) -> str:
    children = here(request).children
    both = children.subagent("work"), children.delegate(RESEARCHER, "look")
    return " ".join(await asyncio.gather(*both))


async def test_children_have_lines_that_name_their_parent(log: Log) -> None:
    agent = ScriptedAgent(
        otherwise=lambda asked: Do(_ask_others) if asked.prompt == "go" else Say("ok")
    )
    async with a_process(agent, AT_ONCE, others={RESEARCHER: ScriptedAgent()}) as gateway:
        await gateway.ask("go")
        await idle(gateway)
    assert [trigger for trigger, _ in pairs(log)] == ["chat", "delegate", "subagent"]
    chat, *children = told(log, "run_started")
    assert [line["parent"] for line in children] == [chat["run_id"]] * 2


async def test_a_jobs_run_has_the_lines_and_names_its_time(log: Log) -> None:
    async with a_process() as gateway:
        await make(gateway, Wanted(at(10)))
        await asyncio.sleep(20)
    assert pairs(log) == [("cron", "completed")]
    (started,) = told(log, "run_started")
    assert started["occurrence"]
    assert started["waited_s"] == pytest.approx(0, abs=1)


async def test_a_heartbeats_run_has_the_lines(log: Log) -> None:
    async with a_process(saying("HEARTBEAT_OK"), heartbeat_gateway()) as gateway:
        write(gateway)
        await until_ended(gateway, 1)
    assert pairs(log) == [("heartbeat", "completed")]
    assert told(log, "run_started")[0]["heartbeat_run"]
