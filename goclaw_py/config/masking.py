"""Decide which settings are secret, and mask them in output (SPEC SEC-2)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

from goclaw_py.config.origins import KeyPath
from goclaw_py.operations.settings.models import MASK, Word

_SECRET_WORDS: Final = ("token", "key", "secret", "password", "url", "headers", "proxy")
_SECTIONS_WITH_SECRETS: Final = ("agents", "channels", "database", "sources", "web")
_SHOWN_CHARS: Final = 80

LOOKS_SECRET: Final = re.compile(r"\S{24}")
"""A token may be in an unexpected place: under a wrong key, or in a program argument."""

_PASTED_SECRET: Final = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9_:-]{24,}")
"""A secret in the place of the file that should contain it."""

_NAME_OF_VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9_]*")

_OPTION: Final = re.compile(r"--?([A-Za-z][A-Za-z0-9_-]*)(=?)")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_OPTION_WORDS: Final = ("token", "key", "secret", "password", "auth", "header")


class Plain(str):
    """A value described in words: its ``repr`` has no quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


A_TABLE: Final = Plain("(a table)")
HIDDEN: Final = Plain(MASK)


def is_secret(path: KeyPath) -> bool:
    """Whether the value at a path must never be shown."""
    # A number of tokens is not a secret.
    if path[-1] == "tokens" and "budget" in path:
        return False
    if path[:2] in (("web", "proxy"), ("web", "public_url")):
        # Not the address of a proxy with its password, but rules for one in front of the gateway;
        # and what everybody is to open.
        return False
    # Most environment variables of MCP servers are API keys, whatever their names.
    return path[4:5] == ("env",) or any(
        word in part.lower()
        for part in path[1:]
        for word in _SECRET_WORDS
        if not part.lower().endswith(("_file", "_env"))
    )


def is_plain_address(value: object) -> bool:
    """Return whether a value is an address without user, query, or a part that may be a token."""
    if not isinstance(value, str):
        return False
    parts = urlsplit(value)
    names = [parts.hostname or "", *parts.path.split("/")]
    has_more = "@" in parts.netloc or parts.query or parts.fragment
    return not has_more and not any(map(LOOKS_SECRET.search, names))


def may_have_secrets(path: KeyPath) -> bool:
    """Whether a mistyped key at this path may be that of a secret."""
    return path[0] in _SECTIONS_WITH_SECRETS


def printable(path: KeyPath, value: object) -> object:
    """Return a value for an error message: secrets masked, long text cut, no table contents."""
    if isinstance(value, Plain):
        return value
    if isinstance(value, Mapping):
        return A_TABLE
    if is_secret(path) or (may_have_secrets(path) and _looks_secret(path, str(value))):
        return HIDDEN
    if isinstance(value, list) and any(isinstance(item, Mapping | list) for item in value):
        return Plain("(a list)")
    if isinstance(value, str):
        return str(value) if len(value) <= _SHOWN_CHARS else value[:_SHOWN_CHARS] + "…"
    return Plain(repr(value)[:_SHOWN_CHARS])


def _looks_secret(path: KeyPath, text: str) -> bool:
    if path[-1].endswith("_file"):
        return _PASTED_SECRET.fullmatch(text.rpartition("/")[2]) is not None
    if path[-1].endswith("_env") and _NAME_OF_VARIABLE.fullmatch(text):
        return False
    return LOOKS_SECRET.search(text) is not None


def masked_program(words: Iterable[Word]) -> Iterator[Word]:
    """Return a program with its arguments, with possible secrets masked."""
    hide = False
    for word in words:
        option = _OPTION.match(str(word))
        names_secret = option and any(hint in option[1].lower() for hint in _OPTION_WORDS)
        if hide or not option or not names_secret:
            yield MASK if hide else _argument(str(word))
            hide = False
        else:
            yield f"{option[0]}{MASK}" if option[2] else word
            hide = not option[2]


def _argument(word: str) -> str:
    if (named := _VARIABLE.match(word)) is not None:
        return f"{named[0]}{MASK}"
    has_user = "://" in word and "@" in word
    is_path = word.startswith(("/", "./", "../", "~"))
    is_odd = not is_path and LOOKS_SECRET.search(word) and re.search(r"[0-9]", word)
    return MASK if has_user or is_odd else word
