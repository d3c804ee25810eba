"""Level 5: the command ``goclaw``. Heavy imports are made where a command needs them."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    from goclaw_py.cli.entry import run  # noqa: PLC0415  (importing this package stays cheap)

    sys.exit(run(sys.argv[1:]))
