"""The ways to violate invariants, and what tells that it was."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


class Rule(StrEnum):
    """The ways to violate invariants."""

    ACCEPTED_ONCE = "confirmed, but not accepted once"
    ONE_OUTCOME = "without an outcome"
    ANSWERED = "without the answer that belongs to its outcome"
    ANSWERED_ONCE = "answered otherwise than its outcome says"
    STOPPED_UNASKED = "stopped, though nobody asked for it"
    STOP_ANSWERED = "a stop without an answer"
    RAN_AFTER_STOP = "ran after a stop of everything that came after it"
    RAN_AFTER_END = "began with a message after its end was stored"
    ORDER = "worked on out of order"
    SENT_IN_ORDER = "seen out of order"
    RUNS_OVERLAP = "stored runs overlap"
    WORK_OVERLAPS = "two worked at a time"
    LOST_AND_HEARD = "said by a run that others had ended"
    OCCURRENCE_ONCE = "a time of a job came twice"
    OCCURRENCE_TOLD = "a time of a job that ended well came to nothing"
    OCCURRENCE_MISSED = "a time of a job never came"
    OCCURRENCE_SKIPPED = "a time of a job did not wait"
    ALERT_ONCE = "an alert came twice"
    ALERT_TOLD = "an alert and its heartbeat run do not agree"
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


def grouped(of: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """What belongs to each key, in its order."""
    found: dict[K, list[T]] = defaultdict(list)
    for one in of:
        found[key(one)].append(one)
    return found
