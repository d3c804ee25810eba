"""``python -m tests.botapi --port 0``: prints ``{"url": …, "token": …}``, runs until SIGTERM."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal

from tests.botapi.server import TOKEN, BotApi


async def serve(chosen: argparse.Namespace) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with BotApi(
        token=chosen.token, username=chosen.username, port=chosen.port, local=chosen.local
    ) as api:
        api.record(not chosen.count_only)
        print(json.dumps({"url": api.url, "token": api.token}), flush=True)
        await stop.wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.botapi", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--token", default=TOKEN)
    parser.add_argument("--username", default="GoclawTestBot")
    parser.add_argument("--local", action="store_true", help="take webhooks of any address")
    parser.add_argument("--count-only", action="store_true", help="keep no transcript")
    parser.add_argument("--uvloop", action="store_true", help="run on the quicker event loop")
    chosen = parser.parse_args()
    if chosen.uvloop:
        import uvloop

        uvloop.run(serve(chosen))
    else:
        asyncio.run(serve(chosen))


if __name__ == "__main__":
    main()
