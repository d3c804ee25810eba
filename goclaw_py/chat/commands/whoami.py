"""``/whoami``: the sender and the chat, as the settings name them."""

from __future__ import annotations

from goclaw_py.chat.commands.command import ChatCommand, CommandUse, Everybody, HelpGroup
from goclaw_py.core.ids import SessionKey
from goclaw_py.core.messages import InboundMessage


async def _who(use: CommandUse) -> str:
    return who(use.row.message, owner=use.is_by_owner, session=use.row.session)


def who(message: InboundMessage, *, owner: bool, session: SessionKey) -> str:
    """Return the answer to ``/whoami``."""
    sender, target = message.sender, message.target
    name = " ".join(sender.name.split()) or "no name"
    lines = [
        f"You: {name}" + (f" (@{sender.username})" if sender.username else ""),
        f"Your id: {sender.id}" + (", an owner" if owner else ""),
        f"This chat: {target.channel}, {target.chat}"
        + (f", topic {target.thread}" if target.thread else ""),
        f"Session: {session}",
    ]
    return "\n".join(lines)


COMMANDS = (ChatCommand("whoami", Everybody(), HelpGroup.CONVERSATION, _who),)
