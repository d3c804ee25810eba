"""Texts that can be stored and sent: without halves of UTF-16 pairs, and without NUL.

Both occur in messages, in the output of models, tools and programs, and in JSON. UTF-8 has no
halves, so neither a database nor a model's server nor a channel can be given one; PostgreSQL's text
and jsonb refuse NUL. Two halves that belong together are joined, all else becomes U+FFFD. JSON of
others (servers, programs) is read here too, because its parsers refuse such texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from decimal import Decimal
from enum import Enum
from types import NoneType
from typing import Any, TypeVar, cast

import orjson

from goclaw_py.core.text import well_formed

T = TypeVar("T")

_REFUSED = re.compile("[\x00\ud800-\udfff]")
_REPLACEMENT = "\ufffd"
_TEXTLESS = frozenset({NoneType, bool, bytes, int, float, datetime, Decimal})

_DEEPEST = 200
"""The depth to which values are written; orjson writes 254 levels and reads 1,024."""

_LARGEST_BITS = 1_000
"""The size of integers that are written as numbers; orjson cannot read much larger ones."""


def storable(value: T) -> T:
    """Replace what cannot be stored, in a text or in all texts of a value.

    Handles tuples, lists, dictionaries and dataclasses; other values are returned unchanged. A
    value that needs no change is returned itself, not a copy.
    """
    if _is_storable(value):
        return value
    if isinstance(value, str):
        return cast("T", well_formed(value).replace("\0", _REPLACEMENT))
    if isinstance(value, tuple | list):
        cleaned = [storable(item) for item in value]
        if all(new is old for new, old in zip(cleaned, value, strict=True)):
            return value
        return cast("T", type(value)(cleaned))
    if isinstance(value, dict):
        cleaned_items = {storable(name): storable(item) for name, item in value.items()}
        return value if cleaned_items == value else cast("T", cleaned_items)
    before = {field.name: getattr(value, field.name) for field in fields(cast("Any", value))}
    changed = {name: new for name, old in before.items() if (new := storable(old)) is not old}
    return cast("T", replace(cast("Any", value), **changed)) if changed else value


def _is_storable(value: object) -> bool:
    """Return quickly whether a value can be stored as it is.

    May return False for rare values that can; their parts are then checked one by one.
    """
    if isinstance(value, str):
        # Enums are ours. Python knows of each text whether it is ASCII.
        if value.isascii():
            return "\0" not in value or isinstance(value, Enum)
        return not _REFUSED.search(value) or isinstance(value, Enum)
    if isinstance(value, tuple | list):
        return _are_storable(value)
    if isinstance(value, dict):
        return _are_storable(tuple(value)) and _are_storable(tuple(value.values()))
    if is_dataclass(value) and not isinstance(value, type):
        try:
            # Refuses lone surrogates. A text that itself holds a backslash and "u0000" gets a no.
            return b"\\u0000" not in orjson.dumps(value)
        except TypeError:
            return False
    return True


def _are_storable(values: Sequence[object]) -> bool:
    kinds = set(map(type, values)) - _TEXTLESS
    if kinds == {str}:
        return _is_storable("".join([text for text in values if isinstance(text, str)]))
    return not kinds or all(map(_is_storable, values))


def parse_json(data: bytes) -> object:
    """Parse JSON, also with lone surrogates, raw control characters or invalid UTF-8.

    Invalid bytes become U+FFFD; surrogates are kept, because a later text may have the other half.
    Refusing the whole would lose everything beside one such text. Raises ``ValueError``.
    """
    try:
        found: object = orjson.loads(data)
    except orjson.JSONDecodeError:
        try:
            found = json.loads(data.decode("utf-8-sig", "replace"), strict=False)
        except RecursionError:
            raise ValueError("nested too deeply") from None
    return found


def storable_json(value: object) -> bytes:
    """Return any value as JSON that can be sent, and that orjson can read. Raises nothing.

    Values of agents, tools and programs may have what JSON or its writer has not: integers beyond
    64 bits, lone surrogates, NaN, keys that are no text, objects, and nesting without end.
    """
    try:
        return orjson.dumps(value, default=_words, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:
        plain = _plain(value, ())
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode()


def _plain(value: object, outer: tuple[int, ...]) -> object:
    """Return a value in types of JSON; ``outer`` are the ids of those that contain it."""
    if isinstance(value, str):
        return well_formed(str.__str__(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value) if value.bit_length() <= _LARGEST_BITS else hex(value)
    if isinstance(value, dict | list | tuple | set | frozenset) or _is_record(value):
        if id(value) in outer or len(outer) == _DEEPEST:
            return "…"
        outer = (*outer, id(value))
        if _is_record(value):
            value = {field.name: getattr(value, field.name) for field in fields(cast("Any", value))}
        if isinstance(value, dict):
            return {_key(name): _plain(item, outer) for name, item in value.items()}
        return [_plain(item, outer) for item in cast("Sequence[object]", value)]
    return orjson.loads(orjson.dumps(value, default=_words))


def _is_record(value: object) -> bool:
    return is_dataclass(value) and not isinstance(value, type)


def _key(name: object) -> str:
    return well_formed(name if isinstance(name, str) else _words(name))


def _words(value: object) -> str:
    try:
        return well_formed(str(value))
    except Exception:  # a boundary: the code of others may raise anything, as may a large integer
        return f"<{type(value).__name__}>"
