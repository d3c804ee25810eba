"""The threat model of the guide names tests that are there, and all of them."""

from __future__ import annotations

import re

from tests.guides.reading import prose
from tests.support.guides import ROOT

PAGE = ROOT / "docs" / "guide" / "security.md"
TESTS = ROOT / "tests" / "security"
NAMED = re.compile(r"`((?:tests/[\w/]+/)?test_\w+\.py)`")
MOST_WORDS = 1_600


def rows() -> list[list[str]]:
    """The cells of each row about somebody."""
    lines = [line for line in prose(PAGE).splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if row[0] != "who"]


def named(text: str) -> set[str]:
    return {name if "/" in name else f"tests/security/{name}" for name in NAMED.findall(text)}


def test_every_test_that_the_page_names_is_there() -> None:
    assert [name for name in sorted(named(prose(PAGE))) if not (ROOT / name).is_file()] == []


def test_the_page_names_every_test_of_a_promise() -> None:
    here = {f"tests/security/{path.name}" for path in TESTS.glob("test_*.py")}
    assert here - named(prose(PAGE)) == set()


def test_for_everybody_it_says_what_is_promised_and_what_not_and_where_it_is_tried() -> None:
    assert len(rows()) >= 15
    for row in rows():
        assert len(row) == 4, row[0]
        assert all(row), row[0]
        assert named(row[3]), row[0]


def test_its_clauses_are_in_the_specification() -> None:
    spec = (ROOT / "docs" / "spec.md").read_text("utf-8")
    clauses = set(re.findall(r"\b[A-Z]{2,5}-\d+", " ".join(row[0] for row in rows())))
    assert clauses
    assert [
        one for one in sorted(clauses) if not re.search(rf"^- {one}\b", spec, re.MULTILINE)
    ] == []


def test_it_can_be_read_in_ten_minutes() -> None:
    assert len(prose(PAGE).split()) <= MOST_WORDS
