"""What a chat looks like in a terminal: events in, text out. Does no output itself."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from goclaw_py.cli.output import plain
from goclaw_py.model.ids import RunId
from goclaw_py.model.outcomes import Outcome
from goclaw_py.model.run_events import RunEnded, RunStarted, RunText, RunTool
from goclaw_py.ports.control import ChatEvent, Said

PROMPT: Final = "\x1b[1;36m›\x1b[0m "  # noqa: RUF001  (meant to look like a prompt)
_CLEAR_LINE: Final = "\r\x1b[K"
_DIM: Final = "\x1b[2m"
_NORMAL: Final = "\x1b[0m"
_KEPT_RUNS: Final = 50


class Transcript:
    """Decides what to write next.

    Streamed text is shown as it grows, of one run at a time. The message that follows is the truth:
    what of it was not streamed is added, and if something else was streamed it is shown whole.
    ``interactive`` adds a prompt and notes; without it only the replies are written.
    """

    def __init__(self, *, interactive: bool) -> None:
        self._interactive = interactive
        self._at_prompt = False
        self._open: RunId | None = None
        self._streamed: OrderedDict[RunId, str] = OrderedDict()
        self._hidden: set[RunId] = set()

    def prompt(self) -> str:
        """Invite to type, unless a reply is being written or the prompt is there."""
        if not self._interactive or self._at_prompt or self._open is not None:
            return ""
        self._at_prompt = True
        return PROMPT

    def entered(self) -> None:
        """The person has pressed return: the terminal itself went to a new line."""
        self._at_prompt = False

    def note(self, text: str) -> str:
        """Say something that is not part of the chat."""
        if not self._interactive:
            return ""
        return f"{self._fresh_line()}{_DIM}{text}{_NORMAL}\n{self.prompt()}"

    def leave(self) -> str:
        """End the last line."""
        return self._end_line() if self._open is not None else "\n" * self._at_prompt

    def show(self, event: ChatEvent) -> str:
        """Show an event."""
        match event:
            case RunStarted():
                return ""
            case RunText(run_id, _, text):
                return self._stream(run_id, plain(text))
            case RunTool(_, _, name, ok):
                return self._tool(plain(name), ok)
            case RunEnded(run_id, _, outcome):
                return self._ended(run_id, outcome)
            case Said(_, text, run_id):
                return self._said(plain(text), run_id) + self.prompt()

    def _stream(self, run_id: RunId, text: str) -> str:
        if run_id in self._hidden or (self._open is not None and self._open != run_id):
            # A run whose beginning was not shown is not shown from its middle on.
            if run_id not in self._streamed:
                self._hidden.add(run_id)
            return self._remember(run_id, text) if run_id in self._streamed else ""
        before = "" if self._open == run_id else self._fresh_line()
        self._open = run_id
        self._streamed.setdefault(run_id, "")
        self._remember(run_id, text)
        return before + text

    def _tool(self, name: str, ok: bool | None) -> str:  # noqa: FBT001 - of an event
        """A call of a tool, when it begins and if it fails."""
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
            # Nothing was shown of it, and nothing may follow: somebody else has stopped it.
            return self.note(outcome.value.replace("_", " "))
        if self._open != run_id:
            return ""
        return self._end_line() + self.note(outcome.value.replace("_", " "))

    def _said(self, text: str, run_id: RunId | None) -> str:
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
