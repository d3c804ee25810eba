"""What people in a chat read from the runtime itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from goclaw_py.chat.outbound import texts
from goclaw_py.core.messages import Attachment, FileKind
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.records import ToolCall


@pytest.mark.parametrize(
    ("runs", "dropped", "more", "words"),
    [
        (1, 0, {}, "Stopped."),
        (3, 0, {}, "Stopped 3 tasks."),
        (1, 1, {}, "Stopped 1 task and dropped 1 waiting message."),
        (2, 5, {"already": True}, "Stopped 2 tasks and dropped 5 waiting messages."),
        (0, 1, {}, "Dropped 1 waiting message."),
        (0, 4, {"already": True}, "Dropped 4 waiting messages."),
        (0, 0, {"already": True}, "It is already being stopped."),
        (0, 0, {}, "Nothing was running."),
        (0, 0, {"jobs": 1, "already": True}, "Stopped 1 job."),
        (0, 0, {"jobs": 2}, "Stopped 2 jobs."),
        (1, 0, {"jobs": 1}, "Stopped 1 task and 1 job."),
        (0, 1, {"jobs": 1}, "Stopped 1 job and dropped 1 waiting message."),
        (2, 3, {"jobs": 1}, "Stopped 2 tasks and 1 job, and dropped 3 waiting messages."),
        (0, 0, {"parts": 1}, "⏹ Stopped. 1 part of my answer will not be sent."),
        (0, 0, {"parts": 98}, "⏹ Stopped. 98 parts of my answer will not be sent."),
        (2, 0, {"parts": 3}, "Stopped 2 tasks. 3 parts of my answer will not be sent."),
    ],
)
def test_a_stop_says_what_it_did(runs: int, dropped: int, more: dict[str, int], words: str) -> None:
    """SPEC CMD-1, CMD-2."""
    given = {"already": False, **more}
    assert texts.stopped(runs, dropped, **given) == words  # type: ignore[arg-type]  # by name


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (Reason.NEWER_MESSAGE, "A newer message replaced 1 waiting message: “buy milk”"),
        (Reason.QUEUE_FULL,
         ("The queue is full, so I did not accept 1 message. Please send it again later: "
          "“buy milk”")),
        (Reason.QUEUE_DROPPED,
         "The queue was full, so I dropped 1 message, oldest first: “buy milk”"),
        (Reason.LANE_CLOSED,
         ("I cannot work on this now, so I did not accept 1 message. Please send it again later: "
          "“buy milk”")),
    ],
)  # fmt: skip
def test_a_notice_says_why_messages_are_not_answered(reason: Reason, words: str) -> None:
    """SPEC QUEUE-3, QUEUE-5."""
    assert texts.dropped(["buy\n  milk"], reason) == words


@pytest.mark.parametrize("reason", [*Reason, None])
def test_a_notice_blames_the_queue_only_where_the_queue_was_full(reason: Reason | None) -> None:
    """SPEC QUEUE-5: whatever reason is added, its words are true."""
    queue_was_full = reason in (Reason.QUEUE_FULL, Reason.QUEUE_DROPPED)
    assert ("The queue" in texts.dropped(["hi"], reason)) is queue_was_full


def test_a_notice_counts_all_messages_and_quotes_the_first_three() -> None:
    """SPEC QUEUE-5."""
    text = texts.dropped(list("abcde"), Reason.QUEUE_DROPPED)
    assert "5 messages" in text
    assert text.endswith("“a”, “b”, “c”, …")
    assert texts.dropped(list("abc"), Reason.QUEUE_DROPPED).endswith("“a”, “b”, “c”")


@pytest.mark.parametrize("length", [1, 40, 41, 5000])
def test_a_quoted_text_stays_short(length: int) -> None:
    """SPEC QUEUE-5."""
    snippet = texts.snippet("x" * length)
    assert len(snippet) == min(length, 40)
    assert snippet.endswith("…") is (length > 40)


def test_a_time_out_tells_a_missed_deadline_from_a_long_run() -> None:
    """SPEC QUEUE-9."""
    assert "in time" in texts.timed_out(Reason.DEADLINE)
    assert "too long" in texts.timed_out(Reason.RUN_TIMEOUT)


@pytest.mark.parametrize(
    ("text", "outcome", "kept"),
    [
        ("half a rep", Outcome.CANCELLED, "half a rep\n[cancelled]"),
        ("", Outcome.TIMED_OUT, "[timed out]"),
    ],
)
def test_a_cut_reply_is_marked_in_the_history(text: str, outcome: Outcome, kept: str) -> None:
    """SPEC CMD-3, CMD-4."""
    assert texts.interrupted_reply(text, outcome) == kept


PAID = ToolCall("pay", "1", datetime(2026, 1, 1, tzinfo=UTC), ok=True)
SENT = replace(PAID, name="send", ok=None)
REFUSED = replace(SENT, ok=False, uncertain=True)
READ = replace(PAID, name="read", side_effects=False)


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        ((), ""),
        ((PAID, SENT), "Before that I had called tools (completed: pay; outcome unknown: send)."),
        ((SENT, REFUSED), "Before that I had called tools (outcome unknown: send)."),
        ((replace(READ, ok=None), replace(READ, ok=False)),
         "Before that I had called tools (failed: read)."),
        ((SENT, replace(SENT, ok=False)),
         "Before that I had called tools (failed: send; outcome unknown: send)."),
        ((SENT, SENT, REFUSED, replace(PAID, ok=False)),
         "Before that I had called tools (failed: pay; outcome unknown: send)."),
        ((replace(READ, ok=None), READ, READ),
         "Before that I had called tools (completed: read 2 times)."),
        ((SENT, replace(SENT, ok=True)),
         "Before that I had called tools (completed: send; outcome unknown: send)."),
        (tuple(replace(PAID, name=name) for name in "abcdefghijkl"),
         "Before that I had called tools (completed: a, b, c, d, e, f, g, h, i, j, 2 more)."),
    ],
)  # fmt: skip
def test_a_message_that_is_given_up_says_what_was_done(
    calls: tuple[ToolCall, ...], words: str
) -> None:
    """SPEC IO-2."""
    assert texts.done_before(calls) == words


@pytest.mark.parametrize(
    ("attachment", "words"),
    [
        (Attachment(FileKind.PHOTO, "ref"), "[photo]"),
        (Attachment(FileKind.DOCUMENT, "ref", "tax.pdf"), "[document “tax.pdf”]"),
    ],
)
def test_a_file_is_named_where_only_words_are_kept(attachment: Attachment, words: str) -> None:
    """SPEC CHAN-6."""
    assert texts.file_name(attachment) == words
    assert texts.file_missing(attachment, "too large") == f"{words} could not be loaded: too large"


def test_a_long_name_of_a_file_does_not_fill_the_chat() -> None:
    assert len(texts.file_not_sent("x" * 5000, "it is gone")) < 120


def test_an_unsupported_kind_is_named() -> None:
    """SPEC CHAN-6."""
    assert "stickers" in texts.unsupported("stickers")
