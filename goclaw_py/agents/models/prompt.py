"""What a person said as a model gets it: photos are pictures. Imports heavy libraries."""

from __future__ import annotations

import asyncio
import mimetypes
from collections.abc import Sequence

from pydantic_ai.messages import BinaryContent, UserContent

from goclaw_py.model.messages import FileKind
from goclaw_py.ports.agent import FilePart, MessagePart

MOST_BYTES = 5_000_000
"""A larger photo is only told of."""

MOST_PICTURES = 20

_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
"""What the providers take."""


async def prompt_of(parts: Sequence[MessagePart]) -> str | list[UserContent]:
    """The words of all parts, photos included as words; then the photos themselves.

    So whoever cannot see them, or reads the history, knows that there were some and where they are.
    """
    words = "\n".join(part.text for part in parts)
    photos = [part for part in parts if isinstance(part, FilePart) and _type(part)]
    if not photos:
        return words
    read = await asyncio.to_thread(lambda: [_read(photo) for photo in photos[:MOST_PICTURES]])
    pictures = [picture for picture in read if picture is not None]
    return [words, *pictures] if pictures else words


def _type(part: FilePart) -> str:
    """What kind of picture it is; "" for what is no photo."""
    if part.kind is not FileKind.PHOTO:
        return ""
    mime = part.mime or mimetypes.guess_type(part.path.name)[0] or ""
    return mime if mime in _TYPES else ""


def _read(part: FilePart) -> BinaryContent | None:
    try:
        if part.path.stat().st_size > MOST_BYTES:
            return None
        return BinaryContent(part.path.read_bytes(), media_type=_type(part))
    except OSError:
        # It is in a folder that the agent itself can change.
        return None
