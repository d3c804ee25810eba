"""``/new``: stop everything and start a new history (CMD-5)."""

from __future__ import annotations

from goclaw_py.chat.commands.command import ChatCommand, CommandUse, HandlerDecides, HelpGroup
from goclaw_py.chat.outbound import texts
from goclaw_py.chat.stop.answer import names_of


async def _new(use: CommandUse) -> str:
    """Start a new history, unless that would stop what its sender may not (SPEC CMD-6)."""
    row, stops = use.row, use.services.stops
    by = stops.rights.limit(row.message)
    others = () if by is None else stops.local.of_others(row.session, by)
    if others and not await stops.rights.is_admin_after_all(row.message):
        return texts.not_yours(names_of(others))
    await stops.local.start_new_session(row.session, before=row)
    return texts.NEW_SESSION


COMMANDS = (ChatCommand("new", HandlerDecides("CMD-6"), HelpGroup.CONVERSATION, _new),)
