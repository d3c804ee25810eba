"""The form of tokens with a name, and of their names (SPEC SEC-8)."""

from __future__ import annotations

import re
from typing import Final

from goclaw_py.model.errors import GoclawError

MAX_NAME_CHARS: Final = 64

NAME_RULE: Final = (
    f"a name of a token has 1 to {MAX_NAME_CHARS} characters, no space at its ends, "
    "and no control characters, and is not web.token"
)
SETTINGS_TOKEN_NAME: Final = "web.token"  # noqa: S105 - a name
"""What the token of the settings is called; no other may have this name."""


PREFIX: Final = "goclaw_"
"""The beginning of every token, by which people and scanners of secrets recognise one."""

_TOKEN: Final = re.compile(PREFIX + r"[A-Za-z0-9_-]{43}")


class BadToken(GoclawError):
    """A token cannot have this name or this end."""


class TokenExists(GoclawError):
    """A token has this name already."""


def is_token_name(text: str) -> bool:
    """Return whether a token can have this name."""
    if text == SETTINGS_TOKEN_NAME or not 1 <= len(text) <= MAX_NAME_CHARS:
        return False
    return text.isprintable() and text.strip() == text


def is_token(text: str) -> bool:
    """Return whether a text has the form of a token."""
    return _TOKEN.fullmatch(text) is not None
