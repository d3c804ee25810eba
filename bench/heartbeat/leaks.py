"""Whether HEARTBEAT_OK ever gets out: many replies are made up, judged, and looked at (SPEC HB-6).

What would be delivered is looked at by a detector of its own, which is slow and knows nothing of
the code that it checks: it takes every kind of markup away, in several orders, and looks for the
word in each of the texts that it comes by.

    python -m bench.heartbeat.leaks [--count 100000] [--seed 7]
"""

from __future__ import annotations

import argparse
import html
import random
import re
import sys
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field

from goclaw_py.chat.outbound.ok_token import AckPosition, judge, without_token

TOKEN = "HEARTBEAT_OK"
SHOWN_LEAKS = 10

# ---------------------------------------------------------------------- replies

INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u034f\ufe0f\ufe0e\u061c\u2063\x00\x07"
WRAPPERS = (
    ("**", "**"),
    ("__", "__"),
    ("*", "*"),
    ("_", "_"),
    ("***", "***"),
    ("`", "`"),
    ("``", "``"),
    ("~~", "~~"),
    ("||", "||"),
    ("<b>", "</b>"),
    ("<i>", "</i>"),
    ("<code>", "</code>"),
    ('<span class="a > b">', "</span>"),
    ("<a href='x'>", "</a>"),
    ("<B\n>", "</B >"),
    ('"', '"'),
    ("'", "'"),
    ("“", "”"),
    ("„", "“"),
    ("«", "»"),
    ("「", "」"),
    ("（", "）"),  # noqa: RUF001
    ("(", ")"),
    ("[", "]"),
    ("[", "](https://example.org/a_(b))"),
    ("[", "][ref]"),
    ("![", "](x 'HEARTBEAT_OK')"),
    ("```\n", "\n```"),
    ("```text\n", "\n```"),
    ("~~~\n", "\n~~~"),
    ("> ", ""),
    ("# ", ""),
    ("- ", ""),
    ("1. ", ""),
    ("- [x] ", ""),
    ("    ", ""),
    ("| a | ", " |"),
    ("<!-- ", " -->"),
    ("<", ">"),
    ("https://example.org/", "/x"),
    ("\\*", "\\*"),
    ("&lt;b&gt;", "&lt;/b&gt;"),
)
UNDERSCORES = (
    "_", "_", "_", "\\_", "&#95;", "&#x5F;", "&lowbar;", "&amp;#95;", "%5F", "*_*", "<b>_</b>",
    "\u200b_", "\uff3f", "`_`", "&#0095",
)  # fmt: skip
WORDS = (
    "all", "is", "well", "disk", "full", "OK", "HEARTBEAT", "HEARTBEAT_OKAY", "NOT_HEARTBEAT_OK",
    "heartbeat_ok", "HEARTBEAT_", "_OK", "x", "7", "_", "*", "**", "`", "```", "<b>", "</b>", "<",
    ">", "[", "](y)", "\\", "&", "ổ đĩa", "đầy", "磁盘", "🔥", "👩\u200d🚒", "диск", "é", "e\u0301",
)  # fmt: skip
BETWEEN = (" ", " ", " ", "", "\n", "\n\n", ". ", ": ", "!", ", ", "。", " — ", "\u200b", "\t", "*")


def replies(count: int, seed: int) -> Iterator[str]:
    """Made-up replies, the same ones for the same seed."""
    dice = random.Random(seed)
    for _ in range(count):
        yield _reply(dice)


def _reply(dice: random.Random) -> str:
    parts = [_part(dice) for _ in range(dice.randint(1, 6))]
    if dice.random() < 0.5:
        parts.insert(dice.randrange(len(parts) + 1), _wrapped(dice, _token(dice)))
    if dice.random() < 0.3:
        parts.insert(dice.randrange(len(parts) + 1), _sentence(dice, 120))
    text = "".join(part + dice.choice(BETWEEN) for part in parts)
    return _sprinkled(dice, text) if dice.random() < 0.2 else text


def _part(dice: random.Random) -> str:
    match dice.randrange(5):
        case 0:
            return _wrapped(dice, _token(dice))
        case 1:
            return _wrapped(dice, f"{_token(dice)}{dice.choice(BETWEEN)}{_sentence(dice, 3)}")
        case 2:
            return _split(dice)
        case 3:
            return _wrapped(dice, _sentence(dice, 3))
        case _:
            return _sentence(dice, dice.choice((1, 3, 80)))


def _token(dice: random.Random) -> str:
    token = "HEARTBEAT" + dice.choice(UNDERSCORES) + "OK"
    match dice.randrange(8):
        case 0:
            return _sprinkled(dice, token)
        case 1:
            at = dice.randrange(1, 9)
            opening, closing = dice.choice(WRAPPERS[:15])
            return f"{opening}{token[:at]}{closing}{token[at:]}"
        case 2:
            at = dice.randrange(9)
            return f"{token[:at]}&#{ord(token[at])};{token[at + 1 :]}"
        case _:
            return token


def _split(dice: random.Random) -> str:
    """A token that comes together when the one in it is taken out."""
    at = dice.randrange(1, len(TOKEN))
    inner = _wrapped(dice, TOKEN if dice.random() < 0.7 else _token(dice))
    return f"{TOKEN[:at]}{inner}{TOKEN[at:]}"


def _wrapped(dice: random.Random, text: str) -> str:
    for _ in range(dice.choice((0, 1, 1, 2, 3, 5))):
        opening, closing = dice.choice(WRAPPERS)
        if dice.random() < 0.1:
            closing = ""
        text = f"{opening}{text}{closing}"
    return text


def _sentence(dice: random.Random, most: int) -> str:
    return " ".join(dice.choice(WORDS) for _ in range(dice.randint(1, most)))


def _sprinkled(dice: random.Random, text: str) -> str:
    return "".join(
        char + dice.choice(INVISIBLE) * (dice.random() < 0.15) for char in text
    )  # fmt: skip


# ---------------------------------------------------------------------- the detector

_WORD = re.compile(r"(?<!\w)_*HEARTBEAT_OK_*(?!\w)")
_ORDERS = ("", "elt", "tle", "let", "te", "le", "e", "t", "l", "etlx", "tlex", "lx", "x", "elx")


def leaks(text: str) -> bool:
    """Whether somebody may read the token in a text, rendered in whatever way."""
    seen = {_rendered(text, order) for order in _ORDERS}
    return any(_WORD.search(_cleaned(each)) for each in seen)


def _rendered(text: str, order: str) -> str:
    """A text without entities (e), tags (t), addresses of links (l), signs of markup (x)."""
    for step in order:
        match step:
            case "e":
                text = html.unescape(text)
            case "t":
                text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
                text = re.sub(r"""<(?:"[^"]*"|'[^']*'|[^<>"'])*>|<[^<>]*>""", "", text)
            case "l":
                text = re.sub(
                    r"!?\[([^\[\]]*)\](?:\((?:\([^()]*\)|[^()])*\)|\[[^\[\]]*\])", r"\1", text
                )
            case "x":
                text = re.sub(r"[*`~\\]", "", text)
    return text.replace("\\_", "_")


def _cleaned(text: str) -> str:
    """A text without what cannot be seen."""
    if text.isascii():
        return re.sub(r"[\x00-\x08\x0e-\x1f\x7f]", "", text)
    kept = []
    for char in unicodedata.normalize("NFC", text):
        seen = char.isspace() or unicodedata.category(char) not in ("Cc", "Cf", "Mn", "Me")
        if seen:
            kept.append(char)
    return "".join(kept)


# ---------------------------------------------------------------------- counting


@dataclass(slots=True)
class Count:
    """What became of the replies."""

    replies: int = 0
    ok: int = 0
    cleaned: int = 0
    untouched: int = 0
    leaked: list[str] = field(default_factory=list)


def count(number: int, seed: int) -> Count:
    """Judge so many replies, and look at what would be delivered of each."""
    done = Count()
    for reply in replies(number, seed):
        position = AckPosition.EDGES if done.replies % 2 else AckPosition.ANYWHERE
        judged = judge(reply, ack_max_chars=(0, 20, 300)[done.replies % 3], position=position)
        done.replies += 1
        if judged.is_ok:
            done.ok += 1
        elif judged.text == reply:
            done.untouched += 1
        else:
            done.cleaned += 1
        # What a tool sends is not judged, but cleaned.
        if any(leaks(text) for text in {judged.text, without_token(reply)}):
            done.leaked.append(reply)
    return done


def main() -> int:
    """Count, print, and fail if anything leaked."""
    parser = argparse.ArgumentParser(prog="python -m bench.heartbeat.leaks", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    if given.count <= 0:
        parser.error("count is more than 0")
    done = count(given.count, given.seed)
    print(
        f"{done.replies:,} replies: {done.ok:,} all is well, {done.cleaned:,} delivered without "
        f"the token, {done.untouched:,} as they were; leaks: {len(done.leaked):,}"
    )
    for reply in done.leaked[:SHOWN_LEAKS]:
        print(f"  {reply!r}\n  -> {without_token(reply)!r}")
    return 1 if done.leaked else 0


if __name__ == "__main__":
    sys.exit(main())
