"""Sample arguments of each statement of the store, for the rows of ``large_tables``.

One line for each statement: its name and its arguments, separated by ``|``. They name rows that the
statement finds: a burst waits, and what is over stays over.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

_SAMPLES: Final = Path(__file__).with_suffix(".txt")


def sample_arguments() -> dict[str, str]:
    """Return the arguments of each statement, as SQL for ``execute``, by ``file.name``."""
    found = {}
    for part in _SAMPLES.read_text(encoding="utf-8").strip().split("# ")[1:]:
        file, *lines = part.strip().splitlines()
        for line in lines:
            name, _, values = line.partition(":")
            quoted = ", ".join(_sql(value.strip()) for value in values.split("|"))
            found[f"{file}.{name}"] = f"({quoted})" if values.strip() else ""
    return found


def _sql(value: str) -> str:
    return value if value in ("null", "''") else "'" + value.replace("'", "''") + "'"
