"""Wall time. Durations are measured by the event loop's clock instead."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the wall time."""

    def now(self) -> datetime:
        """The present instant, aware, in UTC."""
