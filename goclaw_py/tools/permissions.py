"""What an agent may call. Only operators decide that, in the settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from goclaw_py.model.ids import AgentName
from goclaw_py.model.messages import Target

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
"""What every agent may call unless its settings say otherwise."""


@dataclass(frozen=True, slots=True)
class Permissions:
    """The permissions of one agent.

    Args:
        allow: The names of the tools that it may call.
        deny: Those that it may not call all the same.
        delegates: The agents that it may ask; with none of them there is no ``delegate``.
        send_to: Where it may write to; with no place there is no ``send_message``.
    """

    allow: frozenset[str] = SAFE
    deny: frozenset[str] = frozenset()
    delegates: tuple[AgentName, ...] = ()
    send_to: tuple[Target, ...] = ()

    def allows(self, tool: str) -> bool:
        """Whether a tool that needs nothing else may be called."""
        return tool in self.allow and tool not in self.deny
