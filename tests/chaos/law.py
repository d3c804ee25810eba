"""What must be so after a run of the whole system, whatever happened to it. Pure.

The law (SPEC IO-1, 2, 4, 5, CRON-5, HB-7, 12, QUEUE-2, NODE-1): what was accepted has one outcome
and the answer that belongs to it; a session keeps its order and never works twice at a time; each
time of a job and each alert comes once; nobody sees anything twice, unless its row says that this
may be, or anything that nobody said; nothing is left in anybody's hands.

``judge`` looks closer at one gateway and its drafts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from math import inf
from typing import Final, TypeVar

from goclaw_py.core import wording
from tests.chaos.facts import Facts, Message, Post, Run, Seen, names

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

DEMOTED_AFTER: Final = 3
"""A message in its third attempt has crashed twice; others of its session go first (SPEC IO-2)."""

RESTING: Final = frozenset({"session", "lease", "node", "call"})
"""What a node that lives may keep although nothing is to be done."""

TO_STOP: Final = (wording.NOTHING_RUNNING, wording.ALREADY_STOPPING, "Stopped", "Dropped")
"""How answers to ``/stop`` begin, which go past the outbox."""

_ALERT_S: Final = 24 * 3600.0
_UNSENT: Final = frozenset({"pending", "sending"})
_GONE: Final = frozenset({"lost", "abandoned"})
"""Ends of runs that may still be at work: nobody hears of it any more."""


class Rule(StrEnum):
    """The ways in which the law can be broken."""

    ACCEPTED_ONCE = "confirmed, but not accepted once"
    ONE_OUTCOME = "without an outcome"
    ANSWERED = "without the answer that belongs to its outcome"
    ANSWERED_ONCE = "answered otherwise than its outcome says"
    ORDER = "worked on out of order"
    SENT_IN_ORDER = "seen out of order"
    RUNS_OVERLAP = "stored runs overlap"
    WORK_OVERLAPS = "two worked at a time"
    OCCURRENCE_ONCE = "a time of a job came twice"
    ALERT_ONCE = "an alert came twice"
    SEEN_TWICE = "seen twice without a record"
    SEEN_UNSAID = "seen, but nobody said it"
    UNSEEN = "sent, but nobody saw it"
    LEFT_BEHIND = "left behind"


@dataclass(frozen=True, slots=True)
class Breach:
    """One breach. ``where``: the session, chat or job. ``words`` tells what was found."""

    rule: Rule
    where: str
    words: str

    def __str__(self) -> str:
        return f"{self.rule} in {self.where}: {self.words}"


def broken(facts: Facts) -> Sequence[Breach]:
    """Every breach of the law."""
    return [breach for rule in _RULES for breach in rule(facts)]


# ---------------------------------------------------------------------------- messages


def _accepted_once(facts: Facts) -> Iterator[Breach]:
    """SPEC IO-1."""
    kept = Counter((row.chat, row.text) for row in facts.messages)
    for (chat, text), count in Counter((one.chat, one.text) for one in facts.said).items():
        if kept[chat, text] != count:
            words = f"{text!r} was said {count} times and kept {kept[chat, text]} times"
            yield Breach(Rule.ACCEPTED_ONCE, chat, words)


def _one_outcome(facts: Facts) -> Iterator[Breach]:
    for row in facts.messages:
        if row.outcome is None:
            yield Breach(Rule.ONE_OUTCOME, row.session, str(row))


def _answered(facts: Facts) -> Iterator[Breach]:
    """SPEC IO-2, IO-3."""
    answers = _answers(facts)
    told = {post.chat for post in facts.posts if post.text == wording.LOST}
    for row in facts.messages:
        if row.command or not names(row.text):
            continue
        answered = _answered_by(row, answers)
        if row.outcome == "completed" and not answered:
            yield Breach(Rule.ANSWERED, row.session, str(row))
        if row.outcome == "lost" and row.chat not in told:
            yield Breach(Rule.ANSWERED, row.session, f"nobody was told: {row}")


def _answered_once(facts: Facts) -> Iterator[Breach]:
    answers = _answers(facts)
    for row in facts.messages:
        answered = _answered_by(row, answers)
        allowed = {row.run} if row.outcome == "completed" else set()
        if answered - allowed:
            words = f"{row} is answered by {sorted(answered)}"
            yield Breach(Rule.ANSWERED_ONCE, row.session, words)


def _answers(facts: Facts) -> dict[tuple[str, str], set[str]]:
    """The runs that have answered a message, by its chat and name."""
    whole = {run.id for run in facts.runs if run.outcome == "completed"}
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for post in facts.posts:
        if post.run in whole:
            for name in names(post.text):
                found[post.chat, name].add(post.run)
    return found


def _answered_by(row: Message, answers: dict[tuple[str, str], set[str]]) -> set[str]:
    if row.command:
        return set()
    return set().union(*(answers.get((row.chat, name), set()) for name in names(row.text)))


def _order(facts: Facts) -> Iterator[Breach]:
    """SPEC IO-2, NODE-1. What crashed twice has given up its place."""
    started = {run.id: run.started for run in facts.runs}
    for session, rows in _grouped(facts.messages, lambda row: row.session).items():
        begun = [
            (row, started[row.run])
            for row in sorted(rows, key=lambda row: row.place)
            if row.run in started and row.attempts < DEMOTED_AFTER
        ]
        for (earlier, first), (later, second) in pairwise(begun):
            if second < first:
                words = f"{later.text!r} at {second} before {earlier.text!r} at {first}"
                yield Breach(Rule.ORDER, session, words)


# ---------------------------------------------------------------------------- runs


def _runs_overlap(facts: Facts) -> Iterator[Breach]:
    """SPEC QUEUE-2, CRON-5, HB-12."""
    for about in (_session, _occurrence, _beat):
        for key, runs in _grouped(facts.runs, about).items():
            if key is not None:
                spans = _in_order((run, run.started, run.ended) for run in runs)
                for one, other in _overlaps(spans, open_ends=True):
                    yield Breach(Rule.RUNS_OVERLAP, key, f"{one} and {other}")


def _session(run: Run) -> str | None:
    return run.session


def _occurrence(run: Run) -> str | None:
    return run.occurrence


def _beat(run: Run) -> str | None:
    return run.beat


def _work_overlaps(facts: Facts) -> Iterator[Breach]:
    """The same by the agent's own notes: a process that froze may go on with what was lost."""
    runs = {run.id: run for run in facts.runs}
    dead = facts.dead | {run.node for run in facts.runs if run.outcome == "lost"}
    for key, works in _grouped(facts.worked, lambda work: work.session).items():
        spans = _in_order(
            (work, work.began, work.ended)
            for work in works
            if not _is_gone(runs.get(work.run), dead)
        )
        for one, other in _overlaps(spans, open_ends=False):
            yield Breach(Rule.WORK_OVERLAPS, key, f"{one} and {other}")


def _is_gone(run: Run | None, dead: frozenset[str]) -> bool:
    """Whether nobody minds a run that is still at work."""
    return run is not None and (run.outcome in _GONE or run.node in dead)


_Span = tuple[T, float, float | None]


def _in_order(spans: Iterable[_Span[T]]) -> list[_Span[T]]:
    """By their begins; of those that begin together what ends first: some have no length."""
    return sorted(spans, key=lambda span: (span[1], inf if span[2] is None else span[2]))


def _overlaps(spans: Sequence[_Span[T]], *, open_ends: bool) -> Iterator[tuple[T, T]]:
    """Which of some spans begins in which other one; they are in the order of their begins.

    ``open_ends``: what has no end goes on for ever, else it is not known and nothing.
    """
    latest: _Span[T] | None = None
    for one, began, ended in spans:
        if latest is not None and (latest[2] is None or began < latest[2]):
            yield latest[0], one
        if ended is None and not open_ends:
            continue
        if latest is None or ended is None or (latest[2] is not None and ended > latest[2]):
            latest = one, began, ended


# ---------------------------------------------------------------------------- jobs and beats


def _occurrence_once(facts: Facts) -> Iterator[Breach]:
    """SPEC CRON-5: a time of a job runs again only after what did not end by itself."""
    by_schedule = [one for one in facts.occurrences if not one.by_hand]
    for (job, scheduled), rows in _grouped(by_schedule, lambda o: (o.job, o.scheduled)).items():
        if len(rows) > 1:
            yield Breach(Rule.OCCURRENCE_ONCE, job, f"{len(rows)} rows for {scheduled}")
    jobs = {one.id: one.job for one in facts.occurrences}
    for key, runs in _grouped(facts.runs, _occurrence).items():
        whole = [run for run in runs if run.outcome == "completed"]
        if key is not None and len(whole) > 1:
            yield Breach(Rule.OCCURRENCE_ONCE, jobs.get(key, key), f"{whole}")


def _alert_once(facts: Facts) -> Iterator[Breach]:
    """SPEC HB-7: the same alert there is told once in a day; one that is dead was not told."""
    alerts = [post for post in facts.posts if post.alert and post.state != "dead"]
    for (chat, alert), posts in _grouped(alerts, lambda post: (post.chat, post.alert)).items():
        ordered = sorted(posts, key=lambda post: post.created)
        for one, other in pairwise(ordered):
            if other.created - one.created < _ALERT_S:
                yield Breach(Rule.ALERT_ONCE, chat, f"{alert!r}: {one} and {other}")


# ---------------------------------------------------------------------------- what people see


def _seen_twice(facts: Facts) -> Iterator[Breach]:
    """SPEC IO-5."""
    posts = _grouped(facts.posts, _words)
    for key, messages in _messages(facts.seen).items():
        rows = posts.get(key, [])
        if len(messages) > len(rows) > 0 and not any(post.possible_duplicate for post in rows):
            yield Breach(Rule.SEEN_TWICE, key[0], f"{key[1]!r} in {sorted(messages)}: {rows}")


def _seen_unsaid(facts: Facts) -> Iterator[Breach]:
    said = {_words(post) for post in facts.posts}
    stopped = {row.chat for row in facts.messages if row.text.startswith("/stop")}
    for chat, text in _messages(facts.seen).keys() - said:
        if chat not in stopped or not text.startswith(TO_STOP):
            yield Breach(Rule.SEEN_UNSAID, chat, repr(text))


def _unseen(facts: Facts) -> Iterator[Breach]:
    """SPEC IO-6: what counts as delivered was."""
    seen = _messages(facts.seen)
    for key, posts in _grouped(facts.posts, _words).items():
        sent = [post for post in posts if post.state == "sent" and post.text]
        if len(sent) > len(seen.get(key, ())):
            yield Breach(Rule.UNSEEN, key[0], f"{sent}")


def _sent_in_order(facts: Facts) -> Iterator[Breach]:
    """SPEC IO-4. Texts that come more than once say nothing of the order."""
    first: dict[tuple[str, str], float] = {}
    for sight in facts.seen:
        key = sight.chat, sight.text
        first[key] = min(sight.at, first.get(key, sight.at))
    often = Counter(map(_words, facts.posts))
    posts = [post for post in facts.posts if _words(post) in first and often[_words(post)] == 1]
    for chat, rows in _grouped(posts, lambda post: post.chat).items():
        for one, other in pairwise(sorted(rows, key=lambda post: post.id)):
            if first[_words(other)] < first[_words(one)]:
                yield Breach(Rule.SENT_IN_ORDER, chat, f"{other} before {one}")


def _words(of: Post) -> tuple[str, str]:
    return of.chat, of.text


def _messages(seen: Iterable[Seen]) -> dict[tuple[str, str], set[str]]:
    """In how many messages a text stood in a chat."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for one in seen:
        found[one.chat, one.text].add(one.message)
    return found


# ---------------------------------------------------------------------------- what is left


def _left_behind(facts: Facts) -> Iterator[Breach]:
    """SPEC NODE-1, IO-2: when all has settled, nobody holds anything that others would need."""
    for run in facts.runs:
        if run.outcome is None or run.ended is None:
            yield Breach(Rule.LEFT_BEHIND, run.session, str(run))
    for post in facts.posts:
        if post.state in _UNSENT:
            yield Breach(Rule.LEFT_BEHIND, post.chat, str(post))
    for of in (facts.occurrences, facts.beats):
        for one in of:
            if not one.ended:
                yield Breach(Rule.LEFT_BEHIND, one.id, str(one))
    for claim in facts.claims:
        if claim.kind not in RESTING or claim.node not in facts.live:
            yield Breach(Rule.LEFT_BEHIND, claim.key, str(claim))


def _grouped(of: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    found: dict[K, list[T]] = defaultdict(list)
    for one in of:
        found[key(one)].append(one)
    return found


_RULES: Final[tuple[Callable[[Facts], Iterator[Breach]], ...]] = (
    _accepted_once,
    _one_outcome,
    _answered,
    _answered_once,
    _order,
    _runs_overlap,
    _work_overlaps,
    _occurrence_once,
    _alert_once,
    _seen_twice,
    _seen_unsaid,
    _unseen,
    _sent_in_order,
    _left_behind,
)
