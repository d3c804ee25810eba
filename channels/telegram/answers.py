"""The meaning of Bot API responses, for both libraries (SPEC IO-5, CHAN-8).

The libraries' errors do not tell whether a request was sent, and whether Telegram or a proxy
refused it. So the transports read responses here, and clients raise only ``ChannelError``. The
token is part of every address, so any error may contain it; ``guarded`` removes it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Coroutine, Mapping
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar
from urllib.parse import quote

from channels.telegram.client import (
    FileTooBig,
    MarkupRefused,
    MessageGone,
    PollConflict,
    TextTooLong,
)
from goclaw_py.core.errors import (
    ChannelError,
    ChannelRefused,
    ChatGone,
    ChatMoved,
    MaybeSent,
    NotSent,
    RateLimited,
    TopicGone,
    Undeliverable,
)
from goclaw_py.core.storable import parse_json

_POLL_MARGIN_S = 10.0
"""Seconds that a poll may take longer than requested before the connection counts as lost."""
_DEFAULT_RETRY_AFTER_S = 5.0

_P = ParamSpec("_P")
_T = TypeVar("_T")


class AlreadySo(Undeliverable):
    """The requested state exists already: the text is the same, the message is deleted."""


class KindRefused(Undeliverable):
    """The server refuses a file of this kind (a picture); it may accept it as a document."""


_BY_WORDS: tuple[tuple[Callable[[str], Undeliverable], tuple[str, ...]], ...] = (
    # First: its words quote the text that was refused.
    (MarkupRefused, ("can't parse entities", "entity_", "entities_")),
    (TextTooLong, ("message is too long", "message_too_long")),
    (AlreadySo, ("message is not modified", "message to delete not found")),
    (
        MessageGone,
        ("message to edit not found", "message can't be edited", "message_id_invalid"),
    ),
    (
        KindRefused,
        (
            "photo_invalid",
            "photo_ext_invalid",
            "photo_save_file_invalid",
            "image_process_failed",
            "too big for a photo",
            "photo is too big",
            "photo too big",
            "voice_messages_forbidden",
        ),
    ),
    (FileTooBig, ("file is too big", "request entity too large")),
    # Before ``ChatGone``: a 403 of this kind says nothing about the whole chat.
    (TopicGone, ("topic_closed",)),
    (partial(TopicGone, closed=False), ("topic_deleted", "message thread not found")),
    (Undeliverable, ("not enough rights", "have no rights")),
    (
        ChatGone,
        (
            "chat not found",
            "peer_id_invalid",
            "bot was blocked",
            "user_is_blocked",
            "user is deactivated",
            "input_user_deactivated",
            "bot was kicked",
            "bot is not a member",
            "chat was deleted",
            "channel_private",
            "chat_write_forbidden",
        ),
    ),
)
"""The error classes of a 400 or 403, by a part of its description; the first match counts."""


def read_answer(status: int, body: bytes) -> object:
    """Return the result of a response with ``ok``; raise a ``ChannelError`` for others.

    The error quotes the server's text. A page that is not the Bot API's JSON is no verdict on the
    token or the message, whatever its status.
    """
    answer = _decode(body)
    if not isinstance(answer, dict) or not isinstance(answer.get("ok"), bool):
        if status == 413:
            # Whichever server in between says so: it did not take the request in.
            raise FileTooBig("HTTP 413: the request is too large")
        words = f"HTTP {status} with a body that is not an answer of the Bot API"
        # A server in between that redirects or refuses has not passed the request on. With 5xx it
        # may have: it had no answer to give.
        raise NotSent(words) if 300 <= status < 500 else MaybeSent(words)
    if not answer["ok"]:
        raise _refusal(status, answer)
    return answer.get("result")


def sent_id(result: object) -> int:
    """Return the id of the message in a result. Raises ``MaybeSent`` if it has none."""
    number = result.get("message_id") if isinstance(result, dict) else None
    if not isinstance(number, int) or isinstance(number, bool):
        raise MaybeSent("an answer of the Bot API is not understood: it names no message")
    return number


def sent_ids(result: object) -> list[int]:
    """Return the ids of the messages of an album. Raises ``MaybeSent`` if one has none."""
    if not isinstance(result, list):
        raise MaybeSent("an answer of the Bot API is not understood: it names no messages")
    return [sent_id(message) for message in result]


def member_ids(result: object) -> frozenset[int]:
    """Return the ids of the users in a list of members. Raises ``NotSent`` if it is not one."""
    members = result if isinstance(result, list) else []
    users = [one.get("user") for one in members if isinstance(one, dict)]
    ids = [user.get("id") for user in users if isinstance(user, dict)]
    found = frozenset(number for number in ids if type(number) is int)
    if not found:  # each group has a creator
        raise NotSent("an answer of the Bot API is not understood: it names no member")
    return found


def file_path(result: object, *, limit_bytes: int) -> str:
    """Return the path of a file in a ``getFile`` result. Raises ``FileTooBig``."""
    told = result if isinstance(result, dict) else {}
    size, path = told.get("file_size"), told.get("file_path")
    if isinstance(size, int) and size > limit_bytes:
        raise FileTooBig(f"the file has {size} bytes, which is more than {limit_bytes}")
    if not isinstance(path, str) or not path:
        raise NotSent("an answer of the Bot API is not understood: it names no file")
    if path.startswith("/"):
        raise Undeliverable("the Bot API server keeps files on its own disk (--local)")
    return quote(path)


def updates(result: object) -> list[object]:
    """Return the updates of ``getUpdates``, not parsed."""
    if not isinstance(result, list):
        raise NotSent("the Bot API answered with something that is no list of updates")
    return result


def poll_timeout_s(wait_s: int) -> float:
    """Return how many seconds a poll that waits ``wait_s`` at the server may take."""
    return wait_s + _POLL_MARGIN_S


def _refusal(status: int, answer: Mapping[str, object]) -> ChannelError:
    """Return our error for a refusal of the Bot API."""
    code = answer.get("error_code", status)
    words = str(answer.get("description", f"error {code}"))
    parameters = answer.get("parameters")
    if not isinstance(parameters, dict):
        parameters = {}
    match code:
        case 429:
            return RateLimited(words, _retry_after_s(parameters))
        case 404 if "method not found" in words.lower():
            return Undeliverable(f"this Bot API server is too old: {words}")
        case 401 | 404:
            return ChannelRefused(f"Telegram does not accept this bot token ({words})")
        case 409:
            return PollConflict(words)
        case 413:
            return FileTooBig(words)
        case 400 | 403:
            return _undeliverable(code, words, parameters)
        case int() if code < 500:
            return NotSent(words)
        case _:
            return MaybeSent(words)


def _undeliverable(code: object, words: str, parameters: Mapping[str, object]) -> ChannelError:
    moved = parameters.get("migrate_to_chat_id")
    if isinstance(moved, int):
        return ChatMoved(words, str(moved))
    lowered = words.lower()
    for kind, marks in _BY_WORDS:
        if any(mark in lowered for mark in marks):
            return kind(words)
    return ChatGone(words) if code == 403 else Undeliverable(words)


def _retry_after_s(parameters: Mapping[str, object]) -> float:
    seconds = parameters.get("retry_after")
    return float(seconds) if isinstance(seconds, (int, float)) else _DEFAULT_RETRY_AFTER_S


def _decode(body: bytes) -> object:
    """Decode JSON; None if it is invalid."""
    try:
        return parse_json(body)
    except ValueError:
        return None


# ---------------------------------------------------------------------------- the token


class Scrubber:
    """Removes a bot's token from texts: whole, escaped or truncated, and its secret part."""

    def __init__(self, token: str) -> None:
        number, _, secret = token.partition(":")
        alternatives = [rf"(?<!\d){re.escape(number)}(?::|%3[Aa])[\w-]*"]
        if secret:
            alternatives.append(re.escape(secret))
        self._pattern = re.compile("|".join(alternatives))

    def __call__(self, text: str) -> str:
        """Return the text with ``(token)`` in place of the token."""
        return self._pattern.sub("(token)", text)


def silence(*loggers: str) -> None:
    """Set loggers to WARNING: below it, libraries log addresses, which contain the token."""
    for name in loggers:
        logging.getLogger(name).setLevel(logging.WARNING)


def words_of(error: BaseException) -> str:
    """Return the text of an error on one line; it may contain the token."""
    return " ".join(str(error).split()) or type(error).__name__


def _brief(unknown: Exception) -> str:
    # The lines after the first may quote values, cut in a way that hides a token from the scrubber.
    return f"{type(unknown).__name__}: {str(unknown).partition(chr(10))[0]}"


class _Client(Protocol):
    @property
    def scrub(self) -> Scrubber: ...


_C = TypeVar("_C", bound=_Client)
_Call = Callable[Concatenate[_C, _P], Coroutine[Any, Any, _T]]


def guarded(*, repeatable: bool = True) -> Callable[[_Call[_C, _P, _T]], _Call[_C, _P, _T]]:
    """Let only a ``ChannelError`` leave a call, without the token and without causes.

    ``repeatable``: a second call shows nothing twice, so a lost response is ``NotSent``.
    """

    def guard(call: _Call[_C, _P, _T]) -> _Call[_C, _P, _T]:
        @wraps(call)
        async def guarded_call(client: _C, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
            try:
                return await call(client, *args, **kwargs)
            except ChannelError as ours:
                error = ours
            except Exception as unknown:  # any error of a library may quote the token
                error = MaybeSent(f"an answer of the Bot API is not understood: {_brief(unknown)}")
            if repeatable and isinstance(error, MaybeSent):
                error = NotSent(str(error))
            error.args = tuple(client.scrub(str(arg)) for arg in error.args)
            # Raised in a handler it would bring the foreign error along, even ``from None``.
            error.__cause__ = error.__context__ = None
            raise error

        return guarded_call

    return guard
