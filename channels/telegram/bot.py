"""The bot itself: what operators read about it, and the command menu that it shows."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from channels.telegram.client import Bot, BotClient
from channels.telegram.settings import TelegramSettings
from goclaw_py.core.chat_commands import GUEST_MENU, MENU
from goclaw_py.core.errors import ChannelError

_log = logging.getLogger("channels.telegram")

_MENU = {"start": "Begin", **dict(MENU)}
_GUEST_MENU = {"start": "Begin", **dict(GUEST_MENU)}
_APART_S = 5.0
_CHATS_APART_S = 1.0
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


class ChatMenus:
    """The direct chats whose menu has to change, each with whether its person is an owner."""

    def __init__(self) -> None:
        self._changed: dict[int, bool] = {}
        self._wake = asyncio.Event()

    def change(self, chat_id: int, *, is_owner: bool) -> None:
        """Note the role of the person of a chat; the last one counts."""
        self._changed[chat_id] = is_owner
        self._wake.set()

    async def next(self) -> tuple[int, bool]:
        """Wait for a chat to change, and remove it."""
        while not self._changed:
            self._wake.clear()
            await self._wake.wait()
        return self._changed.popitem()


async def publish_commands(client: BotClient, account: str, menus: ChatMenus) -> None:
    """Publish the menu of guests for all chats, and that of owners in their chats (SPEC CMD-5).

    Runs until cancelled, because people become owners and stop being owners.
    """
    await _publish(client, account, _GUEST_MENU)
    while True:
        chat_id, is_owner = await menus.next()
        await _publish(client, account, _MENU if is_owner else _GUEST_MENU, chat_id)
        await asyncio.sleep(_CHATS_APART_S)


async def _publish(
    client: BotClient, account: str, menu: Mapping[str, str], chat_id: int | None = None
) -> None:
    """Publish a menu, with retries until it is accepted or refused."""
    pause = _APART_S
    while True:
        try:
            await client.set_commands(menu, chat_id=chat_id)
        except ChannelError as error:
            facts = {"account": account, "error": str(error)}
            _log.info("command_menu_not_published", extra=facts)
            if not error.retryable:
                return
            await asyncio.sleep(max(pause, error.retry_after_s or 0))
            pause = min(2 * pause, _LONGEST_PAUSE_S)
        else:
            return
