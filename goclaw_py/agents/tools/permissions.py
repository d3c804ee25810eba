"""Which tools an agent may call. Only operators decide this, in the settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from goclaw_py.core.ids import AgentName
from goclaw_py.core.messages import Target

SAFE: Final = frozenset(
    {
        "read_file",
        "write_file",
        "edit_file",
        "list_files",
        "send_file",
        "spawn_subagent",
        "pin_fact",
        "unpin_fact",
        "schedule_create",
        "schedule_search",
        "schedule_edit",
        "schedule_delete",
        "heartbeat",
        "heartbeat_done",
    }
)
"""The tools that an agent may call by default."""


@dataclass(frozen=True, slots=True)
class Permissions:
    """The permissions of one agent.

    Args:
        allow: The names of the tools that it may call.
        deny: Tools that it may not call, even if allowed.
        delegates: The agents it may delegate to; if empty, there is no ``delegate``.
        send_to: The chats it may write to; if empty, there is no ``send_message``.
    """

    allow: frozenset[str] = SAFE
    deny: frozenset[str] = frozenset()
    delegates: tuple[AgentName, ...] = ()
    send_to: tuple[Target, ...] = ()

    def allows(self, tool: str) -> bool:
        """Whether a tool may be called, if it needs no other setting."""
        return tool in self.allow and tool not in self.deny
