"""How long the work of a node that is gone waits for another one."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from bench.cluster.agent import HOLD
from bench.cluster.nodes import Stage, stage
from tests.support.process import Program

_FIRST: Final = 10_001
_users = count(_FIRST)

DRAIN_AT_ONCE: Final = {"GOCLAW_SHUTDOWN__WAIT": "0s"}


@dataclass(slots=True)
class Waits:
    """Seconds from the signal until another node began, of each session.

    Args:
        running: What the node was working on.
        waiting: What had not begun there.
        new: What people wrote after the signal.
    """

    running: list[float] = field(default_factory=list)
    waiting: list[float] = field(default_factory=list)
    new: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Load:
    """How much a node has in hand when it goes: so many sessions, half of them at work.

    In those another message waits, in the others the only one: its lane is full.
    """

    sessions: int = 8


def killed(kills: int, load: Load = Load()) -> Waits:
    """``kill -9`` the node that owns the sessions, again and again; the other one takes over."""
    return _gone(signal.SIGKILL, kills, load)


def ended(ends: int, load: Load = Load()) -> Waits:
    """The same by SIGTERM, where a process lets nothing go on (``shutdown.wait`` 0)."""
    return _gone(signal.SIGTERM, ends, load)


def _gone(number: signal.Signals, times: int, load: Load) -> Waits:
    found = Waits()
    places = max(load.sessions // 2, 1)
    settings = DRAIN_AT_ONCE | {"GOCLAW_LANE_MAIN": str(places)}
    with stage(2, **settings) as here:
        programs = [here.start(0), here.start(1)]
        for turn in range(times):
            # The one that lives longer has the bot; the other one has just started.
            first, second = turn % 2, (turn + 1) % 2
            _round(here, programs[first], programs[second], number, load, found)
            programs[first].wait()
            programs[first] = here.start(first)
    return found


def _round(
    here: Stage,
    goes: Program,
    stays: Program,
    number: signal.Signals,
    load: Load,
    found: Waits,
) -> None:
    users = [next(_users) for _ in range(load.sessions)]
    places = max(load.sessions // 2, 1)
    working = [f"{HOLD} {user}" for user in users[:places]]
    behind = [f"next {user}" for user in users[:places]]
    waiting = [f"wait {user}" for user in users[places:]]
    for user, prompt in zip(users, working, strict=False):
        here.api.say(user, prompt)
    here.began(working, by=goes.pid)
    for user, prompt in zip(users, [*behind, *waiting], strict=True):
        here.api.say(user, prompt)
    here.api.wait_confirmed()
    begin = time.monotonic()
    goes.send(number)
    newcomer = next(_users)
    here.api.say(newcomer, f"new {newcomer}")
    for prompts, waits in (
        (working, found.running),
        ([*behind, *waiting], found.waiting),
        ([f"new {newcomer}"], found.new),
    ):
        began = here.began(prompts, by=stays.pid)
        waits += [at - begin for at in began.values()]
