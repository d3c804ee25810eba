"""What the audit log has of operations on lanes (SPEC SEC-9)."""

from __future__ import annotations

from typing import Any, Final

from goclaw_py.operations.declare import Arguments, Change, named
from goclaw_py.records.audit import Facts


async def _size(lanes: Any, arguments: Arguments) -> Facts:
    known = [use.lane for use in (await lanes.list()).lanes]
    sizes = [lane.concurrency for lane in known if lane.name == arguments["name"]]
    return {"size": sizes[0] if sizes else None}


RESIZE: Final = Change(
    "lane.resize", named("lane {name}"), _size, lambda _, done: {"size": done.lane.concurrency}
)
