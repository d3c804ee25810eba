"""Measuring, truncating and splitting text without damaging a character.

Chat channels count in UTF-16 units or close to it, so that is the measure here. A *character* is
what a person sees as one: a base letter with its accents, an emoji with its modifiers, a flag. No
function cuts through one, unless it alone is longer than the limit.
"""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal

from goclaw_py.core.run_events import Usage

ELLIPSIS = "…"

_ZERO_WIDTH_JOINER = "\u200d"
_JOINERS = (_ZERO_WIDTH_JOINER, "\u200c")
_LONGEST_CHARACTER = 64
"""The longest character in code points; keeps splitting linear."""

_EMPTY_SIGNS = "\u2800\u3164\uffa0\u115f\u1160\u034f\u17b4\u17b5\ufe0e\ufe0f"
"""Signs without ink: a Braille pattern without dots, fillers of Hangul, selectors of emoji."""

_EMPTY_LINES = re.compile(r"\A(?:[^\S\n]*\n)+")
_PARAGRAPH = re.compile(r"\n[^\S\n]*\n")
_LINE = re.compile(r"\n")
_SENTENCE = re.compile(r"(?<=[.!?…。！？])\s+")  # noqa: RUF001  full-width marks end sentences too
_QUOTED = re.compile(r"""(?<!\w)(["'])((?:(?!\1)[^\n])*)\1(?!\w)""")
_BLANK = re.compile(r"\s+")
_MARKDOWN = re.compile(
    r"^ {0,3}(?:#{1,6}\s|>|```\w*)\s*"
    r"|\*\*(?=\S)(.+?)(?<=\S)\*\*|`([^`\n]+)`|\[([^\]\n]+)\]\([^)\s]+\)",
    re.MULTILINE,
)
"""The beginnings of headings, quotes and code; what is bold, code or a link."""
_SOURCE = re.compile(r"\A\[scheduler:[^\]\s]+\]\s*")
_JSON_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.",
    re.DOTALL,
)
"""An escape in a JSON text: a surrogate pair, half of one, or another one."""

_REQUIREMENTS = tuple(
    (re.compile(pattern, re.DOTALL), words)
    for pattern, words in (
        (r"Field required", "is required"),
        (r"Input should be a valid integer.*", "must be a whole number"),
        (r"Input should be a valid (?:number|decimal).*", "must be a number"),
        (r"Input should be a valid boolean.*", "must be true or false"),
        (r"Input should be a valid string.*", "must be text"),
        (r"Input should be a valid (?:list|tuple|set|array).*", "must be a list"),
        (r"Input should be .*(?:dictionary|object|mapping).*", "must be an object"),
        (r"Input should be greater than or equal to (\S+)", r"must be at least \1"),
        (r"Input should be less than or equal to (\S+)", r"must be at most \1"),
        (r"Input should be greater than (\S+)", r"must be more than \1"),
        (r"\w+ should have at (least|most) (\d+) (\w+?)s?(?: .*)?", r"must have at \1 \2 \3s"),
        (r"\w+ should (.*)", r"must \1"),
    )
)
"""Messages of pydantic, and what people read in their place."""


def requirement(message: str) -> str:
    """Return a message of pydantic in plain words, such as ``must be at most 5``."""
    message = message.removeprefix("Value error, ")
    for pattern, words in _REQUIREMENTS:
        if found := pattern.fullmatch(message):
            return found.expand(words)
    return message


def utf16_len(text: str) -> int:
    """Return the length in UTF-16 units: characters beyond U+FFFF count two."""
    return len(text) if text.isascii() else len(text) + sum(char > "\uffff" for char in text)


def well_formed(text: str) -> str:
    """Join surrogate pairs into the character they mean; a lone surrogate becomes U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def split_half(text: str) -> tuple[str, str]:
    """Return a piece of a text, and the first half of a surrogate pair at its end, or "".

    The half goes before the next piece, which may begin with the other one.
    """
    if "\ud800" <= text[-1:] <= "\udbff":
        return well_formed(text[:-1]), text[-1]
    return well_formed(text), ""


def well_formed_json(text: str) -> str:
    """Replace escapes of lone surrogates in JSON: parsers refuse them, or return such texts."""
    if "\\u" not in text:
        return text
    return _JSON_ESCAPE.sub(lambda found: r"\ufffd" if found["lone"] else found[0], text)


def error_text(error: BaseException) -> str:
    """Return the kind and the message of an error; an error of others may be unable to write it."""
    try:
        return f"{type(error).__name__}: {error}"
    except BaseException:  # a boundary: whatever its code raises, which must not end the gateway
        return type(error).__name__


def is_blank(text: str) -> bool:
    """Return whether a text is invisible: only blanks, control and format characters."""
    return all(
        char.isspace() or unicodedata.category(char) in ("Cc", "Cf") or char in _EMPTY_SIGNS
        for char in text
    )


def count(number: int, one: str, many: str = "") -> str:
    """``1 run``, ``2 runs``, ``1,000 runs``; without ``many`` an s is added to ``one``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def first_words(text: str, limit_chars: int) -> str:
    """Return the beginning of a text on one line, at most ``limit_chars`` code points.

    A longer word is cut like any text.
    """
    return truncate(" ".join(text.split()), limit_chars)


def without_markdown(text: str) -> str:
    """Return a text without the commonest marks of Markdown, for titles."""
    return _MARKDOWN.sub(lambda found: next(filter(None, found.groups()), ""), text)


def source_of_job(slug: str) -> str:
    """Return the mark of a prompt of a job in the history, which people read too."""
    return f"[scheduler:{slug}]"


def without_source(prompt: str) -> str:
    """Return a prompt of the history without the mark of its job."""
    return _SOURCE.sub("", prompt)


def visible_line(text: str) -> str:
    """Return a text on one line, without characters that are invisible or change its direction.

    Joiners within emoji and words are kept.
    """
    kept = (
        " " if char.isspace() else char
        for char in well_formed(text)
        if char.isspace() or char in _JOINERS or unicodedata.category(char) not in ("Cc", "Cf")
    )
    line = " ".join("".join(kept).split())
    return "" if is_blank(line) else line


def truncate(text: str, limit_chars: int) -> str:
    """Shorten to at most ``limit_chars`` code points, with an ellipsis at a cut.

    ``limit_chars`` is at least 1.
    """
    if len(text) <= limit_chars:
        return text
    return text[: _safe_end(text, limit_chars - len(ELLIPSIS))].rstrip() + ELLIPSIS


def truncate_middle(text: str, limit_chars: int) -> str:
    """Shorten to at most ``limit_chars`` code points, at least 3, with an ellipsis in the middle.

    Of a long path, both the folder and the name of the file stay.
    """
    if len(text) <= limit_chars:
        return text
    end = (limit_chars - len(ELLIPSIS)) // 2
    return text[: _safe_end(text, limit_chars - len(ELLIPSIS) - end)] + ELLIPSIS + text[-end:]


def truncate_bytes(text: str, limit_bytes: int) -> str:
    """Return the beginning of a text, at most ``limit_bytes`` of UTF-8, cut between characters."""
    text = well_formed(text)
    encoded = text.encode()
    if len(encoded) <= limit_bytes:
        return text
    whole = len(encoded[:limit_bytes].decode(errors="ignore"))
    return text[: _safe_end(text, whole)] if whole else ""


def split_text(text: str, limit: int) -> list[str]:
    """Split into parts of at most ``limit`` UTF-16 units each, none of them blank.

    Splits between paragraphs if no part becomes small, otherwise between lines, sentences, words,
    and only then inside a word. Blanks at a split and around the whole are dropped, everything else
    is kept in order. ``limit`` is at least 2.
    """
    parts = []
    # Indentation of a first line is content, empty lines above it are not.
    rest = _EMPTY_LINES.sub("", text).rstrip()
    while (end := _fitting(rest, limit)) < len(rest):
        stop, start = _split_position(rest, end)
        parts.append(rest[:stop].rstrip())
        rest = _EMPTY_LINES.sub("", rest[start:])
    parts.append(rest)
    return [part for part in parts if not is_blank(part)]


def _fitting(text: str, limit: int) -> int:
    """Return how many code points of ``text`` fit into ``limit`` UTF-16 units."""
    end = min(len(text), limit)
    while (over := utf16_len(text[:end]) - limit) > 0:
        # Each code point gives back at most two units, so this never goes too far.
        end -= (over + 1) // 2
    return end


def _split_position(text: str, end: int) -> tuple[int, int]:
    """Return where the first part ends and the next one begins, if ``end`` code points fit."""
    for pattern in (_PARAGRAPH, _LINE):
        if gap := _last_gap(pattern, text, end // 2, end):
            return gap
    for pattern, least in ((_SENTENCE, end // 2), (_BLANK, 1)):
        if gap := _last_gap(pattern, text, least, end):
            stop, start = gap
            while text[start].isspace():
                start += 1
            return stop, start
    stop = _safe_end(text, end)
    return stop, stop


def _last_gap(pattern: re.Pattern[str], text: str, least: int, end: int) -> tuple[int, int] | None:
    """Return the last match that begins from ``least`` to ``end``."""
    found = None
    for match in pattern.finditer(text, least, end + 1):
        # A blank may carry an accent; then it is no gap.
        if not _joined(text, match.end()):
            found = match.span()
    return found


def _safe_end(text: str, end: int) -> int:
    """Return the last position up to ``end`` between two characters, or ``end`` itself."""
    for place in range(end, max(end - _LONGEST_CHARACTER, 0), -1):
        if not _joined(text, place):
            return place
    # One endless character. A surrogate pair is kept whole even then.
    return end - 1 if end > 1 and _is_pair(text[end - 1], text[end]) else end


def _joined(text: str, place: int) -> bool:
    """Return whether the code points around ``place`` belong to one character."""
    before, after = text[place - 1], text[place]
    if before < "\u0300" and after < "\u0300":
        return before == "\r" and after == "\n"
    return (
        _extends(after)
        or before == _ZERO_WIDTH_JOINER
        or _is_pair(before, after)
        or (_is_flag_half(after) and _flag_halves_before(text, place) % 2 == 1)
    )


def _extends(char: str) -> bool:
    """Return whether this code point modifies the one before it."""
    return (
        unicodedata.category(char) in ("Mn", "Mc", "Me")
        or char == _ZERO_WIDTH_JOINER
        or "\U0001f3fb" <= char <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= char <= "\U000e007f"  # tags, as in the flag of Scotland
        or "\u1160" <= char <= "\u11ff"  # vowels and finals of a Hangul syllable
    )


def _is_pair(before: str, after: str) -> bool:
    return "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff"


def _is_flag_half(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _flag_halves_before(text: str, place: int) -> int:
    count = 0
    while count < min(place, _LONGEST_CHARACTER) and _is_flag_half(text[place - count - 1]):
        count += 1
    return count


def clause(text: str, limit_chars: int) -> str:
    """Return a text on one line, without a full stop, to be put into a sentence."""
    return truncate(" ".join(text.split()), limit_chars).rstrip(".")


def natural_key(text: str) -> list[tuple[int, str]]:
    """Return a key for sorting: numbers in a text by their size, so that 2 comes before 10."""
    parts = re.split(r"([0-9]+)", text)
    # A number with more digits is larger; int() would refuse thousands of them.
    return [
        (len(part.lstrip("0")), part.lstrip("0")) if number % 2 else (0, part)
        for number, part in enumerate(parts)
    ]


def sentence(text: str) -> str:
    """Return a clause with a capital letter and a full stop; "" as it is."""
    ends = ("", ".", "!", "?", "…")
    return text[:1].upper() + text[1:] + ("" if text[-1:] in ends else ".")


def curly(text: str) -> str:
    """Return the text of an error with the quotation marks of texts in chats."""
    return _QUOTED.sub(r"“\2”", text)


def usd(amount: Decimal, digits: int | None = None, *, sign: str = "$") -> str:
    """Return an amount of money; below a dollar it has four digits, unless they are given."""
    if digits is None:
        digits = 2 if amount == 0 or amount >= 1 else 4
    least = Decimal(1).scaleb(-digits)
    return f"< {sign}{least}" if 0 < amount < least else f"{sign}{amount:.{digits}f}"


def cost(used: Usage | None) -> str:
    """Return the price, tokens where it is not known, or "" if nothing was used."""
    if used is None or (used.cost_usd is None and not used.tokens):
        return ""
    return f"{used.tokens:,} tokens" if used.cost_usd is None else usd(used.cost_usd)
