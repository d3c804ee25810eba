"""What kills have shown, as a table."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from goclaw_py.agents.models.replay import UNKNOWN_RESULT
from tests.chaos.breach import grouped
from tests.chaos.kills.checker import Breach, Facts, Rule
from tests.chaos.kills.history import Asked
from tests.chaos.kills.script import Moment
from tests.support.again import SENT_AGAIN

_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class Happened:
    """A kill as it was.

    Args:
        hit: Whether the moment had come.
        about: The id of the response or call that it was about, "" if it was about none.
    """

    moment: Moment
    hit: bool
    node: int
    about: str


@dataclass(frozen=True, slots=True)
class Played:
    """What came of a play; ``seconds`` is how long the kills took."""

    nodes: int
    breaches: Sequence[Breach]
    facts: Facts
    kills: Sequence[Happened]
    seconds: float

    def lines(self) -> Iterator[str]:
        """For people."""
        rate = 60 * len(self.kills) / self.seconds
        yield f"{self.nodes} node(s): {len(self.kills)} kills, {rate:.0f} a minute"
        yield from self._moments()
        yield from self._work()
        found = Counter(breach.rule for breach in self.breaches)
        for rule in Rule:
            yield f"  {rule.value:38} {found[rule]}"
        yield from (f"  VIOLATED: {breach}" for breach in self.breaches[:_SHOWN])

    def _moments(self) -> Iterator[str]:
        """Kills by moment; of those at the end of a step, how many were after its commit."""
        stored = self.facts.stored
        after = {
            Moment.RESPONSE: frozenset(stored.responses),
            Moment.RESULT: frozenset(call for call in stored.results),
        }
        for moment in Moment:
            hits = [kill for kill in self.kills if kill.moment is moment and kill.hit]
            missed = sum(kill.moment is moment and not kill.hit for kill in self.kills)
            line = f"  killed: {moment.value:30} {len(hits)}"
            if moment in after:
                line += f", of these {sum(k.about in after[moment] for k in hits)} after the commit"
            yield line + (f", missed {missed}" if missed else "")

    def _work(self) -> Iterator[str]:
        facts, history = self.facts, self.facts.history
        outcomes = Counter(outcome for outcome, _ in facts.outcomes.values())
        ended = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
        continued = sum(attempts > 1 for _, attempts in facts.outcomes.values())
        yield f"  messages: {len(history.tasks)}: {ended}; {continued} ran more than once"
        copies = sum(text.endswith(SENT_AGAIN) for seen in facts.seen.values() for text in seen)
        yield f"  messages that say that they were sent again: {copies}"
        again = [one for one in history.requests if one.attempt > 1]
        lost = unstored(facts)
        cut = len(again) - len(lost)
        yield f"  model requests: {len(history.requests)}"
        yield f"  repeated, because cut before the end: {cut}"
        yield f"  repeated, because delivered and not stored: {len(lost)}"
        yield f"    from their end to the kill: {spread(lost)}"
        yield f"    from the end of others to their first call: {spread(waits(facts))}"
        pays = [start for start in history.starts if start.tool == "pay"]
        others = len(history.starts) - len(pays)
        repeated = sum(start.count > 1 for start in history.starts)
        unknown = [call for call, told in history.told.items() if UNKNOWN_RESULT in told]
        asked = sum(call.purpose.endswith("again") for call in history.calls.values())
        yield f"  payments: {len(pays)}"
        yield f"  told to be unknown: {len(unknown)}; then asked for again {asked}"
        yield f"  other calls: {others}, of these repeated because they may be {repeated}"


def waits(facts: Facts) -> list[float]:
    """Times between the end of a response and its first call, if no kill came between."""
    history = facts.history
    starts: dict[str, float] = {}
    for start in history.starts:
        starts.setdefault(start.call, start.at)
    found = []
    for one in history.requests:
        begun = [starts[call.id] for call in one.calls if call.id in starts]
        ended = one.delivered_at
        if begun and ended is not None:
            is_cut = any(ended <= at <= min(begun) for at in history.killed_at[one.node])
            found += [] if is_cut else [max(0.0, min(begun) - ended)]
    return found


def spread(seconds: Sequence[float]) -> str:
    """Median, 99th percentile and maximum."""
    if not seconds:
        return "none"
    ordered = sorted(seconds)
    places = (len(ordered) // 2, 99 * len(ordered) // 100, len(ordered) - 1)
    p50, p99, most = (1000 * ordered[place] for place in places)
    return f"p50 {p50:.0f} ms, p99 {p99:.0f} ms, at most {most:.0f} ms"


def unstored(facts: Facts) -> list[float]:
    """Times between the end of a response that was requested again and the kill after it."""
    found = []
    stored = frozenset(facts.stored.responses)
    places: dict[tuple[int, int], list[Asked]] = grouped(
        facts.history.requests, lambda one: (one.task.number, one.place)
    )
    for asked in places.values():
        for one in asked[:-1]:
            if one.delivered_at is not None and one.id not in stored:
                kills = facts.history.killed_at[one.node]
                found.append(min(at for at in kills if at >= one.delivered_at) - one.delivered_at)
    return found


def progress(number: int, kills: int, began: float) -> None:
    """Tell how far a play has come."""
    done = number + 1
    if done % 20 == 0:
        rate = 60 * done / (time.monotonic() - began)
        print(f"  {done} of {kills} kills, {rate:.0f} a minute", file=sys.stderr, flush=True)
