"""Telegram. Importing this loads no library; that happens when the first bot connects."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import assert_never

from channels.telegram.adapter import TelegramChannel
from channels.telegram.client import BotClient
from channels.telegram.inbound.reader import CHANNEL
from channels.telegram.settings import Library, TelegramSettings, read_settings
from goclaw_py.ports.channel import Channel


class TelegramKind:
    """Creates Telegram channels from the section ``[channels.telegram]``."""

    name = CHANNEL

    def build(self, account: str, options: Mapping[str, object]) -> Channel:
        """Create the channel of a bot. Raises ``SettingError``."""
        read = partial(read_settings, options)
        return TelegramChannel(account, read(), _connect, read)


async def _connect(settings: TelegramSettings) -> BotClient:
    # Only the chosen one is imported, in a thread: it takes from a quarter of a second to four
    # seconds, in which the loop would do nothing else.
    match settings.library:
        case Library.PTB:
            await asyncio.to_thread(import_module, "channels.telegram.via_ptb")
            from channels.telegram.via_ptb import PtbClient  # noqa: PLC0415

            return await PtbClient.open(settings)
        case Library.AIOGRAM:
            await asyncio.to_thread(import_module, "channels.telegram.via_aiogram")
            from channels.telegram.via_aiogram import AiogramClient  # noqa: PLC0415

            return await AiogramClient.open(settings)
        case _:
            assert_never(settings.library)


factory = TelegramKind()
