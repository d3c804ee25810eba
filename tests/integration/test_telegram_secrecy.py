"""No error of a Telegram client and no log line holds the bot's token (SPEC CHAN-8)."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path

import pytest

from channels.telegram.client import BotClient, ChatPlace, Text, Upload, WebhookState
from channels.telegram.settings import Library
from goclaw_py.core.errors import ChannelError, MaybeSent, NotSent, RateLimited
from goclaw_py.core.messages import FileKind
from tests.botapi import BotApi, Fault, FaultKind
from tests.botapi.files import FileKind as StoredKind
from tests.botapi.server import TOKEN
from tests.support.bot_clients import answering, connected

pytestmark = pytest.mark.real_time
pytest_plugins = ["tests.support.telegram_fixtures"]

ANN = 7
HERE = ChatPlace(ANN)
SECRET = TOKEN.partition(":")[2]
FILE = "file0001"
SENDS = ("sendMessage", "sendDocument", "sendPhoto")

Call = Callable[[BotClient, Path], Awaitable[object]]


def _send(kind: FileKind) -> Call:
    async def send(client: BotClient, folder: Path) -> object:
        (folder / "upload").write_text("hello")
        return await client.send_file(
            HERE, Upload(kind, folder / "upload", "a.txt"), caption=Text("x"), reply_to=None
        )

    return send


def _fetch(client: BotClient, folder: Path) -> Awaitable[object]:
    return client.fetch_file(FILE, folder / "file", limit_bytes=10_000)


CALLS: Mapping[str, Call] = {
    "getMe": lambda client, _: client.get_me(),
    "getUpdates": lambda client, _: client.get_updates(offset=None, wait_s=0, kinds=["message"]),
    "sendMessage": lambda client, _: client.send_message(HERE, Text("x"), buttons=[[("a", "b")]]),
    "editMessageText": lambda client, _: client.edit_message(ANN, 2, Text("x")),
    "deleteMessage": lambda client, _: client.delete_message(ANN, 2),
    "editMessageReplyMarkup": lambda client, _: client.remove_buttons(ANN, 2),
    "sendMessageDraft": lambda client, _: client.send_draft(HERE, 5, Text("x")),
    "sendDocument": _send(FileKind.DOCUMENT),
    "sendPhoto": _send(FileKind.PHOTO),
    "getFile": _fetch,
    "sendChatAction": lambda client, _: client.send_action(HERE, "typing"),
    "setMessageReaction": lambda client, _: client.set_reaction(ANN, 1, "👀"),
    "answerCallbackQuery": lambda client, _: client.answer_press("press"),
    "setMyCommands": lambda client, _: client.set_commands({"stop": "Stop"}),
    "getWebhookInfo": lambda client, _: client.webhook(),
    "setWebhook": lambda client, _: client.set_webhook(
        f"https://bot.example/{TOKEN}", secret=SECRET, kinds=["message"], connections=2
    ),
    "deleteWebhook": lambda client, _: client.delete_webhook(),
}
every_call = pytest.mark.parametrize("method", CALLS)


@pytest.fixture(autouse=True)
def stored(api: BotApi) -> None:
    api.say(ANN, "hello")
    assert api.world.files.keep(StoredKind.DOCUMENT, b"hello").id == FILE


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


def logged(caplog: pytest.LogCaptureFixture) -> str:
    """Everything that anybody might print of what was logged."""
    return f"{caplog.text} {[vars(record) for record in caplog.records]}"


async def caught(call: Awaitable[object]) -> ChannelError:
    with pytest.raises(ChannelError) as error:
        await call
    return error.value


@every_call
@pytest.mark.parametrize("kind", [FaultKind.BROKEN_AFTER, FaultKind.RESET_AFTER, FaultKind.PAGE])
async def test_an_answer_that_breaks_shows_no_token(
    api: BotApi,
    client: BotClient,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    method: str,
    kind: FaultKind,
) -> None:
    """SPEC IO-5, CHAN-8: what can be repeated counts as not sent; a 404 is no verdict on us."""
    caplog.set_level(logging.DEBUG)
    api.fault(Fault(method, kind, status=404))
    error = await caught(CALLS[method](client, tmp_path))
    is_open = method in SENDS and kind is not FaultKind.PAGE
    assert type(error) is (MaybeSent if is_open else NotSent)
    assert SECRET not in traces(error)
    assert SECRET not in logged(caplog)


@pytest.mark.parametrize("kind", [FaultKind.BROKEN_AFTER, FaultKind.RESET, FaultKind.PAGE])
async def test_a_download_that_breaks_shows_no_token(
    api: BotApi,
    client: BotClient,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    kind: FaultKind,
) -> None:
    """Its address holds the token, too."""
    caplog.set_level(logging.DEBUG)
    api.fault(Fault("download", kind, count=2))
    error = await caught(_fetch(client, tmp_path))
    assert SECRET not in traces(error)
    api.clear_faults()
    assert await _fetch(client, tmp_path) == 5
    assert SECRET not in logged(caplog)


async def test_a_server_that_is_not_there_shows_no_token(
    library: Library, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with BotApi() as gone:
        pass
    async with connected(library, gone.url) as client:
        for call in CALLS.values():
            error = await caught(call(client, tmp_path))
            assert isinstance(error, NotSent)
            assert "no connection" in str(error)
            assert SECRET not in traces(error)
    assert SECRET not in logged(caplog)


async def test_calls_that_go_well_log_no_token(
    client: BotClient, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for method, call in CALLS.items():
        if method not in {"editMessageText", "answerCallbackQuery", "getUpdates"}:
            await call(client, tmp_path)
    assert SECRET not in logged(caplog)


async def test_a_broken_answer_is_still_told_apart(api: BotApi, client: BotClient) -> None:
    api.fault(Fault("getMe", FaultKind.BROKEN_AFTER))
    with pytest.raises(NotSent, match=r"Bad status line.*POST /bot\(token\)/getMe what\?"):
        await client.get_me()


@every_call
async def test_a_refusal_that_repeats_the_token_is_shown_without_it(
    library: Library, tmp_path: Path, method: str
) -> None:
    refusal = {
        "ok": False,
        "error_code": 429,
        "description": f"slow down, /bot{TOKEN}/x, {SECRET}",
        "parameters": {"retry_after": 7},
    }
    async with answering(library, refusal, 429) as client:
        error = await caught(CALLS[method](client, tmp_path))
    assert isinstance(error, RateLimited)
    assert str(error) == "slow down, /bot(token)/x, (token)"
    assert error.retry_after_s == 7
    assert SECRET not in traces(error)


@pytest.mark.parametrize("user", [{"id": TOKEN}, {"id": 5, "is_bot": TOKEN}, {"id": [TOKEN]}])
async def test_what_a_library_chokes_on_becomes_an_error_without_the_token(
    library: Library, user: dict[str, object]
) -> None:
    """Whatever kind of error the library raises, a caller gets a ``ChannelError``."""
    async with answering(library, {"ok": True, "result": user}) as client:
        error = await caught(client.get_me())
    assert isinstance(error, NotSent)
    assert "is not understood" in str(error)
    assert SECRET not in traces(error)


async def test_a_webhook_with_the_token_in_its_address_is_shown_without_it(
    library: Library,
) -> None:
    """Many programs put the token there, so that nobody else can call their webhook."""
    info = {
        "url": f"https://bot.example/{TOKEN}",
        "has_custom_certificate": False,
        "pending_update_count": 0,
        "last_error_date": 1_760_000_000,
        "last_error_message": f"404 from /{TOKEN}",
    }
    async with answering(library, {"ok": True, "result": info}) as client:
        assert await client.webhook() == WebhookState(
            "https://bot.example/(token)", 0, "404 from /(token)"
        )
