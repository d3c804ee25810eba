"""Converts the events of a chat into text for a terminal that edits its input line."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from io import StringIO
from typing import Final

from rich.console import Console
from rich.markdown import Markdown

from goclaw_py.cli.chats.transcript import DIM, NORMAL, file_line
from goclaw_py.cli.output import plain
from goclaw_py.model.ids import RunId
from goclaw_py.model.outcomes import Outcome
from goclaw_py.model.run_events import (
    ButtonsUsed,
    PressAnswered,
    RunEnded,
    RunStarted,
    RunText,
    RunTool,
)
from goclaw_py.ports.terminals import ChatEvent, OpenButtons, TerminalMessage

_DRAFT_CHARS: Final = 4000
"""Only the end of a draft is shown, so that a long one is not formatted again and again."""


def formatted(text: str, columns: int) -> str:
    """Return Markdown as text with colours. Line breaks stay, as people see them in other chats."""
    markdown = Markdown(plain(text), code_theme="ansi_dark", hyperlinks=False)
    for token in markdown.parsed:
        for child in token.children or ():
            if child.type == "softbreak":
                child.type = "hardbreak"
    shown = StringIO()
    Console(file=shown, width=columns, force_terminal=True).print(markdown)
    # Rich fills each line with blanks; a narrower window would wrap them.
    return "\n".join(line.rstrip() for line in shown.getvalue().strip("\n").split("\n"))


def draft_lines(text: str, columns: int) -> list[str]:
    """Return the lines of the end of an unfinished answer."""
    return formatted(text[-_DRAFT_CHARS:], columns).split("\n") if text.strip() else []


class MarkdownTranscript:
    """Decides what to write next; the counterpart of ``Transcript`` for an edited input line.

    The text of one run at a time is shown by ``show_draft`` while it grows. Its final message is
    written once, above the input line.
    """

    def __init__(self, show_draft: Callable[[str], None]) -> None:
        self._show_draft = show_draft
        self._open: RunId | None = None
        self._draft = ""
        self._is_over = False
        self._written: tuple[RunId | None, str] = None, ""

    def prompt(self) -> str:
        """Return nothing: the input line is always there."""
        return ""

    def entered(self) -> None:
        """Do nothing: the input line moves by itself."""

    def note(self, text: str) -> str:
        """Return a note that is not part of the chat."""
        return f"{DIM}{text.strip()}{NORMAL}\n"

    def leave(self) -> str:
        """Return what was said of an unfinished answer."""
        return self._close()

    def show(self, event: ChatEvent) -> str:
        """Return the text to write for an event."""
        match event:
            case RunStarted():
                return ""
            case RunText(run_id, _, text):
                return self._stream(run_id, text)
            case RunTool(_, _, name, ok):
                failed = "" if ok is None else " failed"
                return "" if ok else self.note(f"⚙ {plain(name)}{failed}")
            case RunEnded(run_id, _, outcome):
                return self._ended(run_id, outcome)
            case TerminalMessage(_, text, run_id, file):
                said = self._said(text, run_id) if text or file is None else ""
                return said + (self.note(plain(file_line(file))) if file else "")
            case OpenButtons() | ButtonsUsed() | PressAnswered():
                return ""

    def _stream(self, run_id: RunId, text: str) -> str:
        # The message of a run that is over may be late, or have gone to another terminal.
        before = self._close() if self._is_over else ""
        self._open = self._open or run_id
        if self._open == run_id:
            self._draft += text
            self._show_draft(self._draft)
        return before

    def _ended(self, run_id: RunId, outcome: Outcome) -> str:
        if outcome is Outcome.COMPLETED:
            # The draft stays until its message comes, or another run says something.
            self._is_over = self._is_over or self._open == run_id
            return ""
        said = self._close() if self._open == run_id else ""
        return said + self.note(outcome.value.replace("_", " "))

    def _said(self, text: str, run_id: RunId | None) -> str:
        if run_id is None:
            # Replies of commands are not Markdown.
            return f"{plain(text)}\n"
        if self._written == (run_id, text.strip()):
            return ""
        if self._open == run_id and text.strip().startswith(self._draft.strip()):
            self._forget()
        # Something else was drafted: a note of the agent, or the draft of a failed answer.
        return (self._close() if self._is_over and self._open == run_id else "") + _answer(text)

    def _close(self) -> str:
        self._written = self._open, self._draft.strip()
        said = _answer(self._draft) if self._draft.strip() else ""
        self._forget()
        return said

    def _forget(self) -> None:
        self._open, self._draft, self._is_over = None, "", False
        self._show_draft("")


def _answer(text: str) -> str:
    return f"{formatted(text, shutil.get_terminal_size().columns)}\n"
