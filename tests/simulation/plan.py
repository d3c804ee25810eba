"""What happens in a scenario: people, gateways and mishaps, made from a seed. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from goclaw_py.scheduler.models import Debounce, Mode
from tests.simulation.trouble import FOR_EVER, LONGEST_S, MILD, ROUGH, WILD, Fate, Forced

TROUBLE_S = 30.0
"""How long things go wrong."""

_HOLD_S = 7200.0
"""Longer than a scenario: so held messages do not fail, and one that is never released shows."""

_TELLING = (
    *("accept", "claim_", "begin_run", "finish_run", "settle", "mark_sent", "chat send"),
    *("chat confirm", "join", "renew", "recover", "claim_lease", "release_sessions", "leave"),
)
"""The calls at which it matters most that a gateway falls."""


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


@dataclass(frozen=True, slots=True)
class ProviderOutage:
    """The provider of the agent's model is down for a while."""

    at: float
    for_s: float


@dataclass(frozen=True, slots=True)
class Work:
    """What the agent does for a prompt.

    Args:
        takes_s: How long it works.
        stays_s: How long it goes on after it was told to end.
        fails: Whether it ends with an error.
    """

    takes_s: float
    stays_s: float = 0.0
    fails: bool = False


Event = Saying | Start | Kill | Freeze | Drain | Outage | ProviderOutage


@dataclass(frozen=True, slots=True)
class Plan:
    """A scenario.

    Args:
        weight: How often a call of a port goes wrong by chance.
        polling: One gateway asks for updates, else they are brought to any.
        shared: Lanes hold for all gateways together.
        forced: The fates of some calls; kills and halts at calls are among them.
        job_in_chat: The job works in the session of a chat.
        work: What the agent does for a prompt; for what is not here chance decides.
        outage_hold_s: How long messages wait for a provider that is down.
    """

    seed: int
    events: tuple[Event, ...]
    weight: float
    polling: bool
    mode: Mode
    shared: bool
    main_lane: int
    job_every_s: float | None
    heartbeat_every_s: float | None
    forced: tuple[Forced, ...] = ()
    job_in_chat: bool = False
    debounce: Debounce = Debounce.FIXED
    work: Mapping[str, Work] = field(default_factory=dict)
    outage_hold_s: float = _HOLD_S


def plan(seed: int) -> Plan:
    """The scenario of a seed."""
    chance, provider = Random(f"plan {seed}"), Random(f"provider {seed}")
    outages = _provider_outages(provider)
    events = [*_gateways(chance), *_sayings(chance), *_mishaps(chance), *outages]
    return Plan(
        seed,
        tuple(sorted(events, key=lambda event: event.at)),
        weight=chance.choice((MILD, ROUGH, ROUGH, WILD)),
        polling=chance.random() < 0.5,
        mode=chance.choice((Mode.QUEUE, Mode.QUEUE, Mode.COLLECT, Mode.INTERRUPT, Mode.STEER)),
        shared=chance.random() < 0.5,
        main_lane=chance.choice((1, 2, 8)),
        job_every_s=chance.choice((None, 5.0, 11.0)),
        heartbeat_every_s=chance.choice((None, None, 13.0)),
        forced=_halts(chance),
        job_in_chat=chance.random() < 0.5,
        debounce=chance.choice(tuple(Debounce)),
        outage_hold_s=provider.choice((_HOLD_S, _HOLD_S, 8.0)),
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


def _provider_outages(chance: Random) -> list[Event]:
    return [
        ProviderOutage(chance.uniform(0, TROUBLE_S), chance.choice((1.0, chance.uniform(3, 25))))
        for _ in range(chance.choice((0, 0, 1, 1, 2)))
    ]


def _halts(chance: Random) -> tuple[Forced, ...]:
    """Gateways that are killed or stand still at one of their calls."""
    return tuple(_halt(chance) for _ in range(chance.choice((0, 0, 1, 2))))


def _halt(chance: Random) -> Forced:
    if chance.random() < 0.4:
        call, number = "", chance.randint(1, 250)
    else:
        call, number = chance.choice(_TELLING), chance.choice((1, 1, 2, 3, 5))
    long_s = chance.choice((FOR_EVER, FOR_EVER, chance.uniform(0, 3), chance.uniform(8, LONGEST_S)))
    gateway = chance.choice(("g1", "g2", "g3", ""))
    return Forced(gateway, call, number, Fate(halt_s=long_s, halt_after=chance.random() < 0.5))
