"""Ends a run whose model repeats a mistake (SPEC AGENT-6)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from goclaw_py.core.errors import AgentError
from goclaw_py.core.text import truncate

MOST_REPEATS: Final = 3
"""How often a model may make the same mistake with a tool."""

_SHOWN: Final = 200


@dataclass(frozen=True, slots=True)
class Mistake:
    """A call that failed: of a tool that does not exist, or with these arguments and this error."""

    tool: str
    arguments: str = ""
    error: str = ""
    is_unknown: bool = False

    @property
    def text(self) -> str:
        """Say what the model did, for people."""
        stopped = "The model made the same mistake three times, so I stopped here: "
        if not self.tool.strip():
            return f"{stopped}it called a tool without a name."
        name = truncate(self.tool, _SHOWN)
        if self.is_unknown:
            return f"{stopped}it called “{name}”, a tool that does not exist."
        error = truncate(" ".join(self.error.split()), _SHOWN)
        return f"{stopped}its call of {name} failed ({error})."


class Mistakes:
    """Counts equal mistakes since the last call that succeeded."""

    def __init__(self) -> None:
        self._counts: Counter[Mistake] = Counter()

    def count(self, made: set[Mistake], *, any_succeeded: bool) -> None:
        """Count the mistakes of a response. Raises ``AgentError`` at the third equal one."""
        if any_succeeded:
            self._counts.clear()
        for mistake in made:
            self._counts[mistake] += 1
            if self._counts[mistake] >= MOST_REPEATS:
                tool = mistake.tool or "without a name"
                raise AgentError(
                    mistake.text, f"the same mistake {MOST_REPEATS} times: tool {tool}"
                )
