"""What is wrong with what a round left behind. Pure: it sees only what it is given.

The invariants (SPEC IO-2, IO-4, IO-5, CMD-3): every message has exactly one answer; answers first
appear in the order of asking; no answer is ever seen twice unless its row says that this may have
happened, and a line below the second one; no draft stays open; nothing is left half done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from tests.botapi.records import Sighting
from tests.chaos.agent import Task
from tests.chaos.invariants import DEMOTED_AFTER, TO_STOP
from tests.support.again import unmarked

_OPEN = " …"
_GIVEN_UP = "dropped"
_MARKS = ("\n\n⏹ Stopped.", "\n\n⚠️ This answer was cut off.")
_BARE_MARKS = tuple(mark.strip() for mark in _MARKS)


class Wrong(StrEnum):
    """The ways to violate invariants."""

    LOST = "lost"
    OUT_OF_ORDER = "out of order"
    DOUBLED_STREAM = "streamed answer seen twice"
    DOUBLED_UNRECORDED = "answer seen twice without a record"
    DOUBLED_UNMARKED = "answer seen twice without a line that says so"
    DOUBLED_DRAFT = "draft with a whole answer beside it, without a record"
    OPEN_DRAFT = "draft left open"
    STOPPED_UNASKED = "stopped though nobody asked"
    UNEXPECTED_END = "ended otherwise"
    UNEXPECTED_TEXT = "text that nobody expects"
    LEFT_OVER = "not finished"


@dataclass(frozen=True, slots=True)
class Violation:
    """One breach. ``words`` tells what was found."""

    wrong: Wrong
    chat: int
    words: str

    def __str__(self) -> str:
        return f"{self.wrong} in chat {self.chat}: {self.words}"


@dataclass(frozen=True, slots=True)
class Taken:
    """A message's row in the inbox. ``outcome`` is None while it is not done."""

    text: str
    outcome: str | None
    attempts: int


@dataclass(frozen=True, slots=True)
class Reply:
    """A row of the outbox. ``draft``: it finishes a draft by an edit."""

    text: str
    state: str
    possible_duplicate: bool
    draft: bool


@dataclass(frozen=True, slots=True)
class Chat:
    """All about one private chat. ``stops`` is how many ``/stop`` its user wrote."""

    id: int
    asked: Sequence[Task]
    stops: int
    seen: Sequence[Sighting]
    taken: Sequence[Taken]
    replies: Sequence[Reply]


@dataclass(frozen=True, slots=True)
class Left:
    """What is not finished in the whole system; all of it has to be 0 once all has settled."""

    inbox: int = 0
    outbox: int = 0
    runs: int = 0
    drafts: int = 0
    updates: int = 0

    @property
    def nothing(self) -> bool:
        """Whether all has settled."""
        return self == Left()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a round.

    Args:
        recorded: Answers without draft that were seen twice, as their rows say.
        demoted: Answers that crashed twice, whose place in the order is free.
        undone: Chats whose user read that something was stopped, and got all answers later.
    """

    asked: int = 0
    answered: int = 0
    stopped: int = 0
    recorded: int = 0
    demoted: int = 0
    undone: int = 0
    violations: tuple[Violation, ...] = ()

    def __add__(self, other: Verdict) -> Verdict:
        return Verdict(
            self.asked + other.asked,
            self.answered + other.answered,
            self.stopped + other.stopped,
            self.recorded + other.recorded,
            self.demoted + other.demoted,
            self.undone + other.undone,
            self.violations + other.violations,
        )

    def count(self, *wrongs: Wrong) -> int:
        """How many breaches of some kinds."""
        return sum(violation.wrong in wrongs for violation in self.violations)


def check_round(chats: Sequence[Chat], left: Left) -> Verdict:
    """Check a round that has settled, or had time enough to."""
    verdict = sum((_Case(chat).verdict() for chat in chats), Verdict())
    if left.nothing:
        return verdict
    return verdict + Verdict(violations=(Violation(Wrong.LEFT_OVER, 0, str(left)),))


def last_answer_at(chat: Chat) -> float | None:
    """When the last of a chat's answers first appeared, on the emulator's clock."""
    texts = {task.text for task in chat.asked}
    return max((one.since for one in chat.seen if unmarked(one.text) in texts), default=None)


class _Case:
    """One chat before the checker."""

    def __init__(self, chat: Chat) -> None:
        self._bare = {(one.text, one.message_id) for one in chat.seen}
        chat = replace(chat, seen=[replace(one, text=unmarked(one.text)) for one in chat.seen])
        self._chat = chat
        self._taken = {row.text: row for row in chat.taken}
        self._replies = {row.text: row for row in chat.replies}
        self._texts = {task.text: task for task in chat.asked}

    def verdict(self) -> Verdict:
        chat = self._chat
        answered = [task for task in chat.asked if self._messages_of(task)]
        stopped = [task for task in chat.asked if self._outcome(task) == "cancelled"]
        recorded = sum(
            len(self._messages_of(task)) - 1 for task in answered if self._may_be_double(task)
        )
        violations = (
            *self._missing(),
            *self._doubled(),
            *self._disorder(),
            *self._odd_texts(),
            *self._open_drafts(),
            *self._ends(stopped),
        )
        return Verdict(
            asked=len(chat.asked),
            answered=len(answered),
            stopped=len(stopped),
            recorded=recorded,
            demoted=sum(self._demoted(task) for task in chat.asked),
            undone=not stopped and any(one.text.startswith("Stopped") for one in chat.seen),
            violations=tuple(violations),
        )

    # ------------------------------------------------------------------ what is wrong

    def _missing(self) -> Iterator[Violation]:
        for task in self._chat.asked:
            shown = [one for one in self._standing() if one.text == task.text]
            if not shown and self._outcome(task) != "cancelled":
                taken = self._taken.get(task.prompt)
                yield self._violation(Wrong.LOST, f"{task.name}: {taken}")

    def _doubled(self) -> Iterator[Violation]:
        for task in self._chat.asked:
            messages, reply = self._messages_of(task), self._replies.get(task.text)
            if len(messages) < 2:
                continue
            words = f"{task.name} in messages {sorted(messages)}: {reply}"
            if reply is not None and reply.draft:
                yield self._violation(Wrong.DOUBLED_STREAM, words)
            elif reply is None or not reply.possible_duplicate:
                yield self._violation(Wrong.DOUBLED_UNRECORDED, words)
            elif sum(text == task.text for text, _ in self._bare) > 1:
                yield self._violation(Wrong.DOUBLED_UNMARKED, words)

    def _disorder(self) -> Iterator[Violation]:
        """An answer that came before the answer to an earlier question."""
        latest, before = 0.0, ""
        for task in self._chat.asked:
            first = min(
                (one.since for one in self._chat.seen if one.text == task.text), default=None
            )
            if first is None or self._demoted(task):
                continue
            if first < latest:
                yield self._violation(Wrong.OUT_OF_ORDER, f"{task.name} before {before}")
            else:
                latest, before = first, task.name

    def _open_drafts(self) -> Iterator[Violation]:
        for one in self._open():
            task = self._task_of(one.text)
            whole = task is not None and one.text.removesuffix(_OPEN) == task.text
            wrong = Wrong.DOUBLED_DRAFT if whole else Wrong.OPEN_DRAFT
            outcome = None if task is None else self._outcome(task)
            yield self._violation(wrong, f"message {one.message_id}, {one.text!r}, run {outcome}")

    def _odd_texts(self) -> Iterator[Violation]:
        for one in self._chat.seen:
            if not self._is_expected(one.text):
                yield self._violation(Wrong.UNEXPECTED_TEXT, repr(one.text))

    def _ends(self, stopped: Sequence[Task]) -> Iterator[Violation]:
        if len(stopped) > self._chat.stops:
            names = ", ".join(task.name for task in stopped)
            words = f"{names} with {self._chat.stops} /stop"
            yield self._violation(Wrong.STOPPED_UNASKED, words)
        for task in self._chat.asked:
            outcome, answered = self._outcome(task), bool(self._messages_of(task))
            if (outcome, answered) not in {("completed", True), ("cancelled", False)}:
                words = f"{task.name} ended {outcome}, answered: {answered}"
                yield self._violation(Wrong.UNEXPECTED_END, words)
        for reply in self._chat.replies:
            if reply.state not in ("sent", _GIVEN_UP):
                yield self._violation(Wrong.LEFT_OVER, str(reply))

    # ------------------------------------------------------------------ what there is

    def _violation(self, wrong: Wrong, words: str) -> Violation:
        return Violation(wrong, self._chat.id, words)

    def _messages_of(self, task: Task) -> set[int]:
        """The messages in which an answer ever stood."""
        return {one.message_id for one in self._chat.seen if one.text == task.text}

    def _outcome(self, task: Task) -> str | None:
        """A ``/stop`` also gives up an answer that is written and waits (SPEC CMD-2)."""
        taken, reply = self._taken.get(task.prompt), self._replies.get(task.text)
        if reply is not None and reply.state == _GIVEN_UP:
            return "cancelled"
        return None if taken is None else taken.outcome

    def _demoted(self, task: Task) -> bool:
        taken = self._taken.get(task.prompt)
        return taken is not None and taken.attempts >= DEMOTED_AFTER

    def _may_be_double(self, task: Task) -> bool:
        reply = self._replies.get(task.text)
        return reply is not None and reply.possible_duplicate and not reply.draft

    def _standing(self) -> Iterator[Sighting]:
        """What can be read in the end."""
        return (one for one in self._chat.seen if one.until is None)

    def _open(self) -> list[Sighting]:
        return [one for one in self._standing() if one.text.endswith(_OPEN)]

    def _task_of(self, text: str) -> Task | None:
        # A mark stands in a paragraph of its own, also behind the first word.
        name = next(iter(text.split(maxsplit=1)), "")
        return next((task for task in self._chat.asked if task.name == name), None)

    def _is_expected(self, text: str) -> bool:
        if text in self._texts:
            return True
        if self._chat.stops and text.startswith(TO_STOP):
            return True
        for end in (_OPEN, *_MARKS):
            if text.endswith(end):
                task = self._task_of(text)
                shown = text.removesuffix(end)
                return task is not None and f"{task.text} ".startswith(f"{shown} ")
        return text in _BARE_MARKS
