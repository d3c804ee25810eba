"""Links between documents lead to what is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.guides.reading import DOCUMENTS, GUIDES, anchors, links
from tests.support.guides import ROOT


def dead(file: Path) -> list[str]:
    """The links of a document that lead nowhere."""
    wrong = []
    for target in links(file):
        path, _, anchor = target.partition("#")
        there = (file.parent / path).resolve() if path else file
        if not there.exists() or (anchor and anchor not in anchors(there)):
            wrong.append(target)
    return wrong


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_every_link_leads_to_a_document_and_a_section_that_is_there(file: Path) -> None:
    assert dead(file) == []


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# A `heading`: with, signs\n\n## Twice\n\n## Twice\n")
    file = tmp_path / "one.md"
    file.write_text(
        "[a](other.md) [b](other.md#a-heading-with-signs) [c](other.md#twice-1) [d](#here)\n"
        "[e](https://example.org/#x) `[f](code.md)` [g](gone.md) [h](other.md#gone) [i](#gone)\n"
        "# Here\n```text\n[j](shown.md)\n# Gone\n```\n"
    )
    assert dead(file) == ["gone.md", "other.md#gone", "#gone"]


def test_the_index_names_every_guide() -> None:
    index = ROOT / "docs" / "guide" / "README.md"
    others = {file.name for file in GUIDES if file != index}
    assert others - {target.partition("#")[0] for target in links(index)} == set()


def test_the_readme_leads_to_the_index_and_to_the_first_steps() -> None:
    found = set(links(ROOT / "README.md"))
    assert {f"docs/guide/{name}.md" for name in ("README", "install", "first-bot")} <= found
