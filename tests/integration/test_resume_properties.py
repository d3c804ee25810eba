"""Six properties of systems that resume agents, named as in "Resume Means Resume" (SPEC AGENT-10).

The names are those of arXiv 2608.03836; each docstring says what the property means here.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from goclaw_py.agents.models import ModelAgent
from goclaw_py.core.errors import Fenced
from goclaw_py.core.ids import NodeId, RunId
from goclaw_py.core.run_events import ToolEnded, ToolStarted, Usage
from goclaw_py.core.run_steps import NewMessagesStep, ResponseStep, RunStep
from goclaw_py.records import RunSoFar, RunStartResult, Store
from goclaw_py.store.postgres.runs import steps as stored_steps
from tests.support.continued import ALL_CALLS, ORDER, Done, execute, steered
from tests.support.model_server import ModelServer
from tests.support.stores import ANN, APOLOGY, A, B, World, a_node, at, new_run
from tests.unit.agents.builders import request

pytestmark = pytest.mark.real_time

ASKED = ResponseStep(b"[]", Usage(1))
PAY = ToolStarted("c1", "pay", "{}")
UNREADABLE = [
    pytest.param([ResponseStep(b'{"kind": "of another release"}', Usage(1))], id="other release"),
    pytest.param([ResponseStep(b"{", Usage(1))], id="cut off"),
    pytest.param([PAY, ToolEnded("c1", "pay", ok=True, result="paid")], id="other kind of agent"),
]


def stored(steps: Sequence[RunStep]) -> tuple[RunStep, ...]:
    """A copy of steps, as a database keeps them."""
    _, _, kinds, payloads = stored_steps.columns([(RunId("run-1"), 0, steps)])
    rows = [{"kind": kind, "payload": one} for kind, one in zip(kinds, payloads, strict=True)]
    copy = stored_steps.read(rows)
    assert copy is not None
    return copy


async def continued(agent: ModelAgent, steps: Sequence[RunStep], *, run: str = "run-2") -> Done:
    """Continue an interrupted run; a message that had joined it does not come again."""
    is_steered = any(isinstance(step, NewMessagesStep) for step in steps)
    asked = request(ORDER, run=run) if is_steered else steered(run=run)
    return await execute(agent, asked, stored(steps))


def bodies(server: ModelServer) -> list[dict[str, Any]]:
    """The requests that the model got since the last call."""
    found = [seen.body for seen in server.seen]
    server.seen.clear()
    return found


def names_of(steps: Sequence[RunStep]) -> dict[str, tuple[str, dict[str, object]]]:
    """The calls that had begun, by their ids."""
    return {
        step.call_id: (step.name, json.loads(step.arguments))
        for step in steps
        if isinstance(step, ToolStarted)
    }


async def test_prefix_continuation(agent: ModelAgent, server: ModelServer) -> None:
    """From whatever step: what is stored is kept, and what follows is the rest of the whole run.

    The model gets the very requests that it would have got, and the answer is the same; unless a
    call has an unknown outcome, which changes the conversation.
    """
    whole = await execute(agent, steered())
    requests, steps = bodies(server), whole.journal.steps
    for cut in range(len(steps) + 1):
        responses = sum(isinstance(step, ResponseStep) for step in steps[:cut])
        rest = await continued(agent, steps[:cut])
        sent = bodies(server)
        assert len(sent) == rest.result.usage.requests == len(requests) - responses, cut
        begun = {step.call_id for step in steps[:cut] if isinstance(step, ToolStarted)}
        ended = {step.call_id for step in steps[:cut] if isinstance(step, ToolEnded)}
        if begun == ended:
            assert sent == requests[responses:], cut
            assert rest.result.text == rest.journal.text == whole.result.text
            assert [one.text for one in rest.result.entries] == [
                one.text for one in whole.result.entries
            ]


@pytest.mark.slow
async def test_exactly_once_effects(agent: ModelAgent) -> None:
    """A finished call is never made again, however often the run is interrupted; an uncertain one
    only if its tool has no side effects: every payment is made once, or its outcome was told.
    """
    steps = (await execute(agent, steered())).journal.steps
    for first in range(len(steps) + 1):
        rest = await continued(agent, steps[:first])
        for second in range(0, len(rest.journal.steps) + 1, 2):
            before = [*steps[:first], *rest.journal.steps[:second]]
            last = await continued(agent, before)
            ended = {step.call_id for step in before if isinstance(step, ToolEnded)}
            begun = names_of(before)
            finished = [call for call_id, call in begun.items() if call_id in ended]
            cut = [call for call_id, call in begun.items() if call_id not in ended]
            payments = [call for call in cut if call[0] == "pay"]
            done = [*finished, *payments, *last.calls]
            assert sorted(map(str, done)) == sorted(map(str, ALL_CALLS)), (first, second)


async def test_fork_determinism(agent: ModelAgent, server: ModelServer) -> None:
    """Two continuations of copies of the same steps, with a model that answers the same, do the
    same: the same requests, calls, results and text.
    """
    steps = (await execute(agent, steered())).journal.steps
    server.seen.clear()
    for cut in range(len(steps) + 1):
        first = await continued(agent, steps[:cut], run="run-2")
        requests = bodies(server)
        second = await continued(agent, steps[:cut], run="run-3")
        assert bodies(server) == requests, cut
        assert second.calls == first.calls
        assert second.result.text == first.result.text
        assert second.result.usage == first.result.usage
        assert outline(second.journal.steps) == outline(first.journal.steps)


def outline(steps: Sequence[RunStep]) -> list[RunStep]:
    """Steps without the times of responses."""
    return [replace(step, native=b"") if isinstance(step, ResponseStep) else step for step in steps]


@pytest.mark.parametrize("damaged", UNREADABLE)
async def test_checkpoint_validity(
    agent: ModelAgent, server: ModelServer, damaged: list[RunStep]
) -> None:
    """Only steps that can be read are continued from, all of them or none.

    Otherwise the model is told in words what had been called (AGENT-9), as if no steps were stored.
    Messages that had joined the run are part of its prompt.
    """
    asked = replace(request("hello"), interrupted="It had paid Ann.")
    done = await execute(agent, asked, [*damaged, NewMessagesStep("and Bob")])
    assert done.result.text == "you said: hello\nand Bob"
    assert "It had paid Ann." in str(server.seen[0].texts[0])


async def test_consume_once(world: World) -> None:
    """Of two nodes that want to continue the same interrupted run, one gets its steps.

    The other is refused, and so is whatever the interrupted run still wants to store.
    """
    row = (await world.accept(ANN))[0]
    await world.a.begin_run(new_run("r1", row), node=A)
    await world.a.note_run(RunId("r1"), RunSoFar(steps=(ASKED, PAY)), node=A)
    await interrupt(world)

    async def begin(store: Store, run: str, node: NodeId) -> RunStartResult:
        return await store.begin_run(new_run(run, row, started_at=at(1)), node=node)

    both = await asyncio.gather(
        begin(world.a, "r2", A), begin(world.b, "r3", B), return_exceptions=True
    )
    got = [one.steps for one in both if isinstance(one, RunStartResult)]
    assert got == [(ASKED, PAY)]
    assert [type(one) for one in both if isinstance(one, Exception)] == [Fenced]
    with pytest.raises(Fenced):
        await world.a.note_run(RunId("r1"), RunSoFar(steps=(ASKED, PAY)), node=A)


async def test_recovery_determinism(world: World) -> None:
    """However often and by whomever an interrupted run is recovered, it continues from the same.

    Two nodes that recover at a time recover it once; a recovery that is itself interrupted before
    it has done anything leaves everything as it was.
    """
    row = (await world.accept(ANN))[0]
    await world.a.begin_run(new_run("r1", row), node=A)
    await world.a.note_run(RunId("r1"), RunSoFar(steps=(ASKED, PAY)), node=A)
    for number in range(2, 5):
        await interrupt(world)
        begun = await world.a.begin_run(new_run(f"r{number}", row, started_at=at(number)), node=A)
        assert begun.steps == (ASKED, PAY)


async def interrupt(world: World) -> None:
    """Node A dies, two stores recover its work at a time, and it comes back."""
    now = await world.kill(A, world.b)
    reports = await asyncio.gather(
        *(one.recover(now=now, max_attempts=9, apology=APOLOGY) for one in (world.a, world.b))
    )
    assert sorted(len(report.cut_runs) for report in reports) == [0, 1]
    await world.a.join(a_node(A))
