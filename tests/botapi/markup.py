"""``parse_mode = HTML`` as the server reads it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tests.botapi.entities import MOST_ENTITIES, found_in, merged
from tests.botapi.rules import Json, Refusal, bad_request, units

_KINDS = {
    "a": "text_link", "b": "bold", "strong": "bold", "i": "italic", "em": "italic",
    "u": "underline", "ins": "underline", "s": "strikethrough", "strike": "strikethrough",
    "del": "strikethrough", "blockquote": "blockquote", "code": "code", "pre": "pre",
    "span": "spoiler", "tg-spoiler": "spoiler", "tg-emoji": "custom_emoji",
}  # fmt: skip
TAGS = frozenset(_KINDS)
_MOST_ENTITY_BYTES = 9500
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}
_ENTITY = re.compile(r"&(#x[0-9a-fA-F]+|#[0-9]+|[a-zA-Z]+);")
_START = re.compile(
    r"<([a-zA-Z][a-zA-Z0-9-]*)((?:\s+[a-zA-Z-]+(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s>\"']+))?)*)\s*>"
)
_ATTRIBUTE = re.compile(r"([a-zA-Z-]+)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>\"']+)))?")
_END = re.compile(r"</([a-zA-Z0-9-]*)\s*>")
_TEXT = re.compile(r"[^&<]+")
_USER = re.compile(r"tg://user\?id=(\d+)")


@dataclass(frozen=True, slots=True)
class Formatted:
    """A text as people see it, and its entities in UTF-16 units."""

    text: str
    entities: list[Json]


@dataclass(frozen=True, slots=True)
class _Tag:
    name: str
    place: int
    begin: int
    attributes: dict[str, str]


@dataclass(slots=True)
class _Reader:
    source: str
    at: int = 0
    length: int = 0
    """UTF-16 units that came out so far."""
    out: list[str] = field(default_factory=list)
    open: list[_Tag] = field(default_factory=list)
    entities: list[Json] = field(default_factory=list)

    def put(self, text: str) -> None:
        self.out.append(text)
        self.length += units(text)

    def refuse(self, words: str, place: int, more: str = "") -> Refusal:
        offset = len(self.source[:place].encode())
        return bad_request(f"can't parse entities: {words} at byte offset {offset}{more}")


def plain(source: str) -> Formatted:
    """A text without markup, as the server keeps it."""
    text = source.strip()
    return Formatted(text, found_in(text)[:MOST_ENTITIES])


def plain_as_typed(text: str) -> Formatted:
    """What somebody typed, whose app has trimmed it already."""
    return Formatted(text, found_in(text)[:MOST_ENTITIES])


def html(source: str) -> Formatted:
    """A text in HTML. Raises ``Refusal`` for what the server cannot parse."""
    reader = _Reader(source)
    while reader.at < len(source):
        if source[reader.at] == "&":
            _entity(reader)
        elif source.startswith("</", reader.at):
            _end_tag(reader)
        elif source[reader.at] == "<":
            _start_tag(reader)
        elif match := _TEXT.match(source, reader.at):
            reader.put(match[0])
            reader.at = match.end()
    if reader.open:
        tag = reader.open[-1]
        words = f'Can\'t find end tag corresponding to start tag "{tag.name}"'
        raise reader.refuse(words, tag.place)
    return _trimmed("".join(reader.out), reader.entities)


def _trimmed(text: str, entities: list[Json]) -> Formatted:
    """Without blanks at both ends; entities that have nothing left are dropped."""
    seen = text.strip()
    skipped = units(text[: len(text) - len(text.lstrip())])
    end = units(seen)
    kept = [moved for entity in entities if (moved := _moved(entity, skipped, end))]
    size = sum(len(str(entity.get("url", "")).encode()) + 12 for entity in kept)
    if size > _MOST_ENTITY_BYTES:
        raise bad_request("ENTITIES_TOO_LONG")
    return Formatted(seen, merged(kept, found_in(seen)))


def _moved(entity: Json, skipped: int, end: int) -> Json | None:
    offset, length = entity["offset"], entity["length"]
    assert isinstance(offset, int)
    assert isinstance(length, int)
    first = max(0, offset - skipped)
    last = min(end, offset + length - skipped)
    return {**entity, "offset": first, "length": last - first} if last > first else None


def _entity(reader: _Reader) -> None:
    match = _ENTITY.match(reader.source, reader.at)
    value = None if match is None else _decode(match[1])
    if match and value:
        reader.put(value)
        reader.at = match.end()
    else:
        # The server leaves what it does not know as it is.
        reader.put("&")
        reader.at += 1


def _decode(name: str) -> str | None:
    if not name.startswith("#"):
        return _NAMED.get(name)
    number = int("0" + name[1:], 0) if name[1] == "x" else int(name[1:])
    if number == 0 or number > 0x10FFFF or 0xD800 <= number < 0xE000:
        return None
    return chr(number)


def _start_tag(reader: _Reader) -> None:
    place = reader.at
    match = _START.match(reader.source, reader.at)
    if match is None:
        begun = re.match(r"<([^\s>]*)", reader.source[reader.at :])
        found = begun[1].lower() if begun else ""
        if found in TAGS:
            raise reader.refuse("Unclosed start tag", place)
        raise reader.refuse(f'Unsupported start tag "{found}"', place)
    name = match[1].lower()
    if name not in TAGS:
        raise reader.refuse(f'Unsupported start tag "{name}"', place)
    attributes = {
        found[1].lower(): found[2] or found[3] or found[4] or ""
        for found in _ATTRIBUTE.finditer(match[2])
    }
    if name == "span" and attributes.get("class") != "tg-spoiler":
        raise reader.refuse('Tag "span" must have class "tg-spoiler"', place)
    reader.open.append(_Tag(name, place, reader.length, attributes))
    reader.at = match.end()


def _end_tag(reader: _Reader) -> None:
    place = reader.at
    match = _END.match(reader.source, reader.at)
    if match is None:
        raise reader.refuse("Unclosed end tag", place)
    if not reader.open:
        raise reader.refuse("Unexpected end tag", place)
    tag = reader.open.pop()
    if match[1] and match[1].lower() != tag.name:
        words = f', expected "</{tag.name}>", found "</{match[1].lower()}>"'
        raise reader.refuse("Unmatched end tag", place, words)
    _close(reader, tag)
    reader.at = match.end()


def _close(reader: _Reader, tag: _Tag) -> None:
    """Add the entity of a tag that ends here, as far as it is one."""
    entity: Json = {
        "type": _KINDS[tag.name],
        "offset": tag.begin,
        "length": reader.length - tag.begin,
    }
    language = tag.attributes.get("class", "").removeprefix("language-")
    if tag.name == "code" and language and reader.open and reader.open[-1].name == "pre":
        # <pre><code class="language-x"> is one entity, the outer one.
        reader.open[-1].attributes["language"] = language
        return
    match tag.name:
        case "a" if _link(entity, tag.attributes.get("href", "")):
            pass
        case "a":
            return
        case "pre" if tag.attributes.get("language"):
            entity["language"] = tag.attributes["language"]
        case "blockquote" if "expandable" in tag.attributes:
            entity["type"] = "expandable_blockquote"
        case "tg-emoji":
            entity["custom_emoji_id"] = tag.attributes.get("emoji-id", "")
    if entity["length"]:
        reader.entities.append(entity)


def _link(entity: Json, address: str) -> bool:
    """Complete the entity of a link; whether it is one that the server takes."""
    address = _ENTITY.sub(lambda found: _decode(found[1]) or found[0], address)
    if user := _USER.fullmatch(address):
        entity["type"] = "text_mention"
        entity["user"] = {"id": int(user[1]), "is_bot": False, "first_name": "User"}
        return True
    entity["url"] = address
    return bool(re.match(r"(?:https?|tg|ton|mailto|tel):|[\w-]+(?:\.[\w-]+)+", address))
