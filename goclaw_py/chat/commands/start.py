"""``/start``: what Telegram sends when somebody opens the chat with the bot."""

from __future__ import annotations

import re
from typing import Final

from goclaw_py.chat.commands.command import ChatCommand, CommandUse, Everybody
from goclaw_py.core.chat_commands import TypedCommand
from goclaw_py.core.command_text import visible_word

GREETING: Final = "Hello! Send me a message and I will answer. /help shows what else I can do."

_PARAMETER: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""The parameter of a link to the bot. The client sends it behind ``/start``, without showing it."""


async def _greet(_use: CommandUse) -> str:
    return GREETING


def _words_read(command: TypedCommand) -> int | None:
    behind = " ".join(word for word in command.message.split() if visible_word(word))
    return None if _PARAMETER.fullmatch(behind) else 0


COMMANDS = (ChatCommand("start", Everybody(), None, _greet, _words_read),)
