"""How much work a regular expression is, in steps: those that a plain backtracking matcher takes.

The clock of a test machine tells little. The patterns here are those that ``core.redaction`` has:
what is repeated is one character wide, and groups are not repeated.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

# Not public: nothing else of the standard library reads a pattern.
sre: Any = import_module("re._constants")
sre_parser: Any = import_module("re._parser")

Rest = Callable[[int], int]
"""Matches what follows at a place; where the match ends, -1: nowhere."""


class Steps:
    """Searches a text as ``re`` does, and counts."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._tree = sre_parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE)
        self._fold = bool(pattern.flags & re.IGNORECASE)
        self.count = 0
        self.found: list[tuple[int, int]] = []

    def search(self, text: str) -> int:
        """Find all matches in a text; the steps that this took."""
        self._text = text.lower() if self._fold else text
        self.count, self.found = 0, []
        place = 0
        while place <= len(text):
            end = self._match(list(self._tree), 0, place, lambda at: at)
            if end > place:
                self.found.append((place, end))
            place = end if end > place else place + 1
        return self.count

    def _match(self, items: list[Any], index: int, place: int, rest: Rest) -> int:
        self.count += 1
        if index == len(items):
            return rest(place)
        operation, value = items[index]

        def then(at: int) -> int:
            return self._match(items, index + 1, at, rest)

        if operation is sre.BRANCH:
            ends = (self._match(list(one), 0, place, then) for one in value[1])
            return next((end for end in ends if end >= 0), -1)
        if operation is sre.SUBPATTERN:
            return self._match(list(value[-1]), 0, place, then)
        if operation in (sre.MAX_REPEAT, sre.POSSESSIVE_REPEAT):
            return self._repeat(operation, value, place, then)
        if operation in (sre.ASSERT, sre.ASSERT_NOT):
            return then(place) if self._looks(operation, value, place) else -1
        if operation is sre.AT:
            return then(place) if self._is_boundary(place) else -1
        return then(place + 1) if self._fits(operation, value, place) else -1

    def _repeat(self, operation: Any, value: Any, place: int, then: Rest) -> int:
        least, most, inner = value
        if len(inner) == 1 and inner[0][0] in (sre.LITERAL, sre.NOT_LITERAL, sre.IN, sre.ANY):
            end = place
            while end - place < most and self._fits(inner[0][0], inner[0][1], end):
                end += 1
                self.count += 1
            last = end if operation is sre.POSSESSIVE_REPEAT else place + least
            tries = (then(at) for at in range(end, max(last, place + least) - 1, -1))
            return next((found for found in tries if found >= 0), -1)
        assert (least, most) == (0, 1), "groups are not repeated"
        found = self._match(list(inner), 0, place, then)
        return found if found >= 0 else then(place)

    def _looks(self, operation: Any, value: Any, place: int) -> bool:
        direction, inner = value
        at = place if direction > 0 else place - inner.getwidth()[0]
        found = at >= 0 and self._match(list(inner), 0, at, lambda end: end) >= 0
        return found == (operation is sre.ASSERT)

    def _is_boundary(self, place: int) -> bool:
        around = self._text[max(0, place - 1) : place], self._text[place : place + 1]
        before, after = (bool(re.match(r"\w", one)) for one in around)
        return before != after

    def _fits(self, operation: Any, value: Any, place: int) -> bool:
        self.count += 1
        if place >= len(self._text):
            return False
        one = self._text[place]
        if operation is sre.IN:
            negated = bool(value[0][0] is sre.NEGATE)
            return (
                any(self._in(one, each) for each in value if each[0] is not sre.NEGATE) != negated
            )
        if operation is sre.NOT_LITERAL:
            return one != chr(value)
        return operation is sre.ANY or self._in(one, (operation, value))

    def _in(self, one: str, item: tuple[Any, Any]) -> bool:
        kind, value = item
        both = {one, one.upper()} if self._fold else {one}
        if kind is sre.LITERAL:
            return chr(value) in both
        if kind is sre.RANGE:
            return any(value[0] <= ord(each) <= value[1] for each in both)
        assert kind is sre.CATEGORY, kind
        names = {
            sre.CATEGORY_DIGIT: r"\d",
            sre.CATEGORY_SPACE: r"\s",
            sre.CATEGORY_WORD: r"\w",
            sre.CATEGORY_NOT_SPACE: r"\S",
        }
        return re.match(names[value], one) is not None
