"""Sizes that keep a module readable in one sitting."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from tests.architecture.sources import Module, modules

MAX_LINES = 500
MAX_FUNCTION_LINES = 80
MAX_ARGUMENTS = 6
MAX_OF_CONSTRUCTOR = 20
"""A part gets what it needs by keyword, without a record that only carries it there."""
MAX_MODULES = 25
FOREIGN_SIGNATURES = {("channels.telegram.via_ptb", "do_request")}
"""Methods that override one of a library, which made their arguments."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(module: Module) -> Iterator[Function]:
    for node in ast.walk(module.tree):
        if isinstance(node, Function):
            yield node


def body_lines(function: Function) -> int:
    """Lines from the first statement to the last; the docstring does not count."""
    first = function.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    body = function.body[1:] if documented else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def arguments(function: Function) -> int:
    """Named arguments without ``self`` and ``cls``."""
    named = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return sum(argument.arg not in ("self", "cls") for argument in named)


def test_no_module_is_longer_than_500_lines() -> None:
    assert {m.name: m.lines for m in modules() if m.lines > MAX_LINES} == {}


def test_no_function_is_longer_than_80_lines() -> None:
    lengths = {(m.name, f.name): body_lines(f) for m in modules() for f in functions(m)}
    assert {where: n for where, n in lengths.items() if n > MAX_FUNCTION_LINES} == {}


def most_arguments(function: Function) -> int:
    return MAX_OF_CONSTRUCTOR if function.name == "__init__" else MAX_ARGUMENTS


def test_only_constructors_have_more_than_6_arguments() -> None:
    many = {
        (m.name, f.name)
        for m in modules()
        for f in functions(m)
        if arguments(f) > most_arguments(f)
    }
    assert many - FOREIGN_SIGNATURES == set()


def test_the_ceilings_count_what_they_say() -> None:
    source = '''
def f(self, a, /, b, *rest, c, **more):
    """Not counted.

    Neither is this.
    """
    x = (
        1
    )
    return x
'''
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    assert body_lines(function) == 4
    assert arguments(function) == 3


def test_no_folder_has_more_than_25_modules() -> None:
    folders = Counter(module.path.parent for module in modules())
    assert {folder for folder, count in folders.items() if count > MAX_MODULES} == set()
