"""Converts the events of a chat into text for a terminal. Does no output itself."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, Protocol

from goclaw_py.chat.outbound import approval_texts
from goclaw_py.chat.terminals import ChatEvent, OpenButtons, TerminalMessage
from goclaw_py.cli.output import plain
from goclaw_py.core.approvals import Decision
from goclaw_py.core.chat_commands import decision_of
from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import OutFile
from goclaw_py.core.outcomes import Outcome, outcome_text
from goclaw_py.core.run_events import (
    ButtonsUsed,
    LineReceived,
    PressAnswered,
    RunEnded,
    RunStarted,
    RunText,
    RunTool,
    RunWaiting,
)

PROMPT: Final = "\x1b[1;36m›\x1b[0m "  # noqa: RUF001  (meant to look like a prompt)
_CLEAR_LINE: Final = "\r\x1b[K"
DIM: Final = "\x1b[2m"
NORMAL: Final = "\x1b[0m"
NO_ANSWER: Final = "(no answer)"
"""The note for a run that had nothing to say, which would otherwise look lost."""
_KEPT_RUNS: Final = 50


class ToolQuestions:
    """The questions about tool calls in a terminal, which has no buttons (SPEC AGENT-11)."""

    def __init__(self) -> None:
        self._asked: dict[str, tuple[str, str]] = {}
        """The text and the tool of each unanswered question, by its receipt."""
        self._refused: set[str] = set()
        self._last = ""
        """The answer that was shown last, which may come a second time."""

    def shown(self, message: TerminalMessage) -> str:
        """Return the text of a message; "" if another one has said the same.

        A question says how to answer it. Its answer edits it, also if it was given elsewhere, and
        an answer that was typed has a reply as well.
        """
        text = message.text
        if asked := possible_decisions(message):
            if message.receipt in self._asked:
                return ""
            call = text.split("\n\n")[1:2] or [""]
            self._asked[message.receipt] = text, call[0].split("\n")[0]
            self._last = ""
            return f"{text}\n\n{approval_texts.typed_answers(asked)}"
        if message.run_id is not None or not approval_texts.ends_with_answer(text):
            return text
        asked_in = next((k for k, (one, _) in self._asked.items() if text.startswith(one)), None)
        if asked_in is not None:
            question, tool = self._asked.pop(asked_in)
            text = text.removeprefix(question).strip()
            if approval_texts.is_refusal(text):
                self._refused.add(tool)
        is_twice = bool(self._last) and (text.endswith(self._last) or self._last.endswith(text))
        self._last = "" if is_twice else text
        return "" if is_twice else text

    def is_refused(self, tool: str) -> bool:
        """Return whether people know that a call fails, because one of them has refused it."""
        return tool in self._refused

    def ended(self) -> None:
        """Record that a run has ended, which has got the refusals."""
        self._refused.clear()


class ChatDisplay(Protocol):
    """Converts the events of a chat into text to write."""

    def prompt(self) -> str:
        """Return the prompt if it must be written."""

    def entered(self) -> None:
        """Record that the user pressed return."""

    def note(self, text: str) -> str:
        """Return a note that is not part of the chat."""

    def show(self, event: ChatEvent) -> str:
        """Return the text to write for an event."""

    def leave(self) -> str:
        """Return what to write at the end."""


class Transcript:
    """Decides what to write next.

    Text is streamed for one run at a time. The final message is authoritative: the part that was
    not streamed is added, and if something else was streamed, the whole message is shown.
    ``interactive`` adds a prompt and notes; without it only replies are written.
    """

    def __init__(self, *, interactive: bool) -> None:
        self._interactive = interactive
        self._at_prompt = False
        self._open: RunId | None = None
        self._streamed: OrderedDict[RunId, str] = OrderedDict()
        self._hidden: set[RunId] = set()
        self._questions = ToolQuestions()

    def prompt(self) -> str:
        """Return the prompt, unless it is already shown or a reply is being written."""
        if not self._interactive or self._at_prompt or self._open is not None:
            return ""
        self._at_prompt = True
        return PROMPT

    def entered(self) -> None:
        """Record that the user pressed return, so the terminal is on a new line."""
        self._at_prompt = False

    def note(self, text: str) -> str:
        """Return a note that is not part of the chat."""
        if not self._interactive:
            return ""
        return f"{self._fresh_line()}{DIM}{text}{NORMAL}\n{self.prompt()}"

    def leave(self) -> str:
        """Return what ends the last line."""
        return self._end_line() if self._open is not None else "\n" * self._at_prompt

    def show(self, event: ChatEvent) -> str:
        """Return the text to write for an event."""
        match event:
            case RunStarted() | ButtonsUsed() | PressAnswered():
                return ""
            case RunText(run_id, _, text):
                return self._stream(run_id, plain(text))
            case RunTool():
                line = tool_line(event, self._questions)
                return self.note(line) if line else ""
            case RunWaiting(_, _, text):
                return self.note(plain(text)) if text else ""
            case RunEnded(run_id, _, outcome, silent=silent):
                is_empty = silent and run_id not in self._streamed
                return self._ended(run_id, outcome) + (self.note(NO_ANSWER) if is_empty else "")
            case TerminalMessage(_, _, run_id, file):
                text = self._questions.shown(event)
                said = "\n".join(filter(None, [text, file_line(file)]))
                return self._message(plain(said), run_id) + self.prompt() if said else ""
            case OpenButtons(message):
                return self.show(message) if possible_decisions(message) else ""
            case LineReceived():
                return self.note(received_line(event))

    def _stream(self, run_id: RunId, text: str) -> str:
        if run_id in self._hidden or (self._open is not None and self._open != run_id):
            # Do not start showing a run in the middle of its text.
            if run_id not in self._streamed:
                self._hidden.add(run_id)
            return self._remember(run_id, text) if run_id in self._streamed else ""
        before = "" if self._open == run_id else self._fresh_line()
        self._open = run_id
        self._streamed.setdefault(run_id, "")
        self._remember(run_id, text)
        return before + text

    def _remember(self, run_id: RunId, text: str) -> str:
        self._streamed[run_id] += text
        while len(self._streamed) > _KEPT_RUNS:
            self._streamed.popitem(last=False)
        return ""

    def _ended(self, run_id: RunId, outcome: Outcome) -> str:
        self._hidden.discard(run_id)
        self._questions.ended()
        if outcome is Outcome.COMPLETED:
            return ""
        if outcome is Outcome.INTERRUPTED:
            # It goes on later, for example after an approval.
            self._streamed.pop(run_id, None)
            return self._end_line() if self._open == run_id else ""
        if self._streamed.pop(run_id, None) is None:
            # No text was shown, and none may follow: the run was stopped elsewhere.
            return self.note(outcome_text(outcome))
        if self._open != run_id:
            return ""
        return self._end_line() + self.note(outcome_text(outcome))

    def _message(self, text: str, run_id: RunId | None) -> str:
        shown = None if run_id is None else self._streamed.pop(run_id, None)
        is_open = self._open is not None and self._open == run_id
        if shown is not None and text.strip().startswith(shown.strip()):
            rest = text.strip()[len(shown.strip()) :]
            if is_open:
                return rest + self._end_line()
            if not rest:
                return ""
        return f"{self._fresh_line()}{text}\n"

    def _fresh_line(self) -> str:
        if self._open is not None:
            return self._end_line()
        if self._at_prompt:
            self._at_prompt = False
            return _CLEAR_LINE
        return ""

    def _end_line(self) -> str:
        self._open = None
        return "\n"


def possible_decisions(message: TerminalMessage) -> set[Decision]:
    """Return the possible answers if a message asks about a tool call, else none."""
    found = {decision_of(one.data) for row in message.buttons for one in row}
    return {one for one in found if one is not None}


def received_line(event: LineReceived) -> str:
    """Return what was typed in another terminal, or sent there as files, as in its input line."""
    return plain(f"› {event.text or ', '.join(event.files)}")  # noqa: RUF001


def tool_line(event: RunTool, questions: ToolQuestions) -> str:
    """Return the line about a tool call that begins, failed or was denied; "" for any other."""
    name = plain(event.name)
    if event.ok or questions.is_refused(name):
        return ""
    end = "" if event.ok is None else " denied" if event.denied else " failed"
    return f"⚙ {name}{end}"


def file_line(file: OutFile | None) -> str:
    """Return the line that names a sent file and its path; "" if there is none."""
    return "" if file is None else f"[{file.name}: {file.path}]"
