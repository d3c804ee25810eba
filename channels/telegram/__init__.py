"""Telegram. Importing this loads no library; that happens when the first bot connects."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from importlib import import_module

from channels.telegram.adapter import TelegramChannel
from channels.telegram.client import BotClient
from channels.telegram.inbound import CHANNEL
from channels.telegram.settings import Settings, read_settings
from goclaw_py.ports.channel import Channel


class TelegramKind:
    """Makes Telegram channels from the section ``[channels.telegram]``."""

    name = CHANNEL

    def build(self, account: str, options: Mapping[str, object]) -> Channel:
        """Make the channel of one bot. Raises ``SettingError``."""
        return TelegramChannel(account, read_settings(options), _connect)


async def _connect(settings: Settings) -> BotClient:
    # The import takes a quarter of a second, in which the loop would do nothing else.
    await asyncio.to_thread(import_module, "channels.telegram.via_ptb")
    from channels.telegram.via_ptb import PtbClient  # noqa: PLC0415  loaded only where it is used

    return await PtbClient.open(settings)


factory = TelegramKind()
