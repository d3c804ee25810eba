"""Approvals, for layers that must know of them before they load their routes, page or commands."""

from __future__ import annotations

from typing import Final

from goclaw_py.core.actors import Least
from goclaw_py.operations.approvals import changes
from goclaw_py.operations.approvals.operations import Approvals
from goclaw_py.operations.declare import Noun

APPROVALS: Final = Noun(
    "approvals",
    Approvals,
    pages={
        Least.TEXT: ("GET /approvals", "GET /live/approvals"),
        Least.OPERATOR: ("POST /approvals/decide", "POST /approvals/revoke"),
    },
    plain={
        "Approval": "decided_by",
        "ApprovalContext": "account",
        "ApprovalRequest": "call_id tool",
        "ToolGrant": "tool granted_by",
    },
    text={
        "ApprovalContext": "chat request job said",
        "ApprovalRequest": "arguments",
        "Asker": "name",
    },
    chat_changes={"decide_approval": changes.DECIDE_IN_CHAT},
)
