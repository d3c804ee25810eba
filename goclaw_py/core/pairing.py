"""Pairing codes (SPEC CHAN-5)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from hashlib import sha256

ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Without the characters that people take for each other: I and 1, O and 0."""

CODE_LENGTH = 8
VALID_FOR = timedelta(minutes=60)


def make_code(choose: Callable[[str], str]) -> str:
    """A fresh code; ``choose`` picks one character of a text at random."""
    return "".join(choose(ALPHABET) for _ in range(CODE_LENGTH))


def code_hash(code: str) -> str:
    """The form in which a code is stored. Case and blanks do not matter."""
    return sha256("".join(code.split()).upper().encode()).hexdigest()
