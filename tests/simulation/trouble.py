"""What goes wrong at a call of a port: by chance, which the seed decides, or as a plan wants it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from random import Random
from typing import TypeVar

from tests.simulation.loop import ROOT_CONTEXT, Process

T = TypeVar("T")

LONGEST_S = 14.0
"""The longest that a call takes: longer than a lease, and what comes after it."""

FOR_EVER: float = inf

MILD, ROUGH, WILD = 0.3, 1.0, 3.0


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of one call.

    Args:
        before_s: How long it takes until it has its effect.
        sent: It has left: it takes effect even if its caller is frozen or killed meanwhile.
        refused: It fails without any effect.
        after_s: How long its answer takes.
        unheard: The answer is lost.
        steps: How often others go on before its effect, and after it, at the same instant.
        halt_s: How long its process stands still; ``FOR_EVER`` if it is killed.
        halt_after: Whether it does so after the effect, else before it.
        cut_s: How long its process reaches nobody, from its answer on.
    """

    before_s: float = 0.0
    sent: bool = False
    refused: bool = False
    after_s: float = 0.0
    unheard: bool = False
    steps: tuple[int, int] = (0, 0)
    halt_s: float = 0.0
    halt_after: bool = False
    cut_s: float = 0.0

    def __str__(self) -> str:
        words = {
            f"after {self.before_s:.2f} s": self.before_s > 0,
            "sent": self.sent,
            "refused": self.refused,
            f"answered {self.after_s:.2f} s later": self.after_s > 0,
            "unheard": self.unheard,
            f"others first: {self.steps[0]}, {self.steps[1]}": self.steps != (0, 0),
            f"halt {'after' if self.halt_after else 'before'} it": self.halt_s > 0,
            f"then cut off for {self.cut_s:.2f} s": self.cut_s > 0,
        }
        return ", ".join(word for word, so in words.items() if so)


@dataclass(frozen=True, slots=True)
class Forced:
    """The fate of one call, whatever the dice say.

    Args:
        gateway: Whose call; "g1" is the first that is started, "" is any.
        call: How it begins, such as "begin_run" or "chat send ann"; "" is any.
        number: Which of these calls, from 1; none counts before the trouble begins.
    """

    gateway: str
    call: str
    number: int
    fate: Fate


_WELL = Fate()
_BUSY = tuple(Fate(steps=(a, b)) for a, b in ((0, 0), (1, 0), (0, 1), (1, 1), (4, 0), (0, 4)))
"""What becomes of a call with which nothing is wrong, while others work, too."""


@dataclass(slots=True)
class Trouble:
    """Decides. ``weight`` is how often something goes wrong by chance; 0 is never.

    Args:
        halt: Lets a process stand still for so many seconds, or for ever.
        on: Whether anything goes wrong now.
        away_until: Until then the database cannot be reached by anybody.
        cut_until: Until then a process reaches neither database nor chats.
    """

    chance: Random
    weight: float
    forced: Sequence[Forced]
    halt: Callable[[Process, float], None]
    on: bool = False
    trace: list[tuple[object, ...]] = field(default_factory=list)
    away_until: float = 0.0
    cut_until: dict[Process, float] = field(default_factory=dict)
    arrived_at: float = 0.0
    """When all that has left so far, whoever sent it, has taken effect."""
    _counts: dict[Forced, int] = field(default_factory=dict)

    def end(self) -> None:
        """Let everything go well from now on."""
        self.on = False
        self.away_until = 0.0
        self.cut_until.clear()

    def note(self, *words: object) -> None:
        """Something has happened."""
        self.trace.append((asyncio.get_running_loop().time(), *words))

    def hears(self) -> bool:
        """Whether a notice arrives."""
        return not self.on or self.chance.random() > 0.2 * self.weight

    async def call(
        self, process: Process, call: str, effect: Callable[[], T], lost: Callable[[str], Exception]
    ) -> T:
        """Let a call of the store or of a channel have its fate.

        Raises what ``lost`` makes of the reason, and what ``effect`` raises.
        """
        fate = self._fate(process, call)
        self.note(process.name, call, fate)
        if fate is _WELL:
            return effect()
        if fate.sent:
            at = asyncio.get_running_loop().time() + fate.before_s
            self.arrived_at = max(self.arrived_at, at)
        await _let_others(fate.steps[0])
        if fate.halt_s and not fate.halt_after:
            await self._stand_still(process, fate)
        result = await _carried_out(fate, effect, lost)
        if fate.halt_s and fate.halt_after:
            await self._stand_still(process, fate)
        await _let_others(fate.steps[1])
        if fate.cut_s:
            self.note(process.name, "is cut off")
            self.cut_until[process] = asyncio.get_running_loop().time() + fate.cut_s
        if fate.unheard:
            raise lost("unheard")
        return result

    async def _stand_still(self, process: Process, fate: Fate) -> None:
        self.halt(process, fate.halt_s)
        await asyncio.sleep(0)  # comes back when the process goes on

    def _fate(self, process: Process, call: str) -> Fate:
        if not self.on:
            return _WELL if self.weight == 0 else self.chance.choice(_BUSY)
        for one in self.forced:
            if one.gateway in ("", process.name) and call.startswith(one.call):
                self._counts[one] = count = self._counts.get(one, 0) + 1
                if count == one.number:
                    return one.fate
        now = asyncio.get_running_loop().time()
        is_away = now < self.away_until and not call.startswith("chat")
        if is_away or now < self.cut_until.get(process, 0.0):
            return Fate(before_s=self.chance.choice((0.0, 0.1, 1.0)), refused=True)
        return _WELL if self.weight == 0 else self._by_chance()

    def _by_chance(self) -> Fate:
        chance = self.chance
        dice = chance.random() / self.weight
        if dice < 0.02:
            return Fate(refused=True)
        if dice < 0.04:
            return Fate(unheard=True)
        if dice < 0.05:
            return Fate(self._delay_s(), sent=True, unheard=chance.random() < 0.5)
        if dice < 0.09:
            return Fate(self._delay_s(), sent=chance.random() < 0.5, after_s=self._delay_s())
        return chance.choice(_BUSY)

    def _delay_s(self) -> float:
        dice = self.chance.random()
        if dice < 0.5:
            return 0.0
        return self.chance.uniform(0, 0.5 if dice < 0.9 else LONGEST_S)


async def _let_others(steps: int) -> None:
    for _ in range(steps):
        await asyncio.sleep(0)


async def _carried_out(fate: Fate, effect: Callable[[], T], lost: Callable[[str], Exception]) -> T:
    if fate.sent:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        loop.call_later(fate.before_s, _take_effect, effect, done, context=ROOT_CONTEXT)
        result = await done
    else:
        if fate.before_s:
            await asyncio.sleep(fate.before_s)
        if fate.refused:
            raise lost("refused")
        result = effect()
    if fate.after_s:
        await asyncio.sleep(fate.after_s)
    return result


def _take_effect(effect: Callable[[], T], done: asyncio.Future[T]) -> None:
    try:
        result = effect()
    except Exception as error:
        if not done.done():
            done.set_exception(error)
    else:
        if not done.done():
            done.set_result(result)


def at_once(work: Awaitable[T]) -> T:
    """The result of something that does not really wait."""
    steps: Iterator[object] = work.__await__()
    try:
        next(steps)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("it waits")
