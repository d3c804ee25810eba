"""Decides which ``*``, ``_`` and ``~~`` are emphasis.

CommonMark decides by the two characters around a mark and their Unicode classes. In chats that
takes signs away which mean themselves (``f(*) g(*)``, ``a.*, b.*``), and refuses emphasis beside
full-width signs. So here a mark opens only where a word may begin, and closes only where one may
end; in doubt it is itself, because a wrong character is worse than a missing emphasis.
"""

from __future__ import annotations

import re

from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Delimiter

_RUN = re.compile(r"\*+|_+|~~+")
_WORD = re.compile(r"[^\W_\u0590-\u08ff\u0e00-\u109f\u1780-\u17ff\u2e80-\U0003ffff]")
"""A letter or digit of a script with blanks between words.

Not of Hebrew and Arabic, where articles and prepositions are written at their words.
"""
_FULL_WIDTH_ENDS = frozenset("，。！？；：、）】》〉」』”’…")  # noqa: RUF001  full-width marks
_FULL_WIDTH_BEGINS = frozenset("（【《〈「『“‘")  # noqa: RUF001  full-width marks
_PAIRS = frozenset(("()", "[]", "{}", "<>", "“”", "‘’", "「」", "（）"))  # noqa: RUF001

# Of one ``*`` or of underscores, which code has more often than chats.
_BEFORE_OPENING = frozenset("([,;:|-`")
_JOINS = frozenset(",;:|-")
_FIRST = frozenset("\"'([`<&#@\\+")
_LAST = frozenset("\"')]}`>;:.,!?%$*_~")
_AFTER_CLOSING = frozenset(".,;:!?)]'|~`<-")

_BEFORE_STRONG = frozenset("([\"'-:;,|/.!?=+>`")
_NO_FIRST_OF_STRONG = frozenset(")]},;=|?^")
_NO_LAST_OF_STRONG = frozenset("([{,;=|/\\^<")
_NO_AFTER_STRONG = frozenset("{}@#$^\\")
_ENDS_A_LABEL = frozenset(":.!?)]\"'%")
"""The last characters of a strong text that a word may follow at once: ``**Hinweis:**Text``."""

_FAR = 60
_LONGEST_LABEL = 1000
_LONGEST_AROUND = 300
_LETTERS = re.compile(r"[^\W\d_](?:[^\s\d_!-,./:-@\[-`{-~]*[^\W\d_])")
_NAME = re.compile(r"_+[^\W_]+_+[^\W_]")
"""An identifier such as ``_private_name``."""
_DUNDER = re.compile(r"__([A-Za-z][A-Za-z0-9_]{0,40}?)__(?!\w)")
_FILE_OR_CALL = re.compile(r"_[a-z][a-z0-9-]+\.[a-z][a-z0-9]{0,4}(?!\w)|_[a-z]\w*\((?!s\))")
"""A name of a file with an underscore first (_config.yml), or a call such as ``_t('x')``."""
_SHELL_OR_REFERENCE = re.compile(r"(?:\A|[^\s\d]|\D\s)\$\Z|(?:\A|\s)[,&/#@]\Z")
"""The end of what is before the mark of ``$*``, ``$_``, ``/*``, ``@_``."""
_BEHIND_CODE = re.compile(r"\.\w|[(/\[=]")
_DUNDERS = frozenset(
    name.strip("_")
    for kind in (int, str, list, dict, set, type, Exception, property, type(len), type(re))
    for name in dir(kind)
    if name.startswith("__")
) | frozenset((
    "all", "annotations", "author", "bool", "builtins", "bytes", "cached", "copy", "debug",
    "deepcopy", "dirname", "file", "filename", "fixtures", "future", "index", "main", "match_args",
    "missing", "mocks", "name", "package", "path", "post_init", "proto", "pycache", "schema",
    "set_name", "slots", "snapshots", "spec", "tests", "typename", "version", "wrapped",
    "aenter", "aexit", "aiter", "anext", "await", "enter", "exit",
    "base_file", "clang", "class", "counter", "cplusplus", "data", "date", "dir", "end",
    "func", "function", "gnuc", "line", "linux", "method", "module", "namespace", "self", "sub",
    "this", "time", "timestamp", "trait", "unix", "va_args", "va_opt",
))  # fmt: skip
"""Names that have two underscores around them in code."""
_FORMULA = frozenset("=＝×÷+/")  # noqa: RUF001  full-width signs
_LOWER_STEM = re.compile(r"(?:^|[\s(])\*[a-z0-9_-]+\.$")
_ENTITY = re.compile(r"&#?\w{1,31};")
_TAG_END = re.compile(r"</?[A-Za-z][^<>]*>\Z")


def emphasis(state: StateInline, silent: bool) -> bool:  # noqa: FBT001  the library's signature
    """Parse a run of marks: emphasis, strong emphasis or strikethrough."""
    run = _RUN.match(state.src, state.pos, state.posMax)
    if run is None or silent:
        return False
    if run[0] == "__" and (dunder := _DUNDER.match(state.src, run.start(), state.posMax)):
        behind = state.src[dunder.end() : dunder.end() + 2]
        if dunder[1].lower() in _DUNDERS or "_" in dunder[1] or _BEHIND_CODE.match(behind):
            state.append_pending(dunder[0])
            state.pos = dunder.end()
            return True
    opens, closes = _sides(state.src, run, state.posMax)
    state.pos = run.end()
    mark, size = run[0][0], len(run[0])
    if not (opens or closes) or (mark == "~" and size % 2):
        state.append_pending(run[0])
        return True
    pieces, length = (["~~"] * (size // 2), 0) if mark == "~" else ([mark] * size, size)
    for piece in pieces:
        token = state.push("text", "", 0)
        token.content = piece
        delimiter = Delimiter(ord(mark), length, len(state.tokens) - 1, -1, opens, closes)
        state.delimiters.append(delimiter)
    return True


def _sides(src: str, run: re.Match[str], end_of_all: int) -> tuple[bool, bool]:
    """Return whether a run may open, and whether it may close."""
    begin, end = run.span()
    before, after = _beyond(src, begin, end, end_of_all)
    near_before = src[begin - 1] if begin else " "
    near_after = src[end] if end < end_of_all else " "
    if near_before + near_after in _PAIRS or (
        near_before == near_after and near_before.isascii() and not near_before.isalnum()
    ):
        # A sign in brackets or quotation marks means itself; one between blanks neither opens.
        return False, False
    is_strong = run[0][0] == "~" or (run[0][0] == "*" and len(run[0]) > 1)
    word_before = _WORD.match(before) is not None
    word_after = _WORD.match(after) is not None
    if word_before and word_after:
        if not is_strong:
            return False, False
        return _opens_within_word(src, run), _closes_within_word(src, begin, after)
    # With nothing but other marks up to a blank, it begins or ends nothing: ``test_*`` can close.
    can_open = not after.isspace() and not word_before
    can_close = not before.isspace()
    if is_strong:
        opens = can_open and _strong_opens(src, run, before)
        return opens, can_close and _strong_closes(src, run, after, word_after)
    if _in_formula(src, begin, end, before, after):
        return False, False
    opens = can_open and _opens(src, run, before)
    closes = can_close and not word_after and _closes(src, run, after)
    return opens, closes


def _beyond(src: str, begin: int, end: int, end_of_all: int) -> tuple[str, str]:
    """Return the characters around a run, beyond other marks beside it."""
    least, most = max(begin - 8, 0), min(end + 8, end_of_all)
    while begin > least and src[begin - 1] in "*_~":
        begin -= 1
    while end < most and src[end] in "*_~":
        end += 1
    return src[begin - 1] if begin else " ", src[end] if end < end_of_all else " "


def _strong_opens(src: str, run: re.Match[str], before: str) -> bool:
    first = src[run.end()]
    if first in _FULL_WIDTH_ENDS or first in _NO_FIRST_OF_STRONG:
        return False
    if first in "./:" and not src[run.end() + 1 : run.end() + 2].isalpha():
        return False
    return before.isspace() or not before.isascii() or before in _BEFORE_STRONG


def _strong_closes(src: str, run: re.Match[str], after: str, word_after: bool) -> bool:  # noqa: FBT001
    last = src[run.start() - 1]
    if last in _FULL_WIDTH_BEGINS or last in _NO_LAST_OF_STRONG:
        return False
    if word_after:
        # As in **Hinweis:**Text. What was opened has to be complete, unlike dict(**a), b**c.
        if last.isascii() and last not in _ENDS_A_LABEL:
            return False
        begin = src.rfind(run[0], max(run.start() - _LONGEST_LABEL, 0), run.start())
        label = src[begin + len(run[0]) : run.start()] if begin >= 0 else ""
        if last in ")]" and after.isdigit():
            return False
        return bool(label) and label.count("(") == label.count(")")
    if after == "%":
        return not src[run.end() + 1 : run.end() + 2].isalnum()
    return after not in _NO_AFTER_STRONG


def _opens(src: str, run: re.Match[str], before: str) -> bool:
    begin, end = run.span()
    if not _is_first(src, end):
        return False
    if run[0][0] == "_":
        if _NAME.match(src, begin) or _FILE_OR_CALL.match(src, begin):
            return False
        if not before.isascii() and before.isalnum():
            return False
    if before == ">":
        return _TAG_END.search(src, max(begin - 80, 0), begin) is not None
    if before == "'":
        # A French article, and no pattern in quotation marks.
        return begin > 1 and src[begin - 2].isalpha() and src[end].isalpha()
    if before in _JOINS and begin > 1 and src[begin - 2].isalnum():
        # A key (user:*:x), a label of an image (nginx:_latest_).
        return src[begin - 1] != before
    return before.isspace() or not before.isascii() or before in _BEFORE_OPENING


def _is_first(src: str, place: int) -> bool:
    """Return whether this may be the first character of an emphasis, beyond other marks."""
    while place < len(src) - 1 and src[place] in "*_~":
        place += 1
    first, second = src[place], src[place + 1 : place + 2]
    if not first.isascii():
        return first not in _FULL_WIDTH_ENDS
    match first:
        case "-" | "$":
            return second.isdigit()
        case "!":
            return second == "["
        case _:
            return first.isalnum() or first in _FIRST


def _closes(src: str, run: re.Match[str], after: str) -> bool:
    begin, end = run.span()
    last = src[begin - 1]
    if last in _FULL_WIDTH_BEGINS or (last.isascii() and not last.isalnum() and last not in _LAST):
        return False
    if last == "." and _LOWER_STEM.search(src, max(begin - 40, 0), begin):
        return False
    if _SHELL_OR_REFERENCE.search(src, max(begin - 3, 0), begin) or _is_before_a_sign(src, run):
        return False
    if after.isspace():
        return True
    if not after.isascii():
        return run[0][0] == "*" or not after.isalnum()
    next_one = src[end + 1 : end + 2]
    if after in ".-":
        # A file (*name*.txt) or a part of a longer name.
        return not next_one.isalnum()
    if after == "'":
        return next_one.isalpha()
    return after in _AFTER_CLOSING or _ENTITY.match(src, end) is not None


def _is_before_a_sign(src: str, run: re.Match[str]) -> bool:
    """Return whether the next mark ends nothing: ``test_*``, unlike ``**_x_**``, ``*a _x_*``."""
    begin, end = run.span()
    if end == len(src) or src[end] not in "*_~":
        return False
    runs = _RUN.findall(src, max(begin - _LONGEST_AROUND, 0), begin)
    return [str(other)[0] for other in runs].count(src[end]) % 2 == 0


def _opens_within_word(src: str, run: re.Match[str]) -> bool:
    """Return whether a part of this word is strong, as in ``un**believ**able``."""
    begin, end = run.span()
    close = src.find(run[0], end, end + _FAR)
    if close < 0 or not src[max(begin - 2, 0) : begin].isalpha() or begin < 2:
        return False
    return _LETTERS.fullmatch(src, end, close) is not None


def _closes_within_word(src: str, begin: int, after: str) -> bool:
    """Return whether the strong part of a word ends, as in ``**API**s``."""
    if after.isdigit():
        return False
    opened = src.rfind("**", max(begin - _FAR, 0), begin)
    return opened >= 0 and _LETTERS.fullmatch(src, opened + 2, begin) is not None


def _in_formula(src: str, begin: int, end: int, before: str, after: str) -> bool:
    """Return whether a sign multiplies, in a script without blanks between words."""
    if before.isspace() or after.isspace() or end - begin > 1 or src[begin] != "*":
        return False
    if before.isdigit() or after.isdigit():
        return before.isalnum() and after.isalnum()
    if not (before.isalnum() and after.isalnum()):
        return False
    around = src[max(begin - 20, 0) : end + 20]
    place = min(begin, 20)
    left = around[:place].split()[-1:] or [""]
    right = around[place:].split()[:1] or [""]
    return any(char in _FORMULA for char in left[0] + right[0])
