"""Personal links to the web chat: names, secrets and chats of invited people (SPEC CHAN-13).

An invited person is a guest of channel ``web``. Their conversations are chats with their name, or
with it, a dot and the name of the conversation; a name has no dot, so a chat belongs to one person.
"""

from __future__ import annotations

import re
from datetime import timedelta
from hashlib import sha256
from typing import Final

from goclaw_py.core.session_keys import DEFAULT_ACCOUNT, is_chat_name

WEB: Final = "web"
"""The channel of invited people."""

WEB_PLACE: Final = (WEB, DEFAULT_ACCOUNT)

LINK_LASTS: Final = timedelta(days=7)
"""How long an unused link is valid."""

SIGN_IN_LASTS: Final = timedelta(days=180)
"""How long the browser that used a link is signed in."""

SECRET_BYTES: Final = 32
"""The random bytes of a link and of a cookie: too many to guess."""

FIRST_CONVERSATION: Final = "chat"
"""The conversation whose chat is the name of the person alone."""

GUEST_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}"
"""The pattern of a name; the whole name must match."""

NAME_RULE: Final = "a name has 1 to 32 characters of A-Z a-z 0-9 _ -, and begins with no _ or -"

_SECRET: Final = re.compile(r"[A-Za-z0-9_-]{43}")


def is_guest_name(text: str) -> bool:
    """Return whether a person can be invited by this name."""
    return re.fullmatch(GUEST_NAME, text) is not None


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
    chat = guest if conversation == FIRST_CONVERSATION else f"{guest}.{conversation}"
    if not (is_chat_name(conversation) and is_chat_name(chat)):
        most = 63 - len(guest)
        raise ValueError(f"a chat name has 1 to {most} characters of A-Z a-z 0-9 . _ -")
    return chat


def conversation_of(guest: str, chat: str) -> str | None:
    """Return the name of a conversation, the inverse of ``chat_of_guest``.

    None if the chat belongs to somebody else.
    """
    name, _, conversation = chat.partition(".")
    return (conversation or FIRST_CONVERSATION) if name == guest else None
