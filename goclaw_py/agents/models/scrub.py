"""Removes secrets from texts of providers (SPEC SEC-2, AGENT-8)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from goclaw_py.core.redaction import HIDDEN, LIKE_A_KEY

MAX_CHARS = 300
_LOOKED_AT = 20_000
"""The number of characters that are searched for secrets: the rest is cut off."""
_MIN_SECRET = 4
_MIN_FOR_FRAGMENTS = 16
_FRAGMENT = 8


def scrub(text: str, secrets: Iterable[str] = ()) -> str:
    """Hide secrets, their beginnings and ends, and what looks like a key; then truncate.

    Returns at most ``MAX_CHARS`` characters. Truncation comes last, because half a secret would not
    be found.
    """
    known = sorted(secrets, key=len, reverse=True)
    for secret in known:
        if len(secret) >= _MIN_SECRET:
            text = text.replace(secret, HIDDEN)
    text = hide(text[:_LOOKED_AT], known)
    return text if len(text) <= MAX_CHARS else f"{text[: MAX_CHARS - 1]}…"


def hide(text: str, secrets: Iterable[str] = ()) -> str:
    """Hide secrets in the whole text."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) < _MIN_SECRET:
            continue
        text = text.replace(secret, HIDDEN)
        if len(secret) >= _MIN_FOR_FRAGMENTS:
            head, tail = re.escape(secret[:_FRAGMENT]), re.escape(secret[-_FRAGMENT:])
            text = re.sub(rf"{head}[\w.*…-]*|(?<![\w.*…-])[\w.*…-]*{tail}", HIDDEN, text)
    return LIKE_A_KEY.sub(HIDDEN, text)
