"""Three gateways and what befalls them, in short; ``make chaos`` plays many more rounds."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.agent import Task
from tests.chaos.cluster.report import breaches
from tests.chaos.cluster.rounds import Stage, stage
from tests.chaos.cluster.script import FIRST_USER, NODES, Fault, Kind, Script, Size, script
from tests.chaos.cluster.server import server
from tests.chaos.script import Saying

SMALL = Size(people=12, messages=2, length_s=14.0, faults=0, jobs=2)
FAULTS = (
    Fault(4.0, Kind.FREEZE, 0, 11.0),
    Fault(5.0, Kind.KILL, 1, 1.0),
    Fault(8.0, Kind.RESTART, None, 0.0),
    Fault(11.0, Kind.END, 1, 0.5),
)
LONG = tuple(
    Saying(0.0, user, Task(user * 10, 40, 300))
    for user in range(FIRST_USER + SMALL.people, FIRST_USER + SMALL.people + 2 * NODES)
)
"""What is worked on when two nodes fall, on each of them."""


_SAID = 20_000
"""So much of what the gateways said last is shown if something was wrong."""


@pytest.fixture
def opened() -> Iterator[Stage]:
    """A short path: sockets are in it."""
    with tempfile.TemporaryDirectory(prefix="gc-", dir="/tmp") as name:
        folder = Path(name)
        with server(folder / "postgres") as running, stage(folder, running) as made:
            yield made


@pytest.mark.real_time
def test_nobody_notices_what_befalls_a_cluster(opened: Stage) -> None:
    """SPEC NODE-1, NODE-3, IO-2, DB-4: one dies and ends, one freezes, the database restarts."""
    calm = script("short", 0, SMALL)
    sayings = (*LONG, *calm.sayings)
    played = opened.play(Script(0, sayings, FAULTS, calm.jobs, calm.length_s, webhooks=True))
    assert played.breaches == (), "\n".join([*breaches(played, "this test"), played.said[-_SAID:]])
    # What is checked was there.
    assert played.counts["lost runs"] > 0
    assert played.counts["nodes that answered"] >= NODES
    assert played.counts["messages"] >= len(sayings)
    assert played.counts["occurrences"] > 0
    assert played.counts["heartbeat_runs"] > 0
