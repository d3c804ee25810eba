"""Calls of tools from JSON.

A field that this release does not know is ignored: a newer one may write to the same database.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import orjson

from goclaw_py.ports.store import ToolCall


def calls(text: str | None) -> tuple[ToolCall, ...]:
    """What the column ``runs.tools`` holds; null is none."""
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
    )
