"""Each method of the store, and each form of the pages, is called by a test."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from goclaw_py.records import Store
from goclaw_py.web.roles import routes
from tests.architecture.sources import ROOT

TESTS = ROOT / "tests"
FORMS = ("unit/operations", "unit/web", "security", "browser")
"""The folders with tests of forms."""


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def test_each_method_of_the_store_is_tried_on_each_store() -> None:
    """``tests/contract`` runs on PostgreSQL and on the second store; other tests use the second."""
    methods = {name for name, _ in inspect.getmembers(Store, inspect.isfunction)}
    called = {
        node.func.attr
        for path in (*(TESTS / "contract").glob("*.py"), TESTS / "support" / "stores.py")
        for node in nodes(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    assert {name for name in methods - called if not name.startswith("_")} == set()


def addresses(path: Path) -> Iterator[str]:
    """The texts of a test, but those that it gets; in an f-string, "x" stands for a value."""
    constants: dict[str, ast.expr] = {}
    got = set[int]()
    for node in nodes(path):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant() as value):
                constants[name] = value
            case ast.Call(func=ast.Attribute(attr="get" | "says" | "goto"), args=[first, *_]):
                got.add(id(first))
    for node in nodes(path):
        if id(node) in got or not isinstance(node, ast.Constant | ast.JoinedStr):
            continue
        text = ""
        for part in node.values if isinstance(node, ast.JoinedStr) else [node]:
            match part:
                case ast.FormattedValue(value=ast.Name(id=name)) if name in constants:
                    text += str(ast.literal_eval(constants[name]))
                case ast.Constant(value=literal):
                    text += str(literal)
                case _:
                    text += "x"
        yield text


def test_each_form_of_the_pages_is_sent_by_a_test() -> None:
    """The test of roles sends all of them, but reads no answer."""
    files = [path for name in FORMS for path in sorted((TESTS / name).rglob("*.py"))]
    sent = {text for path in files for text in addresses(path) if text.startswith("/")}
    forms = {path for method, path, _ in routes() if method == "POST"}
    shapes = {
        form: re.compile(re.sub(r"{\w+}", "[^/?]+", form))
        for form in sorted(forms)
        if not form.startswith("/api/")
    }
    assert [form for form, shape in shapes.items() if not any(map(shape.fullmatch, sent))] == []
