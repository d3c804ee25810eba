"""The product's modules as syntax trees."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OURS = ("goclaw_py", "channels")


@dataclass(frozen=True, slots=True)
class Module:
    """One source file. ``name`` is dotted; a package is named like its folder."""

    name: str
    path: Path
    tree: ast.Module
    lines: int

    def is_in(self, *prefixes: str) -> bool:
        return any(self.name == p or self.name.startswith(f"{p}.") for p in prefixes)

    def imports(self) -> Iterator[str]:
        """Every absolute module name that is imported, wherever in the file."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                yield node.module

    def calls(self) -> Iterator[str]:
        """What is called, as dotted text without arguments: ``datetime.now``, ``open``."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                yield ast.unparse(node.func)


@cache
def modules() -> tuple[Module, ...]:
    found = []
    for package in OURS:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            text = path.read_text(encoding="utf-8")
            found.append(Module(name, path, ast.parse(text), len(text.splitlines())))
    return tuple(found)


@cache
def nouns() -> tuple[str, ...]:
    """The folders of ``operations``: each is all that operators do with one noun."""
    packages = sorted((ROOT / "goclaw_py" / "operations").glob("*/__init__.py"))
    return tuple(f"goclaw_py.operations.{package.parent.name}" for package in packages)


def is_stdlib(package: str) -> bool:
    return package in sys.stdlib_module_names
