"""What rounds have shown, as a table."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.chaos.checker import Verdict, Wrong
from tests.chaos.rounds import Combination, Round
from tests.chaos.script import Trigger


@contextmanager
def replayed_by(command: str) -> Iterator[None]:
    """A round is played; an exception that ends it names the command that plays it again."""
    try:
        yield
    except Exception as error:
        error.add_note(f"play it again: {command}")
        raise


@dataclass(slots=True)
class Tally:
    """The rounds of one combination."""

    combination: Combination
    rounds: list[Round] = field(default_factory=list)
    verdict: Verdict = field(default_factory=Verdict)

    def add(self, played: Round) -> None:
        """Count a round in."""
        self.rounds.append(played)
        self.verdict += played.verdict

    def kills(self) -> Counter[Trigger]:
        """Kills at the moment that was meant, by moment."""
        return Counter(one.script.trigger for one in self.rounds if one.hit)

    def lines(self) -> Iterator[str]:
        """For people."""
        verdict, rounds = self.verdict, self.rounds
        kills = sum(one.kills for one in rounds)
        missed = sum(not one.hit for one in rounds)
        yield f"{self.combination}: {len(rounds)} rounds, {kills} kills"
        moments = ", ".join(f"{moment} {n}" for moment, n in sorted(self.kills().items()))
        yield f"  first kills by moment  {moments}" + (f", missed {missed}" if missed else "")
        yield (
            f"  messages               {verdict.asked} asked, {verdict.answered} answered, "
            f"{verdict.stopped} stopped"
        )
        for name, wrongs in _COLUMNS:
            yield f"  {name:22} {verdict.count(*wrongs)}"
        yield f"  {'others, recorded':22} {verdict.recorded}"
        yield f"  {'demoted by two crashes':22} {verdict.demoted}"
        yield f"  {'stops undone by kills':22} {verdict.undone}"
        yield f"  start to ready         {_spread([one.ready_s for one in rounds])}"
        late = [one.answered_s for one in rounds if one.answered_s is not None]
        yield f"  start to last answer   {_spread(late)}"

    def verdicts(self) -> list[Wrong]:
        """Every breach."""
        return [violation.wrong for violation in self.verdict.violations]


_COLUMNS: Sequence[tuple[str, Sequence[Wrong]]] = (
    ("lost", [Wrong.LOST]),
    ("out of order", [Wrong.OUT_OF_ORDER]),
    ("duplicates: streamed", [Wrong.DOUBLED_STREAM]),
    ("others, unrecorded", [Wrong.DOUBLED_UNRECORDED, Wrong.DOUBLED_DRAFT]),
    ("others, unmarked", [Wrong.DOUBLED_UNMARKED]),
    ("drafts left open", [Wrong.OPEN_DRAFT]),
    (
        "other breaches",
        [Wrong.STOPPED_UNASKED, Wrong.UNEXPECTED_END, Wrong.UNEXPECTED_TEXT, Wrong.LEFT_OVER],
    ),
)


def _spread(seconds: Sequence[float]) -> str:
    if not seconds:
        return "none"
    ordered = sorted(seconds)
    p99 = ordered[min(len(ordered) - 1, round(0.99 * (len(ordered) - 1)))]
    return f"p50 {statistics.median(ordered):.1f} s, p99 {p99:.1f} s"


def breaches(combination: Combination, played: Round, replay: str) -> Iterator[str]:
    """All that is needed to understand a round that went wrong; ``replay`` plays it again."""
    script = played.script
    yield f"ROUND {script.number} OF {combination} VIOLATED INVARIANTS; to play it again: {replay}"
    yield f"  killed {played.kills} times, at: {script.trigger} (hit: {played.hit})"
    yield from (f"  {violation}" for violation in played.verdict.violations)
    guilty = {violation.chat for violation in played.verdict.violations}
    for saying in script.sayings:
        if saying.user in guilty:
            yield f"    {saying.at_s:.2f} s: {saying.user} writes {saying.text!r}"
    for chat in played.chats:
        if chat.id in guilty:
            yield from (f"    {row}" for row in (*chat.taken, *chat.replies, *chat.seen))
