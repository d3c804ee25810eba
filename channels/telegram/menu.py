"""The command menu that Telegram's clients show."""

from __future__ import annotations

import asyncio
import logging

from channels.telegram.client import BotClient
from goclaw_py.core.chat_commands import MENU
from goclaw_py.core.errors import ChannelError

_log = logging.getLogger("channels.telegram")

_MENU = {"start": "Begin", **dict(MENU)}
_APART_S = 5.0
_LONGEST_PAUSE_S = 600.0


async def publish_commands(client: BotClient, account: str) -> None:
    """Publish the command menu, with retries until it is accepted or refused."""
    pause = _APART_S
    while True:
        try:
            await client.set_commands(_MENU)
        except ChannelError as error:
            facts = {"account": account, "error": str(error)}
            _log.info("command_menu_not_published", extra=facts)
            if not error.retryable:
                return
            await asyncio.sleep(max(pause, error.retry_after_s or 0))
            pause = min(2 * pause, _LONGEST_PAUSE_S)
        else:
            return
