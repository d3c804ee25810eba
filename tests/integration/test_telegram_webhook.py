"""The webhook over HTTP, as a stranger and as Telegram meets it (SPEC CHAN-2).

``tests/unit/channels/telegram/test_webhook.py`` has what is answered to whom, and when.
"""

from __future__ import annotations

import asyncio
import logging

import orjson
import pytest

from channels.telegram.inbound.reader import KINDS
from channels.telegram.settings import Library
from channels.telegram.webhook import SECRET_HEADER, secret_of
from tests.botapi import BotApi
from tests.botapi.server import TOKEN
from tests.support.telegram import ANN, PATH, Line, Mode, connected

pytestmark = pytest.mark.real_time
pytest_plugins = ["tests.support.telegram_fixtures"]

MB = 1 << 20


def update(text: str) -> bytes:
    ann = {"id": ANN, "is_bot": False, "first_name": "Ann"}
    chat = {"id": ANN, "type": "private", "first_name": "Ann"}
    message = {"message_id": 900, "date": 1_790_000_000, "chat": chat, "from": ann, "text": text}
    return orjson.dumps({"update_id": 900, "message": message})


async def test_the_webhook_is_set_with_secret_kinds_and_connections(
    api: BotApi, library: Library
) -> None:
    async with connected(api, library, Mode.WEBHOOK, webhook_connections=17) as line:
        async with line.receiving():
            await line.ready()
        (call,) = api.transcript("setWebhook", ok=True)
        assert call.parameters == {
            "url": f"http://127.0.0.1:{line.port}{PATH}",
            "max_connections": 17,
            "allowed_updates": list(KINDS),
            "drop_pending_updates": False,
            "secret_token": secret_of(TOKEN),
        }
        assert api.counts().get("getUpdates", 0) == 0


async def test_polling_and_webhook_take_turns_without_losing_anything(
    api: BotApi, library: Library
) -> None:
    """Changing the setting is enough; the other way is removed."""
    api.say(ANN, "0")
    for number, mode in enumerate([Mode.WEBHOOK, Mode.POLLING, Mode.WEBHOOK, Mode.POLLING]):
        async with connected(api, library, mode) as line, line.receiving():
            await line.inbox.until_accepted(str(number))
            await api.wait_confirmed()
        api.say(ANN, str(number + 1))


async def begin_to_post(line: Line, length: int) -> int:
    """The status of the answer to a request of which only the beginning has been sent."""
    reader, writer = await asyncio.open_connection("127.0.0.1", line.port)
    head = f"POST {PATH} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n"
    writer.write(f"{head}{SECRET_HEADER}: {secret_of(TOKEN)}\r\n\r\n".encode() + b"x" * 1000)
    status = int((await reader.readuntil(b"\r\n\r\n")).split()[1])
    assert await reader.read() == b"the body is longer than 1048576 bytes"
    writer.close()
    await writer.wait_closed()
    return status


async def test_strangers_are_refused_and_do_not_fill_the_log(
    hooked: Line, caplog: pytest.LogCaptureFixture
) -> None:
    """SPEC SEC-1: one line tells of all of them; more of them could fill the disk."""
    one, secret = update("one"), secret_of(TOKEN)
    async with hooked.receiving():
        await hooked.ready()
        caplog.clear()
        caplog.set_level(logging.INFO)
        for path in ("/", "/hooks", f"{PATH}/", f"{PATH}x", "/hooks/../hooks/x", "//"):
            assert await hooked.post(one, path=path) == 404
        for forged in ("", "x", secret[:-1], secret + "0", secret.upper()):
            assert await hooked.post(update("/stopall"), secret=forged) == 403
        for method in ("GET", "PUT", "DELETE", "OPTIONS"):
            assert await hooked.post(one, method=method) == 405
        for body in (b"", b"{", b"hello", b"\xff\xfe\x00", b"[" * 50_000):
            assert await hooked.post(body) == 400
        assert await begin_to_post(hooked, 5 * MB) == 413
        assert hooked.inbox.offered == []
        assert await hooked.post(one) == 200
    assert hooked.inbox.texts == ["one"]
    assert [record.getMessage() for record in caplog.records] == ["webhook_wrong_secret"]
