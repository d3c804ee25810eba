"""What an entry of the audit log may contain: one line each, no secrets, little of each."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Final

from goclaw_py.core.storable import storable_json
from goclaw_py.core.text import truncate, visible_line
from goclaw_py.records.audit import Facts

MOST_CHARS: Final = 300
"""Of a text."""

MOST_FACTS_BYTES: Final = 4_000
"""Of the facts before or after an action, as JSON."""

_MOST_ITEMS: Final = 30
_DEEPEST: Final = 4
_LOOKED_AT: Final = 20_000
"""Characters of a text that are looked at: invisible ones may come first."""

Hide = Callable[[str], str]
"""Masks secrets in a text."""


def digest(text: str) -> Facts:
    """Return what may be known of a text: that it is another one, not what it says.

    People and models write prompts, checklists and messages, and not everybody who may read the
    audit log may read these. The beginning of a hash is enough to see that a text has changed, and
    to recognise one that is known.
    """
    hashed = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    return {"chars": len(text), "sha256": hashed[:12]}


def line(text: str, hide: Hide, most: int = MOST_CHARS) -> str:
    """Return the beginning of a text on one line, without secrets and invisible characters."""
    return truncate(visible_line(hide(text[:_LOOKED_AT])), most)


def clean(facts: Facts | None, hide: Hide) -> Facts | None:
    """Return facts that can be stored, at most ``MOST_FACTS_BYTES`` of them."""
    if facts is None:
        return None
    cleaned = {
        line(name, hide): _clean(value, hide, 1)
        for name, value in list(facts.items())[:_MOST_ITEMS]
    }
    size = 0
    kept: dict[str, object] = {}
    for name, value in cleaned.items():
        size += len(storable_json({name: value}))
        if size > MOST_FACTS_BYTES:
            return {**kept, "…": f"{len(facts) - len(kept)} more"}
        kept[name] = value
    if len(facts) > len(kept):
        kept["…"] = f"{len(facts) - len(kept)} more"
    return kept


def changed(before: Facts | None, after: Facts | None) -> tuple[Facts | None, Facts | None]:
    """Return what differs, as it was and as it is."""
    if before is None or after is None:
        return before, after
    names = [one for one in {**before, **after} if before.get(one) != after.get(one)]
    return (
        {name: before[name] for name in names if name in before},
        {name: after[name] for name in names if name in after},
    )


def _clean(value: object, hide: Hide, depth: int) -> object:
    match value:
        case None | bool() | float():
            return value
        case int():
            return value if value.bit_length() < 64 else line(str(value)[:99], hide)
        case Mapping() if depth < _DEEPEST:
            some = list(value.items())[:_MOST_ITEMS]
            return {line(str(name), hide): _clean(one, hide, depth + 1) for name, one in some}
        case list() | tuple() if depth < _DEEPEST:
            return [_clean(one, hide, depth + 1) for one in value[:_MOST_ITEMS]]
        case _:
            return line(str(value), hide)
