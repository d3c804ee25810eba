"""Removes secrets from text (SPEC SEC-2).

Takes time linear in the length of any text: no line may block logging. Each pattern begins at the
beginning of a word or name and does not backtrack, or is limited.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Final

HIDDEN: Final = "[hidden]"
"""What stands for every secret, whatever its length, wherever people read it."""

MIN_SECRET: Final = 8
"""Shorter secrets are hidden only in known places, such as an address.

Otherwise a password ``goclaw`` would remove the program's name from every line.
"""

LONGEST_SECRET: Final = 8192
"""Longer secrets are recognised by their beginning."""

LIKE_A_KEY: Final = re.compile(
    r"""(?ix)
    \b(?: sk | pk | rk | csk | xai | gsk | nvapi )[-_] [\w.*…-]{6,}
    | \b(?: hf | r8 | gh[oprsu] | github_pat | pylf | tgp )_ [\w.*…-]{6,}
    | \b(?: AIza [\w-]{10,} | A[KS]IA [A-Z0-9]{12,} )
    | (?<= bearer[ ] ) [^\s"',}]+
    | (?<![\w.-]) [\w.-]*+ \*{3,} [\w.*-]*
    """
)
"""Keys of the usual forms, keys in headers, and keys that a provider masked only in part."""

LIKE_A_SECRET: Final = re.compile(
    r"""(?ix)
    (?<!\d) \d{8,}+ (?: : | %3a ) [\w-]{35,}+                      # a bot of Telegram
    | (?<![\w-]) eyJ [\w-]{10,}+ \. [\w-]++ \. [\w-]*+             # a JSON web token
    | -----BEGIN[ ] [A-Z ]{0,30}+ -----  [^-]*+
    | (?P<address> :// [^\s:/?\#@"'<>]{0,128}+ : ) [^\s@"'<>]{1,256}+ (?= @ )
    | (?P<name>
        (?<![a-z0-9])
        (?: (?: access | api | auth | bot | private | refresh | secret )[-_]?(?: key | token )
          | authorization | cookie | passwd | password | pgpassword | pwd | secret | token )
        (?: ["'] )? \s{0,2} [:=] \s{0,2} (?: b?["'] )?
        (?: (?: basic | bearer | digest | token )\s )?
      )
      [^\s"'&,;<>{}()\[\]]{6,}+
    """
)
"""Texts that their place or form reveals: the groups stay, what follows them is hidden."""


_SIGNS: Final = (
    *("sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "xai-", "xai_", "nvapi", "hf_", "r8_", "gho_"),
    *("ghp_", "ghr_", "ghs_", "ghu_", "github_pat_", "pylf_", "tgp_", "aiza", "akia"),
    *("asia", "bearer ", "***", "%3a", "eyj", "-----begin", "://", "key", "token", "secret"),
    *("authorization", "cookie", "passw", "pwd"),
)
"""Every match of the two patterns above has one of these in it, in lower case, or ``_BOT``, or one
of ``_FOLDED``. To find none is 20 times as quick as to search for the patterns."""
_BOT: Final = re.compile(r":(?<=\d:)[\w-]{35}")
_HEX: Final = re.compile("[0-9a-f-]*")
"""Numbers and ids: no match of the patterns is made of these characters only."""
_FOLDED: Final = re.compile("[\u0130\u0131\u017f]")
"""Letters that patterns take for an i or an s, without regard to case."""


class Redactor:
    """Hides known secrets, however they are escaped, and what looks like one.

    Args:
        secrets: Secrets; those shorter than ``MIN_SECRET`` are ignored.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = {secret for secret in secrets if len(secret) >= MIN_SECRET}
        longest_first = sorted(known, key=len, reverse=True)
        self._known = [(_plain_part(one), re.compile(_spelled(one))) for one in longest_first]
        self.reach = max((len(one) for one in known), default=0) * _WIDEST
        """The number of characters at a truncated text's end that may be a truncated secret."""

    def __call__(self, text: str) -> str:
        """Return the text with ``HIDDEN`` in place of every secret."""
        if not self.suspects(text):
            return text
        for _, pattern in self._known:
            text = pattern.sub(HIDDEN, text)
        text = LIKE_A_SECRET.sub(_hidden_value, text)
        return LIKE_A_KEY.sub(HIDDEN, text)

    def suspects(self, text: str) -> bool:
        """Return False if there is certainly no secret in a text, and in no part of it."""
        for part, _ in self._known:
            if part in text:
                return True
        if _HEX.fullmatch(text):
            return False
        lower = text.lower()
        for sign in _SIGNS:
            if sign in lower:
                return True
        folded = None if text.isascii() else _FOLDED.search(text)
        return folded is not None or _BOT.search(text) is not None

    def split_over(self, texts: Sequence[str]) -> set[str]:
        """Return those texts that together have a known secret, if they are read without a gap."""
        whole = "".join(texts)
        found = [
            match.span()
            for part, pattern in self._known
            if part in whole
            for match in pattern.finditer(whole)
        ]
        ends = list(accumulate(map(len, texts))) if found else []
        return {
            text
            for begin, end in found
            for text in texts[bisect_right(ends, begin) : bisect_left(ends, end) + 1]
        }


def is_name_of_secret(name: str) -> bool:
    """Return whether this is the name of a secret, such as ``api_key`` or ``X-Auth-Token``."""
    return _SECRET_NAME.search(name[-_LONGEST_NAME:]) is not None


_LONGEST_NAME: Final = 64
_SECRET_NAME: Final = re.compile(
    r"""(?ix)
    (?<![a-z0-9])
    (?: authorization | cookie | credentials | passwd | password | pgpassword | pwd | secret | token
      | (?: access | api | auth | encryption | private | secret | signing ) [-_]? key
    ) $
    """
)


def _hidden_value(found: re.Match[str]) -> str:
    return f"{found['address'] or found['name'] or ''}{HIDDEN}"


# ---------------------------------------------------------------------------- spellings

_WIDEST: Final = 12
"""The longest escape of one character: two halves of a pair as ``\ud83d\ude00``."""


def _plain_part(secret: str) -> str:
    """Return the longest part of a secret that has one spelling only."""
    return max(re.findall(r"[A-Za-z0-9_.~-]+", secret[:LONGEST_SECRET]), key=len, default="")


def _spelled(secret: str) -> str:
    """Return a pattern of all ways to write it: raw, percent-encoded, escaped in JSON or repr."""
    runs = re.findall(r"\\+|[^\\]", secret[:LONGEST_SECRET], re.DOTALL)
    return "".join(_backslashes(len(run)) if run[0] == "\\" else _character(run) for run in runs)


def _backslashes(count: int) -> str:
    """Return a pattern of backslashes, each perhaps escaped up to three times."""
    return rf"(?:\\{{{count},{8 * count}}}|(?:%5[Cc]){{{count}}})"


def _character(one: str) -> str:
    if one.isascii() and (one.isalnum() or one in "_.~-"):
        return re.escape(one)
    ways = [re.escape(one)]
    raw = one.encode("utf-8", "surrogatepass")
    ways.append("".join(f"%{_any_case(f'{byte:02x}')}" for byte in raw))
    if one == " ":
        ways.append(r"\+")
    if one in "\"'/":
        ways.append(rf"\\{{1,7}}{re.escape(one)}")
    if not one.isascii() or not one.isprintable():
        ways += _escapes(one, raw)
    return f"(?:{'|'.join(dict.fromkeys(ways))})"


def _escapes(one: str, raw: bytes) -> list[str]:
    r"""Return the escapes of JSON and Python: ``\u00e9``, ``\xe9``, ``\n``."""
    utf16 = one.encode("utf-16-be", "surrogatepass")
    units = [utf16[place : place + 2].hex() for place in range(0, len(utf16), 2)]
    ways = ["".join(rf"\\{{1,7}}u{_any_case(unit)}" for unit in units)]
    ways.append("".join(rf"\\{{1,7}}x{_any_case(f'{byte:02x}')}" for byte in raw))
    code = ord(one)
    ways.append(rf"\\{{1,7}}U{_any_case(f'{code:08x}')}")
    if code < 256:
        ways.append(rf"\\{{1,7}}x{_any_case(f'{code:02x}')}")
    if one in _SHORT:
        ways.append(rf"\\{{1,7}}{_SHORT[one]}")
    return ways


_SHORT: Final = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}


def _any_case(digits: str) -> str:
    return "".join(f"[{d}{d.upper()}]" if d.isalpha() else d for d in digits)
