"""Each question of the guide has a test that provokes it, and each test its question (OPS-4)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest

from tests.e2e import test_why as processes
from tests.support.guides import ROOT
from tests.support.why import EXTRA, Row
from tests.unit.gateway import (
    test_why_chats,
    test_why_gateway,
    test_why_heartbeat,
    test_why_jobs,
    test_why_messages,
)

MODULES = (
    test_why_messages,
    test_why_chats,
    test_why_jobs,
    test_why_heartbeat,
    test_why_gateway,
    processes,
)
ROWS: dict[str, Row[Any]] = {
    row.question: row for module in MODULES for row in module.CASES if row.question != EXTRA
}


@dataclass(frozen=True, slots=True)
class Question:
    """A line of the guide."""

    number: int
    words: str
    rest: str

    def __str__(self) -> str:
        return f"{self.number}. {self.words}"


def questions() -> list[Question]:
    text = (ROOT / "docs" / "guide" / "troubleshooting.md").read_text("utf-8")
    lines = re.findall(r"^\| (\d+) \| ([^|]+) \| (.*)$", text, re.MULTILINE)
    return [Question(int(number), words, rest) for number, words, rest in lines]


def test_the_questions_are_numbered_and_each_has_its_test() -> None:
    found = questions()
    assert [one.number for one in found] == list(range(1, len(ROWS) + 1))
    assert {one.words for one in found} == ROWS.keys()


@pytest.mark.parametrize("question", questions(), ids=str)
def test_the_guide_names_the_answer_and_the_cure_that_the_test_finds(question: Question) -> None:
    row = ROWS[question.words]
    assert f"(`{row.code}`)" in question.rest
    if row.cure.startswith("goclaw "):
        # Jobs, people and agents of tests have other names than those of the guide.
        command = re.match(r"goclaw( (?!(?:ann|agent|job|main)\b)[a-z]+)*", row.cure)
        assert command is not None
        assert command.group() in question.rest
