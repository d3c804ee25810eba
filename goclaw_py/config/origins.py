"""Find the origin of each setting: the line of the file, or the variable.

``tomllib`` reports no positions. A value ends at the first line end at which the text read so far
is valid TOML, so the file is parsed again piece by piece.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goclaw_py.ports.settings import OriginKind

Path_ = tuple[str, ...]

_ENDS = ('"""', "'''", "]", "}")
"""The possible ends of values that span several lines."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What set a value: its kind, and a text for people."""

    kind: OriginKind
    words: str


DEFAULT = Origin(OriginKind.DEFAULT, "default")


def traced(layers: Iterable[Mapping[Path_, Origin]]) -> dict[Path_, Origin]:
    """Return the origin of each value after merging layers; earlier layers take precedence.

    Tables are merged key by key; any other value replaces the one below it.
    """
    found: dict[Path_, Origin] = {}
    for layer in layers:
        hidden = {path[:length] for path in found for length in range(1, len(path) + 1)}
        for path, origin in layer.items():
            above = (path[:length] for length in range(1, len(path)))
            if path not in hidden and not any(short in found for short in above):
                found[path] = origin
    return found


def file_origins(file: Path, text: str) -> dict[Path_, Origin]:
    """Return the line of each value in a TOML file. ``text`` must be valid TOML."""
    return {
        path: Origin(OriginKind.FILE, f"{file}:{line}") for path, line in key_lines(text).items()
    }


def key_lines(text: str) -> dict[Path_, int]:
    """Return the line (from 1) at which each value of a TOML text begins. A list is one value."""
    found: dict[Path_, int] = {}
    table: Path_ = ()
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


def _leaves(tree: Mapping[str, Any], above: Path_ = ()) -> Iterator[Path_]:
    """Return the paths of all values that are not tables, and of empty tables."""
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, (*above, key))
        else:
            yield (*above, key)
