"""Three gateways and what befalls them, in short; ``make chaos`` plays many more rounds."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.cluster.report import breaches
from tests.chaos.cluster.rounds import Stage, stage
from tests.chaos.cluster.script import Fault, Kind, Script, Size, script
from tests.chaos.cluster.server import server

SMALL = Size(people=12, messages=2, length_s=14.0, faults=0, jobs=2)
FAULTS = (
    Fault(2.0, Kind.FREEZE, 0, 11.0),
    Fault(3.0, Kind.KILL, 1, 1.0),
    Fault(6.0, Kind.RESTART, None, 0.0),
)


@pytest.fixture
def opened() -> Iterator[Stage]:
    """A short path: sockets are in it."""
    with tempfile.TemporaryDirectory(prefix="gc-", dir="/tmp") as name:
        folder = Path(name)
        with server(folder / "postgres") as running, stage(folder, running) as made:
            yield made


@pytest.mark.real_time
def test_nobody_notices_what_befalls_a_cluster(opened: Stage) -> None:
    """SPEC NODE-1, IO-2, DB-4: one dies, one stands still, the database is restarted."""
    calm = script("short", 0, SMALL)
    played = opened.play(Script(0, calm.sayings, FAULTS, calm.jobs, calm.length_s))
    assert played.breaches == (), "\n".join(breaches(played, "this test"))
    # What is checked was there.
    assert played.counts["messages"] >= len(calm.sayings)
    assert played.counts["occurrences"] > 0
    assert played.counts["beats"] > 0
