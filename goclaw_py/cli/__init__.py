"""The command ``goclaw``. Heavy imports are made where a command needs them.

The rules of SPEC OPS-1:

The commands are those of `cli.tree`. Tables for people, `--json` for programs, meaningful exit
codes, ids by unique prefix or name (of sessions any unique part of the key, else of the name, or an
agent that has one direct chat; else the candidates are listed).
`top`: a live view in a terminal, of a running gateway only; fits 80x24,
warnings before lanes before runs before what waits. With a gateway the CLI speaks to it over a
unix socket in the state folder; without one it works on the database.

- **Tables.** On a terminal a row takes one line: first the less important columns are left out,
  then texts are cut; ids, names in the first column and states are never cut, states have a colour
  (not with `NO_COLOR`), ids are short. `--wide` shows all, folded. In a pipe nothing is left out,
  cut or coloured. A session or chat is shown by its name (OPS-9), with its key in the last column,
  KEY.
- **Progress.** An operation that takes more than a second shows on standard error what it does,
  how much of how much is done where that is known, and for how long: on a terminal a bar, which is
  removed at the end; else (also with `TERM=dumb`) a line every 5 s; `GOCLAW_PROGRESS=off` shows
  nothing. Standard output has only the result.
"""

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
