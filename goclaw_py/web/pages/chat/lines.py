"""The lines of a conversation in the chat of the dashboard (SPEC CHAN-9)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from operator import attrgetter
from typing import Final

from goclaw_py.chat.outbound import approval_texts, texts
from goclaw_py.core.approvals import Approval
from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import Attachment, HistoryEntry, Role
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.operations.sessions.operations import QueueView
from goclaw_py.records import Aside, StoredEntry, StoredRun, ToolCall, Unanswered

MOST_CALLS: Final = 50
"""The most tool calls of a run that are shown."""
SHOWN: Final = 50
"""The most entries of the history that are shown at first: the newest."""

AFRESH: Final = "The agent begins afresh here: it does not remember what is above."
"""What stands above a line that is fresh."""

_AGAIN: Final = re.compile(r"/undo [0-9a-f-]{32,} (again|edit\b.*)", re.DOTALL)
"""The commands of the buttons of the page for a turn that is answered again."""
_STOP_BUTTON: Final = "stop-"
"""The ids of the commands of the button Stop begin with it: nobody has typed them."""
_ANSWERED: Final = (None, Outcome.COMPLETED, Outcome.INTERRUPTED)
"""Outcomes of which there is nothing to say: another run continues an interrupted one."""
_NOTES: Final = {texts.interrupted_note(outcome): outcome for outcome in Outcome}
"""The last lines of entries of runs that have not completed: the agent reads them."""
_QUIET: Final = (Outcome.CANCELLED, Outcome.DROPPED)
"""Outcomes that a person, or the queue mode of the chat, has wanted."""
_DROPPED: Final[Mapping[Reason | None, str]] = {
    Reason.STOPPED: "stopped while it waited",
    Reason.STOPPED_ALL: "stopped while it waited",
    Reason.QUEUE_FULL: "the queue was full",
    Reason.QUEUE_DROPPED: "the queue was full, and it was the oldest",
    Reason.NEWER_MESSAGE: "a newer message replaced it",
    Reason.LANE_CLOSED: "nothing new was accepted",
    Reason.DRAINING: "nothing new was accepted",
}
"""Why a message was dropped, in words for people who chat."""
_ORIGIN: Final = re.compile(r"\[(from the (?:heartbeat|job “[^”\n]*”)|sent by [^\]\n]+)\]\n")
"""How the history marks what came without a question: the agent reads that, and people read it
beside the name."""


@dataclass(frozen=True, slots=True)
class Line:
    """An entry of the conversation, or a part of one.

    Args:
        run: At the last entry of a run this run, whose tool calls are shown with it.
        problem: Why there is no answer, "" if there is one or may come.
        is_quiet: Whether the problem is what somebody wanted.
        files: The names of files that no run has taken yet.
        message: The id of a message that is in no history, or of a command, as its terminal has
            chosen it.
        receipt: The id of a message that is in no history, by which its buttons name it.
        is_remembered: Whether it is an entry of the history, which the agent reads.
        is_markdown: Whether its text is Markdown; else it is shown as it is.
        is_answered: Whether it is an answered question of a tool.
        is_asking: Whether it is what a run has said that waits for answers, which go on with it.
        is_dropped: Whether it is a message that no run has begun with, and none will.
        is_last: Whether it belongs to the last turn of the history, which can be undone unless the
            conversation was reset since. Others may stand below it: it may have begun before them,
            and ended after them.
        is_fresh: Whether the agent remembers nothing that stands above it, and no line between says
            so: the conversation was reset there.
    """

    entry: StoredEntry
    run: StoredRun | None = None
    problem: str = ""
    is_quiet: bool = False
    files: tuple[str, ...] = ()
    message: str = ""
    receipt: str = ""
    is_remembered: bool = True
    is_markdown: bool = True
    is_answered: bool = False
    is_asking: bool = False
    is_dropped: bool = False
    is_last: bool = False
    is_fresh: bool = False
    words: str = ""
    calls: tuple[ToolCall, ...] = ()
    place: int | None = None
    is_first: bool = True
    is_end: bool = True
    id: str = ""

    @property
    def text(self) -> str:
        """Its text; files, its origin and the outcome of its run stand beside it, not in it."""
        whole = self.entry.entry.text
        if self.entry.entry.role is Role.ASSISTANT:
            whole = _ORIGIN.sub("", whole, count=1) if self.origin else whole
            note = _note(whole)
            return whole.removesuffix(note).rstrip() if note else whole
        placeholders = {
            texts.file_name(Attachment(file.kind, "", file.name)) for file in self.entry.entry.files
        }
        return "\n".join(line for line in whole.split("\n") if line not in placeholders)

    @property
    def origin(self) -> str:
        """What it came from without a question, such as ``from the heartbeat``; "" for answers."""
        found = _ORIGIN.match(self.entry.entry.text)
        return found[1] if found and self.entry.entry.role is Role.ASSISTANT else ""


def lines_of(
    history: list[StoredEntry],
    runs: list[StoredRun],
    queue: QueueView | None,
    asides: Sequence[Aside] = (),
    *,
    approvals: Sequence[Approval] = (),
    has_earlier: bool = False,
) -> list[Line]:
    """Return a conversation: its history, the messages without an answer, and what is beside it.

    A message that was dropped stands where it came, also if nothing was answered since. What a run
    has said is divided by its tool calls, and by the answered ones of ``approvals``.

    ``has_earlier``: more of the history is stored; nothing from before its first entry is shown.
    """
    begins_at = history[0].at if has_earlier else datetime.min.replace(tzinfo=UTC)
    asides = [one for one in asides if one.at >= begins_at]
    by_id = {run.id: run for run in _with_earlier_calls(runs)}
    later = {run.follows: run.id for run in runs if run.follows}
    approvals = sorted(approvals, key=attrgetter("asked_at", "id"))
    last = {one.run_id: one for one in history if one.run_id}
    found = [
        _line(one, by_id.get(one.run_id) if one.run_id and last[one.run_id] is one else None)
        for one in history
        if one.entry.text != texts.interrupted_note(Outcome.INTERRUPTED)
    ]
    if queue is not None:
        ended = [one for one in queue.unanswered if one.received_at >= begins_at]
        missing = [one for one in (*ended, *queue.messages) if one.run_id not in last]
        newest = {one.run_id: one.id for one in missing}
        for one in missing:
            line = _missing(one, by_id.get(one.run_id) if one.run_id else None)
            # The tool calls of a run stand once, below the last of its messages.
            found.append(line if newest[one.run_id] == one.id else replace(line, run=None))
    found += _asking(approvals, by_id, {*last, *later}, begins_at)
    shown = {None, *(line.entry.run_id for line in found)}  # the others were undone
    beside = _asides([one for one in asides if one.run_id in shown], history, by_id)
    # Of a turn that was stopped while it asked, the line of the turn says so.
    stopped = {one.at for one in history if _NOTES.get(_note(one.entry.text)) is Outcome.CANCELLED}
    unanswered = {
        one.entry.at: one.text.rpartition("? ")[0]
        for one in beside
        if one.is_answered and one.entry.at in stopped
    }
    beside = [one for one in beside if not (one.is_answered and one.entry.at in stopped)]
    found = [
        replace(one, problem=f"{one.problem} It had asked: {unanswered[one.entry.at]}?")
        if one.problem and one.entry.at in unanswered
        else one
        for one in found
    ]
    decided, beside = _decided(beside, approvals, later, {one.run.id for one in found if one.run})
    found = list(_explained(found, beside))
    begun: dict[RunId | None, datetime] = {}
    for line in found:
        begun.setdefault(line.entry.run_id, line.entry.at)
    begun.pop(None, None)
    asked = sorted(
        (line.entry for line in found if line.entry.entry.role is Role.USER), key=attrgetter("at")
    )

    def place(line: Line) -> tuple[datetime, datetime]:
        at = line.entry.at
        if line.is_answered:
            # Above the answer of the run that went on with it.
            spans = ((begun[run], one.at) for run, one in last.items() if run in begun)
            return next((since for since, until in spans if since <= at <= until), at), at
        if line.entry.entry.role is Role.ASSISTANT and line.entry.run_id not in begun:
            # What was said while a question waited for its answer stands between them. Of a turn
            # that is answered again, what a job or a heartbeat has said before that does not.
            before = bisect_right(asked, at, key=attrgetter("at"))
            question = asked[before - 1].run_id if before else None
            run = by_id.get(question) if question else None
            if line.origin and run and run.id in last and at < run.submitted_at:
                return begun[run.id], last[run.id].at + timedelta(microseconds=1)
            return begun.get(question, at), at
        # An answer stands below what it answers, also if more was said meanwhile.
        return begun.get(line.entry.run_id, at), at

    latest = next((one.run_id for one in reversed(history) if one.run_id), None)
    resets = history[0].resets if history else 0
    return _named(_divided(sorted(found, key=place), decided, latest, resets))


def _asking(
    approvals: Iterable[Approval],
    runs: Mapping[RunId, StoredRun],
    over: Collection[RunId | None],
    begins_at: datetime,
) -> Iterable[Line]:
    """Return what runs have said that wait for answers, or with them; ``over`` are the others."""
    return {
        one.run_id: Line(
            StoredEntry(HistoryEntry(Role.ASSISTANT, one.context.said), one.asked_at, one.run_id),
            runs[one.run_id],
            is_remembered=False,
            is_asking=True,
        )
        for one in approvals
        if one.run_id in runs and one.run_id not in over and one.asked_at >= begins_at
        if runs[one.run_id].outcome is Outcome.INTERRUPTED
        if runs[one.run_id].occurrence is None
    }.values()


def _divided(
    lines: Iterable[Line],
    decided: Mapping[RunId, list[_Mark]],
    latest: RunId | None,
    resets: int,
) -> Iterator[Line]:
    """Yield lines in parts; ``latest``: the run of the last turn, ``resets``: their first epoch."""
    is_known = False  # the answer to /new says it already
    for line in lines:
        one = line.entry
        is_last = latest is not None and one.run_id == latest
        is_fresh = one.resets > resets and not is_known
        whole = replace(line, is_last=True) if is_last else line
        for part in _parts(whole, decided.get(line.run.id, []) if line.run else []):
            if part.words or part.calls or part.is_end:
                yield replace(part, is_fresh=True) if is_fresh else part
                is_fresh = False
        resets = max(resets, one.resets)
        is_known = not line.is_remembered and (is_known or line.text == texts.NEW_SESSION)


@dataclass(frozen=True, slots=True)
class _Mark:
    """What stands between the words of a run: a tool call, or an answered question about one.

    Args:
        place: How many characters the run had said before it.
        key: The order of those at one place.
    """

    place: int
    key: tuple[datetime, str]
    what: ToolCall | Line


def _decided(
    beside: list[Line],
    approvals: Iterable[Approval],
    later: Mapping[RunId, RunId],
    shown: Collection[RunId],
) -> tuple[dict[RunId, list[_Mark]], list[Line]]:
    """Return the answered questions of shown runs, by the run that went on, and what else there is.

    A line of an answer came at the moment of the answer.
    """
    by_time: dict[datetime, list[Approval]] = {}
    for asked in approvals:
        if asked.decided_at is not None:
            by_time.setdefault(asked.decided_at, []).append(asked)
    found: dict[RunId, list[_Mark]] = {}
    others: list[Line] = []
    for line in beside:
        same = by_time.get(line.entry.at) if line.is_answered else None
        if not same:
            others.append(line)
            continue
        one = same.pop(0)
        run = one.run_id
        while run in later:
            run = later[run]
        if run not in shown:
            others.append(line)
            continue
        mark = _Mark(len(one.context.said), (one.asked_at, one.id), line)
        found.setdefault(run, []).append(mark)
    return found, others


def _parts(line: Line, decided: Iterable[_Mark]) -> Iterator[Line]:
    """Yield a line in parts, with the calls of its run and answered questions at their places.

    What has no known place in the words stands above all that follows. What belongs to a run that
    has no entry yet stands below the message that it answers.
    """
    run, text, since = line.run, line.text, 0
    tools = run.tools[:MOST_CALLS] if run else ()
    marks = [*decided, *(_Mark(one.text_before, (one.started_at, ""), one) for one in tools)]
    is_answer = line.entry.entry.role is Role.ASSISTANT
    if not marks:
        words = text.strip("\n") if is_answer else text
        yield replace(line, words=words, is_end=bool(words) or not line.is_asking)
        return
    is_divided = (line.is_remembered or line.is_asking) and not line.origin
    bare = replace(line, words="", problem="", is_end=False)
    calls: list[ToolCall] = []
    if not is_answer:
        yield replace(line, words=text)
    for mark in sorted(marks, key=attrgetter("place", "key")):
        at = mark.place
        is_between = is_divided and (text[at : at + 2] == "\n\n" or at == len(text))
        if at > since and (is_between or not is_answer):
            words = text[since:at].strip("\n") if is_answer else ""
            yield replace(bare, words=words, calls=tuple(calls), is_first=since == 0)
            calls, since = [], at
        if isinstance(mark.what, ToolCall):
            calls.append(mark.what)
            continue
        yield replace(bare, calls=tuple(calls))
        yield replace(mark.what, words=mark.what.text, run=run, place=at)
        calls = []
    words = text[since:].strip("\n") if is_answer else ""
    is_end = is_answer and (bool(words) or not line.is_asking)
    end = line if is_answer else bare
    yield replace(end, words=words, calls=tuple(calls), is_first=since == 0, is_end=is_end)


def _named(lines: Iterable[Line]) -> list[Line]:
    """Give each line the id by which the page finds it when lines come and go."""
    found: dict[str, Line] = {}
    for line in lines:
        one = line.entry
        if line.run and not (line.words or line.is_end):
            name = f"tools-{line.run.id}-{line.run.tools.index(line.calls[0])}"
            found[name] = replace(line, id=name)
            continue
        own = (line.message and f"say-{line.message}") or (line.receipt and f"said-{line.receipt}")
        name = own or f"{one.entry.role}-{one.run_id or one.at.timestamp()}"
        number = next(each for each in count() if (f"{name}.{each}" if each else name) not in found)
        name = f"{name}.{number}" if number else name
        found[name] = replace(line, id=name)
    return list(found.values())


def _with_earlier_calls(runs: Iterable[StoredRun]) -> Iterator[StoredRun]:
    """Yield runs; one that goes on after people were asked has the calls that returned before."""
    before: dict[RunId | None, tuple[ToolCall, ...]] = {}
    for run in sorted(runs, key=attrgetter("started_at")):
        tools = (*before.get(run.follows, ()), *run.tools)
        if run.outcome is Outcome.INTERRUPTED:
            before[run.id] = tuple(one for one in tools if one.ok is not None)
        yield replace(run, tools=tools)


def _line(entry: StoredEntry, run: StoredRun | None) -> Line:
    # A copy of a conversation, or an old one, has the entries of runs without the runs. A run that
    # asked a person was interrupted, and may have been stopped while it waited.
    if run is None or run.outcome is Outcome.INTERRUPTED:
        outcome = _NOTES.get(_note(entry.entry.text))
        problem = _problem(outcome, None)
    else:
        outcome = run.outcome
        problem = _problem(outcome, run.reason)
    if outcome in _ANSWERED:
        return Line(entry, run)
    return Line(entry, run, problem, outcome in _QUIET)


def _note(text: str) -> str:
    """Return the last line of an entry if it says how its run ended, else ""."""
    last = text.rpartition("\n")[2]
    return next((note for note in _NOTES if last.endswith(note)), "")


def _missing(one: Unanswered, run: StoredRun | None) -> Line:
    entry = HistoryEntry(Role.USER, one.message.markdown)
    # A stop ends a message before its run has ended, which may have an answer then.
    has_ended = one.finished_at is not None and (run is None or run.outcome is not None)
    is_over = has_ended and one.outcome not in _ANSWERED
    is_dropped = is_over and one.outcome in _QUIET and one.run_id is None
    problem = _problem(one.outcome, one.reason) if is_over else ""
    if is_dropped:
        why = _DROPPED.get(one.reason, (one.reason or "").replace("_", " "))
        problem = f"Dropped: {why}." if why else "Dropped."
    return Line(
        StoredEntry(entry, one.received_at, one.run_id or one.asking_run),
        run,
        problem,
        is_over and one.outcome in _QUIET,
        files=tuple(file.name for file in one.message.attachments),
        message=own_id(one),
        is_remembered=False,
        is_dropped=is_dropped,
    )


def _explained(found: list[Line], beside: list[Line]) -> Iterator[Line]:
    """Yield all lines; why a run failed is said once, below what it had answered until then."""
    last = {line.run.id: line for line in beside if line.run}
    answers = {line.run.id for line in found if line.run and not _is_of_person(line)}
    for one in found:
        why = last.get(one.entry.run_id) if one.entry.run_id else None
        if why is None or (one.run is None and not _is_of_person(one)):
            yield one
        elif _is_of_person(one):
            yield replace(one, problem="")
        else:
            problem = why.text.removeprefix(one.text).strip()
            yield replace(one, problem=problem, receipt=why.receipt)
    for one in beside:
        if one.run is None or last[one.run.id] is not one:
            yield replace(one, problem="")
        elif one.run.id not in answers:
            no_answer = replace(one.entry, entry=HistoryEntry(Role.ASSISTANT, ""))
            yield replace(one, entry=no_answer, problem=one.text)


def _is_of_person(line: Line) -> bool:
    return line.entry.entry.role is Role.USER


def _asides(
    asides: Sequence[Aside], history: list[StoredEntry], runs: Mapping[RunId, StoredRun]
) -> list[Line]:
    """Return what is beside the history as the page showed it when it came.

    A message that replaces another one stands in its place. What buttons of the page have sent is
    not shown.
    """
    said = {(one.run_id, _ORIGIN.sub("", one.entry.text, count=1).strip()) for one in history}
    found: dict[str, Line] = {}
    for one in asides:
        if one.role is Role.USER:
            is_pressed = one.id.rpartition(":")[2].startswith(_STOP_BUTTON)
            if _AGAIN.fullmatch(one.text) or is_pressed or one.id.endswith(":new"):
                continue
        if (one.run_id, one.text.strip()) in said:
            continue
        text = approval_texts.without_question(one.text)
        before = found.pop(one.replaces, None) if one.replaces else None
        at = before.entry.at if before else one.at
        entry = StoredEntry(HistoryEntry(one.role, text), at, one.run_id)
        is_typed = one.role is Role.USER
        own = one.id.rpartition(":")[2] if is_typed else ""
        receipt = "" if is_typed else one.id
        run = runs.get(one.run_id) if one.run_id else None
        line = _line(entry, run)
        found[one.id] = replace(
            line,
            message=own,
            receipt=receipt,
            is_remembered=False,
            is_markdown=one.rich,
            is_answered=text != one.text,
        )
    return list(found.values())


def is_answered(one: Aside) -> bool:
    """Return whether it is an answered question about a tool call of this conversation."""
    return approval_texts.without_question(one.text) != one.text


def own_id(one: Unanswered) -> str:
    """Return the id of a message as its terminal has chosen it."""
    return one.message.external_id.rpartition(":")[2]


def _problem(outcome: Outcome | None, reason: Reason | None) -> str:
    """Return what people read of a run without an answer; what errors say is behind “Why?”."""
    match outcome:
        case Outcome.CANCELLED if reason and reason not in (Reason.STOPPED, Reason.STOPPED_ALL):
            return f"Stopped: {reason.replace('_', ' ')}."
        case Outcome.CANCELLED:
            return "Stopped."
        case Outcome.LOST:
            return texts.LOST
        case Outcome.TIMED_OUT | Outcome.ABANDONED:
            return texts.timed_out(reason)
        case _:
            return texts.FAILED
