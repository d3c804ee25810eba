"""How PostgreSQL stores starts and steps of runs, and steps that cannot be read (AGENT-10)."""

from __future__ import annotations

from typing import Any

import pytest

from goclaw_py.core.ids import RunId
from goclaw_py.core.run_events import ToolEnded, ToolStarted, Usage
from goclaw_py.core.run_steps import ResponseStep, ValueStep
from goclaw_py.records import RunSoFar
from goclaw_py.store.postgres import connection
from goclaw_py.store.postgres.runs.beginnings import begin
from tests.support.postgres import Database
from tests.support.stores import ANN, A, B, World, a_node, crash, new_run

pytestmark = pytest.mark.real_time

KIB = 1024


async def world_in(database: Database) -> World:
    world = World(await database.open(), await database.open())
    await world.a.join(a_node(A))
    await world.b.join(a_node(B))
    return world


@pytest.mark.parametrize(("durable", "commit"), [(True, "on"), (False, "off")])
async def test_only_the_commit_of_a_durable_start_waits_for_the_disk(
    postgres_database: Database, durable: bool, commit: str
) -> None:
    """SPEC IO-2. Every other commit of the connection waits."""
    world = await world_in(postgres_database)
    await world.accept(ANN)
    async with connection(postgres_database.address) as direct:
        await direct.script("set synchronous_commit = on")
        async with direct.transaction():
            begun, _ = await begin(direct, [new_run("r")], A, durable=durable)
            inside = await direct.row("show synchronous_commit")
        outside = await direct.row("show synchronous_commit")
    assert list(begun) == ["r"]
    assert inside is not None
    assert outside is not None
    assert (inside["synchronous_commit"], outside["synchronous_commit"]) == (commit, "on")
    await world.a.close()
    await world.b.close()


async def test_large_payloads_are_stored_outside_of_the_table(postgres_database: Database) -> None:
    """A thousand steps of 4 KiB, and ten of 1 MB, take less than 200 bytes each in the table."""
    world = await world_in(postgres_database)
    await world.a.begin_run(new_run("r"), node=A)
    text = "".join(f"{number:x}" for number in range(220_000))
    assert len(text) > 1_000_000
    small = [ToolEnded(f"s{n}", "read", ok=True, result=text[n : n + 4 * KIB]) for n in range(1000)]
    large = [ToolEnded(f"l{n}", "read", ok=True, result=text[n:]) for n in range(10)]
    await world.a.note_run(RunId("r"), RunSoFar(steps=(*small, *large)), node=A)
    async with connection(postgres_database.address) as direct:
        sizes = await direct.row(
            "select pg_relation_size('run_steps') as heap, pg_table_size('run_steps') as whole"
        )
    assert sizes is not None
    assert sizes["heap"] < 200 * 1010
    assert sizes["whole"] > 20 * sizes["heap"]
    await world.a.close()
    await world.b.close()


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("payload", "'\\x00ff'"),
        ("payload", "'{}'"),
        ("payload", "'[1]'"),
        ("payload", """'{"native": "[]", "usage": {"coins": 3}, "is_summary": false}'"""),
        ("kind", "'of another release'"),
    ],
)
async def test_steps_that_cannot_be_read_are_not_continued(
    postgres_database: Database, column: str, value: str
) -> None:
    """The run is told in words then, and its budget counts what was used."""
    world = await world_in(postgres_database)
    (row,) = await world.accept(ANN)
    await world.a.begin_run(new_run("r1", row), node=A)
    step = ResponseStep(b"[]", Usage(2))
    await world.a.note_run(RunId("r1"), RunSoFar(usage=Usage(2), steps=(step,)), node=A)
    await crash(world)
    async with connection(postgres_database.address) as direct:
        await direct.fetch(f"update run_steps set {column} = {value}")
    begun = await world.a.begin_run(new_run("r2", row), node=A)
    assert begun.steps is None
    assert begun.uncounted == Usage(2)
    await world.a.close()
    await world.b.close()


async def test_steps_with_any_values_are_stored_and_read(postgres_database: Database) -> None:
    """An agent in Python code may report what no type checker has seen."""
    world = await world_in(postgres_database)
    (row,) = await world.accept(ANN)
    await world.a.begin_run(new_run("r1", row), node=A)
    odd: Any = {2: [2**70, float("nan"), "\ud83d"]}
    reported = (
        ResponseStep(b"[]", Usage(2**70)),
        ToolStarted("c", "look_up", odd),
        ToolEnded("c", "look_up", ok=True, result=odd),
        ValueStep("pay", odd),
    )
    await world.a.note_run(RunId("r1"), RunSoFar(usage=Usage(2), steps=reported), node=A)
    await crash(world)
    begun = await world.a.begin_run(new_run("r2", row), node=A)
    read = {"2": [float(2**70), None, "\ufffd"]}
    assert begun.steps is not None
    assert [type(step) for step in begun.steps] == [type(step) for step in reported]
    assert begun.steps[3] == ValueStep("pay", read)  # type: ignore[arg-type]  # as it was given
    await world.a.close()
    await world.b.close()
