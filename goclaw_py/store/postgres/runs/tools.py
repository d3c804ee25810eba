"""Conversion of tool calls from JSON.

Unknown fields are ignored, because a newer release may use the same database.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import orjson

from goclaw_py.ports.store import ToolCall


def calls(text: str | None) -> tuple[ToolCall, ...]:
    """Parse the column ``runs.tools``; null is none."""
    return () if text is None else tuple(map(_call, orjson.loads(text)))


def _call(given: dict[str, Any]) -> ToolCall:
    return ToolCall(
        name=given["name"],
        arguments=given["arguments"],
        started_at=datetime.fromisoformat(given["started_at"]),
        side_effects=given["side_effects"],
        seconds=given["seconds"],
        ok=given["ok"],
        result=given["result"],
        uncertain=given.get("uncertain", False),
    )
