"""The grammar of cron expressions: Debian cron's, with seconds and ``L`` and ``#`` for days.

Source: SPEC CRON-1 and the rules R1, R2, R6 and R10 of docs/cron-rules.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from goclaw_py.core.errors import BadCron

MAX_CHARS: Final = 256
LAST: Final = -1
"""The number of a weekday in its month: the last one."""

ALIASES: Final[Mapping[str, str]] = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

MONTHS: Final = (
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
)  # fmt: skip
WEEKDAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


@dataclass(frozen=True, slots=True)
class Values:
    """The values that a field allows.

    Args:
        star: Whether its text starts with ``*``, which matters for R3 and R5.
        last: Whether it has ``L``: the last day of the month.
        nth: Weekday (0 is Sunday) and number in its month, or ``LAST``.
    """

    numbers: frozenset[int]
    star: bool = False
    last: bool = False
    nth: frozenset[tuple[int, int]] = frozenset()


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of an expression; with five fields, the second is 0."""

    second: Values
    minute: Values
    hour: Values
    day: Values
    month: Values
    weekday: Values


@dataclass(frozen=True, slots=True)
class _Kind:
    """The allowed contents of a field."""

    name: str
    low: int
    high: int
    names: Mapping[str, int] = field(default_factory=dict)


_DAY: Final = _Kind("day of month", 1, 31)
_WEEKDAY: Final = _Kind("day of week", 0, 7, {name: number for number, name in enumerate(WEEKDAYS)})
_KINDS: Final = (
    _Kind("second", 0, 59),
    _Kind("minute", 0, 59),
    _Kind("hour", 0, 23),
    _DAY,
    _Kind("month", 1, 12, {name: number for number, name in enumerate(MONTHS, 1)}),
    _WEEKDAY,
)

_TERM: Final = re.compile(r"(?:(\*)|(\w+)(?:-(\w+))?)(?:/([0-9]+))?", re.ASCII)
_NTH: Final = re.compile(r"(\w+)#([1-5])", re.ASCII)
_LAST_WEEKDAY: Final = re.compile(r"([0-7]|[a-z]{3})l", re.ASCII)
_ZONED: Final = re.compile(r"(?:cron_)?tz=\S*", re.IGNORECASE)
_COMMENT: Final = re.compile(r"\s#.*", re.DOTALL)
_PARTED: Final = re.compile(r"\w+\s+,\s*\w+|\w+,\s+\w+")
_QUOTES: Final = "\"'`\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb"
_WRAPPED: Final = re.compile(r"(?:cron|rate|schedule)\(.*\)", re.IGNORECASE | re.DOTALL)
_ZONE: Final = re.compile(
    r"[A-Za-z_]{3,}(?:/[A-Za-z_+-]{2,}[0-9]*)+|UTC|GMT|Z|[A-Z]{1,3}[DS]T|CES?T"
)
_COMMAND: Final = re.compile(r"[.~]?/\S+|[a-z]{4,}.*|&&|[;|]")
"""Matches the sixth or seventh word of a line of a crontab: the user or the command."""
_YEAR: Final = re.compile(r"(?:19|20)[0-9]{2}(?:-(?:19|20)[0-9]{2})?|[*?]")
_LIKE: Final = {
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212\uff0d", "-"),
    **dict.fromkeys("\u2217\uff0a\u204e\u066d\u00d7", "*"),
}
"""What editors and keyboards write for a sign of an expression."""
_INTERVAL: Final = re.compile(r"(?:@?every )?[0-9]+ ?[smhd]")
_STEPPED: Final = re.compile(r"([0-9]+|[a-z]{3})/([0-9]+)")
_DRAWN: Final = re.compile(r"[rh](?:\(.*|/.*)?")
_GIVE_ZONE: Final = "give the zone with --tz, or as the zone of the job"
_FOR_INTERVALS: Final = "for an interval use a schedule of the kind every"
_NO_DRAWING: Final = "random and hashed values are not known; write a number"
_LAST_DAYS: Final = "as day of month L is the last one; as day of week 5L is the last Friday"
_SHAPE: Final = "minute, hour, day of month, month, day of week"


def read(expression: str, allowed: tuple[int, ...] = (5, 6)) -> Fields:
    """Parse an expression with one of the ``allowed`` numbers of fields.

    Raises ``BadCron``. The expression may never fire.
    """
    return _Reader(expression).fields(allowed)


class _Reader:
    """Parses one expression; its errors contain the whole expression."""

    def __init__(self, expression: str) -> None:
        self._expression = expression

    def fields(self, allowed: tuple[int, ...]) -> Fields:
        texts = self._texts(allowed)
        pairs = zip(_KINDS, texts, strict=True)
        return Fields(*(self._values(kind, text) for kind, text in pairs))

    def _bad(self, reason: str, hint: str = "") -> BadCron:
        return BadCron(self._expression, reason, hint)

    def _texts(self, allowed: tuple[int, ...]) -> list[str]:
        """Return the texts of the six fields, in lower case."""
        if len(self._expression) > MAX_CHARS:
            raise self._bad(f"it has more than {MAX_CHARS} characters")
        given = self._expression.strip(" \t\r\n")
        plain = given.lower()
        if not plain:
            raise self._bad("it is empty", f"write {_SHAPE}, such as 0 9 * * 1-5")
        if stray := _around(given) or _within(given) or _behind(given):
            raise self._bad(*stray)
        if plain.startswith("@"):
            if plain not in ALIASES:
                known = f"there are {', '.join(ALIASES)}"
                wanted = _FOR_INTERVALS if _INTERVAL.fullmatch(plain) else known
                raise self._bad("no such name", wanted)
            plain = ALIASES[plain]
            allowed = (5,)
        texts = plain.split()
        if len(texts) not in allowed:
            raise self._bad(*_miscounted(plain, len(texts), allowed))
        return texts if len(texts) == len(_KINDS) else ["0", *texts]

    def _values(self, kind: _Kind, text: str) -> Values:
        numbers: set[int] = set()
        nth: set[tuple[int, int]] = set()
        last = False
        for term in text.split(","):
            if kind is _DAY and term == "l":
                last = True
            elif kind is _WEEKDAY and (one := self._nth(term)):
                nth.add(one)
            else:
                numbers.update(self._numbers(kind, term))
        if kind is _WEEKDAY:
            numbers = {number % 7 for number in numbers}
        return Values(frozenset(numbers), text.startswith("*"), last, frozenset(nth))

    def _nth(self, term: str) -> tuple[int, int] | None:
        """Parse ``d#n`` or ``dL``; None for other terms."""
        if found := _NTH.fullmatch(term):
            return self._number(_WEEKDAY, found[1]) % 7, int(found[2])
        if found := _LAST_WEEKDAY.fullmatch(term):
            return self._number(_WEEKDAY, found[1]) % 7, LAST
        return None

    def _numbers(self, kind: _Kind, term: str) -> range:
        """Parse ``*``, ``a``, ``a-b``, ``*/n`` or ``a-b/n``."""
        found = _TERM.fullmatch(term)
        if found is None or (found[2] and found[4] and not found[3]):
            raise self._bad(*_misshapen(kind, term))
        star, first, end, step = found.groups()
        if step is not None and not int(step):
            raise self._bad(f"{kind.name}: the step of {term!r} is 0")
        low = kind.low if star else self._number(kind, first)
        high = kind.high if star else self._number(kind, end or first)
        if end == "sun" and low:
            high = 7  # as in cronie: a range of names that ends on Sunday, such as mon-sun
        if low > high:
            raise self._bad(*_backward(kind, low, high, term))
        # A step wider than the range keeps the first value.
        return range(low, high + 1, int(step or 1))

    def _number(self, kind: _Kind, text: str) -> int:
        if text in kind.names:
            return kind.names[text]
        if not text.isdigit():
            raise self._bad(*_unnamed(kind, text))
        number = int(text)
        if not kind.low <= number <= kind.high:
            hint = "midnight is 0" if kind.name == "hour" and number == 24 else ""
            if kind is _WEEKDAY and _YEAR.fullmatch(text):
                hint = "years cannot be given; leave the last field out"
            reason = f"{kind.name}: {text[:20]} is not from {kind.low} to {kind.high}"
            raise self._bad(reason, hint)
        return number


def _around(given: str) -> tuple[str, str] | None:
    """Return reason and hint for text that is written around an expression."""
    words = given.split()
    if quote := next((sign for sign in (given[0], given[-1]) if sign in _QUOTES), ""):
        return f"it has the quote {quote!r}", "leave the quotes out"
    if _WRAPPED.fullmatch(given):
        hint = f"leave it and the parentheses out; {_FOR_INTERVALS}"
        return f"{given.partition('(')[0]!r} is no part of it", hint
    if zone := _ZONED.match(given):
        return f"it begins with {zone[0]}", _GIVE_ZONE
    if "#" in given and (comment := _COMMENT.search(given)):
        return f"it has the comment {comment[0].strip()[:40]!r}", "leave it out"
    if len(words) > 1 and words[0].lower() in ALIASES:
        return f"{words[1][:20]!r} stands behind {words[0]}", f"write only {words[0]}"
    return None


def _within(given: str) -> tuple[str, str] | None:
    """Return reason and hint for lines, blanks and signs that are no part of an expression."""
    if "\n" in given and len(given.split()) > len(_KINDS):
        return "it has several lines", "create one job for each line"
    if parted := _PARTED.search(given):
        reason = f"there is a blank beside the comma of {parted[0][:40]!r}"
        return reason, "leave the blank out"
    if strange := re.search(r"[^\t -~]", given):
        wanted = f"write {_LIKE[strange[0]]} instead" if strange[0] in _LIKE else ""
        return f"it has the character {strange[0]!r}", wanted or "write plain ASCII and blanks"
    return None


def _behind(given: str) -> tuple[str, str] | None:
    """Return reason and hint for a zone or a command behind five or six fields."""
    for word in given.split()[5:7]:
        if word[:3].lower() in (*WEEKDAYS, *MONTHS):
            continue
        if _ZONE.fullmatch(word):
            return f"the zone {word[:40]!r} stands behind it", _GIVE_ZONE
        if _COMMAND.fullmatch(word.lower()):
            hint = "give only the time; what the job does is its prompt or its command"
            return f"{word[:40]!r} is no part of a time", hint
    return None


def _miscounted(plain: str, count: int, allowed: tuple[int, ...]) -> tuple[str, str]:
    """Return reason and hint for a wrong number of fields."""
    reason = f"it has {count} field{'s' if count != 1 else ''}"
    shape = f"write {_SHAPE}, such as 0 9 * * 1-5"
    if _INTERVAL.fullmatch(plain) or plain.startswith("every "):
        return reason, _FOR_INTERVALS
    if f"@{plain}" in ALIASES:
        return reason, f"write @{plain}"
    if count == 7 and _YEAR.fullmatch(plain.rsplit(maxsplit=1)[-1]):
        return reason, "years cannot be given; leave the last field out"
    if count == 6:
        return reason, "seconds cannot be given here; leave the first field out"
    return reason, shape + (", or 6 fields with the second first" if 6 in allowed else "")


def _misshapen(kind: _Kind, term: str) -> tuple[str, str]:
    """Return reason and hint for a malformed term."""
    reason = f"{kind.name}: {term[:40]!r} is neither *, a, a-b, */n nor a-b/n"
    if term == "":
        return f"{kind.name}: nothing stands between two commas, or before or after one", ""
    if term == "?":
        return reason, "write * instead of ?"
    if _DRAWN.fullmatch(term):
        return reason, _NO_DRAWING
    if found := _STEPPED.fullmatch(term):
        high = 6 if kind is _WEEKDAY else kind.high
        return reason, f"write {found[1]}-{high}/{found[2]}"
    if "#" in term:
        return reason, "only 1 to 5 may follow a #, only in the day of week, such as 5#3 or 5L"
    return reason, _LAST_DAYS if "l" in term else ""


def _unnamed(kind: _Kind, text: str) -> tuple[str, str]:
    """Return reason and hint for a word that is not a name of this field."""
    reason = f"{kind.name}: {text[:20]!r} is no number"
    if kind.names:
        reason += " and none of " + ", ".join(kind.names)
    short = text[:3]
    if short in kind.names and text.isalpha():
        return reason, f"write {short}"
    if _DRAWN.fullmatch(text):
        return reason, _NO_DRAWING
    if kind.name == "hour" and (clock := re.fullmatch(r"([0-9]{1,2})([ap])m", text)):
        hour = int(clock[1]) % 12 + 12 * (clock[2] == "p")
        return reason, f"write {hour}"
    if "w" in text and kind is _DAY:
        return reason, "the nearest workday is not known; L is the last day of the month"
    return reason, _LAST_DAYS if text.endswith("l") else ""


def _backward(kind: _Kind, low: int, high: int, term: str) -> tuple[str, str]:
    """Return reason and hint for a range that ends before it begins."""
    reason = f"{kind.name}: the range {term!r} runs backward"
    if kind is _WEEKDAY and not high:
        return reason, f"write {low}-7"
    tail, head = _range(low, kind.high - (kind is _WEEKDAY)), _range(kind.low, high)
    return reason, f"write {tail},{head}" if "/" not in term else f"split it at {kind.low}"


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}-{high}"
