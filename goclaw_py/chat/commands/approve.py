"""``/approve`` and ``/deny``: answer the oldest question about a tool call (AGENT-11)."""

from __future__ import annotations

from goclaw_py.chat.commands.command import ChatCommand, CommandUse, HandlerDecides, HelpGroup
from goclaw_py.core.approvals import Decision
from goclaw_py.core.chat_commands import TypedCommand


async def _decide(use: CommandUse) -> str:
    return await use.services.approvals.answer(use.row, use.command)


def _words_read(command: TypedCommand) -> int:
    return 2 if command.action == Decision.ALWAYS else 1


COMMANDS = (
    ChatCommand("approve", HandlerDecides("AGENT-11"), HelpGroup.TASKS, _decide, _words_read),
    ChatCommand("deny", HandlerDecides("AGENT-11"), HelpGroup.TASKS, _decide),
)
