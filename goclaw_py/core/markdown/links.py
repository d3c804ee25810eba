"""Rules for links and images. An image is a link: no channel shows it among the words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline import autolink as any_autolink
from markdown_it.rules_inline import link as any_link
from markdown_it.token import Token

_CALL = re.compile(r"\[[^\[\]\n]*\]\(\s*(<?[^()\s]*)")
"""An index and a call, or a link; its group is the address."""
_ADDRESS = re.compile(r"<(?:[A-Za-z][A-Za-z0-9+.-]{1,31}://|(?:mailto|tel|tg):)")
_IMAGE_WITHOUT_WORDS = "image"


def link(state: StateInline, silent: bool) -> bool:  # noqa: FBT001  the library's signature
    """Parse a link; ``handlers[name](event)`` and ``[0-9](abc)`` are none."""
    if state.src[state.pos] != "[":
        return False
    if found := _CALL.match(state.src, state.pos, state.posMax):
        address = found[1]
        is_call = state.pos > 0 and _is_code(state.src[state.pos - 1])
        if not any(char in address for char in (":/" if is_call else ":/.#<")):
            return False
    return any_link(state, silent)


def autolink(state: StateInline, silent: bool) -> bool:  # noqa: FBT001  the library's signature
    """Parse an address in brackets; ``<std::vector>`` and ``ssh <user@host>`` stay as written."""
    return _ADDRESS.match(state.src, state.pos) is not None and any_autolink(state, silent)


def _is_code(before: str) -> bool:
    return before.isascii() and (before.isalnum() or before in "_)]")


def with_words(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens of a paragraph, each image as a link, each link with words.

    Within a link an image is only its words.
    """
    found: list[Token] = []
    begin = depth = 0
    for token in tokens:
        match token.type:
            case "link_open":
                depth += 1
                begin = len(found)
                found.append(token)
            case "link_close":
                depth -= 1
                if not any(inner.content.strip() for inner in found[begin:]):
                    address = str(found[begin].attrs["href"]).removeprefix("mailto:")
                    found.append(_words(address, token.level + 1))
                found.append(token)
            case "image":
                found += _image(token, is_linked=depth > 0)
            case _:
                found.append(token)
    return found


def _image(token: Token, *, is_linked: bool) -> Iterator[Token]:
    address = str(token.attrs["src"])
    words = _alt(token.children or ()) or _IMAGE_WITHOUT_WORDS
    if is_linked or address.startswith("data:"):
        yield _words(words, token.level)
        return
    yield Token("link_open", "a", 1, {"href": address}, level=token.level)
    yield _words(words, token.level + 1)
    yield Token("link_close", "a", -1, level=token.level)


def _words(text: str, level: int) -> Token:
    return Token("text", "", 0, content=text, level=level)


def _alt(tokens: Iterable[Token]) -> str:
    words = []
    for token in tokens:
        if token.type == "image":
            words.append(_alt(token.children or ()))
        else:
            words.append(token.content or " " * token.type.endswith("break"))
    return "".join(words).strip()
