"""``python -m tests.botapi --port 0``: prints ``{"url": …, "token": …}``, runs until SIGTERM."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal

from tests.botapi.server import TOKEN, BotApi


async def serve(port: int, token: str, username: str) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with BotApi(token=token, username=username, port=port) as api:
        print(json.dumps({"url": api.url, "token": api.token}), flush=True)
        await stop.wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.botapi", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--token", default=TOKEN)
    parser.add_argument("--username", default="GoclawTestBot")
    chosen = parser.parse_args()
    asyncio.run(serve(chosen.port, chosen.token, chosen.username))


if __name__ == "__main__":
    main()
