"""``/whoami``: the sender, the role and the chat in words, and as the settings name them."""

from __future__ import annotations

from goclaw_py.chat.commands.command import ChatCommand, CommandUse, Everybody, HelpGroup
from goclaw_py.core.display_names import operator_in
from goclaw_py.core.ids import SessionKey
from goclaw_py.core.messages import InboundMessage
from goclaw_py.core.targets import target_text


async def _who(use: CommandUse) -> str:
    row, owner = use.row, use.is_by_owner
    alerts = await use.services.heartbeats.alerts(row) if owner else ""
    return who(row.message, owner=owner, session=row.session, alerts=alerts)


def who(message: InboundMessage, *, owner: bool, session: SessionKey, alerts: str = "") -> str:
    """Return the answer to ``/whoami``.

    ``alerts``: a sentence about where alerts go, for owners.
    """
    sender = message.sender
    at = f"@{sender.username}" if sender.username else ""
    name = " ".join(sender.name.split())
    known = f"{name} ({at})" if name and at else name or at
    role = "owner" if owner else "guest"
    you = f"{known}, {role}" if known else f"{'an' if owner else 'a'} {role}"
    you_are = "" if operator_in(message.target) else f"you are {sender.id}, and "
    lines = [
        f"You are {you}." + (f" {alerts}" if alerts else ""),
        # In the web chat and the terminal everybody is the operator, and the id that of the chat.
        f"In the settings {you_are}this chat is {target_text(message.target)}.",
    ]
    if owner:
        lines.append(f"Session: {session}")
    return "\n".join(lines)


COMMANDS = (ChatCommand("whoami", Everybody(), HelpGroup.CONVERSATION, _who),)
