"""Reading one field of an update, and cleaning what people put into it.

What identifies a message, and what it consists of, must be right: else ``Malformed``. What only
adds to it (a name, a quote) is left out when it is not what the Bot API promises.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from goclaw_py.common.text import cut_text, well_formed

NAME_LIMIT = 128
"""Longest name of a person, chat or file, in code points; Telegram's own are half as long."""

_YEAR_9999 = 253_370_764_800
_ID_LIMIT = 1 << 63
_ENDING_LIMIT = 16
_SEPARATORS = re.compile(r"[/\\]")
_MIME = re.compile(r"[a-z0-9][a-z0-9.+-]{0,62}/[a-z0-9][a-z0-9.+-]{0,62}")
_UNSEEN_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks that nobody can see, though Unicode does not call them format characters."""

Fields = Mapping[str, object]


class Malformed(ValueError):
    """An update is not what the Bot API promises. Says which field, never what it holds."""


def required_object(fields: Fields, key: str) -> Fields:
    """An object that must be there. Raises ``Malformed``."""
    value = fields.get(key)
    if not isinstance(value, dict):
        raise Malformed(f"{key}: no object")
    return value


def required_number(fields: Fields, key: str) -> int:
    """A whole number of at most 64 bits that must be there. Raises ``Malformed``."""
    value = whole_number(fields.get(key))
    if value is None:
        raise Malformed(f"{key}: no whole number")
    return value


def required_text(fields: Fields, key: str) -> str:
    """A string that must be there and not be empty. Raises ``Malformed``."""
    value = fields.get(key)
    if not isinstance(value, str) or not value:
        raise Malformed(f"{key}: no text")
    return clean(value)


def optional_text(fields: Fields, key: str) -> str | None:
    """A string, or None where there is none. Raises ``Malformed`` for anything else."""
    value = fields.get(key)
    if value is None:
        return None
    if not isinstance(value, str):
        raise Malformed(f"{key}: no string")
    return clean(value)


def instant(fields: Fields, key: str) -> datetime:
    """A Unix time in seconds that must be there. Raises ``Malformed``."""
    seconds = required_number(fields, key)
    if not 0 <= seconds < _YEAR_9999:
        raise Malformed(f"{key}: out of range")
    return datetime.fromtimestamp(seconds, UTC)


def whole_number(value: object) -> int | None:
    """A whole number of at most 64 bits, else None; 1.0 and ``true`` are none."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    # Python refuses to write a number of thousands of digits, and PostgreSQL to keep one.
    return value if -_ID_LIMIT <= value < _ID_LIMIT else None


def object_or_empty(value: object) -> Fields:
    """An object; empty for anything else."""
    return value if isinstance(value, dict) else {}


def list_or_empty(value: object) -> Sequence[object]:
    """A list; empty for anything else."""
    return value if isinstance(value, list) else ()


def text_or_empty(value: object) -> str:
    """A cleaned string; empty for anything else."""
    return clean(value) if isinstance(value, str) else ""


def clean(text: str) -> str:
    """Replace what no database can hold. Its length in UTF-16 units stays as it was."""
    # PostgreSQL stores no NUL: one in a message would keep its whole batch from being committed.
    return well_formed(text).replace("\x00", "\ufffd")


def clean_name(value: object) -> str:
    """A name on one line, without characters that hide or reorder others; empty if there is none.

    Names stand before texts and in lists for operators, where nobody may imitate another one.
    """
    if not isinstance(value, str):
        return ""
    seen = "".join(_shown(char) for char in well_formed(value))
    return cut_text(" ".join(seen.split()), NAME_LIMIT)


def clean_file_name(value: object) -> str:
    """As ``clean_name``, without the parts of a path; keeps a short ending when it is cut."""
    if not isinstance(value, str):
        return ""
    seen = "".join(_shown(char) for char in well_formed(value))
    name = _SEPARATORS.sub("_", " ".join(seen.split())).rstrip(". ")
    if len(name) <= NAME_LIMIT:
        return name
    stem, dot, ending = name.rpartition(".")
    if not stem or len(ending) > _ENDING_LIMIT:
        return cut_text(name, NAME_LIMIT)
    return cut_text(stem, NAME_LIMIT - len(ending) - 1) + dot + ending


def clean_mime(value: object) -> str:
    """A MIME type in lower case without parameters, or "" if it is none."""
    mime = value.lower() if isinstance(value, str) else ""
    return mime if _MIME.fullmatch(mime) else ""


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
