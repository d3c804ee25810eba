"""The bot itself: what operators read about it, and the command menu that it shows."""

from __future__ import annotations

import asyncio
import logging

from channels.telegram.client import Bot, BotClient
from channels.telegram.settings import TelegramSettings
from goclaw_py.core.chat_commands import MENU
from goclaw_py.core.errors import ChannelError

_log = logging.getLogger("channels.telegram")

_MENU = {"start": "Begin", **dict(MENU)}
_APART_S = 5.0
_LONGEST_PAUSE_S = 600.0


async def probe(client: BotClient, settings: TelegramSettings) -> tuple[Bot, str]:
    """Return the bot, and its name with problems of webhook or polling (SPEC CHAN-2).

    Raises ``ChannelError``.
    """
    bot, webhook = await client.get_me(), await client.webhook()
    facts = [f"@{bot.username} ({settings.library.value})"]
    if settings.proxy is not None:
        facts.append(f"through the proxy {settings.proxy}")
    if not bot.reads_groups:
        facts.append(
            "privacy mode is on: in groups it receives only commands, mentions and replies to it"
        )
    if webhook.url != settings.webhook_url:
        facts.append(f"webhook now: {webhook.url or 'none'}; the gateway changes that")
    if webhook.pending:
        facts.append(f"{webhook.pending} updates wait")
        if webhook.trouble:
            facts.append(f"Telegram says: {webhook.trouble}")
    return bot, "; ".join(facts)


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
