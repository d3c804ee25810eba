"""Personal links to the web chat: names, secrets and chats of invited people (SPEC CHAN-13).

An invited person is a guest of channel ``web``. Their conversations are chats with their name, or
with it, a dot and the name of the conversation; a name has no dot, so a chat belongs to one person.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import timedelta
from hashlib import sha256
from typing import Final

from goclaw_py.core.session_keys import CONSOLE, DEFAULT_ACCOUNT, is_chat_name

WEB: Final = "web"
"""The channel of invited people."""

WEB_PLACE: Final = (WEB, DEFAULT_ACCOUNT)

OWN_CHANNELS: Final = (CONSOLE, WEB)
"""The channels that always exist: what they say is read here, and no service is behind them."""

LINK_LASTS: Final = timedelta(days=7)
"""How long an unused link is valid."""

SIGN_IN_LASTS: Final = timedelta(days=180)
"""How long the browser that used a link is signed in."""

SECRET_BYTES: Final = 32
"""The random bytes of a link and of a cookie: too many to guess."""

FIRST_CONVERSATION: Final = "chat"
"""The conversation whose chat is the name of the person alone."""

MAX_GUEST_NAME_CHARS: Final = 32

NAME_RULE: Final = (
    "a name has 1 to 32 characters: letters and digits of any script, _ and -; "
    "it begins with a letter or digit"
)

_SECRET: Final = re.compile(r"[A-Za-z0-9_-]{43}")


def guest_name(text: str) -> str:
    """Return a name by which a person can be invited, in its normal form.

    Names that look the same, such as those with composed and combined letters, are the same name. A
    name has no character that is invisible, turns the direction of a text, or has a meaning in keys
    and paths. Raises ``ValueError``.
    """
    name = unicodedata.normalize("NFKC", text)
    if not is_guest_name(name):
        raise ValueError(NAME_RULE)
    return name


def is_guest_name(text: str) -> bool:
    """Return whether a text is the name of a person, in its normal form."""
    # Marks are the vowels of many scripts; a text that begins with one changes what is before it.
    kinds = [unicodedata.category(one)[0] for one in text]
    return (
        0 < len(text) <= MAX_GUEST_NAME_CHARS
        and kinds[0] in "LN"
        and all(kind in "LMN" or one in "_-" for one, kind in zip(text, kinds, strict=True))
        and unicodedata.is_normalized("NFKC", text)
    )


def is_secret(text: str) -> bool:
    """Return whether a text has the form of a secret of a link or cookie."""
    return _SECRET.fullmatch(text) is not None


def secret_hash(secret: str) -> str:
    """Return the stored form of a secret."""
    return sha256(secret.encode()).hexdigest()


def join_path(secret: str) -> str:
    """Return the path of a link."""
    return f"/join/{secret}"


def guest_of(chat: str) -> str:
    """Return the person to whom a chat of the channel belongs."""
    return chat.partition(".")[0]


def chat_of_guest(guest: str, conversation: str) -> str:
    """Return the chat of a person's conversation. No name leads to a chat of somebody else.

    Raises ``ValueError`` if a conversation cannot have this name.
    """
    most = 63 - len(guest)
    chat = guest if conversation == FIRST_CONVERSATION else f"{guest}.{conversation}"
    if not is_chat_name(conversation) or len(conversation) > most:
        raise ValueError(f"a chat name has 1 to {most} characters of A-Z a-z 0-9 . _ -")
    return chat


def is_guest_chat(text: str) -> bool:
    """Return whether a text is a chat of an invited person."""
    guest, dot, conversation = text.partition(".")
    return is_guest_name(guest) and (not dot or is_chat_name(conversation))


def searched_part(chat: str) -> str:
    """Return the beginning of a chat by which a search in keys of sessions finds it.

    A database may know capital letters of ASCII only, so that a search for others finds nothing.
    """
    capitals = (at for at, one in enumerate(chat) if not one.isascii() and one.lower() != one)
    return chat[: next(capitals, None)]


def conversation_of(guest: str, chat: str) -> str | None:
    """Return the name of a conversation, the inverse of ``chat_of_guest``.

    None if the chat belongs to somebody else.
    """
    name, _, conversation = chat.partition(".")
    return (conversation or FIRST_CONVERSATION) if name == guest else None
