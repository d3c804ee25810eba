"""``python -m tests.botapi``: prints ``{"url": …, "token": …}``, runs until SIGTERM."""

from __future__ import annotations

import asyncio
import json
import signal

from tests.botapi.server import BotApi


async def serve() -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with BotApi() as api:
        print(json.dumps({"url": api.url, "token": api.token}), flush=True)
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(serve())
