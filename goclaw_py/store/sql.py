"""Loads the queries of ``queries/*.sql``.

A file holds blocks that begin with ``-- name: <name>`` and a line that says what the query
promises. What several queries of a file share is a block that begins with ``-- part: <name>``; it
takes the place of the line ``-- use: <name>``.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent / "queries"
_BLOCK = re.compile(r"^-- (name|part): (\w+)$", re.MULTILINE)
_USE = re.compile(r"^ *-- use: (\w+)$", re.MULTILINE)


def parse(text: str) -> dict[str, str]:
    """Split a file into its queries by name. Raises ``ValueError`` for a name used twice."""
    _, *blocks = _BLOCK.split(text)
    kinds, names, bodies = blocks[::3], blocks[1::3], blocks[2::3]
    if len(set(names)) != len(names):
        raise ValueError(f"a query name is used twice: {sorted(names)}")
    found = dict(zip(names, (body.strip().removesuffix(";") for body in bodies), strict=True))
    return {
        name: _USE.sub(lambda use: found[use[1]], found[name])
        for kind, name in zip(kinds, names, strict=True)
        if kind == "name"
    }


@cache
def queries(file: str) -> dict[str, str]:
    """The queries of one file, given without its suffix."""
    return parse((_FOLDER / f"{file}.sql").read_text(encoding="utf-8"))
