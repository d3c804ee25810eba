"""Commands in a chat, typed or sent by a button (SPEC CMD-1, CMD-2, CMD-5, CRON-13)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from goclaw_py.core.approvals import Decision
from goclaw_py.core.command_text import (
    CommandHead,
    command_head,
    is_stop_text,
    means_stop,
    visible_word,
)
from goclaw_py.core.ids import ApprovalId, JobId, OccurrenceId, RunId
from goclaw_py.core.messages import Button, InboundMessage, PeerKind


@dataclass(frozen=True, slots=True)
class Pressed:
    """The answer to a button press; ``is_used``: its buttons can be removed.

    ``toast`` is a short popup, shown if there was none before the press was handled. With
    ``buttons`` the answer and they replace the message whose button was pressed.
    """

    answer: str
    is_used: bool
    toast: str = ""
    buttons: tuple[tuple[Button, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class StopCommand:
    """``/stop``, which cancels one run, or ``/stopall``, which cancels ``everything``.

    ``run``: the run that the pressed button names.
    """

    everything: bool
    run: RunId | None = None


@dataclass(frozen=True, slots=True)
class TypedCommand:
    """Any other command of ``NAMES``, such as ``/queue steer``.

    ``line`` contains the words after it on the same line, ``message`` all words after it, both
    separated by single blanks.
    """

    name: str
    line: str = ""
    message: str = ""

    @property
    def action(self) -> str:
        """The first word of the line in lower case, or ""."""
        return self.line.partition(" ")[0].lower()


@dataclass(frozen=True, slots=True)
class Misspelt:
    """A message that is a misspelt command; ``meant`` is the closest command."""

    meant: str


class JobAction(StrEnum):
    """The action of a button below a reminder; the value is part of its data."""

    DONE = "done"
    SNOOZE_10M = "s10"
    SNOOZE_1H = "s60"
    SNOOZE_TOMORROW = "stom"
    AGAIN = "again"


@dataclass(frozen=True, slots=True)
class JobButton:
    """A press of a button below a message of a job."""

    action: JobAction
    occurrence: OccurrenceId


@dataclass(frozen=True, slots=True)
class RetryPressed:
    """A press of “Try again” below a failure, with the rows of the messages to answer."""

    rows: tuple[int, ...]


class AccessAction(StrEnum):
    """The action of a button below a request for access; the value is part of its data."""

    ALLOW = "ok"
    """Allow a group, or ask again whether a person becomes an owner."""
    OWNER = "owner"
    """Approve as owner, after ``ALLOW``."""
    GUEST = "guest"
    DENY = "no"
    BACK = "back"
    """Show the request again, after ``ALLOW``."""


@dataclass(frozen=True, slots=True)
class AccessButton:
    """A press of a button below a request for access."""

    action: AccessAction
    request: str


@dataclass(frozen=True, slots=True)
class ApprovalButton:
    """A press of a button below a question about a tool call.

    Args:
        decision: None: show the question again.
        is_sure: The rule that ``Decision.ALWAYS`` adds was shown before.
    """

    decision: Decision | None
    approval: ApprovalId
    is_sure: bool = False


@dataclass(frozen=True, slots=True)
class QueueButton:
    """A press of a button below ``/queue``; ``mode`` is the word behind ``/queue``."""

    mode: str


PressedCommand = JobButton | RetryPressed | AccessButton | ApprovalButton | QueueButton
Command = StopCommand | TypedCommand | Misspelt | PressedCommand

_STOP_DATA = "stop:"
"""The data of the stop button below a streamed reply, before the id of the run."""

_JOB_DATA = re.compile(r"job:([a-z0-9]+):([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
"""The data of a button below a reminder, or of ``_DELETE``. Clients can forge it."""
_DELETE = "delete"
"""The button that confirms ``/jobs delete``: it allows no more than the command."""

_QUEUE_DATA = re.compile(r"queue:([a-z]{1,20})")
_RETRY_DATA = re.compile(r"retry:([0-9]{1,18}(?:,[0-9]{1,18})*)")
_ACCESS_DATA = re.compile(r"access:([a-z]+):([0-9a-f]{16})")
"""The data of a button below an access request.

It grants nothing by itself: only owners may press it.
"""
_APPROVAL_DATA = re.compile(r"approval:([a-z]+):([0-9a-f]{16})")
"""The data of a button below a question. It allows nothing by itself, as above."""
_MOST_DATA = 64
"""The longest data of a button in Telegram, in bytes."""

_JOB_BUTTONS = (
    ((JobAction.DONE, "✅ Done"), (JobAction.AGAIN, "🔁 Again")),
    (
        (JobAction.SNOOZE_10M, "💤 10 min"),
        (JobAction.SNOOZE_1H, "💤 1 hour"),
        (JobAction.SNOOZE_TOMORROW, "💤 Tomorrow"),
    ),
)

_ACCESS_BUTTONS: Final = {
    PeerKind.DIRECT: (
        ((AccessAction.GUEST, "👤 As guest"), (AccessAction.ALLOW, "👑 As owner")),
        ((AccessAction.DENY, "🚫 Deny"),),
    ),
    PeerKind.GROUP: (((AccessAction.ALLOW, "✅ Allow"), (AccessAction.DENY, "🚫 Deny")),),
}
_OWNER_BUTTONS: Final = (((AccessAction.OWNER, "👑 Yes, as owner"), (AccessAction.BACK, "↩️ Back")),)

_APPROVAL_BUTTONS: Final = {
    Decision.ONCE: "✅ Allow once",
    Decision.SESSION: "✅ Allow for this conversation",
    Decision.ALWAYS: "✅ Always allow",
    Decision.DENY: "🚫 Deny",
    Decision.HAPPENED: "✅ It happened",
    Decision.AGAIN: "🔁 Run it again",
    Decision.SKIP: "⏭ Skip",
}
_SURE: Final = "sure"
_BACK: Final = "back"
_RULE_BUTTONS: Final = {_SURE: "✅ Yes, always allow", _BACK: "↩️ Back"}

_TOASTS: Final = {
    JobAction.DONE: "✅ Done",
    JobAction.AGAIN: "🔁 Running again",
    JobAction.SNOOZE_10M: "💤 Snoozed for 10 minutes",
    JobAction.SNOOZE_1H: "💤 Snoozed for an hour",
    JobAction.SNOOZE_TOMORROW: "💤 Snoozed until tomorrow",
}

MENU: tuple[tuple[str, str], ...] = (
    ("stop", "Stop the oldest task that is running"),
    ("stopall", "Stop everything and empty the queue"),
    ("status", "Show what is running and waiting"),
    ("approve", "Allow the tool call that waits: once, conversation or always"),
    ("deny", "Do not allow the tool call that waits"),
    ("new", "Stop everything and forget this conversation"),
    ("undo", "Remove the last turn from this conversation"),
    ("jobs", "List scheduled jobs and reminders"),
    ("heartbeat", "Background checklist: on, off, now, why, show, add TEXT, done N"),
    ("mute", "Mute the heartbeat: /mute 2h; unmute it: /mute off"),
    ("timezone", "Show your time zone; /timezone ZONE changes it"),
    ("queue", "Show how messages wait here; /queue MODE changes it"),
    ("usage", "Show what was used today, and the limits"),
    ("whoami", "Show your name, role and id, and this chat"),
    ("help", "List the commands"),
)
"""The commands and their descriptions, for the menus and the ``/help`` of owners."""

_GUEST_WORDS: Final = {
    "approve": "",
    "deny": "",
    "heartbeat": "Show the state of the heartbeat; /heartbeat why says more",
    "mute": "Show whether the heartbeat is muted",
    "queue": "Show how messages wait here",
}
"""Descriptions of commands of which guests may use only a part; "": they may use none of it."""

GUEST_MENU: Final = tuple(
    (name, words) for name, what in MENU if (words := _GUEST_WORDS.get(name, what))
)
"""The same for people who are not owners: only what they may use."""

NAMES: Final = (*(name for name, _ in MENU), "start", "reset")
"""All commands; ``/start`` greets, ``/reset`` is another word for ``/new``."""

_BOT: Final = re.compile(r"@[a-z0-9_]+bot", re.IGNORECASE)
"""The name of a bot: ``/stop @thisbot`` asks nothing else."""
_LONG_NAME: Final = 5
"""In shorter names, one wrong letter makes another word: /shop, /news."""


def parse_command(text: str, bot_name: str | None = None) -> Command | None:
    """Return the command at the beginning of a text, or None.

    Case does not matter; blanks before it, and punctuation and text after it are allowed.
    ``/stop@name`` counts only if ``name`` is ``bot_name``, and never while that is None. Unknown
    words are not commands: they are for the agent.
    """
    head = command_head(text)
    if head is None or (head.bot is not None and not _is_name(head.bot, bot_name)):
        return None
    return _command(head, text)


def our_command(text: str) -> Command | None:
    """Return the command in a text that is addressed to us, whatever bot it names."""
    head = command_head(text)
    return None if head is None else _command(head, text)


def unread_words(message: InboundMessage, read: int | None = 0) -> str:
    """Return the words behind a typed command that it does not read, separated by blanks.

    ``read`` is the number of words that it reads, None for all.
    """
    head = None if message.press is not None else command_head(message.text)
    command = None if head is None else _command(head, message.text)
    if head is None or command is None:
        return ""
    words = [word for word in message.text[head.end :].split() if visible_word(word)]
    if len(words) == 1 and _BOT.fullmatch(visible_word(words[0])):
        return ""
    return " ".join(words[len(words) if read is None else read :])


def split_new(message: InboundMessage, bot_name: str | None) -> tuple[InboundMessage, ...]:
    """Return a message as it is, or ``/new`` and what is behind it, as two messages.

    Both are stored in one transaction, so that the second is the first message of the new
    conversation also after a crash. It keeps the id, by which edits name it. An edit begins no
    conversation: of it only what is behind ``/new`` remains.
    """
    head = command_head(message.text)
    command = None if head is None else command_of(replace(message, edits=None), bot_name)
    if head is None or not (isinstance(command, TypedCommand) and command.name == "new"):
        return (message,)
    if not command.message and not message.attachments:
        return (message,)
    new = replace(
        message,
        external_id=f"{message.external_id}:new",
        text=message.text[: head.end],
        formatted="",
        cut=False,
        attachments=(),
        quote="",
        quoted_files=(),
        quoted_from=None,
        forwarded_from=None,
        album=None,
    )
    shown = command_head(message.formatted)
    # Formatting that begins within the command would be cut in two.
    formatted = "" if shown is None else message.formatted[shown.end :].lstrip()
    rest = replace(message, text=message.text[head.end :].lstrip(), formatted=formatted)
    return (rest,) if message.edits else (new, rest)


def stop_data(run_id: RunId) -> str:
    """Return the data of a button that stops a run."""
    return f"{_STOP_DATA}{run_id}"


def retry_buttons(rows: Sequence[int]) -> tuple[tuple[Button, ...], ...]:
    """Return the button below a failure; none for too many messages."""
    data = f"retry:{','.join(map(str, rows))}"
    return ((Button("🔁 Try again", data),),) if len(data) <= _MOST_DATA else ()


def queue_data(mode: str) -> str:
    """Return the data of a button that chooses a queue mode."""
    return f"queue:{mode}"


def delete_buttons(job: JobId) -> tuple[tuple[Button, ...], ...]:
    """Return the button below the question whether to delete a job."""
    return ((Button("🗑 Delete", f"job:{_DELETE}:{job}"),),)


def job_data(action: JobAction, occurrence: OccurrenceId) -> str:
    """Return the data of a button below a message of a job."""
    return f"job:{action}:{occurrence}"


def access_buttons(
    peer: PeerKind, request: str, *, owner: bool = False
) -> tuple[tuple[Button, ...], ...]:
    """Return the rows of buttons below an access request (SPEC CHAN-5).

    ``owner``: those below the question whether a person really becomes an owner.
    """
    return tuple(
        tuple(Button(words, f"access:{action}:{request}") for action, words in row)
        for row in (_OWNER_BUTTONS if owner else _ACCESS_BUTTONS[peer])
    )


def approval_buttons(
    decisions: Sequence[Decision], approval: ApprovalId
) -> tuple[tuple[Button, ...], ...]:
    """Return the buttons below a question about a tool call, one to a row (SPEC AGENT-11)."""
    return tuple(
        (Button(_APPROVAL_BUTTONS[decision], f"approval:{decision}:{approval}"),)
        for decision in decisions
    )


def decision_of(data: str) -> Decision | None:
    """Return the answer of a button below a question about a tool call; None of others."""
    button = _pressed(data)
    return button.decision if isinstance(button, ApprovalButton) else None


def rule_buttons(approval: ApprovalId) -> tuple[tuple[Button, ...], ...]:
    """Return the buttons below the rule that “always allow” adds."""
    return tuple(
        (Button(words, f"approval:{step}:{approval}"),) for step, words in _RULE_BUTTONS.items()
    )


def toast(data: str) -> str | None:
    """Return the popup for the person who pressed a button with this data; "" if it is unknown.

    None if the popup is shown with the result.
    """
    match _pressed(data):
        case StopCommand():
            return "⏹ Asked to stop…"
        case JobButton(action):
            return _TOASTS[action]
        case RetryPressed():
            return "🔁 Trying again…"
        case TypedCommand():
            return "🗑 Deleting…"
        case AccessButton() | ApprovalButton() | QueueButton():
            return None
        case _:
            return ""


def job_buttons(occurrence: OccurrenceId) -> tuple[tuple[Button, ...], ...]:
    """Return the rows of buttons below a reminder (SPEC CRON-13)."""
    return tuple(
        tuple(Button(words, job_data(action, occurrence)) for action, words in row)
        for row in _JOB_BUTTONS
    )


def command_of(message: InboundMessage, bot_name: str | None) -> Command | None:
    """Return the command that a message is, typed or pressed. An edit is never a command."""
    if message.edits is not None:
        return None
    if message.press is not None:
        return _pressed(message.press)
    return parse_command(message.text, bot_name) or _misspelt(message)


def our_command_of(message: InboundMessage) -> Command | None:
    """Return the command of a message that is addressed to us, whatever bot it names."""
    if message.press is not None:
        return _pressed(message.press)
    bare = StopCommand(everything=False) if is_stop_word(message) else None
    return our_command(message.text) or bare or _misspelt(message)


def is_stop_word(message: InboundMessage) -> bool:
    """Return whether a message to us consists only of a word such as "stop" (SPEC CMD-2)."""
    if not message.addressed or message.attachments or message.press or message.edits:
        return False
    return is_stop_text(message.text)


def _misspelt(message: InboundMessage) -> Misspelt | None:
    """Return the command that a message misspells; a message with other text is for the agent."""
    head = command_head(message.text) if message.addressed else None
    if head is None or message.attachments or visible_word(message.text[head.end :]):
        return None
    word = head.word.lower()
    return next((Misspelt(name) for name in NAMES if _is_near(word, name)), None)


def _is_near(word: str, name: str) -> bool:
    """Return whether the words differ by swapped neighbours, or by one letter (long words only)."""
    if word[0] != name[0] or word == name:
        return False
    if len(word) == len(name):
        wrong = [place for place, letter in enumerate(name) if word[place] != letter]
        first, last = wrong[0], wrong[-1]
        swapped = last == first + 1 and word[first : last + 1] == name[last] + name[first]
        return swapped or (first == last and len(name) >= _LONG_NAME)
    short, long = sorted((word, name), key=len)
    cut = (long[:place] + long[place + 1 :] for place in range(len(long)))
    return len(name) >= _LONG_NAME - 1 and len(long) == len(short) + 1 and short in cut


def _pressed(data: str) -> Command | None:
    if data.startswith(_STOP_DATA):
        return StopCommand(everything=False, run=RunId(data.removeprefix(_STOP_DATA)))
    if (rows := _RETRY_DATA.fullmatch(data)) is not None:
        return RetryPressed(tuple(map(int, rows[1].split(","))))
    if (chosen := _QUEUE_DATA.fullmatch(data)) is not None:
        return QueueButton(chosen[1])
    asked = _ACCESS_DATA.fullmatch(data)
    if asked is not None and asked[1] in set(AccessAction):
        return AccessButton(AccessAction(asked[1]), asked[2])
    answered = _APPROVAL_DATA.fullmatch(data)
    if answered is not None and answered[1] in {*_RULE_BUTTONS, *_APPROVAL_BUTTONS}:
        is_sure = answered[1] == _SURE
        word = Decision.ALWAYS if is_sure else answered[1]
        decision = None if word == _BACK else Decision(word)
        return ApprovalButton(decision, ApprovalId(answered[2]), is_sure)
    found = _JOB_DATA.fullmatch(data)
    if found is None or found[1] not in {*JobAction, _DELETE}:
        return None
    if found[1] != _DELETE:
        return JobButton(JobAction(found[1]), OccurrenceId(found[2]))
    return TypedCommand("jobs", words := f"delete {found[2]}", words)


def addresses_another_bot(text: str, bot_name: str | None) -> bool:
    """Return whether a text begins with a command that names another bot."""
    head = command_head(text)
    if head is None or head.bot is None or bot_name is None:
        return False
    return not _is_name(head.bot, bot_name)


def _is_name(name: str, bot_name: str | None) -> bool:
    return bot_name is not None and name.casefold() == bot_name.casefold()


def _command(head: CommandHead, text: str) -> Command | None:
    name, rest = head.word.lower(), text[head.end :]
    if means_stop(head.word) or name == "stopall":
        return StopCommand(everything=name == "stopall")
    if name not in NAMES:
        return None
    first, _, _ = rest.partition("\n")
    # What is invisible within a text that the command stores belongs to it, as within an emoji.
    line, message = visible_word(first), rest if visible_word(rest) else ""
    return TypedCommand(
        "new" if name == "reset" else name, " ".join(line.split()), " ".join(message.split())
    )
