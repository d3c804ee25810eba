"""What a chat looks like in a terminal."""

from __future__ import annotations

import pytest

from goclaw_py.cli.chats.transcript import PROMPT, Transcript
from goclaw_py.model.ids import RunId
from goclaw_py.model.messages import Target
from goclaw_py.model.outcomes import Outcome
from goclaw_py.model.run_events import RunEnded, RunStarted, RunText
from goclaw_py.ports.control import ChatEvent, TerminalMessage

HERE = Target("console", "default", "local")
A, B = RunId("a"), RunId("b")


def started(run: RunId = A) -> ChatEvent:
    return RunStarted(run, HERE)


def text(words: str, run: RunId = A) -> ChatEvent:
    return RunText(run, HERE, words)


def ended(run: RunId = A, outcome: Outcome = Outcome.COMPLETED) -> ChatEvent:
    return RunEnded(run, HERE, outcome)


def said(words: str, run: RunId | None = A) -> ChatEvent:
    return TerminalMessage("receipt", words, run)


def piped(*events: ChatEvent) -> str:
    """What a pipe gets."""
    transcript = Transcript(interactive=False)
    return "".join(transcript.show(event) for event in events) + transcript.leave()


def test_a_streamed_reply_is_written_once() -> None:
    got = piped(started(), text("Hel"), text("lo"), ended(), said("Hello"))
    assert got == "Hello\n"


def test_blanks_around_a_streamed_reply_do_not_make_it_another() -> None:
    assert piped(started(), text("Hello\n"), ended(), said("Hello")) == "Hello\n\n"


def test_the_rest_of_a_reply_that_was_not_streamed_is_added() -> None:
    assert piped(started(), text("Hel"), said("Hello, world"), ended()) == "Hello, world\n"


def test_a_reply_that_was_streamed_otherwise_is_written_whole() -> None:
    assert piped(started(), text("draft"), ended(), said("final")) == "draft\nfinal\n"


def test_a_reply_that_was_not_streamed_is_written_whole() -> None:
    assert piped(started(), ended(), said("Hello")) == "Hello\n"


def test_the_message_of_a_failed_run_follows_what_it_had_streamed() -> None:
    got = piped(started(), text("Hel"), ended(A, Outcome.FAILED), said("Sorry."))
    assert got == "Hel\nSorry.\n"


def test_a_message_between_two_pieces_of_a_stream_has_its_own_line() -> None:
    got = piped(text("one "), said("stopped nothing", None), text("two"), ended(), said("one two"))
    assert got == "one \nstopped nothing\ntwo\n"


def test_of_two_runs_at_once_one_streams_and_the_other_is_written_at_its_end() -> None:
    got = piped(text("a1"), text("b1", B), text("a2"), ended(), said("a1a2"), text("b2", B))
    assert got == "a1a2\n"
    got = piped(text("a1"), text("b1", B), ended(B), said("b1b2", B), text("a2"), said("a1a2"))
    assert got == "a1\nb1b2\na2\n"


def test_a_run_that_streams_on_behind_another_one_is_not_written_twice() -> None:
    transcript = Transcript(interactive=False)
    shown = "".join(
        transcript.show(event)
        for event in (text("a1"), said("x", None), text("b1", B), text("a2"), said("b1", B))
    )
    assert shown == "a1\nx\nb1\n"
    assert transcript.show(said("a1a2")) == ""


def test_leaving_ends_the_line_of_an_open_stream() -> None:
    assert piped(text("Hel")) == "Hel\n"


def test_a_chat_cannot_take_over_the_terminal() -> None:
    """SPEC SEC-1."""
    assert piped(text("a\x1b[2J\x07b"), said("a\x1b[2J\x07b")) == "a[2Jb\n"
    assert piped(said("\x9b31mred\r\x08\ttab", None)) == "31mred\ttab\n"


def test_a_person_is_prompted_again_after_each_reply() -> None:
    transcript = Transcript(interactive=True)
    assert transcript.prompt() == PROMPT
    assert transcript.prompt() == ""
    transcript.entered()
    assert transcript.show(started()) == ""
    assert transcript.show(text("Hello")) == "Hello"
    assert transcript.prompt() == ""
    assert transcript.show(said("Hello")) == "\n" + PROMPT
    assert transcript.leave() == "\n"


def test_a_reply_that_comes_at_the_prompt_takes_its_line() -> None:
    transcript = Transcript(interactive=True)
    transcript.prompt()
    assert transcript.show(said("Ding", None)) == f"\r\x1b[KDing\n{PROMPT}"


def test_a_note_is_for_people_only() -> None:
    assert Transcript(interactive=False).note("x") == ""
    assert Transcript(interactive=True).note("x") == f"\x1b[2mx\x1b[0m\n{PROMPT}"


@pytest.mark.parametrize("outcome", [Outcome.CANCELLED, Outcome.TIMED_OUT])
def test_a_person_sees_how_a_cut_reply_ended(outcome: Outcome) -> None:
    transcript = Transcript(interactive=True)
    transcript.show(text("Hel"))
    got = transcript.show(ended(A, outcome))
    assert got == f"\n\x1b[2m{outcome.value.replace('_', ' ')}\x1b[0m\n{PROMPT}"


def test_a_cut_reply_that_was_interrupted_by_a_message_needs_no_new_line() -> None:
    transcript = Transcript(interactive=False)
    transcript.show(text("Hel"))
    transcript.show(said("x", None))
    assert transcript.show(ended(A, Outcome.CANCELLED)) == ""


def test_replies_that_never_come_are_forgotten_in_the_end() -> None:
    transcript = Transcript(interactive=False)
    transcript.show(text("old"))
    for number in range(100):
        run = RunId(str(number))
        transcript.show(said("x", None))
        transcript.show(text("y", run))
    assert transcript.show(said("old")) == "\nold\n"
