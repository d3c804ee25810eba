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

PLACES: defaultdict[str, list[str]] = defaultdict(list)
for module in modules():
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            PLACES[node.name].append(module.name)


def test_a_public_class_name_is_defined_once() -> None:
    assert {name: places for name, places in PLACES.items() if len(places) > 1} == {}


def test_class_names_use_no_private_words() -> None:
    assert [name for name in PLACES if PRIVATE_WORDS.search(name)] == []
