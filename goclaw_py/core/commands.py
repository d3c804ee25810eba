"""Commands that people type in a chat (SPEC CMD-1, CMD-2, CMD-5)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import InboundMessage


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


Command = Stop | Greet | Help | ShowStatus | NewSession | ShowUsage | WhoAmI | QueueMode

_STOP_DATA = "stop:"
"""What the button below a growing reply brings when it is pressed, before the run's id."""

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
    if not data.startswith(_STOP_DATA):
        return None
    return Stop(everything=False, run=RunId(data.removeprefix(_STOP_DATA)))


def addresses_another_bot(text: str, bot_name: str | None) -> bool:
    """Whether a text begins with a command that names some other bot: it is not for us."""
    match = _FORM.match(text)
    if match is None or match.group(2) is None or bot_name is None:
        return False
    return match.group(2).casefold() != bot_name.casefold()


def _command(word: str, rest: str) -> Command | None:
    if word.lower() != "queue":
        return _COMMANDS.get(word.lower())
    line, _, _ = rest.partition("\n")
    following = line.split(maxsplit=1)
    return QueueMode(following[0].lower() if following else "")
