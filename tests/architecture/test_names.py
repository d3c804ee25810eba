"""A public class name means one thing in the whole code base, in the field's own words."""

from __future__ import annotations

import ast
import re
from collections import defaultdict

from tests.architecture.sources import ROOT, modules

PRIVATE_WORDS = re.compile(
    r"(Desk|Office|Shop|Elsewhere|Doorkeeper|Reception|Workshop|Ledger|Stopper|Letterbox)"
    r"|^(Told|Said|Held|Means|Works|Looks|Hand|Wake|Room|Feed|Mail|Place|Part|Step)$"
    r"|(^|[a-z])Beats?([A-Z]|$)"
)
"""Words that a reader would have to learn first; see ``docs/architecture.md`` for those in use."""

GENERIC = frozenset({
    *("asked", "bring", "cover", "cut", "hear", "heard", "held", "keep", "kept", "look", "meet"),
    *("met", "put", "said", "take", "taken", "tell", "told"),
})  # fmt: skip
"""Words that say nothing to a reader who jumps to a definition. Instead: notify, claim, poll, load,
store, retain, truncate, cancel, on_event, request."""
MEANT = {
    "SlugTaken": "plain English, and public",
    "held": "messages are held while a provider is down: turns in the state HELD",
    "has_held": "see ``held``",
    "held_or_undone": "see ``held``",
    "release_held": "see ``held``",
    "_cancel_held": "see ``held``",
    "_held_for_provider": "see ``held``",
    "heard": "its name is a part of the description of the API",
    "tell": "its name is a part of the description of the API",
    "put": "the method PUT of HTTP",
    "_put": "the method PUT of HTTP",
    "Put": "the method PUT of HTTP",
    "PutBody": "the method PUT of HTTP",
    "timeout_keep_alive_handler": "of a base class",
}
"""Names with such a word that stay, and why."""
PLACES: defaultdict[str, list[str]] = defaultdict(list)
for module in modules():
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            PLACES[node.name].append(module.name)


def test_a_public_class_name_is_defined_once() -> None:
    assert {name: places for name, places in PLACES.items() if len(places) > 1} == {}


def test_class_names_use_no_private_words() -> None:
    assert [name for name in PLACES if PRIVATE_WORDS.search(name)] == []


def is_generic(name: str) -> bool:
    return bool(GENERIC & {word.lower() for word in re.findall(r"[A-Z]?[a-z]+", name)})


def test_a_name_says_more_than_that_something_is_taken_or_told() -> None:
    found = {
        node.name: f"{module.name}:{node.lineno}"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if is_generic(node.name)
    }
    assert found.keys() - MEANT.keys() == set(), found
    assert MEANT.keys() - found.keys() == set()


def test_a_statement_says_more_than_that_something_is_taken_or_told() -> None:
    files = sorted((ROOT / "goclaw_py/store/queries").glob("*.sql"))
    assert files
    named = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
    found = [
        f"{file.stem}.{name}"
        for file in files
        for name in named.findall(file.read_text(encoding="utf-8"))
        if is_generic(name)
    ]
    assert found == []


def test_a_parameter_says_more_than_that_something_is_taken_or_told() -> None:
    found = [
        f"{module.name}:{node.lineno} {node.arg}"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.arg) and is_generic(node.arg)
    ]
    assert found == []
