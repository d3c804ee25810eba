"""The webhook over HTTP, as a stranger and as Telegram meets it (SPEC CHAN-2)."""

from __future__ import annotations

import asyncio
import logging

import orjson
import pytest

from channels.telegram.inbound.reader import KINDS
from channels.telegram.settings import Library
from channels.telegram.webhook import SECRET_HEADER, secret_of
from tests.botapi import BotApi, Fault, FaultKind
from tests.botapi.server import TOKEN
from tests.support.bot_clients import connected as client_over
from tests.support.telegram import ANN, BEN, PATH, Line, Mode, connected, eventually

pytestmark = pytest.mark.real_time
pytest_plugins = ["tests.support.telegram_fixtures"]

MB = 1 << 20


def update(text: str, number: int = 900) -> bytes:
    message = {
        "message_id": number,
        "date": 1_790_000_000,
        "chat": {"id": ANN, "type": "private", "first_name": "Ann"},
        "from": {"id": ANN, "is_bot": False, "first_name": "Ann"},
        "text": text,
    }
    return orjson.dumps({"update_id": number, "message": message})


# ---------------------------------------------------------------------------- set by the product


async def test_the_webhook_is_set_with_secret_kinds_and_connections(
    api: BotApi, library: Library
) -> None:
    api.say(ANN, "it waited")
    async with connected(api, library, Mode.WEBHOOK, webhook_connections=17) as line:
        async with line.receiving():
            await line.inbox.until_accepted("it waited")
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


async def test_another_programs_webhook_is_noticed_told_and_replaced(
    hooked: Line, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """SPEC CHAN-8."""
    monkeypatch.setattr("channels.telegram.webhook._LOOK_S", 0.3)
    async with hooked.receiving():
        await hooked.ready()
        hooked.api.set_webhook("https://other.example/hook")
        hooked.api.say(ANN, "one")
        await eventually(
            lambda: "another program sets this bot's webhook" in hooked.channel.health.detail
        )
        await hooked.inbox.until_accepted("one")
        await eventually(lambda: not hooked.channel.health.detail)
    (record,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert record.message == "channel_outage_started"
    assert "another program sets this bot's webhook" in vars(record)["warning"]


async def test_a_poller_that_removes_the_webhook_is_noticed(
    hooked: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPEC CHAN-8."""
    monkeypatch.setattr("channels.telegram.webhook._LOOK_S", 0.3)
    async with hooked.receiving():
        await hooked.ready()
        async with client_over(hooked.library, hooked.api.url) as other:
            await other.delete_webhook()
        hooked.api.say(ANN, "one")
        await hooked.inbox.until_accepted("one")


async def test_why_telegram_cannot_deliver_is_told(
    hooked: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPEC OPS-4."""
    monkeypatch.setattr("channels.telegram.webhook._LOOK_S", 0.2)
    async with hooked.receiving():
        await hooked.ready()
        hooked.api.fault(Fault("webhook", FaultKind.PAGE, count=10_000, status=502))
        hooked.api.say(ANN, "one")
        await eventually(lambda: "Telegram cannot deliver" in hooked.channel.health.detail)
        assert "502" in hooked.channel.health.detail
        hooked.api.clear_faults()
        await hooked.inbox.until_accepted("one")
        await eventually(lambda: not hooked.channel.health.detail)


async def test_a_server_that_takes_no_such_address_is_quoted(api: BotApi, library: Library) -> None:
    api.take_any_webhook(False)
    async with connected(api, library, Mode.WEBHOOK) as line, line.receiving():
        await eventually(lambda: "Telegram rejects the webhook" in line.channel.health.detail)
        assert "bad webhook" in line.channel.health.detail


# ---------------------------------------------------------------------------- strangers


async def test_the_right_secret_at_the_right_path_is_taken(hooked: Line) -> None:
    async with hooked.receiving():
        await hooked.ready()
        assert await hooked.post(update("one")) == 200
    assert hooked.inbox.texts == ["one"]


@pytest.mark.parametrize("path", ["/", "/hooks", f"{PATH}/", f"{PATH}x", "/hooks/../hooks/x", "//"])
async def test_another_path_is_not_there(hooked: Line, path: str) -> None:
    async with hooked.receiving():
        await hooked.ready()
        assert await hooked.post(update("one"), path=path) == 404
    assert hooked.inbox.offered == []


@pytest.mark.parametrize(
    "secret", ["", "x", secret_of(TOKEN)[:-1], secret_of(TOKEN) + "0", secret_of(TOKEN).upper()]
)
async def test_a_forged_update_is_refused(hooked: Line, secret: str) -> None:
    """SPEC SEC-1."""
    async with hooked.receiving():
        await hooked.ready()
        assert await hooked.post(update("/stopall"), secret=secret) == 403
    assert hooked.inbox.offered == []


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS"])
async def test_another_method_is_refused(hooked: Line, method: str) -> None:
    async with hooked.receiving():
        await hooked.ready()
        assert await hooked.post(update("one"), method=method) == 405
    assert hooked.inbox.offered == []


@pytest.mark.parametrize("body", [b"", b"{", b"hello", b"\xff\xfe\x00", b"[" * 50_000])
async def test_what_is_no_json_is_refused(hooked: Line, body: bytes) -> None:
    async with hooked.receiving():
        await hooked.ready()
        assert await hooked.post(body) == 400
        assert await hooked.post(update("next")) == 200
    assert hooked.inbox.texts == ["next"]


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


async def test_five_megabytes_are_refused_and_the_next_update_is_taken(hooked: Line) -> None:
    async with hooked.receiving():
        await hooked.ready()
        began = asyncio.get_running_loop().time()
        assert await begin_to_post(hooked, 5 * MB) == 413
        assert await hooked.post(update("next")) == 200
        assert asyncio.get_running_loop().time() - began < 30
    assert hooked.inbox.texts == ["next"]


async def test_strangers_do_not_fill_the_log(
    hooked: Line, caplog: pytest.LogCaptureFixture
) -> None:
    """One line tells of all of them: more of them could fill the disk."""
    caplog.set_level(logging.INFO)
    async with hooked.receiving():
        await hooked.ready()
        caplog.clear()
        for _ in range(20):
            await hooked.post(b"{")
            await hooked.post(update("one"), secret="guess")
            await hooked.post(update("one"), path="/x")
    assert [record.getMessage() for record in caplog.records] == ["webhook_wrong_secret"]


# ---------------------------------------------------------------------------- not now


async def test_while_nothing_is_received_telegram_has_to_come_again(hooked: Line) -> None:
    """SPEC QUEUE-11: during a drain."""
    async with hooked.receiving():
        await hooked.ready()
    assert await hooked.post(update("one")) == 503
    hooked.api.say(ANN, "two")
    deliveries = await hooked.api.wait_deliveries(2)
    assert {one.status for one in deliveries} == {503}
    async with hooked.receiving():
        await hooked.inbox.until_accepted("two")
        await hooked.api.wait_confirmed()
    assert hooked.inbox.texts == ["two"]


async def test_what_is_being_committed_when_the_drain_begins_is_confirmed(hooked: Line) -> None:
    """SPEC QUEUE-11, NODE-3."""
    hooked.inbox.takes_s = 0.5
    async with hooked.receiving():
        await hooked.ready()
        asked = asyncio.create_task(hooked.post(update("one")))
        await hooked.inbox.until_offered("one")
    assert await asked == 200
    assert hooked.inbox.texts == ["one"]


async def test_while_the_database_is_away_telegram_has_to_come_again(hooked: Line) -> None:
    """SPEC DB-4."""
    hooked.inbox.down = True
    async with hooked.receiving():
        await hooked.ready()
        assert await hooked.post(update("one")) == 503
        hooked.api.say(ANN, "two")
        await hooked.inbox.until_offered("two")
        hooked.inbox.down = False
        await hooked.inbox.until_accepted("two")
        await hooked.api.wait_confirmed()
    statuses = [one.status for one in hooked.api.deliveries()]
    assert statuses[-1] == 200
    assert set(statuses[:-1]) == {503}


async def test_a_bug_of_the_intake_is_500_and_the_update_comes_again(
    hooked: Line, caplog: pytest.LogCaptureFixture
) -> None:
    hooked.inbox.bug = ZeroDivisionError("the words of the bug")
    async with hooked.receiving() as task:
        await hooked.ready()
        assert await hooked.post(update("one")) == 500
        assert not task.done()
        hooked.inbox.bug = None
        hooked.api.say(ANN, "two")
        await hooked.inbox.until_accepted("two")
    assert "update_failed" in caplog.text


async def test_a_chat_that_cannot_be_committed_holds_back_no_other_one(hooked: Line) -> None:
    """SPEC IO-4: the server delivers one update of a chat at a time."""
    hooked.inbox.takes_s = 1.0
    async with hooked.receiving():
        await hooked.ready()
        for chat in range(ANN, ANN + 20):
            hooked.api.say(chat, f"from {chat}")
        began = asyncio.get_running_loop().time()
        await hooked.inbox.until(lambda: len(hooked.inbox.messages) == 20)
        assert asyncio.get_running_loop().time() - began < 15


async def test_a_stop_after_a_message_is_delivered_at_once(hooked: Line) -> None:
    """SPEC CMD-1: a late 200 would hold it back."""
    async with hooked.receiving():
        await hooked.ready()
        hooked.api.say(ANN, "work")
        hooked.api.say(ANN, "/stop")
        hooked.api.say(BEN, "hello")
        await hooked.inbox.until_accepted("work", "/stop", "hello")
        await hooked.api.wait_confirmed()
    assert max(one.seconds for one in hooked.api.deliveries()) < 0.2
