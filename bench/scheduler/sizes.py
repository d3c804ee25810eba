"""How much is measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sizes:
    """All sizes of all benchmarks."""

    rounds: int = 5
    sessions: int = 1_000
    runs_each: int = 100
    lanes: tuple[int, ...] = (2, 30, 1_000)
    paced_per_ms: int = 10
    """Messages in a millisecond, where they come evenly."""
    paced_ms: int = 1_000
    queued_each: int = 10
    armed: int = 100_000
    rearms_each: int = 10
    used_once: int = 100_000
    one_shot: int = 1_000_000


FULL = Sizes()
QUICK = Sizes(
    rounds=2,
    runs_each=10,
    paced_ms=200,
    armed=10_000,
    used_once=10_000,
    one_shot=50_000,
)
TINY = Sizes(
    rounds=1,
    sessions=5,
    runs_each=4,
    lanes=(2,),
    paced_per_ms=2,
    paced_ms=5,
    queued_each=3,
    armed=50,
    rearms_each=3,
    used_once=100,
    one_shot=2_000,
)
"""To see that everything works."""
