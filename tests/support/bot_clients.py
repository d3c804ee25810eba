"""Both Telegram clients, for tests that pass over either."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from aiohttp import web

from channels.telegram import client_class
from channels.telegram.client import BotClient
from channels.telegram.settings import Library, TelegramSettings
from tests.botapi.server import TOKEN


@asynccontextmanager
async def connected(
    library: Library, url: str, *, token: str = TOKEN, timeout_s: float = 1
) -> AsyncIterator[BotClient]:
    """A client over this library. Connecting and sending may each take so long."""
    settings = TelegramSettings(
        token, url, send_timeout_s=timeout_s, connect_timeout_s=min(timeout_s, 10)
    )
    client = await client_class(library).open(settings)
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def answering(
    library: Library, body: Mapping[str, object], status: int = 200
) -> AsyncIterator[BotClient]:
    """A client whose server gives this answer to everything."""

    async def answer(_request: web.Request) -> web.Response:
        return web.json_response(body, status=status)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        async with connected(library, url) as client:
            yield client
    finally:
        await runner.cleanup()
