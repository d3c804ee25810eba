"""``parse_mode = HTML`` as the server reads it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tests.botapi.rules import Refusal, bad_request

TAGS = frozenset(
    [
        "a",
        "b",
        "blockquote",
        "code",
        "del",
        "em",
        "i",
        "ins",
        "pre",
        "s",
        "span",
        "strike",
        "strong",
        "tg-emoji",
        "tg-spoiler",
        "u",
    ]
)
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}
_ENTITY = re.compile(r"&(#x[0-9a-fA-F]+|#[0-9]+|[a-zA-Z]+);")
_START = re.compile(
    r"<([a-zA-Z][a-zA-Z0-9-]*)((?:\s+[a-zA-Z-]+(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s>\"']+))?)*)\s*>"
)
_END = re.compile(r"</([a-zA-Z0-9-]*)\s*>")


@dataclass(slots=True)
class _Reader:
    source: str
    at: int = 0
    out: list[str] = field(default_factory=list)
    open: list[tuple[str, int]] = field(default_factory=list)

    def byte(self, place: int) -> int:
        return len(self.source[:place].encode())

    def refuse(self, words: str) -> Refusal:
        return bad_request(f"can't parse entities: {words}")


def plain_text(source: str) -> str:
    """The text that people see. Raises ``Refusal`` for what the server cannot parse."""
    reader = _Reader(source)
    while reader.at < len(source):
        if source[reader.at] == "&":
            _entity(reader)
        elif source.startswith("</", reader.at):
            _end_tag(reader)
        elif source[reader.at] == "<":
            _start_tag(reader)
        else:
            reader.out.append(source[reader.at])
            reader.at += 1
    if reader.open:
        name, place = reader.open[-1]
        raise reader.refuse(
            f'Can\'t find end tag corresponding to start tag "{name}" at byte offset {place}'
        )
    return "".join(reader.out)


def _entity(reader: _Reader) -> None:
    match = _ENTITY.match(reader.source, reader.at)
    value = None if match is None else _decode(match[1])
    if match and value:
        reader.out.append(value)
        reader.at = match.end()
    else:
        # The server leaves what it does not know as it is.
        reader.out.append("&")
        reader.at += 1


def _decode(name: str) -> str | None:
    if not name.startswith("#"):
        return _NAMED.get(name)
    number = int("0" + name[1:], 0) if name[1] == "x" else int(name[1:])
    if number == 0 or number > 0x10FFFF or 0xD800 <= number < 0xE000:
        return None
    return chr(number)


def _start_tag(reader: _Reader) -> None:
    place = reader.byte(reader.at)
    match = _START.match(reader.source, reader.at)
    if match is None:
        begun = re.match(r"<([^\s>]*)", reader.source[reader.at :])
        found = begun[1].lower() if begun else ""
        if found in TAGS:
            raise reader.refuse(f"Unclosed start tag at byte offset {place}")
        raise reader.refuse(f'Unsupported start tag "{found}" at byte offset {place}')
    name = match[1].lower()
    if name not in TAGS:
        raise reader.refuse(f'Unsupported start tag "{name}" at byte offset {place}')
    if name == "span" and "tg-spoiler" not in match[2]:
        raise reader.refuse(f'Tag "span" must have class "tg-spoiler" at byte offset {place}')
    reader.open.append((name, place))
    reader.at = match.end()


def _end_tag(reader: _Reader) -> None:
    place = reader.byte(reader.at)
    match = _END.match(reader.source, reader.at)
    if match is None:
        raise reader.refuse(f"Unclosed end tag at byte offset {place}")
    if not reader.open:
        raise reader.refuse(f"Unexpected end tag at byte offset {place}")
    name, _ = reader.open.pop()
    if match[1] and match[1].lower() != name:
        raise reader.refuse(
            f'Unmatched end tag at byte offset {place}, expected "</{name}>", '
            f'found "</{match[1].lower()}>"'
        )
    reader.at = match.end()
