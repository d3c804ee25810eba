"""Pairing codes, and decisions about access requests (SPEC CHAN-5)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from enum import StrEnum
from hashlib import sha256

ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Without characters that look alike: I and 1, O and 0."""

CODE_LENGTH = 8
VALID_FOR = timedelta(minutes=60)
GROUP_VALID_FOR = timedelta(days=30)
"""How long the buttons that ask owners about a group work."""


class AccessVerdict(StrEnum):
    """A decision about a person or a group; the value is part of a button's data."""

    APPROVE = "ok"
    """A person becomes an owner; a group is allowed."""
    GUEST = "guest"
    DENY = "no"


def about_request(request_id: str) -> str:
    """Return the ``alert`` of the messages that ask owners about a request."""
    return f"access:{request_id}"


def make_code(choose: Callable[[str], str]) -> str:
    """Return a new code; ``choose`` picks a random character of a text."""
    return "".join(choose(ALPHABET) for _ in range(CODE_LENGTH))


def code_hash(code: str) -> str:
    """Return the stored form of a code. Case and blanks do not matter."""
    return sha256("".join(code.split()).upper().encode()).hexdigest()
