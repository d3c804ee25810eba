"""Whether a group message is for the bot, and its text without the bot's name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from channels.telegram.client import Bot
from channels.telegram.fields import Fields, list_or_empty, object_or_empty, whole_number
from goclaw_py.core.chat_commands import our_command
from goclaw_py.core.command_text import INVISIBLE, command_head

_UNSEEN = f"[{INVISIBLE}]*"
_BLANKS = re.compile(rf"[\s{INVISIBLE}]*")
_BLANK = re.compile(rf"[\s{INVISIBLE}]")
_AT = "@\uff20"
_MARKS = ",:;!\uff01\uff0c\uff1a\uff1b、"
_BOT = re.compile(r"(?<![A-Za-z0-9_@./])@([A-Za-z0-9_]{1,29}[Bb][Oo][Tt])(?![A-Za-z0-9_])")


@lru_cache(maxsize=64)
def _name(username: str) -> re.Pattern[str]:
    # A name ends where no more of the characters of a name follow: @bot is a prefix of @bot2.
    letters = _UNSEEN.join(map(re.escape, username))
    return re.compile(rf"(?ai:{letters}(?![a-z0-9_]))")


@lru_cache(maxsize=64)
def _opening(username: str) -> re.Pattern[str]:
    """Return a pattern for the name at the beginning of a text, also without ``@``."""
    return re.compile(rf"[{_AT}]?{_UNSEEN}{_name(username).pattern}")


@lru_cache(maxsize=64)
def _call(username: str) -> re.Pattern[str]:
    """Return a pattern for ``@name`` with the blanks after it."""
    return re.compile(rf"[{_AT}]{_UNSEEN}{_name(username).pattern}[\s{INVISIBLE}]*")


@lru_cache(maxsize=64)
def _address(username: str) -> re.Pattern[str]:
    """Return a pattern for ``@name`` with its punctuation and the blanks after it."""
    marks = rf"(?:[{_MARKS}{INVISIBLE}]+(?=\s|$))?"
    name = f"[{_AT}]{_UNSEEN}{_name(username).pattern}"
    return re.compile(rf"{name}{marks}[\s{INVISIBLE}]*")


@lru_cache(maxsize=64)
def _mention(username: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z0-9_@])@{_name(username).pattern}")


def is_addressed(text: str, entities: object, bot: Bot, *, replied: Fields | None) -> bool:
    """Return whether a group message is for the bot (SPEC CHAN-5).

    ``text`` is cleaned but not changed, so that ``entities`` fit. A command for another bot is not
    for us, even as a reply; a command without a name is, if we know it.
    """
    command = command_head(text)
    if command is not None and command.bot is not None:
        return _name(bot.username).fullmatch(command.bot) is not None
    if our_command(text) is not None:
        return True
    if _begins_with_name(text, bot) or any(_mentions(text, entities, bot)):
        return True
    is_reply = object_or_empty((replied or {}).get("from")).get("id") == bot.id
    return is_reply and not names_another_bot(text, entities, bot)


def names_another_bot(text: str, entities: object, bot: Bot) -> bool:
    """Return whether a text names a bot that is not ours, by its id or an ``@name``.

    The usernames of bots end with "bot".
    """
    for entity in map(object_or_empty, list_or_empty(entities)):
        user = object_or_empty(entity.get("user"))
        if user.get("is_bot") is True and user.get("id") != bot.id:
            return True
    ours = bot.username.lower()
    return any(found[1].lower() != ours for found in _BOT.finditer(text))


def is_mentioned(text: str, bot: Bot) -> bool:
    """Return whether a text without entities names the bot with an ``@``."""
    return bool(bot.username) and _mention(bot.username).search(text) is not None


def without_address(text: str, bot: Bot) -> str:
    """Return the text without ``@name`` at its start or end.

    Within a sentence it is a word. Commands keep their name, which distinguishes bots.
    """
    if not bot.username or command_head(text) is not None:
        return text
    if found := _address(bot.username).match(begun := _begun(text)):
        text = begun[found.end() :]
        if command_head(text) is not None:
            return text
    return _without_end(text, bot)


def _without_end(text: str, bot: Bot) -> str:
    # Not a search for blanks before the name: over a text of nothing but blanks it would take the
    # square of its length.
    start = max(map(text.rfind, _AT))
    if start < 0 or not _call(bot.username).fullmatch(text, start):
        return text
    end = start
    while end and _BLANK.match(text[end - 1]):
        end -= 1
    rest = text[:end]
    if rest and end == start and not rest.endswith(","):
        return text
    return rest.removesuffix(",").rstrip()


def _begins_with_name(text: str, bot: Bot) -> bool:
    return bool(bot.username) and _opening(bot.username).match(_begun(text)) is not None


def _begun(text: str) -> str:
    """Return a text without what is invisible before it."""
    return _BLANKS.sub("", text, count=1)


def _mentions(text: str, entities: object, bot: Bot) -> Iterator[bool]:
    """Yield for each entity whether it is the bot, in constant time each."""
    length = len(bot.username) + 1
    units = b""
    for entity in map(object_or_empty, list_or_empty(entities)):
        match entity.get("type"):
            case "text_mention":
                yield object_or_empty(entity.get("user")).get("id") == bot.id
            case "mention" if bot.username and entity.get("length") == length:
                start = whole_number(entity.get("offset"))
                if start is not None and start >= 0:
                    units = units or text.encode("utf-16-le")
                    found = units[2 * start : 2 * (start + length)].decode("utf-16-le", "replace")
                    yield _address(bot.username).fullmatch(found) is not None
