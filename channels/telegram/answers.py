"""The meaning of Bot API responses, for both libraries (SPEC IO-5, CHAN-8).

The libraries' errors do not tell whether a request was sent, and whether Telegram or a proxy
refused it. So the transports read responses here, and clients raise only ``ChannelError``. The
token is part of every address, so any error may contain it; ``guarded`` removes it.

The rules of SPEC CHAN-8:

The state of a channel is `starting`, `failed` (its receiving has ended, and begins again),
`waiting` (another gateway receives for it), `connected`, `reconnecting`, `conflict` (409, or
another program's webhook: slow retry), `unauthorized` or `stopped`; unless it is `connected` or
`starting`, a detail says why. It is `starting` until its server has answered once, also while its
library is imported or the server cannot be reached (then with the reason). After a 401 or 404
`getMe` is asked, with growing pauses; a token that `getMe` refuses for 5 minutes stops that
channel with its reason; the gateway, its other channels, jobs and API go on. Status, `/readyz` and
an alert say so. `token_file` is read again every 5 s from the refusal on, `getMe` is asked every
minute after the stop: a new token, or an old one that is accepted again, needs no restart. One
that is that of another account stops the channel ("its token is that of account X"): it neither
receives nor sends by that bot, and the other account goes on. Network loss: backoff, no log flood.
Watchdog for a deaf poller. The token appears in no log, error or URL.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Coroutine, Mapping
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from channels.telegram.client import (
    FileTooBig,
    MarkupRefused,
    MessageGone,
    PollConflict,
    TextTooLong,
)
from channels.telegram.fields import list_or_empty, object_or_empty, whole_number
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


# ---------------------------------------------------------------------------- results


def required_fields(method: str, result: object) -> object:
    """Return the result of a method, reduced to what the libraries require and clients use.

    So the libraries find nothing odd in it, and a message that was sent never looks unsent. Of
    methods that are not in ``_FIELDS`` only the success counts: True. Raises ``MaybeSent`` or
    ``NotSent`` for a result that is not understood.
    """
    reduce = _FIELDS.get(method)
    return True if reduce is None else reduce(result)


def _message(result: object) -> dict[str, object]:
    number = result.get("message_id") if isinstance(result, dict) else None
    if type(number) is not int:
        raise MaybeSent(_ODD.format("message"))
    return {"message_id": number, "date": 0, "chat": {"id": 0, "type": "private"}}


def _album(result: object) -> list[dict[str, object]]:
    if not isinstance(result, list):
        raise MaybeSent(_ODD.format("messages"))
    return [_message(message) for message in result]


def _bot(result: object) -> dict[str, object]:
    bot = object_or_empty(result)
    number, username = whole_number(bot.get("id")), bot.get("username")
    if number is None or bot.get("is_bot") is not True:
        raise NotSent(_ODD.format("bot"))
    return {
        "id": number,
        "is_bot": True,
        "first_name": "",
        "username": username if isinstance(username, str) else "",
        "can_read_all_group_messages": bot.get("can_read_all_group_messages") is not False,
    }


def _members(result: object) -> list[dict[str, object]]:
    """Return members without their rights, of which the libraries would require each."""
    users = [object_or_empty(object_or_empty(one).get("user")) for one in list_or_empty(result)]
    ids = [number for user in users if (number := whole_number(user.get("id"))) is not None]
    if not ids:  # each group has a creator
        raise NotSent(_ODD.format("member"))
    return [
        {"status": "member", "user": {"id": number, "is_bot": False, "first_name": ""}}
        for number in ids
    ]


def _file(result: object) -> dict[str, object]:
    file = object_or_empty(result)
    path, size = file.get("file_path"), whole_number(file.get("file_size"))
    if not isinstance(path, str) or not path:
        raise NotSent(_ODD.format("file"))
    known = {} if size is None else {"file_size": size}
    return {"file_id": "", "file_unique_id": "", "file_path": path, **known}


def _webhook(result: object) -> dict[str, object]:
    webhook = object_or_empty(result)
    url, trouble = webhook.get("url"), webhook.get("last_error_message")
    if not isinstance(url, str):
        raise NotSent(_ODD.format("webhook"))
    return {
        "url": url,
        "has_custom_certificate": False,
        "pending_update_count": whole_number(webhook.get("pending_update_count")) or 0,
        "last_error_message": trouble if isinstance(trouble, str) else "",
    }


def updates(result: object) -> list[object]:
    """Return the updates of ``getUpdates``, not parsed. Raises ``NotSent``."""
    if not isinstance(result, list):
        raise NotSent("the Bot API answered with something that is no list of updates")
    return result


_ODD = "an answer of the Bot API is not understood: it names no {}"
_FIELDS: Mapping[str, Callable[[object], object]] = {
    "sendMessage": _message,
    "sendPhoto": _message,
    "sendVoice": _message,
    "sendDocument": _message,
    "sendMediaGroup": _album,
    "getMe": _bot,
    "getChatAdministrators": _members,
    "getFile": _file,
    "getWebhookInfo": _webhook,
}


# ---------------------------------------------------------------------------- refusals


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
