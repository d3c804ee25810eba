"""Converts the events of a chat into text for a terminal. Does no output itself."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, Protocol

from goclaw_py.chat.terminals import ChatEvent, OpenButtons, TerminalMessage
from goclaw_py.cli.output import plain
from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import OutFile
from goclaw_py.core.outcomes import Outcome
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
_KEPT_RUNS: Final = 50


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
            case RunStarted():
                return ""
            case RunText(run_id, _, text):
                return self._stream(run_id, plain(text))
            case RunTool(_, _, name, ok):
                return self._tool(plain(name), ok)
            case RunWaiting(_, _, text):
                return self.note(plain(text)) if text else ""
            case RunEnded(run_id, _, outcome):
                return self._ended(run_id, outcome)
            case TerminalMessage(_, text, run_id, file):
                said = "\n".join(filter(None, [text, file_line(file)]))
                return self._message(plain(said), run_id) + self.prompt()
            case OpenButtons() | ButtonsUsed() | PressAnswered() | LineReceived():
                return ""

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

    def _tool(self, name: str, ok: bool | None) -> str:  # noqa: FBT001 - of an event
        """Return a note when a tool call begins or fails."""
        if ok:
            return ""
        return self.note(f"⚙ {name}" if ok is None else f"⚙ {name} failed")

    def _remember(self, run_id: RunId, text: str) -> str:
        self._streamed[run_id] += text
        while len(self._streamed) > _KEPT_RUNS:
            self._streamed.popitem(last=False)
        return ""

    def _ended(self, run_id: RunId, outcome: Outcome) -> str:
        self._hidden.discard(run_id)
        if outcome is Outcome.COMPLETED:
            return ""
        if self._streamed.pop(run_id, None) is None:
            # No text was shown, and none may follow: the run was stopped elsewhere.
            return self.note(outcome.value.replace("_", " "))
        if self._open != run_id:
            return ""
        return self._end_line() + self.note(outcome.value.replace("_", " "))

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


def file_line(file: OutFile | None) -> str:
    """Return the line that names a sent file and its path; "" if there is none."""
    return "" if file is None else f"[{file.name}: {file.path}]"
