"""The lines of a conversation in the chat of the dashboard (SPEC CHAN-9)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from goclaw_py.chat.outbound import texts
from goclaw_py.core.messages import Attachment
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.text import first_words
from goclaw_py.operations.sessions.operations import QueueView
from goclaw_py.records import StoredEntry, StoredRun, Unanswered
from goclaw_py.runs.agent_loop import HistoryEntry, Role

_ANSWERED: Final = (None, Outcome.COMPLETED)
_QUESTION_CHARS: Final = 160


@dataclass(frozen=True, slots=True)
class Line:
    """An entry of the conversation.

    Args:
        run: At the last entry of a run this run, whose tool calls are shown before it.
        problem: Why there is no answer, "" if there is one or may come.
        question: What it answers, if that does not stand directly before it.
        files: The names of files that no run has taken yet.
        message: The id of a message that no run answers yet, as its terminal has chosen it.
    """

    entry: StoredEntry
    run: StoredRun | None = None
    problem: str = ""
    question: str = ""
    files: tuple[str, ...] = ()
    message: str = ""

    @property
    def text(self) -> str:
        """Its text; files stand beside it, not in it."""
        placeholders = {
            texts.file_name(Attachment(file.kind, "", file.name)) for file in self.entry.entry.files
        }
        lines = self.entry.entry.text.split("\n")
        return "\n".join(line for line in lines if line not in placeholders)


def lines_of(
    history: list[StoredEntry], runs: list[StoredRun], queue: QueueView | None
) -> list[Line]:
    """Return a conversation: its history, and the messages without an answer.

    A message that ended before the history begins belongs to an earlier conversation.
    """
    by_id = {run.id: run for run in runs}
    last = {one.run_id: one for one in history if one.run_id}
    found = [
        _line(one, by_id.get(one.run_id) if one.run_id and last[one.run_id] is one else None)
        for one in history
    ]
    if queue is not None:
        ended = [one for one in queue.unanswered if history and one.received_at >= history[0].at]
        missing = [one for one in (*ended, *queue.messages) if one.run_id not in last]
        found += [_missing(one, by_id.get(one.run_id) if one.run_id else None) for one in missing]
    return _with_questions(sorted(found, key=lambda line: line.entry.at))


def _with_questions(lines: list[Line]) -> list[Line]:
    """Let answers say what they answer, where other messages stand between."""
    asked = {line.entry.run_id: line for line in lines if line.entry.entry.role is Role.USER}
    found, before = [], None
    for line in lines:
        run = line.entry.run_id
        is_apart = before is not None and run and before.entry.run_id != run
        if line.entry.entry.role is Role.ASSISTANT and is_apart and run in asked:
            line = replace(line, question=first_words(asked[run].text, _QUESTION_CHARS))  # noqa: PLW2901
        found.append(line)
        before = line
    return found


def _line(entry: StoredEntry, run: StoredRun | None) -> Line:
    if run is None or run.outcome in _ANSWERED:
        return Line(entry, run)
    return Line(entry, run, _problem(run.outcome, run.reason, run.error))


def _missing(one: Unanswered, run: StoredRun | None) -> Line:
    entry = HistoryEntry(Role.USER, one.message.markdown)
    problem = _problem(one.outcome, one.reason, run.error if run else None) if one.outcome else ""
    names = tuple(file.name for file in one.message.attachments)
    stored = StoredEntry(entry, one.received_at, one.run_id)
    return Line(stored, run, problem, files=names, message="" if one.outcome else own_id(one))


def own_id(one: Unanswered) -> str:
    """Return the id of a message as its terminal has chosen it."""
    return one.message.external_id.rpartition(":")[2]


def _problem(outcome: Outcome | None, reason: Reason | None, error: str | None) -> str:
    words = (outcome or "").replace("_", " "), (reason or "").replace("_", " "), error
    return ": ".join(filter(None, words))
