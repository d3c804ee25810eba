"""How commands show messages, people and chats, and their common options.

Texts and names come from other people and are not trusted here (SPEC SEC-1).
"""

from __future__ import annotations

import re
import sys
from datetime import datetime
from html import unescape
from typing import TYPE_CHECKING, Annotated

import typer

from goclaw_py.cli.output import clock, folded, one_line, plain, shows_whole
from goclaw_py.core.messages import OutboundMessage, Sender, Target
from goclaw_py.core.time import texts
from goclaw_py.core.time.clocks import SystemClock

if TYPE_CHECKING:
    from goclaw_py.operations.people.operations import DirectAccess, PairingApplicant
    from goclaw_py.records import Chat, Person

_WORDS = 48
_TAG = re.compile(r"</?[a-z][^<>]*>")
_NAME = 40

Channel = Annotated[str | None, typer.Option(help="Channel, if several match.")]
Account = Annotated[str | None, typer.Option(help="Account, if several match.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]


def now() -> datetime:
    """Return the current time."""
    return SystemClock().now()


def age(at: datetime, seen_at: datetime) -> str:
    """Format how long ago something was; a time in the future (clock skew) counts as now."""
    return texts.age(min(at, seen_at), seen_at)


def moment(at: datetime) -> str:
    """Format an instant in a list: as an age on a terminal; with ``--wide`` or in a pipe whole."""
    return clock(at) if shows_whole() else age(at, now())


def place(target: Target) -> str:
    """Format a chat as ``channel/account/chat[/thread]``."""
    parts = [target.channel, target.account, target.chat]
    return cell("/".join(parts if target.thread is None else [*parts, target.thread]))


def where(one: Person | PairingApplicant | Chat | DirectAccess) -> str:
    """Format the account of a person or chat as ``channel/account``."""
    return cell(f"{one.channel}/{one.account}")


def cell(text: str) -> str:
    """Put text on one line, because a line break in it could look like another row."""
    return one_line(text, sys.maxsize)


def words(text: str) -> str:
    """Return the first words of a message."""
    return one_line(text, _WORDS)


def sent_text(message: OutboundMessage) -> str:
    """Return the text of a message without the tags of a channel whose markup is HTML."""
    return unescape(_TAG.sub("", message.text)) if message.rich else message.text


def who(sender: Sender) -> str:
    """Format a person: the id first, because people can choose their names but not their id."""
    names = [one_line(sender.name, _NAME)] if sender.name != sender.id else []
    if sender.username:
        names.append(one_line(f"@{sender.username}", _NAME))
    seen = ", ".join(filter(None, names))
    return f"{cell(sender.id)} ({seen})" if seen else cell(sender.id)


def show_text(title: str, text: str) -> None:
    """Print a whole text, indented, so that none of its lines looks like our output."""
    typer.echo(f"\n{title}")
    for line in folded(plain(text), "  "):
        typer.echo(line.rstrip())
