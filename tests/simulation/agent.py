"""An agent that notes when it worked for whom."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random

from goclaw_py.core.errors import AgentError
from goclaw_py.core.outcomes import Trigger
from goclaw_py.runs.agent_loop import AgentResult, Emit, RunRequest
from tests.chaos.facts import Worked
from tests.simulation.loop import Process
from tests.simulation.plan import Work

ALERT = "The disk is full."
PROVIDER_DOWN = "The provider of my model is down."
_IGNORES = 0.1
_IGNORES_FOR_LONG = 0.015
_FAILS = 0.04


@dataclass(slots=True)
class Journal:
    """What all agents of a scenario have noted, by run.

    Args:
        given: What they do for a prompt.
        provider_down_until: Until then the provider of their model does not respond.
    """

    seed: int
    given: Mapping[str, Work] = field(default_factory=dict)
    container: dict[str, tuple[Process, Worked]] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    reports: int = 0
    provider_down_until: float = 0.0

    def is_provider_down(self) -> bool:
        """Return whether the provider of their model is down now."""
        return asyncio.get_running_loop().time() < self.provider_down_until

    def begin(self, process: Process, request: RunRequest) -> None:
        """It works from now on."""
        now = asyncio.get_running_loop().time()
        work = Worked(request.run_id, request.session, now, None, prompt=request.prompt)
        self.container[request.run_id] = process, work

    def told(self, run: str) -> None:
        """It is to end."""
        process, work = self.container[run]
        if work.told is None:
            now = asyncio.get_running_loop().time()
            self.container[run] = process, replace(work, told=now)

    def stood_still(self, process: Process) -> None:
        """Whatever works there stands still."""
        for run, (where, work) in self.container.items():
            if where is process and work.ended is None:
                self.container[run] = process, replace(work, stood_still=True)

    def end(self, run: str) -> None:
        """It works no more."""
        process, work = self.container[run]
        now = asyncio.get_running_loop().time()
        self.container[run] = process, replace(work, ended=now)

    def killed(self, process: Process) -> None:
        """Whatever works there works no more."""
        for run, (where, work) in self.container.items():
            if where is process and work.ended is None:
                self.end(run)


@dataclass(slots=True)
class NotingAgent:
    """Implements ``AgentLoop``: what it does for a prompt depends on the seed and the try."""

    journal: Journal
    process: Process

    async def run(self, request: RunRequest, emit: Emit) -> AgentResult:
        """Take some time, then echo."""
        del emit
        journal, prompt = self.journal, request.prompt
        if request.trigger is Trigger.HEARTBEAT:
            prompt = "heartbeat_run"
        journal.asked[prompt] += 1
        chance = Random(f"{journal.seed} {prompt} {journal.asked[prompt]}")
        work = journal.given.get(prompt) or _by_chance(chance)
        journal.begin(self.process, request)
        try:
            was_down = journal.is_provider_down()
            await _do(work, partial(journal.told, request.run_id))
        finally:
            journal.end(request.run_id)
        if was_down or journal.is_provider_down():
            raise AgentError(PROVIDER_DOWN, "503", retryable=True)
        if work.fails:
            raise AgentError("That went wrong.", "by chance")
        return AgentResult(self._reply(request, chance))

    def _reply(self, request: RunRequest, chance: Random) -> str:
        match request.trigger:
            case Trigger.HEARTBEAT:
                return ALERT if chance.random() < 0.6 else "HEARTBEAT_OK"
            case Trigger.CHAT:
                return f"re: {request.prompt}"
            case _:
                self.journal.reports += 1
                return f"report {self.journal.reports}"

    async def warm_up(self) -> None:
        """Nothing is slow here."""

    async def close(self) -> None:
        """Nothing is open."""


def _by_chance(chance: Random) -> Work:
    dice, stays = chance.random(), chance.random()
    takes_s = 0.0 if dice < 0.2 else chance.uniform(0, 6 if dice < 0.9 else 15)
    stays_s = 12.0 if stays < _IGNORES_FOR_LONG else 3.0 if stays < _IGNORES else 0.0
    return Work(takes_s, stays_s, fails=chance.random() < _FAILS)


async def _do(work: Work, told: Callable[[], None]) -> None:
    try:
        await asyncio.sleep(work.takes_s)
    except asyncio.CancelledError:
        told()
        await _stay(work.stays_s)
        raise


async def _stay(seconds: float) -> None:
    """However often somebody cancels."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while (left := until - loop.time()) > 0:
        try:
            await asyncio.sleep(left)
        except asyncio.CancelledError:
            if left == until - loop.time():  # nobody lets time pass any more
                raise
