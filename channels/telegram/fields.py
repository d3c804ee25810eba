"""Reads fields of an update, and cleans people's texts.

Fields that identify a message, and its content, must be valid, otherwise ``Malformed``. Optional
fields (a name, a quote) are ignored if they are not as in the Bot API.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from goclaw_py.core.text import truncate, well_formed

NAME_LIMIT = 128
"""The longest name of a person, chat or file, in code points; Telegram's are half as long."""

_YEAR_9999 = 253_370_764_800
_ID_LIMIT = 1 << 63
_ENDING_LIMIT = 16
_SEPARATORS = re.compile(r"[/\\]")
_MIME = re.compile(r"[a-z0-9][a-z0-9.+-]{0,62}/[a-z0-9][a-z0-9.+-]{0,62}")
_UNSEEN_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Invisible letters and marks that Unicode does not call format characters."""

Fields = Mapping[str, object]


class Malformed(ValueError):
    """An update is not as in the Bot API. The text names the field, never its content."""


def required_object(fields: Fields, key: str) -> Fields:
    """Return a required object. Raises ``Malformed``."""
    value = fields.get(key)
    if not isinstance(value, dict):
        raise Malformed(f"{key}: no object")
    return value


def required_number(fields: Fields, key: str) -> int:
    """Return a required whole number of at most 64 bits. Raises ``Malformed``."""
    value = whole_number(fields.get(key))
    if value is None:
        raise Malformed(f"{key}: no whole number")
    return value


def required_text(fields: Fields, key: str) -> str:
    """Return a required string that is not empty. Raises ``Malformed``."""
    value = fields.get(key)
    if not isinstance(value, str) or not value:
        raise Malformed(f"{key}: no text")
    return clean(value)


def optional_text(fields: Fields, key: str) -> str | None:
    """Return a string, or None if it is missing. Raises ``Malformed`` for anything else."""
    value = fields.get(key)
    if value is None:
        return None
    if not isinstance(value, str):
        raise Malformed(f"{key}: no string")
    return clean(value)


def instant(fields: Fields, key: str) -> datetime:
    """Return a required Unix time in seconds. Raises ``Malformed``."""
    seconds = required_number(fields, key)
    if not 0 <= seconds < _YEAR_9999:
        raise Malformed(f"{key}: out of range")
    return datetime.fromtimestamp(seconds, UTC)


def whole_number(value: object) -> int | None:
    """Return a whole number of at most 64 bits, else None, also for 1.0 and ``true``."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    # Python refuses to write a number of thousands of digits, and PostgreSQL to keep one.
    return value if -_ID_LIMIT <= value < _ID_LIMIT else None


def object_or_empty(value: object) -> Fields:
    """Return an object; empty for anything else."""
    return value if isinstance(value, dict) else {}


def list_or_empty(value: object) -> Sequence[object]:
    """Return a list; empty for anything else."""
    return value if isinstance(value, list) else ()


def text_or_empty(value: object) -> str:
    """Return a cleaned string; empty for anything else."""
    return clean(value) if isinstance(value, str) else ""


def clean(text: str) -> str:
    """Replace what no database can store, without changing the length in UTF-16 units."""
    # PostgreSQL stores no NUL: one in a message would keep its whole batch from being committed.
    return well_formed(text).replace("\x00", "\ufffd")


def clean_name(value: object, limit: int = NAME_LIMIT) -> str:
    """Return a name on one line, without characters that hide or reorder others; "" if none.

    Names precede texts and appear in lists, where nobody may imitate another person.
    """
    if not isinstance(value, str):
        return ""
    return truncate(" ".join(_visible(value).split()), limit)


def clean_file_name(value: object) -> str:
    """Clean a file name, without its path; a short extension survives a cut."""
    if not isinstance(value, str):
        return ""
    name = _SEPARATORS.sub("_", " ".join(_visible(value).split())).rstrip(". ")
    if len(name) <= NAME_LIMIT:
        return name
    stem, dot, ending = name.rpartition(".")
    if not stem or len(ending) > _ENDING_LIMIT:
        return truncate(name, NAME_LIMIT)
    return truncate(stem, NAME_LIMIT - len(ending) - 1) + dot + ending


def clean_mime(value: object) -> str:
    """Return a MIME type in lower case without parameters, or "" if it is not one."""
    mime = value.lower() if isinstance(value, str) else ""
    return mime if _MIME.fullmatch(mime) else ""


def _visible(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text  # most names
    return "".join(_shown(char) for char in well_formed(text))


def _shown(char: str) -> str:
    if char in _UNSEEN_LETTERS:
        return ""
    match unicodedata.category(char):
        case "Cf":
            return ""
        case "Cc" | "Zl" | "Zp":
            return " "
        case _:
            return char
