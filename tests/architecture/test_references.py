"""What docstrings name in code style exists, and each clause has a number of its own."""

from __future__ import annotations

import ast
import builtins
import re
from collections import Counter
from collections.abc import Iterator

from goclaw_py.core import errors
from tests.architecture.sources import ROOT, Module, modules

NOT_OURS = {
    *("SchedulerService", "cancel_all", "cancel_one"),  # of the source documents
    *("genai_prices", "getFile", "jinja2", "prometheus_client", "sendMessage", "tzdata"),
    *("L", "NAME_live", "py"),
}


def words_of(module: Module) -> Iterator[str]:
    """Every name in the code, and the words of short texts: keys, values, patterns."""
    yield from module.name.split(".")
    for node in ast.walk(module.tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                yield name
            case ast.AsyncFunctionDef(name=name):
                yield name
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name
            case ast.alias(name=name):
                yield from name.split(".")
            case ast.Constant(value=str() as text) if len(text) < 60:
                yield from re.findall(r"\w+", text)


def docstrings_of(module: Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(module.tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str() as text), lineno=line):
                yield line, text


def test_what_docstrings_name_exists() -> None:
    known = {word for module in modules() for word in words_of(module)}
    for file in (*ROOT.glob("goclaw_py/**/*.sql"), *ROOT.glob("migrations/*.sql")):
        known |= {file.stem, *re.findall(r"\w+", file.read_text(encoding="utf-8"))}
    known |= {*dir(builtins), *NOT_OURS}
    unknown = [
        f"{module.path}:{line}: {name}"
        for module in modules()
        for line, text in docstrings_of(module)
        for name in re.findall(r"``([A-Za-z_][\w.]*)``", text)
        if not known.issuperset(filter(None, name.split(".")))
    ]
    assert unknown == []


def test_the_tree_of_errors_has_each_of_them() -> None:
    drawn = re.findall(r"^[│├└─ ]*(\w+)(?: {2,}|$)", errors.__doc__ or "", re.MULTILINE)
    defined = {name for name, value in vars(errors).items() if isinstance(value, type)}
    assert {name for name in drawn if name[0].isupper()} == defined


def test_no_two_clauses_have_one_number() -> None:
    spec = (ROOT / "docs" / "spec.md").read_text(encoding="utf-8")
    numbers = Counter(re.findall(r"^- ([A-Z]+-\d+) ", spec, re.MULTILINE))
    assert len(numbers) > 50
    assert [number for number, count in numbers.items() if count > 1] == []
