"""All chat commands: each module of this folder with ``COMMANDS`` has some, and /help is here.

Their names and their descriptions are in ``core.chat_commands.MENU``, because channels and access
control recognise commands too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType
from typing import Final

from goclaw_py.chat import commands
from goclaw_py.chat.commands.command import ChatCommand, CommandUse, Everybody, HelpGroup
from goclaw_py.core.chat_commands import GUEST_MENU, MENU, Command, TypedCommand
from goclaw_py.core.web_links import OWN_CHANNELS

_NOT_COMMANDS: Final = ("handlers", "registry")

_EXAMPLES: Final = (
    "Examples:",
    "/jobs pause 2 - pause the second job of /jobs",
    "/timezone Europe/Paris - set your time zone",
)
_REPLY_EXAMPLE: Final = "Reply /stop to one of your messages to stop only that one."
_OWNER_EXAMPLES: Final = ("/heartbeat add every 2h: is the build green?", "/mute until 18:00")


async def _help(use: CommandUse) -> str:
    can_reply = use.row.message.target.channel not in OWN_CHANNELS
    return help_text(owner=use.is_by_owner, can_reply=can_reply)


def _commands() -> Iterator[ChatCommand]:
    yield ChatCommand("help", Everybody(), HelpGroup.CONVERSATION, _help)
    for module in iter_modules(commands.__path__):
        if module.name not in _NOT_COMMANDS:
            found = import_module(f"{commands.__name__}.{module.name}")
            yield from getattr(found, "COMMANDS", ())


COMMANDS: Final[Mapping[str, ChatCommand]] = MappingProxyType(
    {one.name: one for one in _commands()}
)
"""The commands by name."""


def words_read(command: Command) -> int | None:
    """Return how many words behind a command are read, None for all."""
    return COMMANDS[command.name].words_read(command) if isinstance(command, TypedCommand) else 0


def help_text(*, owner: bool, can_reply: bool = True) -> str:
    """Return the answer to ``/help``: the menu of the reader's role in groups, and examples.

    ``can_reply``: whether a message of the chat can be a reply to another one.
    """
    menu = MENU if owner else GUEST_MENU
    lines = ["Write to me in plain words, for example: remind me in 20 minutes to call Ann."]
    for group in HelpGroup:
        of_group = [f"/{name} - {what}" for name, what in menu if COMMANDS[name].group is group]
        lines += ["", f"{group}:", *of_group] if of_group else []
    examples = [*_EXAMPLES, *([_REPLY_EXAMPLE] if can_reply else [])]
    return "\n".join([*lines, "", *examples, *(_OWNER_EXAMPLES if owner else ())])
