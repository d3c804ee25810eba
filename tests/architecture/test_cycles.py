"""No module needs itself to be imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.architecture.sources import Module, modules


def at_import(module: Module) -> Iterator[str]:
    """What is imported when the module is: not within functions, not for type checkers only."""
    for node in module.tree.body:
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_imports_have_no_cycle() -> None:
    names = {module.name for module in modules()}
    graph = {one.name: {name for name in at_import(one) if name in names} for one in modules()}
    # A package is imported before its modules; which of them it imports itself is no cycle.
    for name, needs in graph.items():
        needs -= {package for package in needs if f"{name}.".startswith(f"{package}.")}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(error.args[1]))
