"""List all settings with values and origins, secrets masked (SPEC OPS-1, SEC-2)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from enum import Enum
from typing import Any, Final

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from goclaw_py.config.in_force import PathSetting, with_values_in_force
from goclaw_py.config.masking import LOOKS_SECRET, is_plain_address, is_secret, masked_program
from goclaw_py.config.models import AccountSettings, Settings
from goclaw_py.config.origins import KeyPath, Origin
from goclaw_py.config.types import Duration, Durations, about, duration_text
from goclaw_py.core.ids import CRON_LANE
from goclaw_py.operations.settings.models import MASK, OriginKind, Setting, SettingValue, Word

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_NAMED: Final = "*"
"""Stands for a key that users chose; such a name does not make its value a secret."""

_PROGRAMS: Final = ("command", "run", "first", "later")
"""Keys of lists that are programs with arguments."""

_BY_PROFILE: Final = {("lanes", CRON_LANE, "size"), ("shutdown", "wait")}
"""Settings whose defaults come from the scheduler profile."""

_HIDDEN: Final = ("home", "file", "options")


def shown(settings: Settings) -> tuple[Setting, ...]:
    """Return all settings, in the order of their definition.

    Those that are not set have what holds in their place. Channel-specific keys are included if
    they are set. A secret that is kept in a file or variable
    has that as its origin; the file is not read.
    """
    found = _View(settings).table((), (), settings)
    return tuple(with_values_in_force(settings, found))


class _View:
    """Walks the settings. Each path has a second form with user-chosen names replaced by ``*``."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def table(self, path: KeyPath, kinds: KeyPath, section: BaseModel) -> Iterator[PathSetting]:
        """Return all settings of a table."""
        fields = type(section).model_fields
        for name, field in fields.items():
            if name in _HIDDEN:
                continue
            key, value = field.alias or name, getattr(section, name)
            here = ((*path, key), (*kinds, key))
            if isinstance(value, BaseModel):
                yield from self.table(*here, value)
            elif isinstance(value, Mapping):
                yield from self._named(*here, value)
            elif value is None and (origin := _secret_source(section, key)) is not None:
                yield here[0], _secret(here[0], origin, about(field))
            else:
                one = self._one(*here, _written(value, field), about(field))
                # A built-in default is not a secret, whatever the key is called.
                is_ours = one.secret and isinstance(value, str) and value == field.default
                yield here[0], replace(one, value=value) if is_ours else one
        if isinstance(section, AccountSettings):
            yield from self._options(path, kinds, section.options)

    def _named(
        self, path: KeyPath, kinds: KeyPath, values: Mapping[str, Any]
    ) -> Iterator[PathSetting]:
        """Return the settings of a table whose keys are names."""
        for name, value in values.items():
            here = ((*path, name), (*kinds, _NAMED))
            if isinstance(value, BaseModel):
                yield from self.table(*here, value)
            else:
                yield here[0], self._one(*here, _written(value), "")

    def _options(
        self, path: KeyPath, kinds: KeyPath, values: Mapping[str, Any]
    ) -> Iterator[PathSetting]:
        """Return channel-specific options, which can have any keys and values."""
        for key, value in values.items():
            here = ((*path, key), (*kinds, key))
            if isinstance(value, Mapping):
                yield from self._options(*here, value)
                continue
            is_path = key.endswith(("_file", "_folder"))
            hide = not is_path and LOOKS_SECRET.search(str(value)) is not None
            yield here[0], self._one(*here, SecretStr("") if hide else _written(value), "")
            short = key.removesuffix("_file")
            if short != key and short not in values and is_secret((*kinds, short)):
                yield (*path, short), _secret((*path, short), _in_file(value))

    def _one(
        self, path: KeyPath, kinds: KeyPath, value: SettingValue | SecretStr, about: str
    ) -> Setting:
        origin = self._origin(path)
        is_known = kinds[-1] == "base_url" and is_plain_address(value)
        secret = isinstance(value, SecretStr) or (is_secret(kinds) and not is_known)
        if isinstance(value, SecretStr) or (secret and value is not None):
            return _secret(path, origin, about)
        if isinstance(value, tuple) and kinds[-1] in _PROGRAMS:
            value = tuple(masked_program(value))
        return Setting(dotted(path), value, origin.kind, origin.words, secret, about)

    def _origin(self, path: KeyPath) -> Origin:
        origin = self._settings.place(path)
        if origin.kind is OriginKind.DEFAULT and path in _BY_PROFILE:
            chosen = self._settings.place(("scheduler", "profile"))
            if chosen.kind is not OriginKind.DEFAULT:
                words = f"default of profile {self._settings.scheduler.profile}"
                return Origin(OriginKind.DEFAULT, words)
        return origin


def _secret_source(section: BaseModel, key: str) -> Origin | None:
    """Return the variable or file of a secret that is not set directly."""
    variable, file = (getattr(section, f"{key}{ending}", None) for ending in ("_env", "_file"))
    if variable is not None:
        return Origin(OriginKind.ENVIRONMENT, f"environment variable {variable}")
    return None if file is None else _in_file(file)


def _in_file(file: object) -> Origin:
    return Origin(OriginKind.SECRET_FILE, f"file {file}")


def _secret(path: KeyPath, origin: Origin, about: str = "") -> Setting:
    return Setting(dotted(path), MASK, origin.kind, origin.words, secret=True, about=about)


def dotted(path: KeyPath) -> str:
    """Write a path as in the settings file, with quotes where a key needs them."""
    return ".".join(
        key if _BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False) for key in path
    )


def _written(value: object, field: FieldInfo | None = None) -> SettingValue | SecretStr:
    """Convert a value to its form in the file; a secret stays a secret."""
    kinds = () if field is None else field.metadata
    if isinstance(value, float) and any(isinstance(kind, Duration) for kind in kinds):
        return duration_text(value)
    match value:
        case None | SecretStr() | bool() | int() | float():
            return value
        case Enum():
            return str(value.value)
        case Decimal():
            return float(value)
        case list() | tuple():
            timed = any(isinstance(kind, Durations) for kind in kinds)
            return tuple(duration_text(item) if timed else _word(item) for item in value)
        case _:
            return str(value)


def _word(value: object) -> Word:
    """Convert an item of a list. Nested tables and lists are masked: they may contain secrets."""
    if isinstance(value, bool | int | float):
        return value
    return MASK if isinstance(value, Mapping | list) else str(value)
