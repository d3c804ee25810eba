"""Removal of characters that cannot be sent."""

from __future__ import annotations

import re
import unicodedata

from goclaw_py.core.text import well_formed

_LINE_END = re.compile("\r\n|[\r\x85\u2028\u2029]")
_BLANK = re.compile("[\x0b\x0c]")
_REFUSED = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f"
    "\u202a-\u202e"  # turn the direction of writing, also of what others write behind it
    "\u030a\u0333\u033f"  # the server takes these accents away, too
    "]"
)


def cleaned(text: str) -> str:
    """Return a text without what Telegram refuses or removes, with line feeds as line ends."""
    text = well_formed(text)
    if "\u030a" in text:
        text = unicodedata.normalize("NFC", text)
    return _REFUSED.sub("", _BLANK.sub(" ", _LINE_END.sub("\n", text)))
