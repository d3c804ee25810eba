"""The section ``[channels.telegram]``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from goclaw_py.core.errors import SettingError

_TOKEN = re.compile(r"(\d{1,20}):[A-Za-z0-9_-]{10,}")
_HIDDEN = "(hidden)"
_KEYS = (
    "token",
    "token_file",
    "base_url",
    "poll_timeout_s",
    "send_timeout_s",
    "connect_timeout_s",
)


@dataclass(frozen=True, slots=True)
class Settings:
    """How to reach one bot. Times are in seconds."""

    token: str = field(repr=False)
    base_url: str = "https://api.telegram.org"
    poll_timeout_s: int = 30
    """How long one request for updates waits at the server, 1 to 50."""
    send_timeout_s: float = 20.0
    """How long the answer to any other request may take."""
    connect_timeout_s: float = 5.0
    """How long a connection may take to come about."""

    @property
    def bot_id(self) -> int:
        """The number before the colon of the token."""
        return int(self.token.partition(":")[0])


def read_settings(options: Mapping[str, object]) -> Settings:
    """Check the section. Raises ``SettingError``; no error ever shows a token."""
    for key, value in options.items():
        if key not in _KEYS:
            raise SettingError(key, _shown(value), f"unknown key; known are {', '.join(_KEYS)}")
    defaults = Settings(token="")
    return Settings(
        token=_token(options),
        base_url=_base_url(options.get("base_url", defaults.base_url)),
        poll_timeout_s=int(_number(options, "poll_timeout_s", defaults.poll_timeout_s, whole=True)),
        send_timeout_s=_number(options, "send_timeout_s", defaults.send_timeout_s, most=600),
        connect_timeout_s=_number(
            options, "connect_timeout_s", defaults.connect_timeout_s, most=60
        ),
    )


def _token(options: Mapping[str, object]) -> str:
    token, file = options.get("token"), options.get("token_file")
    if token is not None and file is not None:
        raise SettingError("token_file", _shown(file), "give either token or token_file, not both")
    key = "token" if file is None else "token_file"
    value = token if file is None else _read(file)
    if value is None:
        raise SettingError(
            "token", "", "missing; BotFather gives it; put it here or its file into token_file"
        )
    if not isinstance(value, str) or not _TOKEN.fullmatch(value.strip()):
        raise SettingError(
            key,
            _HIDDEN if file is None else _shown(file),
            "is no bot token; one looks like 123456789:AAbbCC…",
        )
    return value.strip()


def _read(file: object) -> str:
    if not isinstance(file, str) or not file:
        raise SettingError("token_file", _shown(file), "must be the path of a file")
    try:
        return Path(file).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        # The cause repeats the value, which may be a token under the wrong key.
        raise SettingError("token_file", _shown(file), f"cannot be read: {reason}") from None


def _base_url(value: object) -> str:
    allowed = "must be a URL such as https://api.telegram.org"
    if not isinstance(value, str):
        raise SettingError("base_url", _shown(value), allowed)
    try:
        parts = urlsplit(value)
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not value.isascii() or any(char in value for char in "{}?# "):
        raise SettingError("base_url", _shown(value), allowed)
    return value.rstrip("/")


def _number(
    options: Mapping[str, object], key: str, default: float, *, most: int = 50, whole: bool = False
) -> float:
    value = options.get(key, default)
    kind = int if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kind) or not 1 <= value <= most:
        word = "a whole number" if whole else "a number"
        raise SettingError(key, _shown(value), f"must be {word} of seconds from 1 to {most}")
    return value


def _shown(value: object) -> object:
    """A token may stand under the wrong key."""
    return _HIDDEN if isinstance(value, str) and _TOKEN.search(value) else value
