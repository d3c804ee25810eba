"""What a method does is said once: in its class, or in the protocol or base that it implements."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.architecture.sources import modules

Method = ast.FunctionDef | ast.AsyncFunctionDef


def methods() -> Iterator[tuple[str, str, Method]]:
    """Module, class and method of the public classes."""
    for module in modules():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                for one in node.body:
                    if isinstance(one, Method) and not one.name.startswith("_"):
                        yield module.name, node.name, one


def test_a_method_without_a_docstring_implements_one_that_has_it() -> None:
    """Go-to-definition leads from a protocol's method to its implementations."""
    described = {one.name for _, _, one in methods() if ast.get_docstring(one)}
    silent = {
        (module, owner, one.name)
        for module, owner, one in methods()
        if not ast.get_docstring(one) and one.name not in described
    }
    assert silent == set()


def test_no_docstring_only_points_elsewhere() -> None:
    lines = [(ast.get_docstring(one) or "", module, one.name) for module, _, one in methods()]
    pointers = [place for text, *place in lines if re.fullmatch(r"See ``[\w.]+``\.?", text)]
    assert pointers == []
