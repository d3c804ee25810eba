"""How a text is read as a command: its first word, and words such as "stop" (SPEC CMD-2)."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

# Every format character (Cf) of Unicode, as ranges, because a search through all code points at
# each start would cost more; then what is invisible in other categories: control characters that
# are no blanks, the joiner of graphemes, variation selectors, and letters without a shape.
INVISIBLE: Final = (
    "\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f"
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u034f\u180b-\u180d\u180f\ufe00-\ufe0f"
    "\U000e0100-\U000e01ef\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
)
"""Invisible characters, for a class of a pattern. Keyboards and copied text contain them."""

_INVISIBLE: Final = re.compile(f"[{INVISIBLE}]+")
_FULL_WIDTH: Final = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
"""The full-width forms that East Asian keyboards type, such as the slash, to ASCII."""

_WIDE_MARKS: Final = "…。、،؛؟\uff0c\uff0e\uff1b\uff1a\uff01\uff1f"
"""Marks of scripts that write no blank behind them."""
_MARKS: Final = ".,;:!?…。、،؛؟"
_FIRST: Final = re.compile(
    rf"[\s{INVISIBLE}]*[/\uff0f][^\s{_WIDE_MARKS}]*[{_WIDE_MARKS}{INVISIBLE}]*"
)
_HEAD: Final = re.compile(rf"/((?:\w|[^\x00-\x7f{_MARKS}])+)(?:@([A-Za-z0-9_]+))?[{_MARKS}]*")

# English; German, Dutch, Swedish; French, Spanish, Portuguese, Italian; Czech, Polish, Turkish;
# Russian, Ukrainian; Indonesian, Vietnamese, Hindi; Chinese, Japanese, Korean; Arabic, Hebrew.
_STOP_TEXT: Final = """
stop halt abort cancel
stopp anhalten abbrechen abbruch stoppen annuleren avbryt
arrête arrete arrêter annuler
para alto detente detener cancela cancelar pare parar ferma fermati fermare annulla
zastav stój przestań zatrzymaj anuluj dur durdur iptal
стоп остановить остановись отмена отменить хватит стій зупинити скасувати
berhenti batal dừng रुको
停 停止 取消 止めて やめて ストップ 멈춰 정지 취소 그만
توقف قف إلغاء עצור
"""
STOP_WORDS: Final = frozenset(unicodedata.normalize("NFC", _STOP_TEXT).split())
_LONGEST_WORD: Final = 32
_LONGEST_TEXT: Final = 256
"""A longer text is not searched for a stop word, whatever is invisible in it."""


@dataclass(frozen=True, slots=True)
class CommandHead:
    """The first word of a text that begins with a slash.

    ``word`` is without the slash, ``bot`` the name behind an ``@``. ``end`` is where the rest of
    the text begins.
    """

    word: str
    bot: str | None
    end: int


@lru_cache(maxsize=64)
def command_head(text: str) -> CommandHead | None:
    """Return the command at the beginning of a text, whether it exists or not.

    Blanks before it, punctuation behind it, invisible characters anywhere and full-width forms do
    not matter. The last texts are remembered: several rules read each message.
    """
    first = _FIRST.match(text)
    found = None if first is None else _HEAD.fullmatch(visible_word(first[0]))
    if first is None or found is None:
        return None
    return CommandHead(found[1], found[2], first.end())


def visible_word(text: str) -> str:
    """Return a text without invisible characters, blanks around it, and full-width forms."""
    visible = text if text.isascii() and text.isprintable() else _INVISIBLE.sub("", text)
    return unicodedata.normalize("NFC", visible.translate(_FULL_WIDTH)).strip()


def is_stop_text(text: str) -> bool:
    """Return whether a text is only a word such as "stop", perhaps with punctuation or an emoji."""
    if len(text) > _LONGEST_TEXT:
        return False
    word = visible_word(text).translate(_FULL_WIDTH)
    if len(word) > _LONGEST_WORD:
        return False
    begin, end = 0, len(word)
    while begin < end and not _is_of_word(word[begin]):
        begin += 1
    while begin < end and not _is_of_word(word[end - 1]):
        end -= 1
    return means_stop(word[begin:end])


def means_stop(word: str) -> bool:
    """Return whether a word means "stop" in some language, in any case."""
    # A Turkish capital has a dot that its small letter has not.
    return unicodedata.normalize("NFC", word.lower().replace("\u0307", "")) in STOP_WORDS


def _is_of_word(char: str) -> bool:
    return char.isalnum() or unicodedata.category(char)[0] == "M"
