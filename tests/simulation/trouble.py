"""What goes wrong at a call of a port: by chance, which the seed decides."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from tests.simulation.loop import WORLD, Process

T = TypeVar("T")

LONGEST_S = 14.0
"""The longest that a call takes: longer than a lease, and what comes after it."""

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
    """

    before_s: float = 0.0
    sent: bool = False
    refused: bool = False
    after_s: float = 0.0
    unheard: bool = False

    def __str__(self) -> str:
        words = {
            f"after {self.before_s:.2f} s": self.before_s > 0,
            "sent": self.sent,
            "refused": self.refused,
            f"answered {self.after_s:.2f} s later": self.after_s > 0,
            "unheard": self.unheard,
        }
        return ", ".join(word for word, so in words.items() if so)


_WELL = Fate()


@dataclass(slots=True)
class Trouble:
    """Decides. ``weight`` is how often something goes wrong; 0 is never.

    Args:
        away_until: Until then the database cannot be reached by anybody.
        cut_until: Until then a process reaches neither database nor chats.
    """

    chance: Random
    weight: float
    trace: list[tuple[object, ...]] = field(default_factory=list)
    away_until: float = 0.0
    cut_until: dict[Process, float] = field(default_factory=dict)

    @property
    def calm(self) -> bool:
        """Whether nothing goes wrong any more."""
        return self.weight == 0

    def end(self) -> None:
        """Let everything go well from now on."""
        self.weight = 0.0
        self.away_until = 0.0
        self.cut_until.clear()

    def note(self, *words: object) -> None:
        """Something has happened."""
        self.trace.append((asyncio.get_running_loop().time(), *words))

    def fate(self, process: Process, call: str) -> Fate:
        """Of a call of the store or of a channel."""
        found = self._fate(process, database=not call.startswith("chat"))
        self.note(process.name, call, found)
        return found

    def hears(self) -> bool:
        """Whether a notice arrives."""
        return self.calm or self.chance.random() > 0.2 * self.weight

    def _fate(self, process: Process, *, database: bool) -> Fate:
        if self.calm:
            return _WELL
        now = asyncio.get_running_loop().time()
        chance = self.chance
        if now < self.cut_until.get(process, 0.0) or (database and now < self.away_until):
            return Fate(before_s=chance.choice((0.0, 0.1, 1.0)), refused=True)
        dice = chance.random() / self.weight
        if dice < 0.02:
            return Fate(refused=True)
        if dice < 0.04:
            return Fate(unheard=True)
        if dice < 0.05:
            return Fate(self._delay_s(), sent=True, unheard=chance.random() < 0.5)
        if dice < 0.09:
            return Fate(self._delay_s(), sent=chance.random() < 0.5, after_s=self._delay_s())
        return _WELL

    def _delay_s(self) -> float:
        dice = self.chance.random()
        if dice < 0.5:
            return 0.0
        return self.chance.uniform(0, 0.5 if dice < 0.9 else LONGEST_S)


async def carried_out(fate: Fate, effect: Callable[[], T], lost: Callable[[str], Exception]) -> T:
    """Let an effect come as its fate wants it. Raises what ``lost`` makes of the reason."""
    if fate is _WELL:
        return effect()
    loop = asyncio.get_running_loop()
    if fate.sent:
        done: asyncio.Future[T] = loop.create_future()
        loop.call_later(fate.before_s, _take_effect, effect, done, context=WORLD)
        result = await done
    else:
        if fate.before_s:
            await asyncio.sleep(fate.before_s)
        if fate.refused:
            raise lost("refused")
        result = effect()
    if fate.after_s:
        await asyncio.sleep(fate.after_s)
    if fate.unheard:
        raise lost("unheard")
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
