"""The stored costs: a page for people, which is also read, compared and written here."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

Costs = Mapping[str, Mapping[str, int]]

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/costs.md"
WRITE = "make ledger"

_MARK = "<!-- Below this line: written by make ledger. -->\n"
_LEADING = (
    "transactions",
    "statements",
    "rows inserted",
    "rows updated",
    "updates that are not HOT",
    "rows deleted",
    "rows read in sequence",
    "index entries read",
    "WAL bytes",
    "Bot API calls",
    "log lines",
    "log bytes",
    "function calls",
    "function calls in goclaw_py and channels",
    "allocated blocks",
)
_OF_PYTHON = frozenset(
    {"function calls", "function calls in goclaw_py and channels", "allocated blocks"}
)
_SWINGING = _OF_PYTHON | {"WAL bytes", "log bytes"}
_TOLERANCE = 0.03
_LEAST_TOLERANCE = {"allocated blocks": 50}
"""What an idle gateway does in the same time, which is subtracted, swings by up to 20 blocks."""
_ROW = re.compile(r"\| ([^|]+) \| (-?\d+) \|")


def measured() -> Costs:
    """Measure in a process of its own."""
    found: Costs = _ask("--json")
    return found


def planted() -> dict[str, Costs]:
    """Measure an answered message with each planted fault; without any under ""."""
    found: dict[str, Costs] = _ask("--planted")
    return found


def _ask(option: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "tests.ledger", option],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-4000:])
    return json.loads(done.stdout)


def differences(stored: Costs, found: Costs, *, same_python: bool = True) -> list[str]:
    """Say what costs more or less than is stored, such as "answered message: statements 6 -> 8"."""
    return [
        f"{scenario}: {counter} {before} -> {now}"
        for scenario in (*stored, *(found.keys() - stored.keys()))
        for counter in _ordered({**stored.get(scenario, {}), **found.get(scenario, {})})
        if _differs(
            counter,
            before := stored.get(scenario, {}).get(counter, 0),
            now := found.get(scenario, {}).get(counter, 0),
        )
        and (same_python or counter not in _OF_PYTHON)
    ]


def _differs(counter: str, before: int, now: int) -> bool:
    tolerance = _TOLERANCE * abs(before) if counter in _SWINGING else 0
    return abs(now - before) > max(tolerance, _LEAST_TOLERANCE.get(counter, 0))


def _ordered(names: Mapping[str, int]) -> list[str]:
    leading = [name for name in _LEADING if name in names]
    return leading + sorted(names.keys() - set(leading))


def page(before: str, costs: Costs) -> str:
    """Return a page with these costs; its text above them is kept."""
    about = before.partition(_MARK)[0]
    parts = [f"{about}{_MARK}\n{_version()}\n", *_overview(costs)]
    for scenario, counts in costs.items():
        rows = [f"| {name} | {counts[name]} |" for name in _ordered(counts)]
        parts += ["\n".join([f"## {scenario}\n", "| counter | count |", "|---|---|", *rows]) + "\n"]
    return "\n".join(parts)


def _overview(costs: Costs) -> Iterator[str]:
    yield "\n".join(
        [
            f"| | {' | '.join(costs)} |",
            f"|---|{'---|' * len(costs)}",
            *(
                f"| {name} | {' | '.join(f'{one.get(name, 0):,}' for one in costs.values())} |"
                for name in _LEADING
            ),
            "",
        ]
    )


def stored(text: str) -> Costs:
    """Return the costs of a page."""
    _, *sections = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    return {
        scenario: {name: int(count) for name, count in _ROW.findall(rows)}
        for scenario, rows in zip(sections[::2], sections[1::2], strict=True)
    }


def is_same_python(text: str) -> bool:
    """Return whether a page was measured with this version of Python."""
    return _version() in text


def _version() -> str:
    return f"Measured with Python {sys.version_info.major}.{sys.version_info.minor}."
