"""The rows of the database: outcomes of messages, and stored steps."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

import orjson

from tests.chaos.books import Books
from tests.chaos.kills.script import number_of

_OUTCOMES: Final = """
select message ->> 'text' as text, outcome, attempts
from inbox
where outcome is not null and (message ->> 'text') = any ($1::text[])
"""
_STEPS: Final = "select run_id, kind, payload from run_steps order by run_id, seq"


@dataclass(slots=True)
class Stored:
    """Stored steps: ids of responses, of calls that had begun, and results of calls."""

    responses: list[str] = field(default_factory=list)
    calls: set[str] = field(default_factory=set)
    results: dict[str, list[str]] = field(default_factory=dict)


class Records(Books):
    """Reads, also while gateways run."""

    def outcomes(self, texts: Collection[str]) -> Mapping[int, tuple[str, int]]:
        """The outcomes and attempts of those messages that have ended."""
        rows = self._runner.run(self._opened.fetch(_OUTCOMES, list(texts)))
        return {number_of(row["text"]): (row["outcome"], row["attempts"]) for row in rows}

    def stored(self) -> Stored:
        """All steps."""
        found = Stored()
        for row in self._runner.run(self._opened.fetch(_STEPS)):
            step = orjson.loads(row["payload"])
            match str(row["kind"]):
                case "response":
                    (response,) = orjson.loads(step["native"])
                    found.responses.append(response["provider_response_id"])
                case "call":
                    found.calls.add(step["call_id"])
                case "result":
                    found.results.setdefault(step["call_id"], []).append(step["result"])
        return found
