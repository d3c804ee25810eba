"""Cookies of signed-in browsers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from starlette.types import Scope

COOKIE: Final = "goclaw_session"
"""The cookie of a browser that showed the token: random, and stored hashed in the database."""

GUEST_COOKIE: Final = "goclaw_guest"
"""The cookie of an invited person: random, and stored hashed in the database (SPEC CHAN-13)."""

JOIN: Final = "/join/"
"""The beginning of the paths of personal links."""


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
