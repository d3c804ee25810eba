"""What operators do stands in one folder per noun, and a new operation is forgotten nowhere.

The recipe "Add an operation" in CONTRIBUTING.md relies on these tests.
"""

from __future__ import annotations

import ast
import inspect
from functools import cache
from pathlib import Path

import pytest

from goclaw_py.core.chat_commands import MENU
from goclaw_py.operations.declare import Noun
from goclaw_py.operations.nouns import NOUNS
from tests.architecture.sources import ROOT, modules, nouns

MOST_FILES_OUTSIDE = 9
READING_POSTS = frozenset({"jobs.preview", "sessions.names"})
"""Operations that change nothing, although they are no GET: ``noun.operation``."""
SHARED = frozenset({"sessions.names", "lanes.status"})
"""Operations that whatever has a list uses, whether there is another operation or not."""

NOT_OFFERED = {
    # They are for programs and pages only, or, as names, for whatever lists something.
    "command": frozenset(
        {
            "deliveries.channels",
            "deliveries.counts",
            "heartbeats.write_checklist",
            "jobs.choose_zone",
            "jobs.counts",
            "jobs.logged",
            "runs.between",
            "runs.counts",
            "runs.density",
            "runs.get",
            "sessions.asides",
            "sessions.names",
            "usage.times",
        }
    ),
    # Its form is that of another program: see ``web.caco``.
    "routes": frozenset({"sessions.send_message"}),
}
"""Operations that a noun does not offer in its folder, by the place."""

each_noun = pytest.mark.parametrize("noun", NOUNS, ids=[noun.name for noun in NOUNS])


def folder(noun: Noun) -> Path:
    return ROOT / "goclaw_py" / "operations" / noun.name


@cache
def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def words(path: Path) -> frozenset[str]:
    return frozenset(word.strip("\"'`,()") for word in text(path).split())


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """The nodes that use or declare something: the same for each noun, so they are found once."""
    kinds = ast.Call, ast.Attribute, ast.arg, ast.AnnAssign, ast.Assign
    return tuple(node for node in ast.walk(ast.parse(text(path))) if isinstance(node, kinds))


@cache
def files() -> tuple[Path, ...]:
    """The files of the product that may use an operation or a route."""
    suffixes = (".py", ".html", ".js", ".json", ".sql")
    tops = (ROOT / "goclaw_py", ROOT / "channels")
    return tuple(p for top in tops for p in sorted(top.rglob("*")) if p.suffix in suffixes)


def called(noun: Noun, path: Path) -> set[str]:
    """The operations that a file uses.

    ``control.approvals.list(...)``, ``Approvals.list``, or the same of a variable of this type.
    """
    found = set()
    if noun.name not in text(path) and noun.service.__name__ not in text(path):
        return set()
    names = {noun.service.__name__, *variables(noun, path)}
    for node in nodes(path):
        match node:
            case ast.Call(
                func=ast.Attribute(attr=name, value=ast.Attribute(attr=owner, value=holder))
            ):
                of_control = ast.unparse(holder).endswith(("control", "remote"))
                known = owner in names or (owner == noun.name and of_control)
                found |= {name} if known else set()
            case ast.Attribute(attr=name, value=ast.Name(id=owner)):
                found |= {name} if owner in names else set()
    return found & noun.operations.keys()


def variables(noun: Noun, path: Path) -> set[str]:
    """The names of what is declared as ``Approvals``, and of ``service = control.approvals``."""
    kind = noun.service.__name__
    declared = set()
    for node in nodes(path):
        match node:
            case ast.arg(arg=name, annotation=ast.Name(id=annotated)):
                declared |= {name} if annotated == kind else set()
            case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id=annotated)):
                declared |= {name} if annotated == kind else set()
    assigned = set()
    for node in nodes(path):
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            targets = target.elts if isinstance(target, ast.Tuple) else [target]
            values = value.elts if isinstance(value, ast.Tuple) else [value]
            for one, given in zip(targets, values, strict=False):
                match one, given:
                    case ast.Name(id=name), ast.Attribute(attr=owner):
                        assigned |= {name} if owner in (noun.name, *declared) else set()
    return declared | assigned


def files_outside(noun: Noun) -> dict[str, set[str]]:
    """The files of the product outside the folder that use one of its operations or routes.

    Files that know only the noun, such as the table of commands, are not among them: nothing
    changes in them for another operation.
    """
    shared = {one.route for name, one in noun.operations.items() if f"{noun.name}.{name}" in SHARED}
    paths = {route.split()[1] for route, _ in noun.routes() if route not in shared}
    # Texts about commands of chats name no pages.
    paths -= {f"/{name}" for name, _ in MENU}
    found: dict[str, set[str]] = {}
    for path in files():
        if path.is_relative_to(folder(noun)):
            continue
        named = {*(words(path) & paths)}
        if path.suffix == ".py":
            named |= {one for one in called(noun, path) if f"{noun.name}.{one}" not in SHARED}
        if named:
            found[str(path.relative_to(ROOT))] = named
    return found


def test_each_folder_is_a_noun() -> None:
    assert {f"goclaw_py.operations.{noun.name}" for noun in NOUNS} == {*nouns()}


def test_a_noun_imports_no_other_noun() -> None:
    wrong = [
        (module.name, name)
        for noun in nouns()
        for module in modules()
        if module.is_in(noun)
        for name in module.imports()
        if name.startswith(nouns()) and not f"{name}.".startswith(f"{noun}.")
    ]
    assert wrong == []


@each_noun
def test_each_method_declares_how_it_is_reached(noun: Noun) -> None:
    methods = inspect.getmembers(noun.service, inspect.isfunction)
    assert {name for name, _ in methods if not name.startswith("_")} == noun.operations.keys()


@each_noun
def test_what_is_no_get_says_what_it_changes(noun: Noun) -> None:
    """What changes something is in the audit log (SPEC SEC-9)."""
    for name, operation in noun.operations.items():
        reads = operation.route.startswith("GET ") or f"{noun.name}.{name}" in READING_POSTS
        assert (operation.change is None) == reads, name


@each_noun
@pytest.mark.parametrize("place", ["routes", "command"])
def test_each_operation_is_offered(noun: Noun, place: str) -> None:
    """By a module, or, where there are several groups of commands, by a package."""
    files = [*folder(noun).glob(f"{place}.py"), *folder(noun).glob(f"{place}/*.py")]
    offered = {name for file in files for name in called(noun, file)}
    missing = {f"{noun.name}.{name}" for name in noun.operations.keys() - offered}
    assert missing - NOT_OFFERED[place] == set()


@each_noun
def test_each_operation_is_tried_over_the_api(noun: Noun) -> None:
    tests = ROOT / "tests" / "unit" / "operations" / noun.name / "test_routes.py"
    assert noun.operations.keys() - called(noun, tests) == set()


@each_noun
def test_few_files_elsewhere_use_an_operation(noun: Noun) -> None:
    """An upper bound for the files that a new operation needs besides those in the folder."""
    assert len(files_outside(noun)) <= MOST_FILES_OUTSIDE


def test_a_use_elsewhere_is_seen() -> None:
    (approvals,) = (noun for noun in NOUNS if noun.name == "approvals")
    found = files_outside(approvals)
    assert found["goclaw_py/web/pages/chat/page.py"] == {"list", "decide"}
    assert found["goclaw_py/app/status.py"] == {"/approvals"}
