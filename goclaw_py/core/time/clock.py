"""Wall time. Durations are measured by the event loop's clock instead."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """A source of the wall time."""

    def now(self) -> datetime:
        """Return the present instant, timezone-aware in UTC."""
