"""Parts get what they need when they are built: nothing is connected afterwards."""

from __future__ import annotations

import ast

from tests.architecture.sources import modules

OF_NETWORKS = ("goclaw_py.core.net", "goclaw_py.store")
"""Where ``connect`` opens a connection."""


def test_no_part_is_connected_after_it_was_built() -> None:
    found = [
        f"{module.name}:{node.lineno}"
        for module in modules()
        if not module.name.startswith(OF_NETWORKS)
        for klass in ast.walk(module.tree)
        if isinstance(klass, ast.ClassDef)
        for node in klass.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.split("_")[0] == "connect"
    ]
    assert found == []
