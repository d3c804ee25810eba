"""Where each value of the settings comes from: the line of the file, or the variable.

``tomllib`` tells no positions. But it says of any piece of text whether that is TOML, and a value
ends at the first end of a line at which it is: so the file is read again piece by piece.
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
"""What a value ends with that has begun on another line."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What has set a value, for programs and in words."""

    kind: OriginKind
    words: str


DEFAULT = Origin(OriginKind.DEFAULT, "default")


def traced(layers: Iterable[Mapping[Path_, Origin]]) -> dict[Path_, Origin]:
    """The origin of each value when layers are laid over each other, the one that wins first.

    Tables are merged key by key; any other value hides what is below it.
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
    """The line of each value in a file of TOML. ``text`` is TOML that ``tomllib`` can read."""
    return {
        path: Origin(OriginKind.FILE, f"{file}:{line}") for path, line in key_lines(text).items()
    }


def key_lines(text: str) -> dict[Path_, int]:
    """The line, from 1 on, at which each value of a TOML text begins. Lists are one value."""
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
            # In a list of tables, which is one value.
            continue
        for path in _leaves(read):
            found[(*table, *path)] = number
    return found


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Headers of tables and whole assignments, each with the number of its first line."""
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
    """The paths of all values that are no tables, and of tables with nothing in them."""
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, (*above, key))
        else:
            yield (*above, key)
