"""Whatever an agent gives back, its run ends, and is followed by the next (SPEC QUEUE-10).

An end that cannot be built or stored is stored as a failure, for chats, jobs, heartbeats and
subagents alike.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from goclaw_py.chat.outbound import texts
from goclaw_py.core.budget import Budget
from goclaw_py.core.ids import NodeId
from goclaw_py.core.messages import HistoryEntry
from goclaw_py.core.outcomes import Outcome, Trigger
from goclaw_py.core.run_events import NO_USAGE, Usage
from goclaw_py.records import RunEnd, RunQuery
from goclaw_py.runs.agent_loop import AgentResult, ModelStep, RunRequest
from goclaw_py.runs.budget_tracker import Limits
from goclaw_py.testing.agents import Do, Emitting, Fail, Return, Say, ScriptedAgent, Step
from tests.support.harness import GatewayProcess, Ways, a_process, until
from tests.support.heartbeat_gateway import beating, outcomes, until_ended
from tests.support.jobs import Wanted, ends, every, make, setup
from tests.unit.runs.test_children_of_runs import ask


class Wordless(Exception):
    """An error of somebody else's library that cannot be written."""

    def __str__(self) -> str:
        raise ValueError("no words")


def given(**fields: Any) -> Return:
    """A result with fields of other types than it should have."""
    return Return(AgentResult(**({"text": "fine"} | fields)))


def unreadable(note: str) -> tuple[HistoryEntry, ...]:
    raise ValueError(f"no entries for {note}")


STEP = Emitting((ModelStep(NO_USAGE, entries=unreadable),), Fail(ValueError("odd")))
ODD: dict[str, Step] = {
    "a text that is a number": given(text=5),
    "no text": given(text=None),
    "entries that are none": given(entries=("fine",)),
    "files that are none": given(files=(3,)),
    "a file without a path": given(files=(None,)),
    "usage that is none": given(usage="much"),
    "an error without words": Fail(Wordless()),
    "entries of a step that cannot be made": STEP,
}

odd = pytest.mark.parametrize("step", ODD.values(), ids=list(ODD))


@odd
async def test_a_chat_goes_on(step: Step) -> None:
    async with a_process(ScriptedAgent(step)) as gateway:
        assert await gateway.ask("one") == texts.FAILED
        assert await gateway.ask("two") == "re: two"
        assert await gateway.outcomes() == [Outcome.FAILED, Outcome.COMPLETED]
        assert (await gateway.texts_in_history())[::2] == ["one", "two"]
        assert gateway.pending == []


@odd
async def test_a_job_goes_on(step: Step) -> None:
    async with a_process(ScriptedAgent(step), Ways(jobs=setup())) as gateway:
        job = await make(gateway, Wanted(every(10)))
        await until(lambda: len(gateway.scripted.requests) == 2)
        assert await ends(gateway, job) == ["failed", "ok"]
        assert await gateway.outcomes() == [Outcome.FAILED, Outcome.COMPLETED]
        assert gateway.container.job_module.occurrences.load == 0
        assert "failed" in gateway.channel.texts("ann")[0]


@odd
async def test_a_heartbeat_goes_on(step: Step) -> None:
    async with beating(step, "HEARTBEAT_OK") as gateway:
        await until_ended(gateway, 2)
        assert await outcomes(gateway) == ["failed", "ok"]
        runs = reversed(await gateway.store.runs(RunQuery(limit=9)))
        of_heartbeat = [run.outcome for run in runs if run.trigger is Trigger.HEARTBEAT]
        assert of_heartbeat == [Outcome.FAILED, Outcome.COMPLETED]


@odd
async def test_a_run_whose_subagent_ends_so_goes_on(step: Step) -> None:
    def choose(request: RunRequest) -> Step:
        return step if request.trigger is Trigger.SUBAGENT else Do(ask)

    async with a_process(ScriptedAgent(otherwise=choose)) as gateway:
        await gateway.ask("ask")
        child, parent = await gateway.store.runs()
        assert [child.trigger, child.outcome] == [Trigger.SUBAGENT, Outcome.FAILED]
        assert [parent.trigger, parent.outcome] == [Trigger.CHAT, Outcome.FAILED]


USAGES: dict[str, dict[str, Any]] = {
    "negative": {"input_tokens": -3},
    "beyond what can be stored": {"output_tokens": 2**63},
    "no whole number": {"input_tokens": 1.5},
    "a text": {"cached_tokens": "7"},
    "none": {"input_tokens": None},
    "a cost that is no number": {"cost_usd": Decimal("NaN")},
    "a cost without end": {"cost_usd": Decimal("Infinity")},
    "a cost that is a text": {"cost_usd": "0.01"},
    "a negative cost": {"cost_usd": Decimal(-1)},
}


@pytest.mark.parametrize("odd", USAGES.values(), ids=list(USAGES))
async def test_no_answer_is_lost_for_usage_that_cannot_be(odd: dict[str, Any]) -> None:
    usage = Usage(**({"requests": 1, "output_tokens": 2} | odd))
    steps = Emitting((ModelStep(usage),), Fail(ValueError("odd"))), given(usage=usage)
    limited = Ways(limits=Limits(run=Budget(tokens=1000, usd=Decimal(1))))
    async with a_process(ScriptedAgent(*steps), limited) as gateway:
        assert await gateway.ask("one") == texts.FAILED
        assert await gateway.ask("two") == "fine"
        used = Usage(1, output_tokens=0 if "output_tokens" in odd else 2)
        assert [run.usage for run in await gateway.store.runs()] == [used, used]


def refuse(gateway: GatewayProcess, times: int) -> None:
    """Let the next ends of runs meet a bug in the store."""
    before = gateway.store.finish_run
    left = times

    async def finish_run(end: RunEnd, *, node: NodeId) -> None:
        nonlocal left
        if left:
            left -= 1
            raise RuntimeError("a bug")
        await before(end, node=node)

    gateway.store.finish_run = finish_run  # type: ignore[method-assign]  # as the test says


bugs = pytest.mark.parametrize("times", [1, 2])


@bugs
async def test_a_job_whose_end_meets_bugs_in_the_store_has_failed(times: int) -> None:
    async with a_process(ways=Ways(jobs=setup())) as gateway:
        refuse(gateway, times)
        job = await make(gateway, Wanted(every(10)))
        await until(lambda: len(gateway.scripted.requests) == 2)
        assert await ends(gateway, job) == ["failed", "ok"]
        assert await gateway.outcomes() == [Outcome.FAILED, Outcome.COMPLETED]


@bugs
async def test_a_heartbeat_run_whose_end_meets_bugs_in_the_store_has_failed(times: int) -> None:
    async with beating(spoken_by=None) as gateway:
        refuse(gateway, times)
        await until_ended(gateway, 2)
        assert await outcomes(gateway) == ["failed", "ok"]
        assert await gateway.outcomes() == [Outcome.FAILED, Outcome.COMPLETED]


async def test_a_subagent_whose_end_meets_a_bug_in_the_store_has_failed() -> None:
    def choose(request: RunRequest) -> Step:
        return Say("fine") if request.trigger is Trigger.SUBAGENT else Do(ask)

    async with a_process(ScriptedAgent(otherwise=choose)) as gateway:
        refuse(gateway, 1)
        await gateway.ask("ask")
        assert await gateway.outcomes() == [Outcome.FAILED, Outcome.FAILED]


@bugs
async def test_a_message_whose_end_meets_bugs_in_the_store_has_failed(times: int) -> None:
    async with a_process() as gateway:
        refuse(gateway, times)
        assert await gateway.ask("one") == texts.FAILED
        assert await gateway.ask("two") == "re: two"
        told = [] if times == 2 else ["one", "[failed]"]  # it may be the prompt that meets the bug
        assert await gateway.texts_in_history() == [*told, "two", "re: two"]
