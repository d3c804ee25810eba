"""Count what things cost: ``python -m tests.ledger [--json | --write | --planted]``."""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

_SEED = "0"
_ADDR_NO_RANDOMIZE = 0x0040000


def main() -> None:
    """Print the costs, or write them into docs/costs.md."""
    parser = argparse.ArgumentParser(prog="python -m tests.ledger", description=__doc__)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="print {scenario: {counter: count}}")
    how.add_argument("--write", action="store_true", help="write docs/costs.md")
    how.add_argument("--planted", action="store_true", help="print what planted faults cost")
    given = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != _SEED:
        # The order of sets would differ from one process to the next.
        os.environ["PYTHONHASHSEED"] = _SEED
        with suppress(OSError, AttributeError):
            # So would that of objects, by their addresses; Linux only.
            ctypes.CDLL(None).personality(_ADDR_NO_RANDOMIZE)
        os.execv(sys.executable, [sys.executable, "-m", "tests.ledger", *sys.argv[1:]])
    from tests.ledger import costs, measure, scenarios

    with tempfile.TemporaryDirectory(prefix="goclaw-ledger-") as folder:
        work = scenarios.planted if given.planted else scenarios.measure
        found = measure.run(Path(folder), work)
    if given.json or given.planted:
        print(json.dumps(found, indent=1))
        return
    before = costs.PAGE.read_text("utf-8")
    for line in costs.differences(costs.stored(before), found):
        print(line)
    if given.write:
        costs.PAGE.write_text(costs.page(before, found), "utf-8")


if __name__ == "__main__":
    main()
