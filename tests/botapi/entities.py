"""What the server finds in a plain text by itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tests.botapi.rules import Json, units

MOST_ENTITIES = 100
"""The server forgets the entities after these."""
_FOUND = re.compile(
    r"(?P<url>https?://[^\s<>\"]*[^\s<>\".,;:!?)\]'])"
    r"|(?P<email>\b[\w.+-]+@[\w-]+\.[a-zA-Z]{2,}\b)"
    r"|(?P<bot_command>(?:^|(?<=\s))/[A-Za-z0-9_]{1,32}(?:@[A-Za-z0-9_]{3,32})?\b)"
    r"|(?P<mention>(?<![\w@/])@[A-Za-z][A-Za-z0-9_]{3,31}\b)"
    r"|(?P<hashtag>(?<![\w#])#(?=\w*[^\W\d])\w+)"
)
_SIGNS = re.compile(r"[/@#:]")


def found_in(text: str) -> list[Json]:
    """Links, mentions, commands, hashtags and addresses, in UTF-16 units."""
    if not _SIGNS.search(text):
        return []
    return [
        {
            "type": match.lastgroup,
            "offset": units(text[: match.start()]),
            "length": units(match[0]),
        }
        for match in _FOUND.finditer(text)
    ]


def merged(marked: Sequence[Json], found: Iterable[Json]) -> list[Json]:
    """Those that the sender marked, and those found where nothing is code or a link already."""
    closed = [_span(entity) for entity in marked if entity["type"] in _CLOSED]
    free = [
        entity
        for entity in found
        if not any(begin < _span(entity)[1] and _span(entity)[0] < end for begin, end in closed)
    ]
    every = sorted([*marked, *free], key=lambda entity: (_span(entity)[0], -_span(entity)[1]))
    return every[:MOST_ENTITIES]


_CLOSED = frozenset(["code", "pre", "text_link", "text_mention", "custom_emoji"])


def _span(entity: Json) -> tuple[int, int]:
    begin, length = entity["offset"], entity["length"]
    assert isinstance(begin, int)
    assert isinstance(length, int)
    return begin, begin + length
