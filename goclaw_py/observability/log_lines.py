"""The newest log lines of this process, for operators (SPEC OPS-5)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from goclaw_py.core.ids import SessionKey
from goclaw_py.core.session_keys import agent_of, chat_of, is_direct_chat

SEVERITY: Final[Mapping[str, int]] = {
    level: number for number, level in enumerate(("debug", "info", "warning", "error", "critical"))
}
"""The levels of log lines, from the least to the most severe."""

KEPT_LINES: Final = 2_000
"""The most lines that are kept."""

LogFacts = Mapping[str, Any]
"""A log line as in the JSON log: ``event``, ``level``, ``logger``, ``timestamp`` and its fields."""


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which lines are selected; "" selects all.

    Args:
        level: The lowest level, a key of ``SEVERITY``.
        search: A text in the event or in a ``name=value`` of the line, in any case.
        agent: The agent, or the agent of the session.
        run: The run id, or the beginning of one.
        session: The key of the session.
        person: ``channel/account/id``: their direct chats, and the runs that they started.
    """

    level: str = ""
    search: str = ""
    agent: str = ""
    run: str = ""
    session: str = ""
    person: str = ""

    def selects(self, facts: LogFacts, runs: Collection[str] = ()) -> bool:
        """Return whether a line is selected; ``runs`` are those that the person started."""
        if self.level and SEVERITY.get(facts.get("level", ""), 0) < SEVERITY.get(self.level, 0):
            return False
        session = str(facts.get("session") or "")
        if self.session and session != self.session:
            return False
        if self.run and not str(facts.get("run_id") or "").startswith(self.run):
            return False
        if self.agent and facts.get("agent") != self.agent != agent_of(SessionKey(session)):
            return False
        if self.person and facts.get("run_id") not in runs and not self._is_theirs(facts, session):
            return False
        return not self.search or self.search.casefold() in self.words(facts).casefold()

    def words(self, facts: LogFacts) -> str:
        """Return what the search looks at."""
        fields = (f"{name}={value_text(value)}" for name, value in facts.items())
        return " ".join((str(facts.get("event", "")), *fields))

    def _is_theirs(self, facts: LogFacts, session: str) -> bool:
        key = SessionKey(session)
        chat = chat_of(key) if is_direct_chat(key) else None
        direct = "" if chat is None else f"{chat.channel}/{chat.account}/{chat.chat}"
        return self.person in (direct, facts.get("sender"))


def value_text(value: object) -> str:
    """Return the value of a field for people: no exponents, and a list of texts with commas."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return ", ".join(value)
    if isinstance(value, float) and abs(value) < 1:
        return f"{value:.9f}".rstrip("0").rstrip(".")
    return json.dumps(value, ensure_ascii=False, default=str)


@dataclass(frozen=True, slots=True)
class LogTail:
    """The newest selected lines of a process, the oldest first.

    Args:
        place: Where the lines after these begin.
        left_out: The number of earlier selected lines that are not among ``lines``.
    """

    place: str
    lines: tuple[dict[str, Any], ...] = ()
    left_out: int = 0


class Logs(Protocol):
    """The newest log lines of this process, which are kept in memory."""

    def tail(self, only: LogFilter, *, limit: int, after: str = "") -> LogTail:
        """Return the newest lines, at most ``limit``, with ``after`` only those after a place.

        A place of an earlier process, or an invalid one, is the beginning.
        """


class NoLogs:
    """Implements ``Logs`` where no lines are kept."""

    def tail(self, only: LogFilter, *, limit: int, after: str = "") -> LogTail:
        """Return no lines."""
        del only, limit
        return LogTail(after)
