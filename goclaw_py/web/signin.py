"""How a browser stays signed in: a cookie that only who knows the token can have made (SEC-1).

The cookie holds the time at which it ends and a keyed hash of it. Nothing is stored here, and a new
token signs everybody out.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

COOKIE: Final = "goclaw_session"

LASTS_S: Final = 30 * 86_400
"""How long a browser stays signed in, in seconds."""

_PURPOSE: Final = b"goclaw dashboard session "
_MAX_DIGITS: Final = 12


def make_cookie(token: bytes, now_s: float) -> str:
    """The value for a browser that has shown the token; ``now_s``: seconds of Unix time."""
    end = str(int(now_s) + LASTS_S)
    return f"{end}.{_mac(token, end)}"


def is_signed_in(value: str, token: bytes, now_s: float) -> bool:
    """Whether a cookie was made with this token and has not ended."""
    end, _, mac = value.partition(".")
    if not (end.isascii() and end.isdigit() and len(end) <= _MAX_DIGITS):
        return False
    # Compared before the time is looked at, and in constant time.
    is_ours = hmac.compare_digest(mac.encode("utf-8", "replace"), _mac(token, end).encode())
    return is_ours and now_s < int(end)


def cookie_of(headers: list[tuple[bytes, bytes]]) -> str:
    """The value of our cookie among the headers of a request, "" if there is none."""
    for name, value in headers:
        if name.lower() != b"cookie":
            continue
        for pair in value.decode("latin-1").split(";"):
            key, _, text = pair.strip().partition("=")
            if key == COOKIE:
                return text
    return ""


def _mac(token: bytes, end: str) -> str:
    return hmac.new(token, _PURPOSE + end.encode(), hashlib.sha256).hexdigest()
