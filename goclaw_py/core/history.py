"""The history of a session, as every agent loop and every store know it (SPEC AGENT-7)."""

from __future__ import annotations

from enum import StrEnum

from goclaw_py.core.messages import OutFile
from goclaw_py.core.values import value


class Role(StrEnum):
    """The author of a history entry."""

    USER = "user"
    ASSISTANT = "assistant"


@value(frozen=True, slots=True)
class HistoryEntry:
    """The request or the reply of one turn in a session's history.

    ``text`` is readable by every loop and by people. ``native`` is the same in the format of the
    loop that wrote it (JSON bytes), which that loop reads without loss; ``format`` names this
    format, for example ``"pydantic-ai"``. ``files`` of the workspace came or went with it.
    """

    role: Role
    text: str
    native: bytes | None = None
    format: str | None = None
    files: tuple[OutFile, ...] = ()
