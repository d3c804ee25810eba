"""Sample arguments of each statement of the store, for the rows of ``large_tables``.

One line for each statement: its name and its arguments, separated by ``|``. They name rows that the
statement finds: a burst waits, and what is over stays over. With ``...`` at the end, the other
arguments are null.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from goclaw_py.store.sql import queries

_SAMPLES: Final = Path(__file__).with_suffix(".txt")


def sample_arguments() -> dict[str, str]:
    """Return the arguments of each statement, as SQL for ``execute``, by ``file.name``."""
    found = {}
    for part in _SAMPLES.read_text(encoding="utf-8").strip().split("# ")[1:]:
        file, *lines = part.strip().splitlines()
        for line in lines:
            name, _, text = line.partition(":")
            values = [value.strip() for value in text.split("|")]
            if values[-1] == "...":
                numbers = map(int, re.findall(r"\$(\d+)", queries(file)[name]))
                values = [*values[:-1], *["null"] * (max(numbers) - len(values) + 1)]
            quoted = ", ".join(map(_sql, values))
            found[f"{file}.{name}"] = f"({quoted})" if text.strip() else ""
    return found


def _sql(value: str) -> str:
    return value if value in ("null", "''") else "'" + value.replace("'", "''") + "'"
