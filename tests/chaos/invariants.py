"""What must be so after a run of the whole system, whatever happened to it. Pure.

The invariants (SPEC IO-1, 2, 4, 5, CRON-5, HB-7, 12, QUEUE-2, NODE-1): what was accepted has one
outcome and the answer that belongs to it; a session keeps its order and never works twice at a
time; each occurrence of a job and each alert is delivered once; nothing is delivered twice, unless
its row says that this may happen; nothing is delivered that nobody sent; nothing is left
unfinished.

``checker`` looks closer at one gateway and its drafts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from math import inf
from typing import Final, TypeVar

from goclaw_py.chat.outbound import texts
from goclaw_py.core.outcomes import Outcome
from tests.chaos.breach import Breach, Rule, grouped
from tests.chaos.facts import Facts, Message, Post, Run, Seen, Worked, names
from tests.chaos.time_invariants import (
    alert_once,
    alert_told,
    occurrence_missed,
    occurrence_once,
    occurrence_skipped,
    occurrence_told,
)
from tests.support.again import unmarked

__all__ = ["DEMOTED_AFTER", "TO_STOP", "Breach", "Rule", "broken"]

T = TypeVar("T")

DEMOTED_AFTER: Final = 3
"""A message in its third attempt has crashed twice; others of its session go first (SPEC IO-2)."""

TO_STOP: Final = (texts.NOTHING_RUNNING, texts.ALREADY_STOPPING, "Stopped", "Dropped", "⏹")
"""How answers to ``/stop`` begin, which go past the outbox."""

_TRANSACTION_S: Final = 30.0
"""How long a transaction may take while the database is slow or locked."""

_UNSENT: Final = frozenset({"pending", "sending"})
_GONE: Final = frozenset({"lost", "abandoned"})
"""Ends of runs that others have ended: nobody hears of them any more."""


def broken(facts: Facts) -> Sequence[Breach]:
    """Every violated invariant."""
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
        elif row.ended is not None and row.ended > facts.settled:
            # Such as one that was held until its node ended, and another one has answered.
            yield Breach(Rule.ONE_OUTCOME, row.session, f"{row} until {facts.settled}")


def _answered(facts: Facts) -> Iterator[Breach]:
    """SPEC IO-2, IO-3."""
    answers = _answers(facts)
    told = {post.chat for post in facts.posts if post.text.startswith(texts.LOST)}
    spoke = {post.run for post in facts.posts if post.text and post.run is not None}
    said_at = {(post.chat, post.created) for post in facts.posts if post.text and not post.run}
    for row in facts.messages:
        if row.command or not names(row.text):
            continue
        answered = _answered_by(row, answers)
        if row.outcome == "completed" and not answered:
            yield Breach(Rule.ANSWERED, row.session, str(row))
        if row.outcome == "lost" and row.chat not in told:
            yield Breach(Rule.ANSWERED, row.session, f"no message was sent: {row}")
        # One that was held for too long fails without a run: its last one was interrupted.
        was_held = row.reason == "outage" and (row.chat, row.ended) in said_at
        if row.outcome == "failed" and row.run not in spoke and not was_held:
            yield Breach(Rule.ANSWERED, row.session, f"nobody was told of the failure: {row}")


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


def _stopped_unasked(facts: Facts) -> Iterator[Breach]:
    """SPEC CMD-1, QUEUE-3: people stop, or a newer message does in mode ``interrupt``."""
    stopped = {row.chat for row in facts.messages if row.text.startswith("/stop")}
    last: dict[str, int] = {}
    for row in facts.messages:
        if not row.command:
            last[row.session] = max(row.place, last.get(row.session, row.place))
    for row in facts.messages:
        if row.outcome != "cancelled":
            continue
        by_newer = row.reason == "newer_message"
        if not (last.get(row.session, 0) > row.place if by_newer else row.chat in stopped):
            yield Breach(Rule.STOPPED_UNASKED, row.session, str(row))


def _stop_answered(facts: Facts) -> Iterator[Breach]:
    """SPEC CMD-1: at once and past the outbox, so only processes that live on are sure to do it.

    A growing reply that says so is an answer too.
    """
    if not facts.nobody_fell:
        return
    stops = [row for row in facts.messages if row.command and row.text.startswith("/stop")]
    seen = _messages(
        one
        for one in facts.seen
        if one.text.startswith(TO_STOP)
        or one.text.endswith(texts.interrupted_draft(Outcome.CANCELLED))
    )
    for chat, rows in grouped(stops, lambda row: row.chat).items():
        answers = set[str]().union(*(ids for (where, _), ids in seen.items() if where == chat))
        if len(answers) < len(rows):
            yield Breach(Rule.STOP_ANSWERED, chat, f"{len(answers)} answers to {rows}")


def _ran_after_stop(facts: Facts) -> Iterator[Breach]:
    """SPEC CMD-1: once a stop of everything is stored, nothing starts that came before it.

    Messages that arrive at the same time may be stored in another order than they were said.
    """
    started = {run.id: run.started for run in facts.runs}
    for session, rows in grouped(facts.messages, lambda row: row.session).items():
        stops = [row for row in rows if row.command and row.text == "/stopall" and row.ended]
        for row, stop in ((row, stop) for row in rows for stop in stops if row.place < stop.place):
            if row.sent > stop.sent:
                continue
            if stop.ended is not None and started.get(row.run or "", -inf) > stop.ended:
                yield Breach(Rule.RAN_AFTER_STOP, session, f"{row} after {stop}")


def _ran_after_end(facts: Facts) -> Iterator[Breach]:
    """SPEC IO-2: whatever has waited, also for a provider, has one end.

    What began before may be told to its agent later.
    """
    started = {run.id: run.started for run in facts.runs if run.trigger == "chat"}
    ended = {(row.session, name): row for row in facts.messages for name in names(row.text)}
    for work in facts.worked:
        for name in names(work.prompt):
            row = ended.get((work.session, name))
            if row is None or row.ended is None or row.command:
                continue
            if started.get(work.run, -inf) > row.ended:
                yield Breach(Rule.RAN_AFTER_END, row.session, f"{work} after the end of {row}")


def _order(facts: Facts) -> Iterator[Breach]:
    """SPEC IO-2, NODE-1. What crashed twice has given up its place, and so has all of its turn."""
    started = {run.id: run.started for run in facts.runs}
    demoted = {row.run for row in facts.messages if row.attempts >= DEMOTED_AFTER}
    for session, rows in grouped(facts.messages, lambda row: row.session).items():
        begun = [
            (row, started[row.run])
            for row in sorted(rows, key=lambda row: row.place)
            if row.run in started and row.run not in demoted
        ]
        latest: tuple[Message, float] | None = None
        for row, at in begun:
            if latest is not None and at < latest[1]:
                words = f"{row.text!r} at {at} before {latest[0].text!r} at {latest[1]}"
                yield Breach(Rule.ORDER, session, words)
            else:
                latest = row, at


# ---------------------------------------------------------------------------- runs


def _runs_overlap(facts: Facts) -> Iterator[Breach]:
    """SPEC QUEUE-2, CRON-5, HB-12.

    A run of a job may take its session from another node, and its begin, with the time at which it
    was asked of the database, wait there for the end of that one's run: then its agent tells when.
    """
    noted = {work.run: work.began for work in facts.worked}

    def began(run: Run) -> float:
        if run.trigger != "cron":
            return run.started
        # What the agent tells is not cut to microseconds, as the database does with the end.
        return min(max(run.started, noted.get(run.id, 0.0)), run.ended or inf)

    for about in (_session, _occurrence, _heartbeat_run):
        for key, runs in grouped(facts.runs, about).items():
            if key is not None:
                spans = _in_order((run, began(run), run.ended) for run in runs)
                for one, other in _overlaps(spans, open_ends=True):
                    yield Breach(Rule.RUNS_OVERLAP, key, f"{one} and {other}")


def _session(run: Run) -> str | None:
    return run.session


def _occurrence(run: Run) -> str | None:
    return run.occurrence


def _heartbeat_run(run: Run) -> str | None:
    return run.heartbeat_run


def _work_overlaps(facts: Facts) -> Iterator[Breach]:
    """The same by the agent's own notes.

    What is lost or abandoned may go on in two cases: it does not care that it is told to end, or
    its process stood still, and notices what has become of it when it wakes.
    """
    runs = {run.id: run for run in facts.runs}
    for key, container in grouped(facts.worked, lambda work: work.session).items():
        gone = {work.run for work in container if _is_gone(runs.get(work.run), work)}
        spans = _in_order(
            (work, work.began, work.told or work.ended if work.run in gone else work.ended)
            for work in container
            if not (work.stood_still and work.run in gone)
        )
        for one, other in _overlaps(spans, open_ends=False):
            yield Breach(Rule.WORK_OVERLAPS, key, f"{one} and {other}")


def _is_gone(run: Run | None, work: Worked) -> bool:
    """Whether others have ended it: as cancelled, or interrupted, too, if it was being stopped."""
    if run is None or run.outcome in _GONE:
        return run is not None
    is_early = run.ended is not None and work.ended is not None and run.ended < work.ended
    return run.outcome in ("cancelled", "interrupted") and is_early


def _lost_and_heard(facts: Facts) -> Iterator[Breach]:
    """SPEC QUEUE-2: the fence keeps it from being stored; what closes a draft names the run too."""
    lost = {run.id for run in facts.runs if run.outcome == "lost"}
    for post in facts.posts:
        if post.run in lost and post.text and not post.draft:
            yield Breach(Rule.LOST_AND_HEARD, post.chat, str(post))


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


# ---------------------------------------------------------------------------- what people see


def _seen_twice(facts: Facts) -> Iterator[Breach]:
    """SPEC IO-5."""
    posts = grouped(facts.posts, _words)
    bare = _messages(one for one in facts.seen if one.text == unmarked(one.text))
    for key, messages in _messages(facts.seen).items():
        rows = posts.get(key, [])
        allowed = sum(post.sends if post.possible_duplicate else 1 for post in rows)
        if len(messages) > allowed > 0:
            yield Breach(Rule.SEEN_TWICE, key[0], f"{key[1]!r} in {sorted(messages)}: {rows}")
        elif rows and len(bare.get(key, ())) > len(rows):
            words = f"{key[1]!r} without a line that it is sent again in {sorted(bare[key])}"
            yield Breach(Rule.SEEN_TWICE, key[0], f"{words}: {rows}")


def _seen_unsaid(facts: Facts) -> Iterator[Breach]:
    said = {_words(post) for post in facts.posts}
    stopped = {row.chat for row in facts.messages if row.text.startswith("/stop")}
    for chat, text in _messages(facts.seen).keys() - said:
        if chat not in stopped or not text.startswith(TO_STOP):
            yield Breach(Rule.SEEN_UNSAID, chat, repr(text))


def _unseen(facts: Facts) -> Iterator[Breach]:
    """SPEC IO-6: what counts as delivered was."""
    seen = _messages(facts.seen)
    for key, posts in grouped(facts.posts, _words).items():
        sent = [post for post in posts if post.state == "sent" and post.text]
        if len(sent) > len(seen.get(key, ())):
            yield Breach(Rule.UNSEEN, key[0], f"{sent}")


def _sent_in_order(facts: Facts) -> Iterator[Breach]:
    """SPEC IO-4. Texts that come more than once say nothing of the order."""
    first: dict[tuple[str, str], float] = {}
    for sight in facts.seen:
        key = sight.chat, unmarked(sight.text)
        first[key] = min(sight.at, first.get(key, sight.at))
    often = Counter(map(_words, facts.posts))
    posts = [post for post in facts.posts if _words(post) in first and often[_words(post)] == 1]
    for chat, rows in grouped(posts, lambda post: post.chat).items():
        for one, other in pairwise(sorted(rows, key=lambda post: post.id)):
            if first[_words(other)] < first[_words(one)] and not _are_concurrent(one, other):
                yield Breach(Rule.SENT_IN_ORDER, chat, f"{other} before {one}")


def _are_concurrent(one: Post, other: Post) -> bool:
    """Return whether two messages may have been committed in either order.

    Ids are given before the commit. A run of a job or heartbeat and one of the chat may end at the
    same time, and what is committed first is sent first.
    """
    are_answers = not (_is_scheduled(one) or _is_scheduled(other))
    return not are_answers and abs(other.created - one.created) < _TRANSACTION_S


def _is_scheduled(post: Post) -> bool:
    return post.occurrence is not None or post.heartbeat_run is not None


def _words(of: Post) -> tuple[str, str]:
    return of.chat, of.text


def _messages(seen: Iterable[Seen]) -> dict[tuple[str, str], set[str]]:
    """In how many messages a text stood in a chat, with or without a line that it is repeated."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for one in seen:
        found[one.chat, unmarked(one.text)].add(one.message)
    return found


# ---------------------------------------------------------------------------- what is left


def _left_behind(facts: Facts) -> Iterator[Breach]:
    """SPEC NODE-1, IO-2: when all has settled and all nodes have left, nobody holds anything."""
    for run in facts.runs:
        if run.outcome is None or run.ended is None:
            yield Breach(Rule.LEFT_BEHIND, run.session, str(run))
    for post in facts.posts:
        if post.state in _UNSENT:
            yield Breach(Rule.LEFT_BEHIND, post.chat, str(post))
    for of in (facts.occurrences, facts.heartbeat_runs):
        for one in of:
            if not one.ended:
                yield Breach(Rule.LEFT_BEHIND, one.id, str(one))
    for claim in facts.claims:
        yield Breach(Rule.LEFT_BEHIND, claim.key, str(claim))


_RULES: Final[tuple[Callable[[Facts], Iterator[Breach]], ...]] = (
    _accepted_once,
    _one_outcome,
    _answered,
    _answered_once,
    _stopped_unasked,
    _stop_answered,
    _ran_after_stop,
    _ran_after_end,
    _order,
    _runs_overlap,
    _work_overlaps,
    _lost_and_heard,
    occurrence_once,
    occurrence_told,
    occurrence_missed,
    occurrence_skipped,
    alert_once,
    alert_told,
    _seen_twice,
    _seen_unsaid,
    _unseen,
    _sent_in_order,
    _left_behind,
)
