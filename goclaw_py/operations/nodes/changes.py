"""What the audit log has of operations on nodes (SPEC SEC-9)."""

from __future__ import annotations

from typing import Any, Final

from goclaw_py.operations.declare import Arguments, Change, named


async def _whole_id(nodes: Any, arguments: Arguments) -> Arguments:
    view = await nodes.list()
    found = [one.id for one in view.nodes if view.is_live(one) and arguments["node"] in one.id]
    return {"node": found[0]} if len(found) == 1 else {}


DRAIN: Final = Change("node.drain", named("node {node}"), find=_whole_id)
