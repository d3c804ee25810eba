"""What happens in a world: people, gateways and mishaps, made from a seed. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from goclaw_py.core.requests import Mode
from tests.simulation.trouble import LONGEST_S, MILD, ROUGH, WILD

TROUBLE_S = 30.0
"""How long things go wrong."""


@dataclass(frozen=True, slots=True)
class Saying:
    """Somebody writes something."""

    at: float
    chat: str
    text: str


@dataclass(frozen=True, slots=True)
class Start:
    """A gateway comes up."""

    at: float


@dataclass(frozen=True, slots=True)
class Kill:
    """One of those that live is killed."""

    at: float


@dataclass(frozen=True, slots=True)
class Freeze:
    """One stands still for a while."""

    at: float
    for_s: float


@dataclass(frozen=True, slots=True)
class Drain:
    """One gets SIGTERM."""

    at: float
    wait_s: float


@dataclass(frozen=True, slots=True)
class Outage:
    """The database is away for a while; ``one``: for a single gateway, and the chats, too."""

    at: float
    for_s: float
    one: bool


Event = Saying | Start | Kill | Freeze | Drain | Outage


@dataclass(frozen=True, slots=True)
class Plan:
    """A world.

    Args:
        weight: How often a call of a port goes wrong.
        polling: One gateway asks for updates, else they are brought to any.
        shared: Lanes hold for all gateways together.
    """

    seed: int
    events: tuple[Event, ...]
    weight: float
    polling: bool
    mode: Mode
    shared: bool
    main_lane: int
    job_every_s: float | None
    beat_every_s: float | None


def plan(seed: int) -> Plan:
    """The world of a seed."""
    chance = Random(f"plan {seed}")
    events = [*_gateways(chance), *_sayings(chance), *_mishaps(chance)]
    return Plan(
        seed,
        tuple(sorted(events, key=lambda event: event.at)),
        weight=chance.choice((MILD, ROUGH, ROUGH, WILD)),
        polling=chance.random() < 0.5,
        mode=chance.choice((Mode.QUEUE, Mode.QUEUE, Mode.COLLECT, Mode.INTERRUPT, Mode.STEER)),
        shared=chance.random() < 0.5,
        main_lane=chance.choice((1, 2, 8)),
        job_every_s=chance.choice((None, 5.0, 11.0)),
        beat_every_s=chance.choice((None, None, 13.0)),
    )


def _gateways(chance: Random) -> list[Event]:
    first: list[Event] = [Start(0.0) for _ in range(chance.choice((2, 2, 3)))]
    return first + [Start(chance.uniform(3, TROUBLE_S)) for _ in range(chance.choice((0, 1, 2)))]


def _sayings(chance: Random) -> list[Event]:
    sayings: list[Event] = []
    number = 0
    for chat in ("ann", "bob", "cyd")[: chance.choice((1, 2, 3))]:
        at = chance.uniform(0, 5)
        for _ in range(chance.choice((2, 4, 6))):
            number += 1
            sayings.append(Saying(at, chat, f"m{number}"))
            if chance.random() < 0.2:
                at += chance.choice((0.0, 0.05, 1.0, chance.uniform(0, 6)))
                text = chance.choice(("/stop", "/stop", "/stopall", "/status"))
                sayings.append(Saying(at, chat, text))
            at += chance.choice((0.05, 1.0, chance.uniform(0, 8)))
    return sayings


def _mishaps(chance: Random) -> list[Event]:
    mishaps: list[Event] = []
    for _ in range(chance.choice((0, 1, 2, 3))):
        at = chance.uniform(1, TROUBLE_S)
        long_s = chance.choice((chance.uniform(0, 3), chance.uniform(8, LONGEST_S)))
        mishaps.append(
            chance.choice(
                (
                    Kill(at),
                    Kill(at),
                    Freeze(at, long_s),
                    Freeze(at, long_s),
                    Drain(at, chance.choice((0.0, 2.0, 20.0))),
                    Outage(at, long_s, one=chance.random() < 0.5),
                )
            )
        )
    return mishaps
