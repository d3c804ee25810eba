"""Tasks that people give to the agent, and moments of kills. Pure; a seed means one script."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

TASKS_PER_CHAT: Final = 3
FIRST_USER: Final = 20_000
_TASK: Final = re.compile(r"task (\d+)")


class Moment(StrEnum):
    """When a gateway is killed; except for ``ANY`` at once, or a few milliseconds later."""

    ANY = "random time"
    REQUEST = "request arrives"
    STREAM = "within a response"
    RESPONSE = "response ends"
    CALL = "tool starts"
    WORK = "within a tool"
    RESULT = "tool ends"
    POST = "first post of a draft"
    POSTED = "draft was posted"
    EDIT = "edit of a draft"
    EDITED = "draft was edited"


OF_CHANNEL: Final = frozenset([Moment.POST, Moment.POSTED, Moment.EDIT, Moment.EDITED])
"""Moments that the Bot API sees."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a model does for one message.

    Args:
        calls: The tools that each response but the last one calls.
        words: The number of words in each response.
        word_s: The time between two of them.
        tool_s: How long a tool takes.
        insists: The model makes a payment again whose outcome is unknown; once.
    """

    number: int
    calls: tuple[tuple[str, ...], ...]
    words: int
    word_s: float
    tool_s: float
    insists: bool

    @property
    def user(self) -> int:
        """Who gives it, in a chat of their own."""
        return FIRST_USER + self.number // TASKS_PER_CHAT

    @property
    def text(self) -> str:
        """The message."""
        return f"task {self.number}"


@dataclass(frozen=True, slots=True)
class Kill:
    """A kill.

    Args:
        after: The number of messages that are answered first.
        skip: How many such moments pass before.
        delay_s: From the moment to the kill.
        rest_s: The time before the moment is waited for.
    """

    moment: Moment
    after: int
    skip: int
    delay_s: float
    rest_s: float


def task(seed: str, number: int) -> Task:
    """The task with this number."""
    chance = random.Random(f"task/{seed}/{number}")
    kinds = (("pay",), ("pay",), ("put",), ("look",), ("pay", "look"), ("put", "pay"))
    calls = tuple(chance.choice(kinds) for _ in range(chance.randint(1, 4)))
    is_slow = chance.random() < 0.5
    return Task(
        number,
        calls,
        words=8,
        word_s=0.06 if is_slow else 0.005,
        tool_s=chance.choice((0.01, 0.05, 0.2)),
        insists=chance.random() < 0.3,
    )


def number_of(text: str) -> int:
    """The number of the task that a message is."""
    found = _TASK.search(text)
    if found is None:
        raise ValueError(text)
    return int(found[1])


def kill(seed: str, number: int) -> Kill:
    """The kill with this number: each moment comes as often as the others."""
    moments = list(Moment)
    order = random.Random(f"moments/{seed}/{number // len(moments)}").sample(moments, len(moments))
    chance = random.Random(f"kill/{seed}/{number}")
    moment = order[number % len(moments)]
    return Kill(
        moment,
        after=chance.randint(0, 4),
        skip=chance.randint(0, 4),
        delay_s=chance.choice((0.0, chance.uniform(0.0, 0.01), chance.uniform(0.0, 0.1))),
        rest_s=chance.uniform(0.0, 3.0) if moment is Moment.ANY else 0.0,
    )
