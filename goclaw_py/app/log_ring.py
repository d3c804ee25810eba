"""Keeps the newest log lines in memory (SPEC OPS-5)."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any, Final
from uuid import uuid4

from goclaw_py.observability.log_lines import KEPT_LINES, LogFilter, LogTail

KEPT_CHARS: Final = 4_000_000
"""The most characters that are kept: a line may have many texts of 32,768 characters."""


class LogRing:
    """Implements ``Logs``. Any thread may add lines.

    The values of a line are not changed after it was added, so that they need no copy.
    """

    def __init__(self, lines: int = KEPT_LINES, chars: int = KEPT_CHARS) -> None:
        self._limits = lines, chars
        self._lock = threading.Lock()
        self._process = uuid4().hex[:8]
        self._number = 0
        self._chars = 0
        self._lines: deque[tuple[int, int, dict[str, Any]]] = deque()

    def add(self, facts: dict[str, Any], chars: int) -> None:
        """Keep a line. ``chars`` is its length in the log."""
        lines, most = self._limits
        with self._lock:
            self._number += 1
            self._chars += chars
            self._lines.append((self._number, chars, facts))
            while len(self._lines) > lines or (self._chars > most and len(self._lines) > 1):
                self._chars -= self._lines.popleft()[1]

    def tail(self, only: LogFilter, *, limit: int, after: str = "") -> LogTail:
        begin = self._number_of(after)
        with self._lock:
            last, kept = self._number, list(self._lines)
        place = f"{self._process}-{last}"
        if begin == last:
            return LogTail(place)
        runs: set[str] = set()
        if only.person:
            runs = {
                facts["run_id"]
                for _, _, facts in kept
                if facts.get("sender") == only.person and "run_id" in facts
            }
        found = [facts for number, _, facts in kept if number > begin and only.selects(facts, runs)]
        shown = found[max(0, len(found) - limit) :]
        return LogTail(place, tuple(shown), len(found) - len(shown))

    def _number_of(self, place: str) -> int:
        process, _, number = place.partition("-")
        if process != self._process or not (number.isascii() and number.isdigit()):
            return 0
        return min(int(number[:18]), self._number)
