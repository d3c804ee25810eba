"""Loads the queries of ``queries/*.sql``.

A file consists of blocks. Each begins with ``-- name: <name>`` and a line that says what the query
promises. A block that begins with ``-- part: <name>`` is shared: it replaces the line ``-- use:
<name>`` in other queries and parts of the file. With ``-- use: <name> from $5`` its $1 is $5 there.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent / "queries"
_BLOCK = re.compile(r"^-- (name|part): (\w+)$", re.MULTILINE)
_USE = re.compile(r"^ *-- use: (\w+)(?: from \$(\d+))?$", re.MULTILINE)
_PARAMETER = re.compile(r"\$(\d+)")


def parse(text: str) -> dict[str, str]:
    """Split a file into its queries by name. Raises ``ValueError`` for a duplicate name."""
    _, *blocks = _BLOCK.split(text)
    kinds, names, bodies = blocks[::3], blocks[1::3], blocks[2::3]
    if len(set(names)) != len(names):
        raise ValueError(f"a query name is used twice: {sorted(names)}")
    found = dict(zip(names, (body.strip().removesuffix(";") for body in bodies), strict=True))

    def whole(name: str, first: int = 1) -> str:
        text = _USE.sub(lambda use: whole(use[1], int(use[2] or 1)), found[name])
        return _PARAMETER.sub(lambda number: f"${int(number[1]) + first - 1}", text)

    return {name: whole(name) for kind, name in zip(kinds, names, strict=True) if kind == "name"}


@cache
def queries(file: str) -> dict[str, str]:
    """Return the queries of a file, given without its suffix."""
    return parse((_FOLDER / f"{file}.sql").read_text(encoding="utf-8"))
