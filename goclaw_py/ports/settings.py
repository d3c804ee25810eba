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
    """The source of a setting's value."""

    DEFAULT = "default"
    """The default, which may come from the scheduler profile."""
    FILE = "file"
    ENVIRONMENT = "environment"
    SECRET_FILE = "secret_file"  # noqa: S105
    """A file that contains only a secret."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting (SPEC OPS-1, SEC-2).

    Args:
        path: Its key in the settings file, such as ``agents.main.model``.
        value: Its value as in a settings file, durations as text; None if it is not set; ``MASK``
            for a secret.
        kind: The source of the value.
        origin: The source in words: ``default``, file and line, or name of the variable.
        secret: Whether the value is never shown.
        about: Its description, "" for keys that people choose.
    """

    path: str
    value: SettingValue
    kind: OriginKind
    origin: str
    secret: bool = False
    about: str = ""
