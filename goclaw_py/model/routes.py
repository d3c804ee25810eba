"""The current destination of a result or an alert."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from goclaw_py.model.messages import Target

NOBODY: Final = "nobody has spoken to this agent where it could answer"


@dataclass(frozen=True, slots=True)
class Route:
    """The current destination of an alert, or of a job's result.

    Args:
        target: None: there is none.
        detail: How it was determined, for people.
        problem: Why a message would not arrive, "" if it would.
    """

    target: Target | None
    detail: str = ""
    problem: str = ""
