"""Telegram. Importing this loads no library; that happens when the first bot connects.

The rules of SPEC CHAN-2:

Telegram over **python-telegram-bot** and over **aiogram** (`library = …`): API clients behind one
adapter; the same tests pass over both. Long polling (own loop; offset bound to the bot id) and
webhook (`webhook_url`; secret derived from the token, constant-time; calls with another one are
counted, logged and shown for an hour; 200 after the commit; served by the gateway at `[web]` host
and port, loopback by default, behind a reverse proxy). Polling removes a webhook that is set. Two
accounts with one bot are an error of the settings, whichever way they receive.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, assert_never

from channels.telegram.adapter import TelegramChannel
from channels.telegram.client import BotClient
from channels.telegram.deferred_models import import_with_deferred_models
from channels.telegram.inbound.reader import CHANNEL
from channels.telegram.settings import Library, TelegramSettings, read_settings
from goclaw_py.chat.channel import Channel
from goclaw_py.core.concurrency import in_import_thread

if TYPE_CHECKING:
    from channels.telegram.via_aiogram import AiogramClient
    from channels.telegram.via_ptb import PtbClient


class TelegramKind:
    """Creates Telegram channels from the section ``[channels.telegram]``."""

    name = CHANNEL

    def build(self, account: str, options: Mapping[str, object]) -> Channel:
        """Create the channel of a bot. Raises ``SettingError``."""
        read = partial(read_settings, options)
        return TelegramChannel(account, read(), _connect, read)


async def _connect(settings: TelegramSettings) -> BotClient:
    # Only the chosen one is imported, in a thread: it takes up to a second, in which the loop would
    # do nothing else.
    client = await in_import_thread(partial(client_class, settings.library))
    return await client.open(settings)


def client_class(library: Library) -> type[PtbClient | AiogramClient]:
    """Import what the library needs, and return the client over it."""
    match library:
        case Library.PTB:
            from channels.telegram.via_ptb import PtbClient  # noqa: PLC0415

            return PtbClient
        case Library.AIOGRAM:
            import_with_deferred_models("aiogram")
            from channels.telegram.via_aiogram import AiogramClient  # noqa: PLC0415

            return AiogramClient
        case _:
            assert_never(library)


factory = TelegramKind()
