"""Browser sign-in: a cookie that only a holder of the token can have created (SEC-1).

The cookie contains its expiry and a keyed hash of it. Nothing is stored here, and a new token signs
everybody out.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from typing import Final

from starlette.types import Scope

COOKIE: Final = "goclaw_session"

GUEST_COOKIE: Final = "goclaw_guest"
"""The cookie of an invited person: random, and stored hashed in the database (SPEC CHAN-13)."""

JOIN: Final = "/join/"
"""The beginning of the paths of personal links."""

LASTS_S: Final = 30 * 86_400
"""How long a sign-in lasts, in seconds."""

_PURPOSE: Final = b"goclaw dashboard session "
_MAX_DIGITS: Final = 12


def make_cookie(token: bytes, now_s: float) -> str:
    """Return the cookie for a browser with the token; ``now_s``: seconds of Unix time."""
    end = str(int(now_s) + LASTS_S)
    return f"{end}.{_mac(token, end)}"


def is_signed_in(value: str, token: bytes, now_s: float) -> bool:
    """Return whether a cookie was created with this token and has not expired."""
    end, _, mac = value.partition(".")
    if not (end.isascii() and end.isdigit() and len(end) <= _MAX_DIGITS):
        return False
    # Compared before the time is looked at, and in constant time.
    is_ours = hmac.compare_digest(mac.encode("utf-8", "replace"), _mac(token, end).encode())
    return is_ours and now_s < int(end)


def is_for_guests(scope: Scope) -> bool:
    """Return whether a request opens a personal link, or comes from an invited person's browser.

    Also if the cookie is not valid any more.
    """
    path: str = scope["path"]
    return path.startswith(JOIN) or has_cookie(scope["headers"], GUEST_COOKIE)


def has_cookie(headers: list[tuple[bytes, bytes]], wanted: str) -> bool:
    """Return whether a request has a cookie of this name, whatever its value."""
    return any(key == wanted for key, _ in _cookies(headers))


def cookie_of(headers: list[tuple[bytes, bytes]], wanted: str = COOKIE) -> str:
    """Return the value of a cookie in the headers of a request, "" if there is none."""
    return next((text for key, text in _cookies(headers) if key == wanted), "")


def _cookies(headers: list[tuple[bytes, bytes]]) -> Iterator[tuple[str, str]]:
    for name, value in headers:
        if name.lower() != b"cookie":
            continue
        for pair in value.decode("latin-1").split(";"):
            key, _, text = pair.strip().partition("=")
            yield key, text


def _mac(token: bytes, end: str) -> str:
    return hmac.new(token, _PURPOSE + end.encode(), hashlib.sha256).hexdigest()
