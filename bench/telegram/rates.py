"""Many people write at once; every message is answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.inbox.measure import cpu_s
from bench.telegram.crowd import Crowd, crowd
from bench.telegram.gateways import HERE, Case, Tree, floor_for, place_for, sampled
from bench.telegram.processes import own_cpu_s, proportional_mb, server_of, wal_bytes
from bench.telegram.sampled import BEGIN, END, Stack, read
from tests.support.process import wait_for

LANE = 100
"""Runs at once. The agent takes no time: they are in the lane while the database works."""


@dataclass(frozen=True, slots=True)
class Load:
    """How much is written."""

    chats: int = 500
    each: int = 20

    @property
    def messages(self) -> int:
        """In all chats together."""
        return self.chats * self.each

    @property
    def settings(self) -> dict[str, str]:
        """What a gateway needs to drop nothing of it."""
        return {"GOCLAW_QUEUE__CAPACITY": str(self.each), "GOCLAW_LANE_MAIN": str(LANE)}


@dataclass(frozen=True, slots=True)
class Rates:
    """What one measurement found. CPU is in ms, and the write-ahead log in KB, for each message.

    ``calls`` are what the gateway asked of Telegram's server, by method, for each message.
    """

    per_s: float
    gateway_ms: float
    server_ms: float
    emulator_ms: float
    wal_kb: float
    before_mb: float
    after_mb: float
    calls: Mapping[str, float]


def measure(case: Case, load: Load, tree: Tree = HERE) -> Rates:
    """Let a fresh gateway answer."""
    with crowd() as people, place_for(case, people, tree, **load.settings) as place:
        return _measure(people, place.start().pid, place.state, load)


def measure_floor(load: Load) -> Rates:
    """Let the gateway of ``bench.telegram.floor`` answer the same."""
    with crowd() as people, floor_for(people) as (gateway, state):
        return _measure(people, gateway.pid, state, load)


def _measure(people: Crowd, gateway: int, state: Path, load: Load) -> Rates:
    # Opens connections, and returns when the channel has come up.
    people.write(chats=1, each=2)
    server = server_of(state)
    before_mb, written = proportional_mb(gateway), wal_bytes(state)
    mine, theirs, emulators = own_cpu_s(gateway), cpu_s(server), own_cpu_s(people.pid)
    answered = people.write(load.chats, load.each)
    ms = 1000 / load.messages
    return Rates(
        per_s=load.messages / answered.seconds,
        gateway_ms=ms * (own_cpu_s(gateway) - mine),
        server_ms=ms * (cpu_s(server) - theirs),
        emulator_ms=ms * (own_cpu_s(people.pid) - emulators),
        wal_kb=(wal_bytes(state) - written) / 1000 / load.messages,
        before_mb=before_mb,
        after_mb=proportional_mb(gateway),
        calls={name: count / load.messages for name, count in answered.calls.items()},
    )


def profile(case: Case, load: Load) -> Counter[Stack]:
    """What a fresh gateway works on while it answers."""
    with crowd() as people, place_for(case, people, **load.settings) as place:
        file = place.folder / "stacks.json"
        with sampled(place, file) as gateway:
            people.write(chats=1, each=2)
            gateway.send(BEGIN)
            people.write(load.chats, load.each)
            gateway.send(END)
            wait_for(file.exists, "the samples")
            return read(file)
