"""The checker finds every violation that is planted, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.botapi.records import Sighting
from tests.chaos.agent import Task
from tests.chaos.checker import (
    Chat,
    Left,
    Reply,
    Taken,
    Verdict,
    Wrong,
    check_round,
    last_answer_at,
)
from tests.support.again import SENT_AGAIN

ANN = 7
LONG = Task(1, 12, 100)
SHORT = Task(2, 2, 20)
LAST = Task(3, 1, 0)
STOPPED = "\n\n⏹ Stopped."


def seen(message: int, text: str, since: float, until: float | None = None) -> Sighting:
    return Sighting(message, text, since, until)


def taken(task: Task, outcome: str | None = "completed", attempts: int = 1) -> Taken:
    return Taken(task.prompt, outcome, attempts)


def reply(task: Task, *, state: str = "sent", double: bool = False, draft: bool = False) -> Reply:
    return Reply(task.text, state, double, draft)


DRAFT = (seen(11, "m1 1 2 3 …", 1.0, 2.0), seen(11, "m1 1 2 3 4 5 6 …", 2.0, 2.5))
GOOD = Chat(
    id=ANN,
    asked=(LONG, SHORT, LAST),
    stops=0,
    seen=(*DRAFT, seen(11, LONG.text, 2.5), seen(12, SHORT.text, 3.0), seen(13, LAST.text, 3.1)),
    taken=(taken(LONG), taken(SHORT, attempts=2), taken(LAST)),
    replies=(reply(LONG, draft=True), reply(SHORT), reply(LAST)),
)
"""Everything as it should be."""


def of(chat: Chat, left: Left = Left()) -> Verdict:  # noqa: B008  a frozen value
    return check_round([chat], left)


def wrongs(chat: Chat, left: Left = Left()) -> list[Wrong]:  # noqa: B008  a frozen value
    return [violation.wrong for violation in of(chat, left).violations]


def with_seen(*seen: Sighting) -> Chat:
    return replace(GOOD, seen=seen)


def test_a_good_round_has_no_breach() -> None:
    assert of(GOOD) == Verdict(asked=3, answered=3)
    assert check_round([GOOD, replace(GOOD, id=8)], Left()) == Verdict(asked=6, answered=6)


def test_the_last_answer_is_found_and_drafts_are_none() -> None:
    assert last_answer_at(GOOD) == 3.1
    assert last_answer_at(with_seen(*DRAFT)) is None


LATE = (seen(11, LONG.text, 2.5, 2.6), seen(11, "m1 1 2 3 …", 2.6))


@pytest.mark.parametrize(
    ("chat", "wrong"),
    [
        (with_seen(*GOOD.seen[:3], GOOD.seen[4]), {Wrong.LOST, Wrong.UNEXPECTED_END}),
        # A late edit of the draft has undone the final one.
        (with_seen(*DRAFT, *LATE, *GOOD.seen[3:]), {Wrong.LOST, Wrong.OPEN_DRAFT}),
        # It never reached the inbox.
        (
            replace(GOOD, taken=GOOD.taken[1:], seen=GOOD.seen[3:]),
            {Wrong.LOST, Wrong.UNEXPECTED_END},
        ),
    ],
    ids=["unseen", "overwritten", "not taken in"],
)
def test_an_answer_that_nobody_sees_is_lost(chat: Chat, wrong: set[Wrong]) -> None:
    assert set(wrongs(chat)) == wrong
    assert of(chat).answered == (3 if Wrong.OPEN_DRAFT in wrong else 2)


def test_a_streamed_answer_in_two_messages_is_a_breach_whatever_its_row_says() -> None:
    chat = with_seen(*GOOD.seen, seen(14, LONG.text, 4.0))
    assert wrongs(chat) == [Wrong.DOUBLED_STREAM]
    marked = replace(chat, replies=(reply(LONG, draft=True, double=True), *GOOD.replies[1:]))
    assert wrongs(marked) == [Wrong.DOUBLED_STREAM]


def test_a_short_answer_may_come_twice_only_if_its_row_and_a_line_of_it_say_so() -> None:
    chat = with_seen(*GOOD.seen, seen(14, SHORT.text + SENT_AGAIN, 4.0))
    assert wrongs(chat) == [Wrong.DOUBLED_UNRECORDED]
    recorded = replace(chat, replies=(GOOD.replies[0], reply(SHORT, double=True), GOOD.replies[2]))
    assert of(recorded) == Verdict(asked=3, answered=3, recorded=1)
    bare = replace(recorded, seen=(*GOOD.seen, seen(14, SHORT.text, 4.0)))
    assert wrongs(bare) == [Wrong.DOUBLED_UNMARKED]


def test_a_double_in_a_draft_or_that_was_removed_again_counts_all_the_same() -> None:
    chat = with_seen(*GOOD.seen, seen(14, SHORT.text, 4.0, 4.1))
    assert wrongs(chat) == [Wrong.DOUBLED_UNRECORDED]
    chat = with_seen(seen(10, f"{LONG.text} …", 1.0), *GOOD.seen)
    assert wrongs(chat) == [Wrong.DOUBLED_DRAFT]


def test_an_answer_before_that_of_an_earlier_question_is_out_of_order() -> None:
    early = seen(12, SHORT.text, 0.5)
    assert wrongs(with_seen(early, *GOOD.seen[:3], GOOD.seen[4])) == [Wrong.OUT_OF_ORDER]


def test_a_message_that_crashed_twice_may_come_last() -> None:
    """SPEC IO-2."""
    late = with_seen(*GOOD.seen[3:], seen(11, LONG.text, 9.0))
    assert wrongs(late) == [Wrong.OUT_OF_ORDER, Wrong.OUT_OF_ORDER]
    demoted = replace(late, taken=(taken(LONG, attempts=3), *GOOD.taken[1:]))
    assert of(demoted) == Verdict(asked=3, answered=3, demoted=1)


def test_a_draft_that_stays_open_is_a_breach_whatever_its_reply_says() -> None:
    chat = with_seen(seen(10, "m1 1 2 …", 1.0), *GOOD.seen)
    assert wrongs(chat) == [Wrong.OPEN_DRAFT]
    marked = replace(chat, replies=(reply(LONG, double=True), *GOOD.replies[1:]))
    assert wrongs(marked) == [Wrong.OPEN_DRAFT]


def test_an_answer_that_a_stop_gives_up_is_stopped() -> None:
    """SPEC CMD-2."""
    replies = (GOOD.replies[0], replace(GOOD.replies[1], state="dropped"), GOOD.replies[2])
    said = seen(14, "⏹ Stopped. 1 part of my answer will not be sent.", 5.0)
    others = [one for one in GOOD.seen if one.text != SHORT.text]
    chat = replace(GOOD, replies=replies, stops=1, seen=(*others, said))
    assert of(chat) == Verdict(asked=3, answered=2, stopped=1)


@pytest.mark.parametrize(
    "text", ["I could not finish this.", "m1 1 2 9 …", "m9 1 2 …", "m1 1 2 3", "Stopped."]
)
def test_a_text_that_nobody_asked_for_is_a_breach(text: str) -> None:
    assert Wrong.UNEXPECTED_TEXT in wrongs(with_seen(seen(10, text, 1.0, 1.1), *GOOD.seen))


def stopped(*left: Sighting, stops: int = 1, outcome: str = "cancelled") -> Chat:
    answers: Sequence[Sighting] = (*GOOD.seen[3:], seen(15, "Stopped.", 2.1))
    ended = (taken(LONG, outcome), *GOOD.taken[1:])
    return replace(GOOD, seen=(*left, *answers), stops=stops, taken=ended, replies=GOOD.replies[1:])


def test_a_stopped_message_needs_no_answer_but_its_draft_has_to_be_closed() -> None:
    """SPEC CMD-3."""
    closed = (seen(11, "m1 1 2 …", 1.0, 2.0), seen(11, f"m1 1 2{STOPPED}", 2.0))
    assert of(stopped(*closed)) == Verdict(asked=3, answered=2, stopped=1)
    assert of(stopped(seen(11, STOPPED.strip(), 2.0))).violations == ()
    assert of(stopped(seen(11, f"m1{STOPPED}", 2.0))).violations == ()
    assert wrongs(stopped(closed[0], seen(11, "m1 1 2 3 …", 2.0))) == [Wrong.OPEN_DRAFT]


def test_a_stop_whose_message_was_answered_all_the_same_is_counted() -> None:
    chat = replace(with_seen(*GOOD.seen, seen(15, "Stopped.", 1.5)), stops=1)
    assert of(chat) == Verdict(asked=3, answered=3, undone=1)


def test_more_messages_stopped_than_stops_or_another_end_is_a_breach() -> None:
    assert Wrong.STOPPED_UNASKED in wrongs(stopped(stops=0))
    assert wrongs(stopped(GOOD.seen[2])) == [Wrong.UNEXPECTED_END]
    for outcome in ("lost", "failed", "dropped"):
        assert set(wrongs(stopped(outcome=outcome))) == {Wrong.LOST, Wrong.UNEXPECTED_END}


def test_anything_that_is_left_over_is_a_breach() -> None:
    for name in ("inbox", "outbox", "runs", "drafts", "updates"):
        assert wrongs(GOOD, Left(**{name: 1})) == [Wrong.LEFT_OVER]
    for state in ("pending", "sending", "dead"):
        chat = replace(GOOD, replies=(*GOOD.replies[:2], reply(LAST, state=state)))
        assert wrongs(chat) == [Wrong.LEFT_OVER]
