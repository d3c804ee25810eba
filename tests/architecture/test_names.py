"""A public class name means one thing in the whole code base, in the field's own words."""

from __future__ import annotations

import ast
import re
from collections import defaultdict

from tests.architecture.sources import modules

PRIVATE_WORDS = re.compile(
    r"(Desk|Office|Shop|Elsewhere|Doorkeeper|Reception|Workshop|Ledger|Stopper|Letterbox)"
    r"|^(Told|Said|Held|Means|Works|Looks|Hand|Wake|Room|Feed|Mail|Place|Part|Step)$"
    r"|(^|[a-z])Beats?([A-Z]|$)"
)
"""Words that a reader would have to learn first; see ``docs/architecture.md`` for those in use."""

GENERIC = frozenset({
    *("asked", "bring", "cover", "cut", "hear", "heard", "keep", "kept", "look", "meet", "met"),
    *("put", "said", "take", "taken", "tell", "told"),
})  # fmt: skip
"""Words that say nothing to a reader who jumps to a definition. Instead: notify, claim, poll, load,
store, retain, truncate, cancel, on_event, request."""
MOST_GENERIC = 39
"""The number of functions and classes with such a word in their names. It may only fall."""

PLACES: defaultdict[str, list[str]] = defaultdict(list)
for module in modules():
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            PLACES[node.name].append(module.name)


def test_a_public_class_name_is_defined_once() -> None:
    assert {name: places for name, places in PLACES.items() if len(places) > 1} == {}


def test_class_names_use_no_private_words() -> None:
    assert [name for name in PLACES if PRIVATE_WORDS.search(name)] == []


def test_no_new_name_says_only_that_something_is_taken_or_told() -> None:
    found = [
        f"{module.name}.{node.name}"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if GENERIC & {word.lower() for word in re.findall(r"[A-Z]?[a-z]+", node.name)}
    ]
    assert len(found) <= MOST_GENERIC, found
