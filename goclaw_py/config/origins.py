"""Find the origin of each setting: the line of the file, or the variable.

``tomllib`` reports no positions. A value ends at the first line end at which the text read so far
is valid TOML, so the file is parsed again piece by piece.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from goclaw_py.operations.settings.models import OriginKind

KeyPath = tuple[str, ...]
"""The path of a setting, such as ``("lanes", "main", "size")``."""

_ENDS = ('"""', "'''", "]", "}")
"""The possible ends of values that span several lines."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What set a value: its kind, and a text for people."""

    kind: OriginKind
    words: str


DEFAULT = Origin(OriginKind.DEFAULT, "default")


class Origins:
    """What set each value, by its path."""

    def __init__(self, of_values: Mapping[KeyPath, Origin] | None = None) -> None:
        self._of_values = of_values or {}
        self._of_tables: dict[KeyPath, Origin] = {}
        for path, origin in self._of_values.items():
            for length in range(1, len(path)):
                self._of_tables.setdefault(path[:length], origin)

    def at(self, path: KeyPath) -> Origin | None:
        """Return what set the value at a path, or a value around it, or the first value in it."""
        for length in range(len(path), 0, -1):
            if (origin := self._of_values.get(path[:length])) is not None:
                return origin
        return self._of_tables.get(path)


def key_lines(text: str) -> dict[KeyPath, int]:
    """Return the line (from 1) at which each value of a TOML text begins. A list is one value."""
    found: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for number, piece in _pieces(text):
        read = tomllib.loads(piece)
        if piece.lstrip(" \t").startswith("["):
            table = next(iter(_leaves(read)))
            if piece.lstrip(" \t").startswith("[["):
                found.setdefault(table, number)
            continue
        if any(table[:length] in found for length in range(1, len(table) + 1)):
            # Part of a list of tables, which is one value.
            continue
        for path in _leaves(read):
            found[(*table, *path)] = number
    return found


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Split a text into table headers and whole assignments, each with its first line number."""
    begun: list[str] = []
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        begun.append(line)
        if len(begun) > 1 and not any(end in line for end in _ENDS):
            continue
        piece = "\n".join(begun)
        try:
            read = tomllib.loads(piece)
        except tomllib.TOMLDecodeError:
            continue
        if read:
            yield number - len(begun) + 1, piece
        begun = []


def _leaves(tree: Mapping[str, Any], above: KeyPath = ()) -> Iterator[KeyPath]:
    """Return the paths of all values that are not tables, and of empty tables."""
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, (*above, key))
        else:
            yield (*above, key)
