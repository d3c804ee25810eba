"""The types of settings, with their validation.

A value from the file already has its type, so ``"2"`` is not a number there. A value from the
environment is always text; it is passed as ``EnvText`` and parsed here according to its type.
Every check fails with a sentence that says what is allowed.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

from pydantic import BaseModel, ConfigDict, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_AMOUNT = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}(\.[0-9]{0,18})?")
_DURATION = re.compile(r"([0-9]{1,9})([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off"})

ALLOWED = "allowed"
"""The error type of every check in this module; its message is what is allowed."""


class Section(BaseModel):
    """A table of the file: no unknown keys, never changed.

    The docstring of a field describes the setting for ``goclaw config show --all``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


def about(field: FieldInfo) -> str:
    """Return the description of a setting in one line."""
    return " ".join((field.description or "").split())


def duration_text(seconds: float) -> str:
    """Write a duration as in a settings file, in its largest whole unit."""
    whole = round(seconds)
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "m")):
        if whole and whole % size == 0:
            return f"{whole // size}{unit}"
    return f"{whole}s"


class EnvText(str):
    """The text of an environment variable."""

    __slots__ = ()


def allowed(text: str) -> PydanticCustomError:
    """Create a validation error; ``text`` says what is allowed."""
    return PydanticCustomError(ALLOWED, "{allowed}", {"allowed": text})


def parse_duration(text: str) -> float | None:
    """Read ``<integer><s|m|h|d>`` as seconds; None if it is anything else."""
    match = _DURATION.fullmatch(text)
    return float(int(match[1]) * _SECONDS[match[2]]) if match else None


class _Kind(ABC):
    """A kind of value; ``check`` returns the value or raises ``allowed(...)``."""

    @abstractmethod
    def check(self, value: object) -> object: ...

    def __get_pydantic_core_schema__(
        self, _source: object, _handler: Callable[[object], CoreSchema]
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.check)


@dataclass(frozen=True, slots=True)
class Whole(_Kind):
    """A whole number from ``low`` to ``high``."""

    low: int
    high: int | None = None

    def check(self, value: object) -> int:
        """Return the number."""
        if isinstance(value, EnvText) and _INTEGER.fullmatch(value.strip()):
            value = int(value)
        # True is an int in Python, but a mistake in a settings file.
        if not isinstance(value, int) or isinstance(value, bool) or not self._fits(value):
            upper = "" if self.high is None else f" and at most {self.high}"
            raise allowed(f"must be a whole number, at least {self.low}{upper}")
        return value

    def _fits(self, value: int) -> bool:
        return self.low <= value and (self.high is None or value <= self.high)


@dataclass(frozen=True, slots=True)
class Number(_Kind):
    """A number from ``low`` to ``high``, with or without decimals."""

    low: float
    high: float

    def check(self, value: object) -> float:
        """Return the number."""
        if isinstance(value, EnvText) and _NUMBER.fullmatch(value.strip()):
            value = float(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            value = math.nan
        # NaN, which TOML allows, fails every comparison.
        if self.low <= value <= self.high:
            return float(value)
        raise allowed(f"must be a number from {self.low:g} to {self.high:g}")


class Flag(_Kind):
    """True or false."""

    def check(self, value: object) -> bool:
        """Return the truth value. Raises for any other word."""
        if isinstance(value, EnvText):
            word = value.strip().lower()
            if word in _TRUE or word in _FALSE:
                return word in _TRUE
        elif isinstance(value, bool):
            return value
        raise allowed("must be true or false")


@dataclass(frozen=True, slots=True)
class Duration(_Kind):
    """A duration as text such as ``"30m"``; in seconds once read.

    ``or_off``: 0 in any unit is allowed too, and means off.
    """

    low_s: float = 0.0
    high_s: float | None = None
    or_off: bool = False

    def check(self, value: object) -> float:
        """Return seconds."""
        if self.or_off and (value == "0" or (value == 0 and type(value) is int)):
            return 0.0
        seconds = parse_duration(value) if isinstance(value, str) else None
        if seconds is None or not self._fits(seconds):
            least = f", at least {self.low_s:g}s" if self.low_s else ""
            most = f", at most {self.high_s / 86400:g}d" if self.high_s is not None else ""
            off = ', or "0" for off' if self.or_off else ""
            form = 'must be a whole number with s, m, h or d, such as "90s" or "30m"'
            raise allowed(f"{form}{least}{most}{off}")
        return seconds

    def _fits(self, seconds: float) -> bool:
        if self.or_off and seconds == 0:
            return True
        return self.low_s <= seconds and (self.high_s is None or seconds <= self.high_s)


@dataclass(frozen=True, slots=True)
class Durations(_Kind):
    """At most ``most`` durations; separated by commas in the environment."""

    most: int
    each: Duration

    def check(self, value: object) -> tuple[float, ...]:
        """Return seconds."""
        items = _items(value)
        if items is None or len(items) > self.most:
            raise allowed(f'must be a list of at most {self.most} durations such as ["30s", "5m"]')
        return tuple(map(self.each.check, items))


class Money(_Kind):
    """A positive amount of money, written as a number; zero only if ``zero`` is set."""

    def __init__(self, *, zero: bool = False) -> None:
        self._zero = zero

    def check(self, value: object) -> Decimal:
        """Return the amount."""
        if isinstance(value, str):
            if not isinstance(value, EnvText) or not _AMOUNT.fullmatch(value.strip()):
                raise allowed("must be a number such as 0.5")
            value = Decimal(value.strip())
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise allowed("must be a number such as 0.5")
        amount = Decimal(str(value))
        if not amount.is_finite() or amount < 0 or (not amount and not self._zero):
            raise allowed("must not be negative" if self._zero else "must be above 0")
        return amount


class Ids(_Kind):
    """A list of ids, as text or whole numbers; separated by commas in the environment."""

    def check(self, value: object) -> tuple[str, ...]:
        """Return the ids as text."""
        items = _items(value)
        if items is None or not all(map(_is_id, items)):
            raise allowed('must be a list of ids such as [12345, "67890"]')
        return tuple(map(str, items))


def _is_id(value: object) -> bool:
    if isinstance(value, str):
        return value.strip() != ""
    return isinstance(value, int) and not isinstance(value, bool)


class Names(_Kind):
    """A list of names without duplicates; separated by commas in the environment."""

    def check(self, value: object) -> tuple[str, ...]:
        """Return the names."""
        items = _items(value)
        if items is None or "" in items or not all(map(_is_word, items)):
            raise allowed('must be a list of texts such as ["one", "two"]')
        return tuple(dict.fromkeys(map(str, items)))


class Words(_Kind):
    """A list of texts without NUL, which cannot be passed to programs."""

    def check(self, value: object) -> tuple[str, ...]:
        """Return the texts."""
        if not isinstance(value, list | tuple) or not all(map(_is_word, value)):
            raise allowed('must be a list of texts such as ["program", "--option"]')
        return tuple(value)


def _is_word(value: object) -> bool:
    return isinstance(value, str) and "\0" not in value


def _items(value: object) -> Sequence[object] | None:
    """Return the items of a list, which the environment separates by commas."""
    if isinstance(value, EnvText):
        return [item.strip() for item in value.split(",") if item.strip()]
    return value if isinstance(value, list | tuple) else None


@dataclass(frozen=True, slots=True)
class Matching(_Kind):
    """Text that matches a whole pattern; ``meaning`` describes the pattern."""

    pattern: str
    meaning: str

    def check(self, value: object) -> str:
        """Return the text."""
        if not isinstance(value, str) or not re.fullmatch(self.pattern, value):
            raise allowed(f"must be {self.meaning}")
        return str(value)


class HiddenText(Matching):
    """A secret that matches a whole pattern; ``meaning`` describes the pattern."""

    def check(self, value: object) -> SecretStr:  # type: ignore[override]
        """Return the secret."""
        return SecretStr(super().check(value))


NameKey = Annotated[
    str, Matching(r"[a-z0-9][a-z0-9_-]{0,63}", "a name of up to 64 characters of a-z 0-9 _ -")
]
Text = Annotated[str, Matching(r"(?s).*\S.*", "text that is not empty")]
WebAddress = Annotated[
    str, Matching(r"https?://\S+", "an address that starts with http:// or https://")
]
