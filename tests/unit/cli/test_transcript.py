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


@pytest.mark.parametrize(("events", "shown"), [
    ([started(), text("Hel"), text("lo"), ended(), said("Hello")], "Hello\n"),
    # Blanks around it do not make it another one.
    ([started(), text("Hello\n"), ended(), said("Hello")], "Hello\n\n"),
    # The rest that was not streamed is added.
    ([started(), text("Hel"), said("Hello, world"), ended()], "Hello, world\n"),
    # What was streamed otherwise, or not at all, is written whole.
    ([started(), text("draft"), ended(), said("final")], "draft\nfinal\n"),
    ([started(), ended(), said("Hello")], "Hello\n"),
    # The message of a failed run follows what it had streamed.
    ([started(), text("Hel"), ended(A, Outcome.FAILED), said("Sorry.")], "Hel\nSorry.\n"),
    # A message between two pieces of a stream has its own line.
    (
        [text("one "), said("stopped", None), text("two"), ended(), said("one two")],
        "one \nstopped\ntwo\n",
    ),
    # Of two runs at once one streams, and the other one is written at its end.
    ([text("a1"), text("b1", B), text("a2"), ended(), said("a1a2"), text("b2", B)], "a1a2\n"),
    (
        [text("a1"), text("b1", B), ended(B), said("b1b2", B), text("a2"), said("a1a2")],
        "a1\nb1b2\na2\n",
    ),
    # Leaving ends the line of an open stream.
    ([text("Hel")], "Hel\n"),
    # SPEC SEC-1: a chat cannot take over the terminal.
    ([text("a\x1b[2J\x07b"), said("a\x1b[2J\x07b")], "a[2Jb\n"),
    ([said("\x9b31mred\r\x08\ttab", None)], "31mred\ttab\n"),
])  # fmt: skip
def test_each_reply_is_written_once(events: list[ChatEvent], shown: str) -> None:
    assert piped(*events) == shown


def test_a_run_that_streams_on_behind_another_one_is_not_written_twice() -> None:
    transcript = Transcript(interactive=False)
    shown = "".join(
        transcript.show(event)
        for event in (text("a1"), said("x", None), text("b1", B), text("a2"), said("b1", B))
    )
    assert shown == "a1\nx\nb1\n"
    assert transcript.show(said("a1a2")) == ""


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


def test_what_comes_at_the_prompt_takes_its_line() -> None:
    transcript = Transcript(interactive=True)
    transcript.prompt()
    assert transcript.show(said("Ding", None)) == f"\r\x1b[KDing\n{PROMPT}"
    # A note is for people only.
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
