"""The command ``goclaw``. Heavy imports are made where a command needs them."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line and exit with its code."""
    _open_what_is_closed()
    from goclaw_py.cli.entry import run  # noqa: PLC0415  (importing this package stays cheap)

    code = run(sys.argv[1:])
    _discard_unwritable()
    sys.exit(code)


def _open_what_is_closed() -> None:
    """Replace closed standard streams (``goclaw … >&-``) by /dev/null.

    Otherwise the next file that is opened would become standard output of every child process.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            # The system assigns the lowest free number, which is this one.
            opened = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(opened, True)  # noqa: FBT003 - it has no name there
            setattr(sys, name, os.fdopen(opened, mode, encoding="utf-8"))
            assert opened == number


def _discard_unwritable() -> None:
    """Discard output for a terminal that was closed: Python would exit with 120 instead."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
