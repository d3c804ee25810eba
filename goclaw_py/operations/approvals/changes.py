"""What the audit log has of operations on approvals (SPEC SEC-9)."""

from __future__ import annotations

from typing import Any, Final

from goclaw_py.operations.declare import Arguments, Change, named
from goclaw_py.records.audit import Facts


async def _whole_id(approvals: Any, arguments: Arguments) -> Arguments:
    return {"prefix": (await approvals.get(arguments["prefix"])).id}


def _decided(arguments: Arguments, approval: Any) -> Facts:
    return {
        "decision": arguments["decision"].value,
        "agent": approval.agent,
        "tool": approval.request.tool,
        "session": approval.session,
    }


def _grant(arguments: Arguments, _result: object) -> str:
    grant = f"agent {arguments['agent']}, tool {arguments['tool']}"
    return grant + (f", session {arguments['session']}" if arguments["session"] else "")


DECIDE: Final = Change("approval.decide", named("approval {prefix}"), told=_decided, find=_whole_id)
DECIDE_IN_CHAT: Final = Change(
    "approval.decide",
    named("approval {approval_id}"),
    told=_decided,
    is_done=lambda _arguments, approval: approval is not None,
)
REVOKE: Final = Change("grant.revoke", _grant)
