"""Text that PostgreSQL can hold.

Its text and jsonb refuse the character NUL, and UTF-8 has no lone surrogates; both do turn up in
what people send and models write. Nothing may be lost or crash because of them, so each becomes
U+FFFD, the replacement character, on the way in.
"""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import TypeVar, cast

T = TypeVar("T")

_REFUSED = re.compile("[\x00\ud800-\udfff]")
_REPLACEMENT = "\ufffd"


def storable(value: T) -> T:
    """Replace what cannot be stored, in a text or in all texts of a value.

    Looks into tuples, lists and frozen dataclasses; anything else is returned as it is. What needs
    no change is returned itself, not a copy.
    """
    if isinstance(value, str) and not isinstance(value, Enum):
        return cast("T", _REFUSED.sub(_REPLACEMENT, value)) if _REFUSED.search(value) else value
    if isinstance(value, tuple | list):
        cleaned = [storable(item) for item in value]
        if all(new is old for new, old in zip(cleaned, value, strict=True)):
            return value
        return cast("T", type(value)(cleaned))
    if is_dataclass(value) and not isinstance(value, type):
        before = {field.name: getattr(value, field.name) for field in fields(value)}
        changed = {name: new for name, old in before.items() if (new := storable(old)) is not old}
        return cast("T", replace(value, **changed)) if changed else value
    return value
