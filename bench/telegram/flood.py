"""One user writes very much in one go, and somebody else wants an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from bench.telegram.agent import HOLD, answer_to
from bench.telegram.crowd import Flooded, crowd
from bench.telegram.gateways import Case, place_for
from bench.telegram.processes import proportional_mb

CAPACITY = 10
"""How many messages may wait, by default."""
_APART_S = 10.0
_EARLY_S = 0.5
"""Times are taken where notices arrive, so two of them may look a little nearer than they were."""


@dataclass(frozen=True, slots=True)
class Flood:
    """What one measurement found. The growth of memory is the largest that was seen."""

    confirmed_s: float
    other_s: float
    growth_mb: float
    notices: int


def measure(case: Case, messages: int) -> Flood:
    """Flood a fresh gateway; its lanes and queues have their default sizes.

    The first message runs until all is over. Raises ``RuntimeError`` if the queue rule was broken:
    the last messages are answered, in their order, and nothing else is but the first; notices tell
    of all the others, ten seconds apart.
    """
    with crowd() as people, place_for(case, people) as place:
        gateway = place.start()
        people.write(chats=1, each=2)
        before_mb = proportional_mb(gateway.pid)
        flooded = people.flood(messages, dropped=messages - 1 - CAPACITY)
        after_mb = proportional_mb(gateway.pid)
        check(flooded, people.answers(1 + CAPACITY), messages)
        after_mb = max(after_mb, proportional_mb(gateway.pid))
    return Flood(
        flooded.confirmed_s, flooded.other_s, after_mb - before_mb, len(flooded.notices_at_s)
    )


def check(flooded: Flooded, answers: Sequence[str], messages: int) -> None:
    """Raise ``RuntimeError`` if the queue rule was broken."""
    kept = [0, *range(messages - CAPACITY, messages)]
    if list(answers) != [answer_to(f"{HOLD} {number}") for number in kept]:
        raise RuntimeError(f"not the first and the last messages were answered, but {answers}")
    gaps = [later - earlier for earlier, later in pairwise(flooded.notices_at_s)]
    if min(gaps, default=_APART_S) < _APART_S - _EARLY_S:
        raise RuntimeError(f"notices came {min(gaps):.1f} s apart")
