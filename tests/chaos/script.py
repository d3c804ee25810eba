"""What happens in a round: who writes what and when the gateway is killed. Pure."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum

from tests.chaos.agent import Task


class Trigger(StrEnum):
    """The moment in the life of the victim's first message at which the gateway is killed."""

    RECEIVED = "received"
    """The update is on its way to the gateway."""
    UNCONFIRMED = "unconfirmed"
    """It is committed, and the channel does not know that yet."""
    COMMITTED = "committed"
    BEGUN = "begun"
    """Its run has begun."""
    DRAFT_NOTED = "draft noted"
    """The database knows that a draft is about to be posted."""
    POST_BEFORE = "post leaves"
    """The draft's request is at the server and has had no effect."""
    POST_AFTER = "post answered"
    """It has had its effect, and the answer is on its way."""
    EDIT_BEFORE = "edit leaves"
    EDIT_AFTER = "edit answered"
    FINAL_BEFORE = "final edit leaves"
    FINAL_AFTER = "final edit answered"
    SEND_BEFORE = "send leaves"
    """The same for an answer that is so short that it has no draft."""
    SEND_AFTER = "send answered"
    ENDED = "ended"
    """The run's end is stored, with its reply."""
    SENT = "sent"
    """The reply is recorded as sent."""
    STOPPED = "stopped"
    """A ``/stop`` is on its way to the gateway."""
    SETTLING = "stop settles"
    """The ``/stop`` is stored, and the stopped run waits for a request that is under way."""
    CLOSING = "closing"
    """The end of the stopped run is stored, and its draft is not closed yet."""
    RANDOM = "random"


ABOUT_SENDS = frozenset(
    [Trigger.POST_BEFORE, Trigger.POST_AFTER, Trigger.SEND_BEFORE, Trigger.SEND_AFTER]
)
"""A ``sendMessage`` is the moment."""
ABOUT_EDITS = frozenset(
    [Trigger.EDIT_BEFORE, Trigger.EDIT_AFTER, Trigger.FINAL_BEFORE, Trigger.FINAL_AFTER]
)
"""An ``editMessageText`` is the moment."""
ABOUT_STOPS = frozenset([Trigger.STOPPED, Trigger.SETTLING, Trigger.CLOSING])
"""The victim writes ``/stop``."""
BEFORE = frozenset(
    [Trigger.POST_BEFORE, Trigger.EDIT_BEFORE, Trigger.FINAL_BEFORE, Trigger.SEND_BEFORE]
)
"""The request is held up before it has its effect."""

HOLD_S = 0.4
"""How long the emulator holds a request up, so that the moment is long enough to be hit."""

_STREAMS_S = {
    # The first edit comes a second after the post, which comes 0.8 s after the first word.
    Trigger.EDIT_BEFORE: (2.2, 2.6),
    Trigger.EDIT_AFTER: (2.2, 2.6),
    # The first edit is the last.
    Trigger.FINAL_BEFORE: (1.1, 1.5),
    Trigger.FINAL_AFTER: (1.1, 1.5),
    Trigger.STOPPED: (2.0, 2.5),
    Trigger.SETTLING: (3.0, 3.4),
    Trigger.CLOSING: (2.4, 2.8),
}
_STOPS_S = {
    # The first edit is under way.
    Trigger.SETTLING: (2.0, 2.4),
    # The draft is there.
    Trigger.CLOSING: (1.3, 1.8),
}
_ANY_STREAM_S = (1.1, 2.5)
_STREAMED = frozenset([*_STREAMS_S, Trigger.DRAFT_NOTED, Trigger.POST_BEFORE, Trigger.POST_AFTER])
_SHORT = frozenset([Trigger.SEND_BEFORE, Trigger.SEND_AFTER])
_USERS_APART = 10
FIRST_USER = 10_000


@dataclass(frozen=True, slots=True)
class Saying:
    """What somebody writes to the bot, and when; without a task it is a ``/stop``."""

    at_s: float
    user: int
    task: Task | None

    @property
    def text(self) -> str:
        """What is written."""
        return "/stop" if self.task is None else self.task.prompt


@dataclass(frozen=True, slots=True)
class Script:
    """One round.

    Args:
        kill_after_s: From the trigger to the kill.
        kill_again: When the second gateway is killed, as a multiple of the time that it takes to
            be ready; None: it is not.
        sayings: In the order of their times.
    """

    number: int
    victim: int
    trigger: Trigger
    kill_after_s: float
    kill_again: float | None
    sayings: tuple[Saying, ...]

    @property
    def users(self) -> list[int]:
        """Everybody who writes."""
        return sorted({saying.user for saying in self.sayings})


@dataclass(frozen=True, slots=True)
class Size:
    """How much happens in a round: at most so many people, messages of each, and second kills."""

    people: int = 4
    messages: int = 4
    second_kills: float = 0.25
    longest_s: float = 2.5


def script(seed: str, number: int, trigger: Trigger, size: Size) -> Script:
    """The round that a seed means. Its people write in no other round."""
    chance = random.Random(f"{seed}/{number}")
    first = FIRST_USER + number * _USERS_APART
    users = [first + at for at in range(chance.randint(2, size.people))]
    canceller = first if trigger in ABOUT_STOPS else None
    if canceller is None and chance.random() < 0.2:
        canceller = users[-1]
    sayings: list[Saying] = []
    for user in users:
        at_s = 0.0 if user == first else chance.uniform(0, 1.2)
        for place in range(chance.randint(1, size.messages)):
            is_victim = user == first and place == 0
            task = _task(chance, first * 10 + len(sayings), trigger if is_victim else None, size)
            sayings.append(Saying(at_s, user, task))
            at_s += chance.choice([0.0, 0.0, chance.uniform(0, 0.6)])
            if user == canceller and place == 0:
                from_s, to_s = _STOPS_S.get(trigger, (0.3, 1.8))
                sayings.append(Saying(at_s + chance.uniform(from_s, to_s), user, None))
    sayings.sort(key=lambda saying: saying.at_s)
    again = chance.uniform(0.4, 2.4) if chance.random() < size.second_kills else None
    return Script(number, first, trigger, _kill_after(chance, trigger), again, tuple(sayings))


def _task(chance: random.Random, number: int, trigger: Trigger | None, size: Size) -> Task:
    streamed = trigger in _STREAMED or (trigger not in _SHORT and chance.random() < 0.5)
    if not streamed:
        return Task(number, chance.randint(1, 3), chance.choice([0, 20, 60]))
    shortest_s, longest_s = _ANY_STREAM_S
    if trigger is not None:
        shortest_s, longest_s = _STREAMS_S.get(trigger, _ANY_STREAM_S)
    else:
        longest_s = min(longest_s, size.longest_s)
    every_ms = chance.choice([40, 90, 150])
    seconds = chance.uniform(shortest_s, longest_s)
    return Task(number, round(seconds * 1000 / every_ms), every_ms)


def _kill_after(chance: random.Random, trigger: Trigger) -> float:
    if trigger is Trigger.RANDOM:
        return chance.uniform(0, 3.5)
    if trigger in ABOUT_SENDS | ABOUT_EDITS:
        return chance.uniform(0, HOLD_S - 0.1)
    if trigger in (Trigger.RECEIVED, Trigger.STOPPED):
        return chance.uniform(0, 0.04)
    return chance.choice([0.0, chance.uniform(0, 0.03)])


def triggers(seed: str, count: int) -> list[Trigger]:
    """So many moments in an order of chance, each about equally often."""
    chance = random.Random(seed)
    found: list[Trigger] = []
    while len(found) < count:
        every = list(Trigger)
        chance.shuffle(every)
        found += every
    return found[:count]
