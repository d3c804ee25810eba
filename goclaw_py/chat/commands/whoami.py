"""``/whoami``: the sender and the role; for owners also the chat as the settings name it."""

from __future__ import annotations

from goclaw_py.chat.commands.command import ChatCommand, CommandUse, Everybody, HelpGroup
from goclaw_py.core.display_names import operator_in
from goclaw_py.core.ids import SessionKey
from goclaw_py.core.messages import InboundMessage
from goclaw_py.core.targets import target_text
from goclaw_py.core.web_links import OWN_CHANNELS


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
    if not owner:
        # On a channel of people that the operator names here, the id is for the operator.
        has_id = message.target.channel not in OWN_CHANNELS
        return f"You are {you}." + (f" Your id is {sender.id}." if has_id else "")
    # In the web chat and the terminal everybody is the operator, and the id that of the chat.
    you_are = "" if operator_in(message.target) else f"you are {sender.id}, and "
    return "\n".join(
        [
            f"You are {you}." + (f" {alerts}" if alerts else ""),
            f"In the settings {you_are}this chat is {target_text(message.target)}.",
            f"Session: {session}",
        ]
    )


COMMANDS = (ChatCommand("whoami", Everybody(), HelpGroup.CONVERSATION, _who),)
