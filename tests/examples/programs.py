"""The programs of ``examples/``, with what their first lines say that they print."""

from __future__ import annotations

import ast
import re
import textwrap

from tests.support.guides import ROOT, Program

FOLDER = ROOT / "examples"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))
PROGRAMS = [name for name in NAMES if not name.endswith("folder_channel")]


def program(name: str) -> Program:
    """The one of that name. What it prints is the indented end of its docstring."""
    code = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    docstring = ast.get_docstring(ast.parse(code)) or ""
    shown = re.search(r"Prints\b[^\n]*::\n\n((?: {4}.*\n?|\n)+)$", docstring)
    assert shown is not None, f"{name} does not say what it prints"
    return Program(code, textwrap.dedent(shown[1]).rstrip("\n") + "\n")
