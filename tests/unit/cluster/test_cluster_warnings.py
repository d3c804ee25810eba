"""Nodes that differ, and clocks that are off, are named (SPEC NODE-1)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from goclaw_py.cluster.membership import Membership, differences
from goclaw_py.core.ids import NodeId
from goclaw_py.records import Node, NodeState
from goclaw_py.testing.clock import START, LoopClock
from tests.support.harness import until
from tests.support.memory_store import MemoryDatabase, MemoryStore

HERE = NodeState(settings={"lanes": "1", "queue": "2", "agents": "3"})
THERE = Node(NodeId("n2"), "beta/boot/pid", 42, "1.0", START, START.replace(year=2999), HERE)
ME = replace(THERE, id=NodeId("n1"))


def test_nodes_that_are_alike_are_not_worth_a_word() -> None:
    assert differences(ME, THERE) == ""


@pytest.mark.parametrize(
    ("there", "words"),
    [
        (replace(THERE, release="1.1"), "runs release 1.1, this one 1.0"),
        (
            replace(THERE, state=NodeState(settings={"lanes": "9", "queue": "2", "web": "4"})),
            "has other settings here: [agents], [lanes], [web]",
        ),
        (
            replace(THERE, release="", state=NodeState(settings={**HERE.settings, "queue": "0"})),
            ("runs release unknown, this one 1.0 and has other settings here: [queue]"),
        ),
    ],
)
def test_what_differs_is_named_in_one_line(there: Node, words: str) -> None:
    assert differences(ME, there) == words


def test_a_node_that_tells_no_settings_is_only_another_release() -> None:
    assert differences(ME, replace(THERE, state=NodeState())) == ""


async def test_only_live_others_count_and_only_as_long_as_they_differ(
    caplog: pytest.LogCaptureFixture,
) -> None:
    database = MemoryDatabase()
    store, clock = MemoryStore(database), LoopClock()
    cluster = Membership(
        store, clock, "1.0", on_recovery=lambda _: None, on_lost=lambda _: None, state=lambda: HERE
    )
    await cluster.join()
    assert (await store.nodes())[0].state == HERE
    await store.join(replace(THERE, release="1.1"))
    await store.join(replace(THERE, id=NodeId("dead"), release="0.9", lease_until=clock.now()))
    watching = asyncio.create_task(cluster.watch())
    await until(lambda: cluster.warnings() != ())
    line = "Node n2 (beta, pid 42) runs release 1.1, this one 1.0"
    (warning,) = cluster.warnings()
    assert (str(warning), warning.command) == (line, "goclaw nodes show n2")
    await asyncio.sleep(60)
    told = [vars(record)["warning"] for record in caplog.records if record.msg == "node_differs"]
    assert told == [line], "once, however often it is seen"
    await store.leave(NodeId("n2"), now=clock.now())
    await until(lambda: cluster.warnings() == ())
    watching.cancel()
