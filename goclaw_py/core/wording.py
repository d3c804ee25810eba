"""The sentences that people in a chat read from the runtime itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from goclaw_py.core.commands import MENU
from goclaw_py.core.ids import SessionKey
from goclaw_py.core.messages import Attachment, InboundMessage, Sender
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.requests import Drop, Mode, QueuePolicy
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
NOT_AN_OWNER = "Only an owner may change how messages wait here."
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
    match reason:
        case Reason.NEWER_MESSAGE:
            return f"A newer message replaced {what} that waited: {which}"
        case Reason.QUEUE_FULL:
            return f"Too much is waiting already, so I did not take {what}: {which}"
        case Reason.QUEUE_DROPPED:
            return f"Too much was waiting, so I dropped {what}, the oldest first: {which}"
        case _:
            # Of a closed lane, or of a run that asked for it, nobody in a chat has heard.
            return f"I cannot work on this now, so I did not take {what}: {which}"


def timed_out(reason: Reason | None) -> str:
    """What the sender reads when a time limit ended the run or the wait."""
    if reason is Reason.DEADLINE:
        return "I could not finish this in time, so I stopped."
    return "This took too long, so I stopped working on it."


def said_by(sender: Sender, text: str) -> str:
    """A message in a turn that answers several people (SPEC QUEUE-4)."""
    # A name is its owner's choice; on several lines it could look like other messages.
    name = " ".join((sender.name or sender.username or sender.id).split())
    return f"{name}: {text}"


def in_reply_to(quote: str, text: str) -> str:
    """A message that replies to another one, whose text becomes context (SPEC CHAN-6)."""
    quoted = "\n".join(f"> {line}" for line in quote.splitlines())
    return f"{quoted}\n\n{text}" if text else quoted


def file_name(attachment: Attachment) -> str:
    """A file where only words are kept."""
    return f"[{attachment.kind.value}{f' “{attachment.name}”' if attachment.name else ''}]"


def file_missing(attachment: Attachment, reason: str) -> str:
    """What the agent reads in place of a file that could not be downloaded."""
    return f"{file_name(attachment)} could not be loaded: {reason}"


def file_not_sent(name: str, reason: str) -> str:
    """What stands in the chat for a file of the agent that cannot be sent."""
    return f"(The file “{snippet(name)}” could not be sent: {reason}.)"


def channel_trouble(channel: str, account: str, what: str) -> str:
    """What owners are told when a channel does not work as it should (SPEC CHAN-10)."""
    return f"My channel {channel} ({account}) has a problem: {what}. See: goclaw status"


def edited(text: str) -> str:
    """What the history holds for an edit that came too late (SPEC CHAN-6)."""
    return f"[I have edited an earlier message; it now reads:]\n{text}"


def unsupported(kind: str) -> str:
    """What the sender of something reads that no agent could be given (SPEC CHAN-6)."""
    return f"I cannot read {kind} yet. Please send it as text, a picture or a file."


def status(runs: Sequence[RunView], entries: int, context: float | None = None) -> str:
    """The answer to ``/status`` for one session; ``context`` is the share of it that is used."""
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
    if context is not None:
        lines.append(f"Context used: {context:.0%}")
    return "\n".join(lines)


def who(message: InboundMessage, *, owner: bool, session: SessionKey) -> str:
    """The answer to ``/whoami``."""
    sender, target = message.sender, message.target
    name = " ".join(sender.name.split()) or "no name"
    lines = [
        f"You: {name}" + (f" (@{sender.username})" if sender.username else ""),
        f"Your id: {sender.id}" + (", an owner" if owner else ""),
        f"This chat: {target.channel}, {target.chat}"
        + (f", topic {target.thread}" if target.thread else ""),
        f"Session: {session}",
    ]
    return "\n".join(lines)


def queue(policy: QueuePolicy, runs: Sequence[RunView], *, chosen: bool, full: bool) -> str:
    """The answer to ``/queue``.

    ``chosen``: the mode is this chat's own choice; ``full``: the conversation takes so much of the
    context that one run at a time works (SPEC QUEUE-7).
    """
    waiting = sum(run.state in _WAITING for run in runs)
    origin = "chosen in this chat" if chosen else "from the settings"
    at_once = "1, because this conversation is long" if full else f"{policy.concurrency}"
    last = "the oldest is dropped" if policy.drop is Drop.OLD else "new ones are not taken"
    burst = f"messages within {policy.debounce_s:g} s become one"
    return "\n".join(
        [
            f"Mode: {policy.mode.value} ({origin}): {_MEANING[policy.mode]}",
            f"Running: {len(runs) - waiting}, at once: {at_once}",
            f"Waiting: {waiting}, at most: {policy.capacity}; then {last}",
            f"Bursts: {burst if policy.debounce_s else 'each message is a turn of its own'}",
            _modes(),
        ]
    )


def queue_changed(mode: Mode, *, chosen: bool) -> str:
    """The answer to ``/queue MODE``, for the messages to come."""
    return f"{'From now on' if chosen else 'Back to the settings'}: {mode.value}, {_MEANING[mode]}."


def unknown_mode(word: str) -> str:
    """The answer to ``/queue`` with a word that is no mode."""
    return f"I know no mode “{snippet(word)}”. {_modes()}"


def _modes() -> str:
    return f"Modes: {', '.join(Mode)}; /queue default goes back to the settings."


_MEANING: Mapping[Mode, str] = {
    Mode.QUEUE: "messages wait for their turn",
    Mode.FOLLOWUP: "messages wait for their turn",
    Mode.INTERRUPT: "a new message stops what runs and replaces what waits",
    Mode.COLLECT: "what waits becomes one turn",
    Mode.STEER: "a new message goes into the running task if that can take it, else it waits",
}

_WAITING = (RunState.COLLECTING, RunState.QUEUED, RunState.READY)


def cut_reply(text: str, outcome: Outcome) -> str:
    """What the history holds for a reply that was cut off."""
    note = f"[{outcome.value.replace('_', ' ')}]"
    return f"{text}\n{note}" if text else note


def cut_draft(outcome: Outcome) -> str:
    """What stands below a growing reply that nobody will finish (SPEC CMD-3)."""
    return "⏹ Stopped." if outcome is Outcome.CANCELLED else "⚠️ This answer was cut off."


def snippet(text: str) -> str:
    """The first words of a text, on one line."""
    return cut_text(" ".join(text.split()), _SNIPPET)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
