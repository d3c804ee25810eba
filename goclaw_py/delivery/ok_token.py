"""HEARTBEAT_OK in what an agent says (SPEC HB-6, HB-7)."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, assert_never

from goclaw_py.common.text import well_formed
from goclaw_py.delivery.ok_token_markup import (
    MarkupSpan,
    bare,
    shown,
    token_spans,
    trimmed,
    without_underscores,
)
from goclaw_py.delivery.ok_token_spans import cut

HEARTBEAT_OK: Final = "HEARTBEAT_OK"

_ROUNDS = 3
"""How often what is left is looked at again before it is no longer handled with care."""


class AckPosition(StrEnum):
    """Where in a reply HEARTBEAT_OK counts (SPEC HB-6)."""

    ANYWHERE = "anywhere"
    EDGES = "edges"


@dataclass(frozen=True, slots=True)
class AckResult:
    """What a reply means.

    Args:
        is_ok: All is well: nothing is delivered.
        text: What is to be delivered otherwise: the reply without the token, in Markdown as it was;
            never blank, and never with the token as a word.
    """

    is_ok: bool
    text: str = ""


def judge(reply: str, *, ack_max_chars: int, position: AckPosition) -> AckResult:
    """Tell whether a reply says that all is well, and what of it is delivered if not.

    A *character* is a code point of the text in NFC: an accented letter is one however it is
    written, an emoji of several parts is as many as it has, with its joiners. Blanks and what
    shows nothing are not counted at the ends.

    Source: SPEC HB-6.
    """
    left = well_formed(reply)
    spans = token_spans(left)
    if not spans:
        return AckResult(is_ok=False, text=reply) if trimmed(left) else AckResult(is_ok=True)
    text = _without(left, spans)
    rest = trimmed(bare(text))
    is_short = len(unicodedata.normalize("NFC", rest)) <= ack_max_chars
    if not rest or (is_short and _counts(left, spans, position)):
        return AckResult(is_ok=True)
    return AckResult(is_ok=False, text=text)


def without_token(text: str) -> str:
    """A text without the token and the markup around it; unchanged if it is not in it.

    Whatever the text, the token is no word of what is returned, rendered or as it stands.
    """
    left = well_formed(text)
    spans = token_spans(left)
    return _without(left, spans) if spans else text


def conversation_text(text: str, *, growing: bool = False) -> str:
    """A reply in a conversation, without the token where it is no part of a sentence.

    That is alone, or at the begin or end of the reply on a line of its own or set off by
    punctuation: models that know the token from heartbeats put it there. A sentence about the token
    stays whole. Of a reply that is ``growing`` the beginning of a token at its end is left out too.

    Source: SPEC HB-6.
    """
    left = well_formed(text)
    if growing and (begun := _BEGUN.search(left)) and HEARTBEAT_OK.startswith(begun[1]):
        left = left[: begun.start()]
    if HEARTBEAT_OK[:4] not in left:
        return left if growing else text
    for _ in range(_ROUNDS):
        spans = token_spans(left)
        if not spans or not trimmed(bare(cut(left, spans))):
            return left if not spans else ""
        first, last = spans[0], spans[-1]
        if _is_trimming(left[last.end :]) and _ENDS.search(left[: last.begin]):
            left = cut(left, [last]).rstrip()
        elif _is_trimming(left[: first.begin]) and _BEGINS.match(left[first.end :]):
            left = cut(left, [first]).lstrip("\n .,;:!?\u2013\u2014-")
        else:
            break
    return left


_BEGUN: Final = re.compile(r"(?:^|\s)[*_`]*(HEAR[A-Z_]*)$")
_ENDS: Final = re.compile(r"(?:^|[.!?\u2026\u3002\uff01\uff1f][\s*_`)\]]*|\n\s*)[*_`>\s]*$")
"""Before the token: nothing, the end of a sentence, or a line that has ended."""
_BEGINS: Final = re.compile(r"[*_`]*[ \t]*(?:$|\n|[.,;:!?\u2013\u2014-])")
"""Behind the token: nothing, the end of its line, or what ends a sentence."""


def alert_key(agent: str, target: str, text: str) -> str:
    """Equal for alerts that say the same in the same place (SPEC HB-7); 64 hexadecimal digits.

    ``target`` names the chat and thread. Token and markup do not count, nor how blanks are written.
    """
    said = unicodedata.normalize("NFC", shown(bare(without_token(well_formed(text)))))
    key = hashlib.sha256()
    for part in (agent, target, " ".join(said.split())):
        encoded = well_formed(part).encode()
        # With its length: what moves from one part to the next makes another key.
        key.update(b"%d:%b" % (len(encoded), encoded))
    return key.hexdigest()


def _without(text: str, spans: Sequence[MarkupSpan]) -> str:
    for _ in range(_ROUNDS):
        text = cut(text, spans)
        # Two halves may have come together, or what was in a tag have come out of it.
        spans = token_spans(text)
        if not spans:
            return text
    return without_underscores(text)


def _counts(reply: str, spans: Sequence[MarkupSpan], position: AckPosition) -> bool:
    """Whether the token is where it counts."""
    match position:
        case AckPosition.ANYWHERE:
            return True
        case AckPosition.EDGES:
            around = (reply[: spans[0].begin], reply[spans[-1].end :])
            return any(map(_is_trimming, around))
        case _:
            assert_never(position)


def _is_trimming(text: str) -> bool:
    """Whether there is nothing but blanks, markup and punctuation."""
    return all(
        (char.isascii() and not char.isalnum()) or unicodedata.category(char)[0] in "PZCM"
        for char in bare(text)
    )
