"""Converts the events of a chat into text for a terminal that edits its input line."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from io import StringIO
from typing import ClassVar, Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import ListElement, ListItem, Markdown
from rich.segment import Segment

from goclaw_py.chat.terminals import ChatEvent, OpenButtons, TerminalMessage
from goclaw_py.cli.chats.transcript import (
    DIM,
    NO_ANSWER,
    NORMAL,
    ToolQuestions,
    file_line,
    possible_decisions,
    received_line,
    tool_line,
)
from goclaw_py.cli.output import folded, plain
from goclaw_py.core.ids import RunId
from goclaw_py.core.markdown import Token, make_parser, parse
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

_DRAFT_CHARS: Final = 4000
"""Only the end of a draft is shown, so that a long one is not formatted again and again."""
_STYLE: Final = re.compile(r"\x1b\[[0-9;]*m")


class _Item(ListItem):
    """An item with its number as written."""

    def __init__(self, number: str) -> None:
        super().__init__()
        self.number = number

    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> _Item:  # noqa: ARG003  Rich's signature
        return cls(token.info)


class _List(ListElement):
    """A list whose numbers are not counted."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        items = [item for item in self.items if isinstance(item, _Item)]
        width = max((len(item.number) for item in items), default=0)
        if not width:
            yield from super().__rich_console__(console, options)
            return
        style = console.get_style("markdown.item.number", default="none")
        inner = options.update(width=max(options.max_width - width - 2, 1))
        for item in items:
            mark = f" {item.number.rjust(width)} "
            for line in console.render_lines(item.elements, inner, style=item.style):
                yield Segment(mark, style)
                yield from line
                yield Segment("\n")
                mark = " " * len(mark)


class _Markdown(Markdown):
    """What the reader of all channels has parsed, in Rich's layout."""

    elements: ClassVar = {
        **Markdown.elements,
        "bullet_list_open": _List,
        "ordered_list_open": _List,
        "list_item_open": _Item,
    }

    def __init__(self, tokens: list[Token]) -> None:
        super().__init__("", code_theme="ansi_dark", hyperlinks=False)
        self.parsed = tokens


def formatted(text: str, columns: int) -> str:
    """Return Markdown as text with colours. Line breaks stay, as people see them in other chats.

    What cannot be parsed, or shows nothing, is returned as it is.
    """
    text = plain(text)
    tokens = parse(_parser, text)
    if tokens is None:
        return text
    for token in tokens:
        if token.children:
            token.children = [_shown(child) for child in token.children if not _is_bare(child)]
    shown = StringIO()
    Console(file=shown, width=columns, force_terminal=True).print(_Markdown(tokens))
    # Rich fills each line with blanks; a narrower window would wrap them.
    lines = "\n".join(line.rstrip() for line in shown.getvalue().strip("\n").split("\n"))
    # Some Markdown shows nothing, such as a fence with only its first line.
    return lines if _STYLE.sub("", lines).strip() else text


def _shown(token: Token) -> Token:
    if token.type == "softbreak":
        token.type = "hardbreak"
    return token


def _is_bare(token: Token) -> bool:
    """Return whether a token begins or ends a link whose words are its address."""
    return token.markup == "autolink"


def _any_address(url: str) -> bool:  # noqa: ARG001  the library's signature
    """Accept any address: each is shown, and none can be clicked."""
    return True


_parser = make_parser(_any_address)


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
        self._questions = ToolQuestions()
        self._written: tuple[RunId | None, str] = None, ""

    def prompt(self) -> str:
        """Return nothing: the input line is always there."""
        return ""

    def entered(self) -> None:
        """Do nothing: the input line moves by itself."""

    def note(self, text: str) -> str:
        """Return a note that is not part of the chat."""
        lines = "\n".join(folded(text.strip()))
        return f"{DIM}{lines}{NORMAL}\n"

    def leave(self) -> str:
        """Return what was said of an unfinished answer."""
        return self._close()

    def show(self, event: ChatEvent) -> str:
        """Return the text to write for an event."""
        match event:
            case RunStarted() | ButtonsUsed() | PressAnswered():
                return ""
            case RunText(run_id, _, text):
                return self._stream(run_id, text)
            case RunTool():
                line = tool_line(event, self._questions)
                return self.note(line) if line else ""
            case RunWaiting(_, _, text):
                return self.note(plain(text)) if text else ""
            case RunEnded(run_id, _, outcome, silent=silent):
                is_empty = silent and run_id != self._open
                return self._ended(run_id, outcome) + (self.note(NO_ANSWER) if is_empty else "")
            case TerminalMessage(_, _, run_id, file):
                text = self._questions.shown(event)
                said = self._message(text, run_id) if text else ""
                return said + (self.note(plain(file_line(file))) if file else "")
            case OpenButtons(message):
                return self.show(message) if possible_decisions(message) else ""
            case LineReceived():
                return self.note(received_line(event))

    def _stream(self, run_id: RunId, text: str) -> str:
        # The message of a run that is over may be late, or have gone to another terminal.
        before = self._close() if self._is_over else ""
        self._open = self._open or run_id
        if self._open == run_id:
            self._draft += text
            self._show_draft(self._draft)
        return before

    def _ended(self, run_id: RunId, outcome: Outcome) -> str:
        self._questions.ended()
        if outcome is Outcome.COMPLETED:
            # The draft stays until its message comes, or another run says something.
            self._is_over = self._is_over or self._open == run_id
            return ""
        said = self._close() if self._open == run_id else ""
        # An interrupted run goes on later, for example after an approval.
        ended = "" if outcome is Outcome.INTERRUPTED else outcome_text(outcome)
        return said + (self.note(ended) if ended else "")

    def _message(self, text: str, run_id: RunId | None) -> str:
        if run_id is None:
            # Replies of commands are not Markdown.
            return "".join(f"{line}\n" for line in folded(plain(text)))
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
