"""No error of the Telegram client and no log line holds the bot's token (SPEC CHAN-8)."""

from __future__ import annotations

import logging
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from channels.telegram.client import Place
from channels.telegram.settings import Settings
from channels.telegram.via_ptb import PtbClient
from goclaw_py.core.errors import MaybeSent, RateLimited
from tests.botapi import BotApi, Fault, FaultKind
from tests.botapi.server import TOKEN

pytestmark = pytest.mark.real_time

ANN = 7
SECRET = TOKEN.partition(":")[2]

Call = Callable[[PtbClient], Awaitable[object]]
CALLS: Mapping[str, Call] = {
    "getMe": PtbClient.get_me,
    "getUpdates": lambda client: client.get_updates(offset=None, wait_s=0, kinds=["message"]),
    "sendMessage": lambda client: client.send_message(Place(ANN), "x", reply_to=None),
    "sendChatAction": lambda client: client.send_typing(Place(ANN)),
    "setMyCommands": lambda client: client.set_commands({"stop": "Stop"}),
    "getWebhookInfo": PtbClient.webhook,
    "deleteWebhook": PtbClient.delete_webhook,
}
every_call = pytest.mark.parametrize("method", CALLS)


@pytest.fixture
async def api() -> AsyncIterator[BotApi]:
    async with BotApi() as api:
        api.say(ANN, "hello")
        yield api


@pytest.fixture
async def client(api: BotApi) -> AsyncIterator[PtbClient]:
    client = await PtbClient.open(Settings(api.token, api.url, send_timeout_s=1))
    yield client
    await client.close()


@asynccontextmanager
async def answering(body: Mapping[str, object], status: int = 200) -> AsyncIterator[PtbClient]:
    """A client whose server gives this answer to everything."""

    async def answer(_request: web.Request) -> web.Response:
        return web.json_response(body, status=status)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    client = await PtbClient.open(Settings(TOKEN, url))
    try:
        yield client
    finally:
        await client.close()
        await runner.cleanup()


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and all that hangs on it, also what a traceback would leave out."""
    if error is not None:
        yield error
        yield from chain(error.__cause__)
        yield from chain(error.__context__)


def traces(error: BaseException) -> str:
    """Everything that anybody might print of an error."""
    shown = [*traceback.format_exception(error)]
    for part in chain(error):
        shown += [str(part), repr(part), repr(vars(part)), *traceback.format_exception(part)]
    return "\n".join(shown)


@every_call
@pytest.mark.parametrize("kind", [FaultKind.BROKEN_AFTER, FaultKind.RESET_AFTER])
async def test_an_answer_that_breaks_shows_no_token(
    api: BotApi,
    client: PtbClient,
    caplog: pytest.LogCaptureFixture,
    method: str,
    kind: FaultKind,
) -> None:
    caplog.set_level(logging.DEBUG)
    api.fault(Fault(method, kind))
    with pytest.raises(MaybeSent, match="no answer from the Bot API") as caught:
        await CALLS[method](client)
    assert SECRET not in traces(caught.value)
    assert SECRET not in caplog.text
    assert SECRET not in str([vars(record) for record in caplog.records])


async def test_a_broken_answer_is_still_told_apart(api: BotApi, client: PtbClient) -> None:
    api.fault(Fault("getMe", FaultKind.BROKEN_AFTER))
    with pytest.raises(MaybeSent, match=r"Bad status line.*POST /bot\(token\)/getMe what\?"):
        await client.get_me()


@every_call
async def test_a_refusal_that_repeats_the_token_is_shown_without_it(method: str) -> None:
    refusal = {
        "ok": False,
        "error_code": 429,
        "description": f"slow down, /bot{TOKEN}/x, {SECRET}",
        "parameters": {"retry_after": 7},
    }
    async with answering(refusal, 429) as client:
        with pytest.raises(RateLimited) as caught:
            await CALLS[method](client)
    assert str(caught.value) == "slow down, /bot(token)/x, (token)"
    assert caught.value.retry_after_s == 7
    assert SECRET not in traces(caught.value)


@pytest.mark.parametrize("date", [10**30, TOKEN])
async def test_what_the_library_chokes_on_becomes_an_error_without_the_token(date: object) -> None:
    """Whatever kind of error the library raises, a caller gets a ``ChannelError``."""
    message = {"message_id": 1, "date": date, "chat": {"id": ANN, "type": "private"}}
    async with answering({"ok": True, "result": message}) as client:
        with pytest.raises(MaybeSent, match="is not understood") as caught:
            await client.send_message(Place(ANN), "x", reply_to=None)
    assert SECRET not in traces(caught.value)


async def test_a_webhook_with_the_token_in_its_address_is_shown_without_it() -> None:
    """Many programs put the token there, so that nobody else can call their webhook."""
    info = {"url": f"https://bot.example/{TOKEN}", "has_custom_certificate": False}
    async with answering({"ok": True, "result": {**info, "pending_update_count": 0}}) as client:
        assert await client.webhook() == "https://bot.example/(token)"
