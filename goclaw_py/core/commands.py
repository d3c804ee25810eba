"""Commands that people type in a chat, or give by a button (SPEC CMD-1, CMD-2, CMD-5, CRON-13)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from goclaw_py.core.ids import OccurrenceId, RunId
from goclaw_py.core.messages import Button, InboundMessage


@dataclass(frozen=True, slots=True)
class Stop:
    """``/stop``: cancel one; ``/stopall``: ``everything`` of the session.

    ``run``: its button named this run.
    """

    everything: bool
    run: RunId | None = None


@dataclass(frozen=True, slots=True)
class Greet:
    """``/start``."""


@dataclass(frozen=True, slots=True)
class Help:
    """``/help``."""


@dataclass(frozen=True, slots=True)
class ShowStatus:
    """``/status``."""


@dataclass(frozen=True, slots=True)
class NewSession:
    """``/new`` or ``/reset``: stop everything, then a fresh history."""


@dataclass(frozen=True, slots=True)
class WhoAmI:
    """``/whoami``: how the sender is known here, for settings and for the operator."""


@dataclass(frozen=True, slots=True)
class ShowUsage:
    """``/usage``: what this conversation and its agent have used today, beside their budgets."""


@dataclass(frozen=True, slots=True)
class QueueMode:
    """``/queue``: tell how this chat queues; ``/queue MODE``: change it.

    ``word`` is the word that follows on the same line, in lower case, or empty.
    """

    word: str


@dataclass(frozen=True, slots=True)
class Jobs:
    """``/jobs``: tell this chat's jobs; ``/jobs ACTION JOB``: do something to one of them.

    ``action`` is the word that follows on the same line, in lower case, ``job`` the one after it;
    both may be empty.
    """

    action: str
    job: str


@dataclass(frozen=True, slots=True)
class Timezone:
    """``/timezone``: tell it; ``/timezone ZONE``: choose it for this chat.

    ``zone`` is what follows on the same line, or empty.
    """

    zone: str


@dataclass(frozen=True, slots=True)
class HeartbeatCommand:
    """``/heartbeat``: tell how the agent's heartbeat stands; ``/heartbeat ACTION``: use it.

    ``action`` is the word that follows on the same line, in lower case, ``text`` the rest of that
    line, for ``add`` of the whole message, in its own case and on one line; both may be empty.
    """

    action: str
    text: str


@dataclass(frozen=True, slots=True)
class Mute:
    """``/mute``: tell whether the heartbeat is silent; ``/mute DURATION``: silence it.

    ``text`` is what follows on the same line, in lower case, or empty.
    """

    text: str


class JobAction(StrEnum):
    """What a button below a reminder does; the value is a part of its data."""

    DONE = "done"
    SNOOZE_10M = "s10"
    SNOOZE_1H = "s60"
    SNOOZE_TOMORROW = "stom"
    AGAIN = "again"


@dataclass(frozen=True, slots=True)
class JobButton:
    """A button below what a job has said was pressed."""

    action: JobAction
    occurrence: OccurrenceId


Command = (
    Stop
    | Greet
    | Help
    | ShowStatus
    | NewSession
    | ShowUsage
    | WhoAmI
    | QueueMode
    | Jobs
    | Timezone
    | HeartbeatCommand
    | Mute
    | JobButton
)

_STOP_DATA = "stop:"
"""What the button below a growing reply brings when it is pressed, before the run's id."""

_JOB_DATA = re.compile(r"job:([a-z0-9]+):([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
"""What a button below a reminder brings. What a press brings can be made up."""

_JOB_BUTTONS = (
    ((JobAction.DONE, "✅ Done"), (JobAction.AGAIN, "🔁 Again")),
    (
        (JobAction.SNOOZE_10M, "💤 10 min"),
        (JobAction.SNOOZE_1H, "💤 1 hour"),
        (JobAction.SNOOZE_TOMORROW, "💤 Tomorrow"),
    ),
)

_COMMANDS: dict[str, Command] = {
    "stop": Stop(everything=False),
    "stopall": Stop(everything=True),
    "start": Greet(),
    "help": Help(),
    "status": ShowStatus(),
    "new": NewSession(),
    "reset": NewSession(),
    "usage": ShowUsage(),
    "whoami": WhoAmI(),
}

MENU: tuple[tuple[str, str], ...] = (
    ("stop", "Stop the oldest task that is running"),
    ("stopall", "Stop everything and empty the queue"),
    ("status", "What is running and waiting"),
    ("new", "Stop everything and forget this conversation"),
    ("jobs", "What I do by the clock, such as reminders"),
    ("heartbeat", "What I look after unasked: on, off, now, why, show, add TEXT, done N"),
    ("mute", "Whether my heartbeat is silent; /mute 2h silences it, /mute off ends that"),
    ("timezone", "Where your clock is; /timezone ZONE changes it"),
    ("queue", "How messages wait here; /queue MODE changes it"),
    ("usage", "What was used today, and how much is left"),
    ("whoami", "How I know you"),
    ("help", "What I understand"),
)
"""The commands with what they do, for menus and ``/help``."""

_FORM = re.compile(r"\s*/([A-Za-z]+)(?:@([A-Za-z0-9_]+))?(?=\s|$)")


def parse_command(text: str, bot_name: str | None = None) -> Command | None:
    """The command that a text begins with, or None.

    Any case; blanks before it and any text after it are allowed. ``/stop@name`` counts only if
    ``name`` is ``bot_name``; while that is not known, a named command is nobody's. An unknown word
    is no command: it belongs to the agent.
    """
    match = _FORM.match(text)
    if match is None:
        return None
    word, name = match.groups()
    if name is not None and (bot_name is None or name.casefold() != bot_name.casefold()):
        return None
    return _command(word, text[match.end() :])


def our_command(text: str) -> Command | None:
    """The command in a text that is known to be for us, whatever name it bears."""
    match = _FORM.match(text)
    return None if match is None else _command(match.group(1), text[match.end() :])


def stop_data(run_id: RunId) -> str:
    """The data of a button that stops a run."""
    return f"{_STOP_DATA}{run_id}"


def job_data(action: JobAction, occurrence: OccurrenceId) -> str:
    """The data of a button below what a job has said."""
    return f"job:{action}:{occurrence}"


def job_buttons(occurrence: OccurrenceId) -> tuple[tuple[Button, ...], ...]:
    """The rows of buttons below a reminder (SPEC CRON-13)."""
    return tuple(
        tuple(Button(words, job_data(action, occurrence)) for action, words in row)
        for row in _JOB_BUTTONS
    )


def command_of(message: InboundMessage, bot_name: str | None) -> Command | None:
    """The command that a message is, typed or by the press of a button. A later edit is none."""
    if message.edits is not None:
        return None
    if message.press is not None:
        return _pressed(message.press)
    return parse_command(message.text, bot_name)


def our_command_of(message: InboundMessage) -> Command | None:
    """The same for a message that is known to be for us, whatever name it bears."""
    return our_command(message.text) if message.press is None else _pressed(message.press)


def _pressed(data: str) -> Command | None:
    if data.startswith(_STOP_DATA):
        return Stop(everything=False, run=RunId(data.removeprefix(_STOP_DATA)))
    found = _JOB_DATA.fullmatch(data)
    if found is None or found[1] not in set(JobAction):
        return None
    return JobButton(JobAction(found[1]), OccurrenceId(found[2]))


def addresses_another_bot(text: str, bot_name: str | None) -> bool:
    """Whether a text begins with a command that names some other bot: it is not for us."""
    match = _FORM.match(text)
    if match is None or match.group(2) is None or bot_name is None:
        return False
    return match.group(2).casefold() != bot_name.casefold()


def _command(word: str, rest: str) -> Command | None:
    line, _, _ = rest.partition("\n")
    match word.lower():
        case "queue":
            following = line.split(maxsplit=1)
            return QueueMode(following[0].lower() if following else "")
        case "jobs":
            action, job, *_ = [*line.split(), "", ""]
            return Jobs(action.lower(), job)
        case "timezone":
            return Timezone(" ".join(line.split()))
        case "heartbeat":
            return _heartbeat(line, rest)
        case "mute":
            return Mute(" ".join(line.lower().split()))
        case plain:
            return _COMMANDS.get(plain)


def _heartbeat(line: str, rest: str) -> HeartbeatCommand:
    action, *words = line.split() or [""]
    if action.lower() == "add":
        # An item that is written over several lines is one all the same.
        words = rest.split()[1:]
    return HeartbeatCommand(action.lower(), " ".join(words))
