"""What rounds have shown, for people."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence

from tests.chaos.cluster.rounds import Round
from tests.chaos.cluster.script import Kind

_MOST_SHOWN = 40


def summary(played: Round) -> Iterator[str]:
    """A few lines about one round."""
    counts = ", ".join(f"{count} {what}" for what, count in played.counts.items())
    way = "webhooks" if played.script.webhooks else "polling"
    yield f"round {played.script.number}: {way}, {played.seconds:.0f} s; {counts}"
    yield from (f"  {fault}" for fault in played.script.faults)


def breaches(played: Round, replay: str) -> Iterator[str]:
    """What was wrong with a round, and how to play it again."""
    yield f"ROUND {played.script.number} VIOLATED INVARIANTS; to play it again: {replay}"
    yield from (f"  {line}" for line in played.breaches[:_MOST_SHOWN])
    if len(played.breaches) > _MOST_SHOWN:
        yield f"  and {len(played.breaches) - _MOST_SHOWN} more"


def lines(rounds: Sequence[Round]) -> Iterator[str]:
    """All rounds together."""
    totals: Counter[str] = Counter()
    for played in rounds:
        totals.update(played.counts)
    faults = Counter(fault.kind for played in rounds for fault in played.script.faults)
    bad = sum(bool(played.breaches) for played in rounds)
    yield f"{len(rounds)} rounds, {bad} violated invariants"
    yield "  faults                 " + ", ".join(
        f"{kind} {n}" for kind, n in sorted(faults.items())
    )
    yield from (f"  {what:22} {count}" for what, count in totals.items())
    for kind, words in ((Kind.KILL, "kill -9"), (Kind.END, "SIGTERM")):
        moved = [s for played in rounds for s in played.moved.get(kind, ())]
        yield f"  taken over, {words:10} {_spread(moved)}"
    strays = [played.stray_s for played in rounds]
    longest_s = max(strays, default=0)
    yield f"  worked on in vain      {sum(strays):.1f} s, at most {longest_s:.1f} s a round"


def _spread(seconds: Sequence[float]) -> str:
    if not seconds:
        return "nothing waited"
    ordered = sorted(seconds)
    p99 = ordered[round(0.99 * (len(ordered) - 1))]
    median = statistics.median(ordered)
    return f"p50 {median:.1f} s, p99 {p99:.1f} s, of {len(ordered)} conversations"
