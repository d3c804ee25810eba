"""Pairing codes, and what owners can decide about who asks to be let in (SPEC CHAN-5)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from enum import StrEnum
from hashlib import sha256

ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Without the characters that people take for each other: I and 1, O and 0."""

CODE_LENGTH = 8
VALID_FOR = timedelta(minutes=60)
GROUP_VALID_FOR = timedelta(days=30)
"""How long owners can decide about a group by the buttons that they were sent."""


class AccessVerdict(StrEnum):
    """A decision about a person or a group; the value is a part of a button's data."""

    APPROVE = "ok"
    """A person becomes owner, a group is allowed."""
    GUEST = "guest"
    DENY = "no"


def about_request(request_id: str) -> str:
    """What the messages that ask owners about a request bear as their ``alert``."""
    return f"access:{request_id}"


def make_code(choose: Callable[[str], str]) -> str:
    """A fresh code; ``choose`` picks one character of a text at random."""
    return "".join(choose(ALPHABET) for _ in range(CODE_LENGTH))


def code_hash(code: str) -> str:
    """The form in which a code is stored. Case and blanks do not matter."""
    return sha256("".join(code.split()).upper().encode()).hexdigest()
