"""``/stop`` and ``/stopall``: ``chat.stop`` executes them when they arrive."""

from __future__ import annotations

from goclaw_py.chat.commands.command import ChatCommand, HandlerDecides, HelpGroup

COMMANDS = tuple(
    ChatCommand(name, HandlerDecides("CMD-6"), HelpGroup.TASKS, None)
    for name in ("stop", "stopall")
)
