"""How many messages the server takes in a time."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from dataclasses import dataclass, field

from tests.botapi.rules import flood

_MINUTE_S = 60.0


@dataclass(slots=True)
class _Rate:
    """At most ``most`` in any ``seconds``."""

    most: int
    seconds: float
    taken: deque[float] = field(default_factory=deque)

    def wait_s(self, now: float, weight: int) -> float:
        """How long until ``weight`` more are taken; 0 if they are now."""
        while self.taken and self.taken[0] <= now - self.seconds:
            self.taken.popleft()
        over = len(self.taken) + weight - self.most
        if over <= 0 or not self.taken:
            return 0.0
        return self.taken[min(over, len(self.taken)) - 1] + self.seconds - now


@dataclass(slots=True)
class Limits:
    """Rates of messages; None: no limit. Edits count, an album counts for each file in it."""

    per_second: int | None = None
    """In one chat."""
    group_per_minute: int | None = None
    """In one group."""
    overall_per_second: int | None = None
    _rates: dict[object, _Rate] = field(default_factory=dict)
    refused: dict[int, int] = field(default_factory=lambda: defaultdict(int))

    def take(self, chat_id: int, weight: int, now: float) -> None:
        """Count a message. Raises ``Refusal``, 429, if it is one too many; then it counts not."""
        rates = self._for(chat_id)
        wait = max((rate.wait_s(now, weight) for rate in rates), default=0.0)
        if wait > 0:
            self.refused[chat_id] += 1
            raise flood(max(1, math.ceil(wait)))
        for rate in rates:
            rate.taken.extend([now] * weight)

    def _for(self, chat_id: int) -> list[_Rate]:
        wanted = [(chat_id, self.per_second, 1.0), ("all", self.overall_per_second, 1.0)]
        if chat_id < 0:
            wanted.append(((chat_id, "minute"), self.group_per_minute, _MINUTE_S))
        return [
            self._rates.setdefault(key, _Rate(most, seconds))
            for key, most, seconds in wanted
            if most is not None
        ]
