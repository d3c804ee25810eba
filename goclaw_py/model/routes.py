"""Where something is told now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from goclaw_py.model.messages import Target

NOBODY: Final = "nobody has spoken to this agent where it could answer"


@dataclass(frozen=True, slots=True)
class Route:
    """Where an alert, or the result of a job, goes now.

    Args:
        target: None: nowhere.
        detail: How it was found, for people.
        problem: Why it would not arrive, "" if nothing speaks against it.
    """

    target: Target | None
    detail: str = ""
    problem: str = ""
