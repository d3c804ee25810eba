"""What happens in a round of the cluster: people, and faults. Pure; a seed means one script."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tests.chaos.agent import Task
from tests.chaos.script import Saying

NODES: Final = 3
LEASE_S: Final = 10.0
"""How long a node that says nothing is believed to live (docs/adr/0004)."""
FIRST_USER: Final = 20_000


class Kind(StrEnum):
    """What can befall a gateway, or all of them by way of the database."""

    KILL = "kill -9"
    FREEZE = "frozen beyond the lease"
    END = "SIGTERM"
    CUT = "connections dropped"
    SILENCE = "packets late beyond the lease"
    SLOW = "slow queries"
    DEAF = "notices lost"
    FULL = "disk full"
    CLOCK = "clock jumps"
    RESTART = "database restarted"
    CRASH = "database killed"
    PAUSE = "database frozen"
    LOCKS = "rows locked"


OF_DATABASE: Final = frozenset([Kind.RESTART, Kind.CRASH, Kind.PAUSE, Kind.LOCKS])
OF_NODES: Final = tuple(kind for kind in Kind if kind not in OF_DATABASE)
_LASTS_S: Final[dict[Kind, tuple[float, float]]] = {
    # A node that comes back within the lease is taken over by itself, a later one by the others.
    Kind.KILL: (0.2, 15.0),
    Kind.FREEZE: (LEASE_S + 1, LEASE_S + 5),
    Kind.END: (0.0, 4.0),
    Kind.CUT: (1.0, LEASE_S + 6),
    Kind.SILENCE: (LEASE_S + 1, LEASE_S + 6),
    Kind.SLOW: (4.0, 10.0),
    Kind.DEAF: (5.0, 15.0),
    Kind.FULL: (5.0, 15.0),
    Kind.CLOCK: (5.0, 15.0),
    Kind.RESTART: (0.0, 3.0),
    Kind.CRASH: (0.0, 1.0),
    Kind.PAUSE: (1.0, LEASE_S + 4),
    Kind.LOCKS: (3.0, 12.0),
}
"""How long each kind lasts."""
_JUMPS_S: Final = (-300, 300, -30, 45)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that befalls a node, or the database if ``node`` is None.

    Args:
        lasts_s: From then until it is undone: the process started again, the line mended.
        jump_s: By how much a clock is set.
    """

    at_s: float
    kind: Kind
    node: int | None
    lasts_s: float
    jump_s: int = 0

    @property
    def until_s(self) -> float:
        """When it is undone."""
        return self.at_s + self.lasts_s

    def __str__(self) -> str:
        who = "database" if self.node is None else f"node {self.node}"
        jump = f" by {self.jump_s:+d} s" if self.jump_s else ""
        return f"{self.at_s:5.1f} s: {who}: {self.kind}{jump} for {self.lasts_s:.1f} s"


@dataclass(frozen=True, slots=True)
class Size:
    """How much happens in a round.

    Args:
        length_s: How long people write; faults begin within it.
        faults: How many, at most.
        jobs: How many jobs there are.
        kinds: What may happen.
    """

    people: int = 200
    messages: int = 3
    length_s: float = 26.0
    faults: int = 7
    jobs: int = 6
    kinds: Sequence[Kind] = tuple(Kind)


@dataclass(frozen=True, slots=True)
class Script:
    """One round: what is said and what befalls whom, each in the order of its times.

    ``webhooks``: updates are brought to all nodes in turn, else one of them polls.
    """

    number: int
    sayings: tuple[Saying, ...]
    faults: tuple[Fault, ...]
    jobs: int
    length_s: float
    webhooks: bool = False

    @property
    def users(self) -> list[int]:
        """Everybody who writes."""
        return sorted({saying.user for saying in self.sayings})

    @property
    def kinds(self) -> frozenset[Kind]:
        """What happens in it."""
        return frozenset(fault.kind for fault in self.faults)


def script(seed: str, number: int, size: Size) -> Script:
    """The round that a seed means."""
    chance = random.Random(f"cluster/{seed}/{number}")
    return Script(
        number,
        tuple(sorted(_sayings(chance, size), key=lambda saying: saying.at_s)),
        tuple(sorted(_faults(chance, size), key=lambda fault: fault.at_s)),
        size.jobs,
        size.length_s,
        chance.random() < 0.5,
    )


def _sayings(chance: random.Random, size: Size) -> list[Saying]:
    found: list[Saying] = []
    for user in range(FIRST_USER, FIRST_USER + size.people):
        at_s = chance.uniform(0, size.length_s * 0.7)
        count = chance.randint(1, size.messages)
        stops = chance.random() < 0.08
        for place in range(count):
            task = _task(chance, user * 10 + place)
            found.append(Saying(at_s, user, task))
            if stops and place == 0:
                found.append(Saying(at_s + chance.uniform(0.1, 1.5), user, None))
            # At once, soon, or after what befell the first one.
            at_s += chance.choice([0.0, chance.uniform(0, 1), chance.uniform(0, 15)])
    return found


def _task(chance: random.Random, number: int) -> Task:
    """Most are short; some last long enough to be there when their node dies."""
    seconds = chance.choices([0.0, 0.3, 1.5, 6.0, 14.0], [25, 35, 20, 12, 8])[0]
    if seconds == 0.0:
        return Task(number, 1, 0)
    every_ms = chance.choice([100, 250])
    return Task(
        number, max(1, round(seconds * 1000 * chance.uniform(0.6, 1.2) / every_ms)), every_ms
    )


def _faults(chance: random.Random, size: Size) -> list[Fault]:
    """Nothing befalls a node while something else does; what befalls the database may meet both."""
    found: list[Fault] = []
    kinds = list(size.kinds)
    for _ in range(size.faults):
        kind = chance.choice(kinds)
        if kind in OF_DATABASE and any(fault.node is None for fault in found):
            kind = chance.choice([one for one in kinds if one not in OF_DATABASE] or kinds)
        fault = _fault(chance, kind, size)
        if not any(_meet(fault, other) for other in found):
            found.append(fault)
    return found


def _fault(chance: random.Random, kind: Kind, size: Size) -> Fault:
    node = None if kind in OF_DATABASE else chance.randrange(NODES)
    lasts_s = round(chance.uniform(*_LASTS_S[kind]), 2)
    jump_s = chance.choice(_JUMPS_S) if kind is Kind.CLOCK else 0
    at_s = round(chance.uniform(1.0, size.length_s * 0.8), 2)
    return Fault(at_s, kind, node, lasts_s, jump_s)


def _meet(one: Fault, other: Fault) -> bool:
    is_same = one.node == other.node
    return is_same and one.at_s < other.until_s + 1 and other.at_s < one.until_s + 1
