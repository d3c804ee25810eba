"""Prepare values of log lines for output: plain types, secrets masked, length limited."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, MutableMapping, Set
from datetime import date, datetime
from enum import Enum
from functools import lru_cache
from itertools import islice
from pathlib import PurePath
from typing import Any

from goclaw_py.common.redaction import HIDDEN, Redactor, is_name_of_secret

LONGEST_TEXT = 32_768
"""The maximum length of a text; tracebacks and messages of libraries are the longest."""
MOST_VALUES = 500
"""The maximum number of values in one line, including nested ones."""
_DEEPEST = 6
_SHORT = 64
"""Texts up to this length, in characters, are remembered with what is left of them without secrets:
names of events and fields, agents and sessions come in each line."""
_REMEMBERED = 1024
_LARGEST_NUMBER = 1 << 63

_HALF = re.compile("[\ud800-\udfff]")
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")

EventDict = MutableMapping[str, Any]


def plain_values(hide: Redactor) -> Callable[[object, str, EventDict], EventDict]:
    """Return a log processor, which must be the last one before rendering."""
    hide_short = lru_cache(_REMEMBERED)(hide)

    def processor(_logger: object, _method: str, event: EventDict) -> EventDict:
        walk = _Walk(hide, hide_short)
        return {walk.text(str(name)): walk.named(str(name), event[name]) for name in event}

    return processor


def for_terminals(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Prepare lines for terminals.

    Control characters are escaped, and continuation lines are indented so that they cannot look
    like other log lines.
    """
    return {name: _for_terminals(value) for name, value in event.items()}


def _for_terminals(value: object) -> object:
    if not isinstance(value, str):
        return value
    shown = _UNFIT.sub(lambda found: found[0].encode("unicode_escape").decode(), value)
    return shown.replace("\n", "\n    ")


_is_of_secret = lru_cache(_REMEMBERED)(is_name_of_secret)


class _Walk:
    """Walks through the values of one line."""

    def __init__(self, hide: Redactor, hide_short: Callable[[str], str]) -> None:
        self._hide = hide
        self._hide_short = hide_short
        self._left = MOST_VALUES

    def named(self, name: str, value: object, depth: int = 0) -> object:
        """Return the plain value of a field."""
        if value is not None and not isinstance(value, bool) and _is_of_secret(name[-_SHORT:]):
            return HIDDEN
        return self._plain(value, depth)

    def text(self, said: str) -> str:
        """Return a text with secrets masked; a secret at the cut is removed completely."""
        said = str.__str__(said)
        if len(said) <= _SHORT and said.isascii():
            return self._hide_short(said)
        said = _HALF.sub("\ufffd", said)
        if len(said) <= LONGEST_TEXT:
            return self._hide(said)
        reach = self._hide.reach
        kept = self._hide(said[: LONGEST_TEXT + reach])
        kept = kept[: max(0, len(kept) - reach)][:LONGEST_TEXT]
        return f"{kept}… [{len(said)} characters]"

    def _plain(self, value: object, depth: int) -> object:
        self._left -= 1
        match value:
            case None | bool():
                return value
            case Enum():
                return self._plain(value.value, depth)
            case str():
                return self.text(value)
            case int():
                return int(value) if abs(value) < _LARGEST_NUMBER else f"{value:#x}"[:LONGEST_TEXT]
            case float():
                # JSON has no NaN and infinity.
                return float(value) if value - value == 0 else f"{float(value)}"
            case _ if depth < _DEEPEST and isinstance(value, Mapping | Set | list | tuple):
                return self._inside(value, depth + 1)
            case _:
                return self.text(_words(value))

    def _inside(self, value: object, depth: int) -> object:
        try:
            if isinstance(value, Mapping):
                some = list(islice(value.items(), max(0, self._left)))
                return {
                    self.text(str(name)): self.named(str(name), one, depth) for name, one in some
                }
            assert isinstance(value, Set | list | tuple)
            return [self._plain(one, depth) for one in islice(value, max(0, self._left))]
        except Exception as error:
            # Catch everything: values can be objects of any class.
            return f"(unreadable: {type(error).__name__})"


def _words(value: object) -> str:
    try:
        match value:
            case datetime() | date():
                return value.isoformat()
            case PurePath():
                return str(value)
            case bytes() | bytearray() | memoryview():
                return repr(bytes(value[:LONGEST_TEXT]))
            case _:
                return repr(value)
    except Exception as error:
        # Catch everything, as above.
        return f"(unreadable {type(value).__name__}: {type(error).__name__})"
