"""Tool calls of runs, as they are stored."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from goclaw_py.core.run_events import NOT_MADE


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call of a run. ``ok`` is None if the call did not return.

    ``arguments`` is JSON text; it and ``result`` may be truncated. ``uncertain``: an interrupted
    run had started it, and its outcome is unknown. ``text_before``: how many characters the run had
    said before it.
    """

    name: str
    arguments: str
    started_at: datetime
    side_effects: bool = True
    seconds: float | None = None
    ok: bool | None = None
    result: str = ""
    uncertain: bool = False
    text_before: int = 0

    @property
    def is_denied(self) -> bool:
        """Return whether it was not made, as a person or the settings have denied it."""
        return self.ok is False and self.result.startswith(NOT_MADE)

    @property
    def has_failed(self) -> bool:
        """Return whether it was made, and failed."""
        return self.ok is False and not self.uncertain and not self.is_denied
