"""Commands that people type in a chat (SPEC CMD-1, CMD-2, CMD-5)."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stop:
    """``/stop``: cancel one; ``/stopall``: ``everything`` of the session."""

    everything: bool


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
class QueueMode:
    """``/queue``: tell how this chat queues; ``/queue MODE``: change it.

    ``word`` is the word that follows on the same line, in lower case, or empty.
    """

    word: str


Command = Stop | Greet | Help | ShowStatus | NewSession | QueueMode

_COMMANDS: dict[str, Command] = {
    "stop": Stop(everything=False),
    "stopall": Stop(everything=True),
    "start": Greet(),
    "help": Help(),
    "status": ShowStatus(),
    "new": NewSession(),
    "reset": NewSession(),
}

MENU: tuple[tuple[str, str], ...] = (
    ("stop", "Stop the oldest task that is running"),
    ("stopall", "Stop everything and empty the queue"),
    ("status", "What is running and waiting"),
    ("new", "Stop everything and forget this conversation"),
    ("queue", "How messages wait here; /queue MODE changes it"),
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
