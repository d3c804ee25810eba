"""The section ``[channels.telegram]``."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

from goclaw_py.chat.outbound.rate_limit import RateLimit
from goclaw_py.core.errors import SettingError
from goclaw_py.core.net.proxies import Proxy, proxy_for, read_proxy

_TOKEN = re.compile(r"(\d{1,20}):[A-Za-z0-9_-]{10,}")
_HIDDEN = "(hidden)"
_KEYS = (
    "token",
    "token_file",
    "base_url",
    "proxy",
    "poll_timeout_s",
    "send_timeout_s",
    "connect_timeout_s",
    "library",
    "webhook_url",
    "webhook_connections",
    "streaming",
    "reactions",
    "chat_gap_s",
    "group_per_minute",
    "account_per_second",
    "download_mb",
)


class Library(StrEnum):
    """The library for calls (SPEC CHAN-2)."""

    PTB = "python-telegram-bot"
    AIOGRAM = "aiogram"


class Streaming(StrEnum):
    """How replies are streamed in a direct chat (SPEC CHAN-4, IO-5)."""

    EDIT = "edit"
    """A message is edited; repeating an edit after a crash is invisible."""
    NATIVE = "native"
    """Telegram's native drafts, with its stop button; the reply is a new message."""
    OFF = "off"


@dataclass(frozen=True, slots=True)
class TelegramSettings:
    """The settings of a bot and its chats. Times are in seconds."""

    token: str = field(repr=False)
    base_url: str = "https://api.telegram.org"
    poll_timeout_s: int = 30
    """How long a request for updates waits at the server, 1 to 50."""
    send_timeout_s: float = 20.0
    """The time limit for other responses."""
    connect_timeout_s: float = 5.0
    """The time limit for connecting."""
    library: Library = Library.PTB
    webhook_url: str = ""
    """The public URL for updates; "" polls instead."""
    webhook_connections: int = 40
    """The number of concurrent updates from the server, 1 to 100."""
    streaming: Streaming = Streaming.EDIT
    reactions: bool = True
    """Whether waiting and failed messages get a mark (SPEC CHAN-4)."""
    chat_gap_s: float = 1.0
    """The gap between two messages of a chat; 0 is no limit (SPEC IO-4)."""
    group_per_minute: int = 20
    """Messages per minute in a group; 0 is no limit."""
    account_per_second: int = 30
    """Messages per second in all chats; 0 is no limit."""
    download_mb: int = 20
    """The largest file to download; the server allows at most 20."""
    proxy: Proxy | None = None
    """The proxy for all connections, also one that the environment names."""

    @property
    def webhook_path(self) -> str:
        """Return the path of ``webhook_url``."""
        return urlsplit(self.webhook_url).path

    @property
    def bot_id(self) -> int:
        """Return the number before the colon of the token."""
        return int(self.token.partition(":")[0])

    def pace(self, *, is_group: bool) -> RateLimit:
        """Return the rate limit of a chat."""
        per_minute = (self.group_per_minute or None) if is_group else None
        return RateLimit(self.chat_gap_s, per_minute, self.account_per_second or None)


def read_settings(options: Mapping[str, object]) -> TelegramSettings:
    """Validate the section. Raises ``SettingError``, never with a token."""
    for key, value in options.items():
        if key not in _KEYS:
            raise SettingError(key, _shown(value), f"unknown key; known are {', '.join(_KEYS)}")
    defaults = TelegramSettings(token="")
    token = _token(options)
    base_url = _base_url(options.get("base_url", defaults.base_url))
    return TelegramSettings(
        token=token,
        base_url=base_url,
        poll_timeout_s=int(_number(options, "poll_timeout_s", defaults.poll_timeout_s, whole=True)),
        send_timeout_s=_number(options, "send_timeout_s", defaults.send_timeout_s, most=600),
        connect_timeout_s=_number(
            options, "connect_timeout_s", defaults.connect_timeout_s, most=60
        ),
        library=_library(options.get("library", defaults.library)),
        webhook_url=_webhook_url(options.get("webhook_url", ""), token),
        webhook_connections=_count(options, "webhook_connections", 40, least=1, most=100),
        streaming=_streaming(options.get("streaming", defaults.streaming)),
        reactions=_flag(options, "reactions", default=defaults.reactions),
        chat_gap_s=_number(options, "chat_gap_s", defaults.chat_gap_s, least=0, most=60),
        group_per_minute=_count(options, "group_per_minute", 20),
        account_per_second=_count(options, "account_per_second", 30),
        download_mb=_count(options, "download_mb", 20, least=1, most=2000),
        proxy=_proxy(options.get("proxy", ""), base_url),
    )


def _token(options: Mapping[str, object]) -> str:
    token, file = options.get("token"), options.get("token_file")
    if token is not None and file is not None:
        raise SettingError(
            "token_file", _shown(file), "token and token_file are both set; remove one of them"
        )
    key = "token" if file is None else "token_file"
    value = token if file is None else _read(file)
    if value is None:
        raise SettingError(
            "token",
            "",
            (
                "missing; get one from @BotFather and set it here, or set token_file to a file "
                "that contains it"
            ),
        )
    if not isinstance(value, str) or not _TOKEN.fullmatch(value.strip()):
        raise SettingError(
            key,
            _HIDDEN if file is None else _shown(file),
            "is not a bot token, for example 123456789:AAbbCC…",
        )
    return value.strip()


def _read(file: object) -> str:
    if not isinstance(file, str) or not file:
        raise SettingError("token_file", _shown(file), "must be the path of a file")
    try:
        return Path(file).expanduser().read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a text file"
        # The cause repeats the value, which may be a token under the wrong key.
        raise SettingError("token_file", _shown(file), f"cannot be read: {reason}") from None


def _library(value: object) -> Library:
    if value not in list(Library):
        raise SettingError("library", _shown(value), f"must be one of {', '.join(Library)}")
    return Library(str(value))


def _proxy(value: object, base_url: str) -> Proxy | None:
    """Return the proxy of this account, or the one that the environment names for the server."""
    if not isinstance(value, str):
        raise SettingError("proxy", _HIDDEN, "must be an address")
    try:
        return read_proxy(value) if value.strip() else proxy_for(base_url, os.environ)
    except ValueError as error:
        raise SettingError("proxy", _HIDDEN if value.strip() else "", str(error)) from None


def _base_url(value: object) -> str:
    return _url("base_url", value, "must be a URL such as https://api.telegram.org")


def _url(key: str, value: object, allowed: str) -> str:
    if not isinstance(value, str):
        raise SettingError(key, _shown(value), allowed)
    try:
        parts = urlsplit(value)
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not value.isascii() or any(char in value for char in "{}?# "):
        raise SettingError(key, _shown(value), allowed)
    return value.rstrip("/")


def _number(
    options: Mapping[str, object],
    key: str,
    default: float,
    *,
    least: int = 1,
    most: int = 50,
    whole: bool = False,
) -> float:
    value = options.get(key, default)
    kind = int if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kind) or not least <= value <= most:
        word = "a whole number" if whole else "a number"
        raise SettingError(key, _shown(value), f"must be {word} of seconds from {least} to {most}")
    return value


def _count(
    options: Mapping[str, object], key: str, default: int, *, least: int = 0, most: int = 10_000
) -> int:
    value = options.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise SettingError(key, _shown(value), f"must be a whole number from {least} to {most}")
    return value


def _flag(options: Mapping[str, object], key: str, *, default: bool) -> bool:
    value = options.get(key, default)
    if not isinstance(value, bool):
        raise SettingError(key, _shown(value), "must be true or false")
    return value


def _streaming(value: object) -> Streaming:
    if value not in list(Streaming):
        raise SettingError("streaming", _shown(value), f"must be one of {', '.join(Streaming)}")
    return Streaming(str(value))


def _webhook_url(value: object, token: str) -> str:
    if value == "":
        return ""
    if isinstance(value, str) and token.partition(":")[2] in value:
        # Proxies log addresses, so a header proves the identity of the server.
        raise SettingError("webhook_url", _HIDDEN, "must not contain the token")
    url = _url(
        "webhook_url", value, "must be a URL such as https://bot.example.org/telegram, or empty"
    )
    if not urlsplit(url).path:
        raise SettingError("webhook_url", _shown(value), "needs a path, such as /telegram")
    return url


def _shown(value: object) -> object:
    """Return a value for an error: a token may be under the wrong key."""
    return _HIDDEN if isinstance(value, str) and _TOKEN.search(value) else value
