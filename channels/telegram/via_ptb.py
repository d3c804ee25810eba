"""The Bot API through python-telegram-bot, over aiohttp.

Only the library's ``Bot`` is used. Its transport is replaced: aiohttp needs a fifth of the
processor time of the default, and it knows whether a request certainly did not leave, which is
what decides whether a message may be repeated freely (SPEC IO-5).

The token is part of every address, so errors of both libraries may hold it. None of them leaves
this module: ``_secretly`` raises ours in their place, without the token and with nothing chained.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import aiohttp
import orjson
import telegram
from telegram.error import TelegramError
from telegram.request import BaseRequest, RequestData

from channels.telegram.client import Bot, Place, PollConflict
from channels.telegram.settings import Settings
from goclaw_py.core.errors import (
    ChannelError,
    ChannelRefused,
    MaybeSent,
    NotSent,
    RateLimited,
    Undeliverable,
)

_SENDING_CONNECTIONS = 64
_TYPING_CONNECTIONS = 8
_TYPING_TIMEOUT_S = 5.0
_POLL_MARGIN_S = 10.0
"""How much longer than asked a poll may take before the connection counts as dead."""
_DEFAULT_RETRY_AFTER_S = 5.0
_JSON = {"Content-Type": "application/json"}

_P = ParamSpec("_P")
_T = TypeVar("_T")


class _Failure(TelegramError):
    """Carries our own error through the library, which lets its own kind of error pass.

    ``error`` may still hold the token.
    """

    def __init__(self, error: ChannelError) -> None:
        super().__init__(str(error))
        self.error = error


class _Transport(BaseRequest):
    """HTTP for the library. Errors that leave here are ``_Failure``."""

    __slots__ = ("_connect_timeout_s", "_connections", "_read_timeout_s", "_session")

    def __init__(
        self, *, connections: int, connect_timeout_s: float, read_timeout_s: float
    ) -> None:
        self._connections = connections
        self._connect_timeout_s = connect_timeout_s
        self._read_timeout_s = read_timeout_s
        self._session: aiohttp.ClientSession | None = None

    @property
    def read_timeout(self) -> float:
        """Seconds that an answer may take, where a call does not say otherwise."""
        return self._read_timeout_s

    async def initialize(self) -> None:
        """Make the connection pool, unless there is one."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._connections),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": self.USER_AGENT},
            )

    async def shutdown(self) -> None:
        """Close the connection pool."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def do_request(  # noqa: PLR0913, PLR0917  the library's signature
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        read_timeout: object = BaseRequest.DEFAULT_NONE,
        write_timeout: object = BaseRequest.DEFAULT_NONE,  # noqa: ARG002
        connect_timeout: object = BaseRequest.DEFAULT_NONE,  # noqa: ARG002
        pool_timeout: object = BaseRequest.DEFAULT_NONE,  # noqa: ARG002
    ) -> tuple[int, bytes]:
        """Make a request; returns only answers that say ``ok``."""
        if self._session is None:
            raise _Failure(NotSent("the connection pool is closed"))
        parameters = request_data.parameters if request_data else {}
        seconds = read_timeout if isinstance(read_timeout, (int, float)) else self._read_timeout_s
        timeout = aiohttp.ClientTimeout(
            # An answer that drips is cut too.
            total=seconds + self._connect_timeout_s,
            connect=self._connect_timeout_s,
            sock_read=seconds,
        )
        try:
            async with self._session.request(
                method,
                url,
                data=orjson.dumps(parameters),
                headers=_JSON,
                timeout=timeout,
                allow_redirects=False,
            ) as answer:
                status, body = answer.status, await answer.read()
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise _Failure(NotSent(f"no connection to the Bot API: {_words(error)}")) from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _Failure(MaybeSent(f"no answer from the Bot API: {_words(error)}")) from None
        check_answer(status, body)
        return status, body

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, object]:
        """Decode an answer that ``do_request`` has let pass."""
        decoded = _decode(payload)
        return decoded if isinstance(decoded, dict) else {}


def _secretly(
    call: Callable[Concatenate[PtbClient, _P], Coroutine[Any, Any, _T]],
) -> Callable[Concatenate[PtbClient, _P], Coroutine[Any, Any, _T]]:
    """Let only a ``ChannelError`` leave a call, without the token and with nothing chained."""

    @wraps(call)
    async def secret_call(client: PtbClient, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return await call(client, *args, **kwargs)
        except _Failure as failure:
            error = failure.error
        except ChannelError as ours:
            error = ours
        except Exception as unknown:  # any error of a library may quote the address
            words = f"{type(unknown).__name__}: {_words(unknown)}"
            error = MaybeSent(f"an answer of the Bot API is not understood: {words}")
        error.args = tuple(client.without_token(str(arg)) for arg in error.args)
        # In a handler, even after ``from None``, the foreign error would stay its context.
        raise error

    return secret_call


class PtbClient:
    """A bot. Made by ``open``."""

    def __init__(self, settings: Settings) -> None:
        # At lower levels these loggers print URLs, and the token is part of each URL.
        for name in ("telegram", "httpx", "httpcore"):
            logging.getLogger(name).setLevel(logging.WARNING)
        self._token = _token_pattern(settings.token)
        self._sending = self._transport(settings, _SENDING_CONNECTIONS, settings.send_timeout_s)
        self._polling = self._transport(settings, 1, settings.send_timeout_s)
        # A pool of its own: answers that hang must not delay typing, nor typing an answer.
        self._acting = self._transport(settings, _TYPING_CONNECTIONS, _TYPING_TIMEOUT_S)
        self._bot = self._make_bot(settings, self._sending, self._polling)
        self._typist = self._make_bot(settings, self._acting, self._acting)

    @classmethod
    async def open(cls, settings: Settings) -> PtbClient:
        """Make the client of one bot; the network is not touched yet."""
        client = cls(settings)
        for transport in client._transports:
            await transport.initialize()
        return client

    @property
    def _transports(self) -> tuple[_Transport, ...]:
        return self._sending, self._polling, self._acting

    @staticmethod
    def _transport(settings: Settings, connections: int, read_timeout_s: float) -> _Transport:
        return _Transport(
            connections=connections,
            connect_timeout_s=settings.connect_timeout_s,
            read_timeout_s=read_timeout_s,
        )

    @staticmethod
    def _make_bot(settings: Settings, request: _Transport, polling: _Transport) -> telegram.Bot:
        return telegram.Bot(
            settings.token,
            base_url=f"{settings.base_url}/bot",
            base_file_url=f"{settings.base_url}/file/bot",
            request=request,
            get_updates_request=polling,
        )

    @_secretly
    async def get_me(self) -> Bot:
        """The bot that the token belongs to."""
        user = await self._bot.get_me()
        return Bot(user.id, user.username or "")

    @_secretly
    async def get_updates(
        self, *, offset: int | None, wait_s: int, kinds: Sequence[str]
    ) -> list[object]:
        """The raw updates: the library refuses a whole batch for one malformed update."""
        # Spelled so that the library takes it for a method that it does not know, and hands
        # out the answer without a warning; what it calls is still ``getUpdates``.
        updates: object = await self._bot.do_api_request(
            "get_Updates",
            api_kwargs={"offset": offset, "timeout": wait_s, "allowed_updates": list(kinds)},
            read_timeout=wait_s + _POLL_MARGIN_S,
        )
        if not isinstance(updates, list):
            raise MaybeSent("the Bot API answered with something that is no list of updates")
        return updates

    @_secretly
    async def send_message(self, place: Place, text: str, *, reply_to: int | None) -> int:
        """Send a text as it is."""
        reply = None
        if reply_to is not None:
            reply = telegram.ReplyParameters(reply_to, allow_sending_without_reply=True)
        message = await self._bot.send_message(
            place.chat_id,
            text,
            message_thread_id=place.thread_id,
            reply_parameters=reply,
        )
        return message.message_id

    @_secretly
    async def send_typing(self, place: Place) -> None:
        """Show "typing…"."""
        await self._typist.send_chat_action(
            place.chat_id, telegram.constants.ChatAction.TYPING, place.thread_id
        )

    @_secretly
    async def set_commands(self, commands: Mapping[str, str]) -> None:
        """Publish the command menu."""
        await self._bot.set_my_commands(list(commands.items()))

    @_secretly
    async def webhook(self) -> str:
        """The URL of the webhook."""
        # Many programs put the token into it, so that nobody else can call them.
        return self.without_token((await self._bot.get_webhook_info()).url or "")

    @_secretly
    async def delete_webhook(self) -> None:
        """Remove the webhook."""
        await self._bot.delete_webhook(drop_pending_updates=False)

    async def close(self) -> None:
        """Close all pools."""
        for transport in self._transports:
            await transport.shutdown()

    def without_token(self, text: str) -> str:
        """The text with ``(token)`` wherever this bot's token was."""
        return self._token.sub("(token)", text)


def check_answer(status: int, body: bytes) -> None:
    """Let only answers pass that say ``ok``; raises ``_Failure`` with our error for any other.

    The error quotes the server's words, whatever they hold.
    """
    answer = _decode(body)
    if not isinstance(answer, dict) or not isinstance(answer.get("ok"), bool):
        raise _Failure(MaybeSent(f"HTTP {status} with something that is no answer of the Bot API"))
    if not answer["ok"]:
        raise _Failure(_refusal(status, answer))


def _refusal(status: int, answer: Mapping[str, object]) -> ChannelError:
    """Our error for the Bot API's own refusal."""
    code = answer.get("error_code", status)
    words = str(answer.get("description", f"error {code}"))
    match code:
        case 429:
            return RateLimited(words, _retry_after_s(answer))
        case 401 | 404:
            return ChannelRefused(f"Telegram does not accept this bot token: {words}")
        case 409:
            return PollConflict(words)
        case 400 | 403:
            return Undeliverable(words)
        case int() if code < 500:
            return NotSent(words)
        case _:
            return MaybeSent(words)


def _retry_after_s(answer: Mapping[str, object]) -> float:
    parameters = answer.get("parameters")
    seconds = parameters.get("retry_after") if isinstance(parameters, dict) else None
    return float(seconds) if isinstance(seconds, (int, float)) else _DEFAULT_RETRY_AFTER_S


def _decode(body: bytes) -> object:
    """The JSON value, or None."""
    try:
        decoded: object = orjson.loads(body)
    except orjson.JSONDecodeError:
        # orjson refuses lone surrogates; one in somebody's message must not make us deaf.
        try:
            decoded = json.loads(body.decode("utf-8", "replace"))
        except ValueError:
            decoded = None
    return decoded


def _words(error: BaseException) -> str:
    """What an error says, on one line and without the address; it may still quote the token."""
    said = error.message if isinstance(error, aiohttp.ClientResponseError) else str(error)
    return " ".join(said.split()) or type(error).__name__


def _token_pattern(token: str) -> re.Pattern[str]:
    """Finds a token, whole, escaped or cut short, and its secret part alone."""
    number, _, secret = token.partition(":")
    alternatives = [rf"(?<!\d){re.escape(number)}(?::|%3[Aa])[\w-]*"]
    if secret:
        alternatives.append(re.escape(secret))
    return re.compile("|".join(alternatives))
