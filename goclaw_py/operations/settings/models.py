"""The settings of a gateway as operators see and edit them: with their origins, no secrets."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from goclaw_py.core.redaction import HIDDEN
from goclaw_py.scheduler.operator_warnings import OperatorWarning

Word = bool | int | float | str
SettingValue = Word | tuple[Word, ...] | None

MASK: Final = HIDDEN
"""The value of every secret."""


class OriginKind(StrEnum):
    """The source of a setting's value."""

    DEFAULT = "default"
    """The default, which may come from the scheduler profile."""
    FILE = "file"
    ENVIRONMENT = "environment"
    EDIT = "edit"
    """An edit at run time (SPEC OPS-11)."""
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
        in_force: What holds if it is not set: an inherited value, the default, or in words what
            happens; "" if it is set.
    """

    path: str
    value: SettingValue
    kind: OriginKind
    origin: str
    secret: bool = False
    about: str = ""
    in_force: str = ""


def value_text(setting: Setting) -> str:
    """Return the value in force of a setting; "" if it is empty."""
    match setting.value:
        case None:
            return setting.in_force
        case bool():
            return str(setting.value).lower()
        case tuple():
            return ", ".join(map(str, setting.value))
        case _:
            return str(setting.value)


@dataclass(frozen=True, slots=True)
class EditableSetting:
    """How a setting can be edited at run time (SPEC OPS-11).

    Args:
        value: The value in effect, written as in an environment variable; "" if it is not set.
        file_value: The value without the edit, in the same form.
        version: The number of its newest edit, 0 if it was never edited.
        edited: Whether an edit is in effect.
        choices: The allowed words; empty if other values are allowed, too.
    """

    path: str
    value: str
    file_value: str
    version: int
    edited: bool
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SettingsView:
    """All settings in effect.

    Args:
        editable: Those that can be edited.
        ignored: Warnings about stored edits that have no effect.
        unavailable: Why nothing can be edited now; "" if that is possible.
    """

    settings: tuple[Setting, ...]
    editable: tuple[EditableSetting, ...] = ()
    ignored: tuple[OperatorWarning, ...] = ()
    unavailable: str = ""


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A wish to edit a setting.

    Args:
        value: Written as in an environment variable; None: that of the settings file again.
        version: The number of the newest edit that its author has seen; None: not compared.
    """

    path: str
    value: str | None
    version: int | None = None
