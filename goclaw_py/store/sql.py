"""Loads the queries of ``queries/*.sql``.

A file holds blocks that begin with ``-- name: <name>`` and a line that says what the query
promises.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent / "queries"
_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def parse(text: str) -> dict[str, str]:
    """Split a file into its queries by name. Raises ``ValueError`` for a name used twice."""
    _, *parts = _NAME.split(text)
    names, bodies = parts[::2], parts[1::2]
    if len(set(names)) != len(names):
        raise ValueError(f"a query name is used twice: {sorted(names)}")
    return {name: body.strip().removesuffix(";") for name, body in zip(names, bodies, strict=True)}


@cache
def queries(file: str) -> dict[str, str]:
    """The queries of one file, given without its suffix."""
    return parse((_FOLDER / f"{file}.sql").read_text(encoding="utf-8"))
