"""The settings of a gateway as operators see them: each with its origin, and no secret."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

Word = bool | int | float | str
SettingValue = Word | tuple[Word, ...] | None

MASK: Final = "••••"
"""What stands for every secret, whatever its length."""


class OriginKind(StrEnum):
    """What has set a value."""

    DEFAULT = "default"
    """Nobody, or the profile of the scheduler."""
    FILE = "file"
    ENVIRONMENT = "environment"
    SECRET_FILE = "secret_file"  # noqa: S105
    """A file that holds nothing but a secret."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting (SPEC OPS-1, SEC-2).

    Args:
        path: Its key in the settings file, such as ``agents.main.model``.
        value: As the file would have it, durations as text; None if it is not set; ``MASK`` for a
            secret.
        kind: What has set it.
        origin: The same in words: ``default``, file and line, the name of the variable.
        secret: Whether its value is never shown.
        about: What it is for, "" where that is free.
    """

    path: str
    value: SettingValue
    kind: OriginKind
    origin: str
    secret: bool = False
    about: str = ""
