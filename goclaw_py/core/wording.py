"""The sentences that people in a chat read from the runtime itself."""

from __future__ import annotations

from collections.abc import Sequence

from goclaw_py.core.commands import MENU
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.status import RunState, RunView
from goclaw_py.core.text import cut_text

_SNIPPET = 40
_MAX_SNIPPETS = 3

GREETING = "Hello. Write to me and I will answer. /help shows what else I understand."
NEW_SESSION = "A fresh conversation. I have forgotten what we said before."
NOTHING_RUNNING = "Nothing was running."
ALREADY_STOPPING = "Already stopping."
LOST = (
    "I could not answer your message: the program crashed each time I tried. "
    "Please send it again, perhaps in other words."
)
FAILED = "Something went wrong while I worked on this. The operator finds the cause in the log."
EMPTY_MESSAGE = "There was no text in that message that I could read."


def help_text() -> str:
    """The answer to ``/help``."""
    lines = [f"/{name} - {what}" for name, what in MENU]
    return "\n".join(["Write to me in plain words. Besides, I understand:", *lines])


def stopped(runs: int, dropped: int, *, already: bool) -> str:
    """The answer to ``/stop`` and ``/stopall``: what was stopped and how many were dropped."""
    if runs and dropped:
        return f"Stopped {_count(runs, 'task')} and dropped {_count(dropped, 'waiting message')}."
    if runs:
        return "Stopped." if runs == 1 else f"Stopped {runs} tasks."
    if dropped:
        return f"Dropped {_count(dropped, 'waiting message')}."
    return ALREADY_STOPPING if already else NOTHING_RUNNING


def pairing(code: str, minutes: int) -> str:
    """What somebody unknown reads."""
    return (
        "I do not know you yet. Ask my operator to let you in with this code:\n\n"
        f"{code}\n\n"
        f"It is valid for {minutes} minutes."
    )


def dropped(texts: Sequence[str], reason: Reason | None) -> str:
    """One line about messages that will not be answered (SPEC QUEUE-3, QUEUE-5)."""
    named = [f"“{snippet(text)}”" for text in texts[:_MAX_SNIPPETS]]
    if len(texts) > _MAX_SNIPPETS:
        named.append("…")
    what, which = _count(len(texts), "message"), ", ".join(named)
    if reason is Reason.NEWER_MESSAGE:
        return f"Your newer message replaced {what} that waited: {which}"
    if reason is Reason.QUEUE_FULL:
        return f"Too much is waiting already, so I did not take {what}: {which}"
    return f"Too much was waiting, so I dropped {what}, the oldest first: {which}"


def timed_out(reason: Reason | None) -> str:
    """What the sender reads when a time limit ended the run or the wait."""
    if reason is Reason.DEADLINE:
        return "I could not finish this in time, so I stopped."
    return "This took too long, so I stopped working on it."


def status(runs: Sequence[RunView], entries: int) -> str:
    """The answer to ``/status`` for one session."""
    working = [run for run in runs if run.state in (RunState.RUNNING, RunState.FINISHING)]
    stopping = [run for run in runs if run.state in (RunState.STOPPING, RunState.ABANDONED)]
    waiting = [run for run in runs if run not in working and run not in stopping]
    lines = [
        f"Running: {len(working)}" + (f" (for {working[0].for_s:.0f} s)" if working else ""),
        f"Waiting: {len(waiting)}",
    ]
    if stopping:
        lines.append(f"Stopping: {len(stopping)}")
    lines.append(f"Messages in this conversation: {entries}")
    return "\n".join(lines)


def cut_reply(text: str, outcome: Outcome) -> str:
    """What the history holds for a reply that was cut off."""
    note = f"[{outcome.value.replace('_', ' ')}]"
    return f"{text}\n{note}" if text else note


def snippet(text: str) -> str:
    """The first words of a text, on one line."""
    return cut_text(" ".join(text.split()), _SNIPPET)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
