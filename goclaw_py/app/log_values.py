"""What a log line says: values of plain types, without secrets, of limited length, and as text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Set
from datetime import date, datetime
from enum import Enum
from functools import lru_cache
from itertools import islice
from pathlib import PurePath
from typing import Any

import orjson

from goclaw_py.core.redaction import HIDDEN, Redactor, is_name_of_secret

LONGEST_TEXT = 32_768
"""The maximum length of a text; tracebacks and messages of libraries are the longest."""
MOST_VALUES = 500
"""The maximum number of values in one line, including nested ones."""
_DEEPEST = 6
_SHORT = 64
"""Texts up to this length, in characters, are remembered with what is left of them without secrets:
names of events and fields, agents and sessions come in each line."""
_REMEMBERED = 4096
_LARGEST_NUMBER = 1 << 63

_HALF = re.compile("[\ud800-\udfff]")
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_NOT_BARE = re.compile(r"[\s\"'=\[\]{}]|^$")

_LOUD = {"warning": "\x1b[33m", "error": "\x1b[31m", "critical": "\x1b[31m"}
_CALM, _STRONG, _FAINT, _RESET = "\x1b[32m", "\x1b[1m", "\x1b[2m", "\x1b[0m"
_NAME, _VALUE = "\x1b[36m", "\x1b[35m"


class PlainValues:
    """Makes the values of log lines plain. Any thread may call it."""

    def __init__(self, hide: Redactor) -> None:
        self._hide = hide
        self._hide_short = lru_cache(_REMEMBERED)(lambda text: hide(_HALF.sub("\ufffd", text)))
        # Each event has the same fields in every line.
        self._names = lru_cache(_REMEMBERED)(lambda names: [*map(_Walk(hide, hide).name, names)])
        self._shows_all = lru_cache(_REMEMBERED)(
            lambda names: self._names(names) == [(name, False) for name in names]
        )

    def __call__(self, facts: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a line with secrets masked, also one that is split over them.

        The names of ``facts`` are texts. What needs no change is returned itself, not a copy.
        """
        if self._shows_all(tuple(facts)) and self._is_plain(facts.values()):
            return facts
        walk = _Walk(self._hide, self._hide_short)
        plain = walk.fields(zip(self._names(tuple(facts)), facts.values(), strict=True), 0)
        if pieces := self._hide.split_over(walk.texts):
            return {_without(name, pieces): _without(one, pieces) for name, one in plain.items()}
        return plain

    def _is_plain(self, values: Iterable[Any]) -> bool:
        """Return whether values are certainly plain and without secrets, as in most lines."""
        texts = []
        for value in values:
            kind = type(value)
            if kind is str:
                if len(value) > _SHORT or self._hide_short(value) != value:
                    return False
                texts.append(value)
            elif kind is int:
                if abs(value) >= _LARGEST_NUMBER:
                    return False
            elif kind is float:
                if value - value != 0:
                    return False
            elif value is not None and kind is not bool:
                return False
        return not self._hide.split_over(texts)


def as_json(facts: Mapping[str, Any]) -> bytes:
    """Return plain values as a line of JSON in ASCII, so that no terminal obeys it."""
    line = orjson.dumps(facts)
    if not line.isascii():
        line = json.dumps(facts, separators=(",", ":")).encode()
    return line + b"\n"


def for_people(facts: Mapping[str, Any], *, colors: bool) -> bytes:
    """Return plain values as lines for terminals.

    Control characters are escaped, and continuation lines are indented so that they cannot look
    like other log lines.
    """
    known = ("timestamp", "level", "event", "logger", "exception")
    when, level, event, logger, trace = (_shown(facts.get(name, "")) for name in known)
    fields = [(name, _bare(facts[name])) for name in sorted(facts.keys() - known)]
    if colors:
        when = f"{_FAINT}{when}{_RESET}"
        level = f"{_LOUD.get(level, _CALM)}{_STRONG}{level:<9}{_RESET}"
        event, logger = f"{_STRONG}{event:<30}{_RESET}", f"{_STRONG}{logger}{_RESET}"
        words = [f"{_NAME}{_shown(n)}{_RESET}={_VALUE}{text}{_RESET}" for n, text in fields]
    else:
        level, event = f"{level:<9}", f"{event:<30}"
        words = [f"{_shown(name)}={text}" for name, text in fields]
    line = " ".join((when, f"[{level}]", event, f"[{logger}]", *words))
    return (f"{line}\n    {trace}\n" if trace else f"{line}\n").encode()


def _bare(value: object) -> str:
    """Return a value as it is if it is a word, else in quotes or brackets."""
    if isinstance(value, str) and not _NOT_BARE.search(value):
        return _shown(value)
    return _shown(repr(value))


def _shown(value: object) -> str:
    text = _UNFIT.sub(lambda found: found[0].encode("unicode_escape").decode(), str(value))
    return text.replace("\n", "\n    ")


def _without(value: Any, pieces: Set[str]) -> Any:
    """Return plain values with all texts hidden that are among ``pieces``."""
    match value:
        case str():
            return HIDDEN if value in pieces else value
        case dict():
            return {_without(name, pieces): _without(one, pieces) for name, one in value.items()}
        case list():
            return [_without(one, pieces) for one in value]
        case _:
            return value


class _Walk:
    """Walks through the values of one line."""

    def __init__(self, hide: Redactor, hide_short: Callable[[str], str]) -> None:
        self._hide = hide
        self._hide_short = hide_short
        self._left = MOST_VALUES
        self.texts: list[str] = []
        """The values that are texts, in their order."""

    def fields(
        self, facts: Iterable[tuple[tuple[str, bool], object]], depth: int
    ) -> dict[str, Any]:
        """Return the plain values of fields; what ``name`` says of each comes before its value."""
        shown: dict[str, Any] = {}
        for (name, is_of_secret), value in facts:
            if is_of_secret and value is not None and not isinstance(value, bool):
                shown[name] = HIDDEN
            elif type(value) is str and len(value) <= _SHORT:
                # Nearly all texts. The way through the functions below would cost more than this.
                shown[name] = text = self._hide_short(value)
                self.texts.append(text)
            else:
                shown[name] = self._plain(value, depth)
        return shown

    def name(self, key: object) -> tuple[str, bool]:
        """Return the name of a field without secrets, and whether it is the name of one."""
        name = str(key)
        return self._text(name), is_name_of_secret(name)

    def _text(self, text: str) -> str:
        """Return a text with secrets masked; a secret at the cut is removed completely."""
        if len(text) <= _SHORT:
            return self._hide_short(text)
        if len(text) <= LONGEST_TEXT:
            return self._hide(_HALF.sub("\ufffd", text))
        reach = self._hide.reach
        kept = self._hide(_HALF.sub("\ufffd", text[: LONGEST_TEXT + reach]))
        kept = kept[: max(0, len(kept) - reach)][:LONGEST_TEXT]
        return f"{kept}… [{len(text)} characters]"

    def _plain(self, value: object, depth: int) -> object:
        self._left -= 1
        if not isinstance(value, str):
            match value:
                case None | bool():
                    return value
                case Enum():
                    return self._plain(value.value, depth)
                case int():
                    is_large = abs(value) >= _LARGEST_NUMBER
                    return f"{value:#x}"[:LONGEST_TEXT] if is_large else int(value)
                case float():
                    # JSON has no NaN and infinity.
                    return float(value) if value - value == 0 else f"{float(value)}"
                case _ if depth < _DEEPEST and isinstance(value, Mapping | Set | list | tuple):
                    return self._inside(value, depth + 1)
            value = _words(value)
        text = self._text(str.__str__(value))
        self.texts.append(text)
        return text

    def _inside(self, value: object, depth: int) -> object:
        most = max(0, self._left)
        try:
            if isinstance(value, Mapping):
                some = islice(value.items(), most)
                return self.fields(((self.name(key), one) for key, one in some), depth)
            assert isinstance(value, Set | list | tuple)
            return [self._plain(one, depth) for one in islice(value, most)]
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
