"""What operators are told about an account (SPEC CHAN-2)."""

from __future__ import annotations

from channels.telegram.client import Bot, BotClient
from channels.telegram.settings import TelegramSettings


async def probe(client: BotClient, settings: TelegramSettings) -> tuple[Bot, str]:
    """Return the bot, and its name with problems of webhook or polling. Raises ``ChannelError``."""
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
