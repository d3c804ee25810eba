"""The stored costs: a page for people that is read again, compared, and only written by a command."""

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

_ABOUT = f"""\
# What things cost

Counts of what the gateway does for one thing, beyond what it does in the same time when it is idle. They are measured with a real PostgreSQL and the emulator
of the Bot API, in virtual time, so they do not depend on the speed or the load of a machine. A test compares them; a difference fails with the name of the scenario
and of the counter. `{WRITE}` measures again and writes this page: do that in the commit that changes a cost, also when it falls, and say why in its message.

Statements, transactions, rows, calls, log lines: exact. WAL, log bytes, function calls, allocated blocks: ± 3 %. The last two are of Python {{version}}
and compared on that version only.

| scenario | what happens |
|---|---|
| answered message | one private message in Telegram; the agent answers at once |
| burst of 20 | 20 people write at the same moment, each in a private chat |
| growing answer | an answer in eight pieces during four seconds |
| stopped run | a message whose agent never answers, and after a second `/stop` |
| web chat message | a message by the API of terminals, as the web chat sends it |
| page of runs | the dashboard's page `/runs` is opened |
| job occurrence | a job of an agent is due; its result goes to Telegram |
| silent heartbeat | a heartbeat run that answers `HEARTBEAT_OK` |
| alerting heartbeat | a heartbeat run with a new alert, which goes to Telegram |

| idle minute | a minute in which nobody writes, with all periodic work |

*Rows read in sequence* are those of tables that were read whole. *Function calls* are of Python functions, without those of the event loop; each continuation of a
coroutine counts. *Allocated blocks* are those that outlive a turn of the event loop.
"""
_LEADING = (
    "transactions",
    "statements",
    "rows inserted",
    "rows updated",
    "updates that are not HOT",
    "rows deleted",
    "rows read in sequence",
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
    return abs(now - before) > (_TOLERANCE * abs(before) if counter in _SWINGING else 0)


def _ordered(names: Mapping[str, int]) -> list[str]:
    leading = [name for name in _LEADING if name in names]
    return leading + sorted(names.keys() - set(leading))


def page(costs: Costs) -> str:
    """Return the page with these costs."""
    parts = [_ABOUT.format(version=python()), *_overview(costs)]
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


def python() -> str:
    """Return the version of Python to which functions and blocks belong."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def is_same_python(text: str) -> bool:
    """Return whether a page was measured with this version of Python."""
    return f"are of Python {python()}\n" in text
