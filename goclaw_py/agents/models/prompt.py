"""Conversion of a person's message for a model: photos become pictures. Heavy imports."""

from __future__ import annotations

import asyncio
import mimetypes
from collections.abc import Sequence

from pydantic_ai.messages import BinaryContent, UserContent

from goclaw_py.model.messages import FileKind
from goclaw_py.ports.agent import FilePart, MessagePart

MOST_BYTES = 5_000_000
"""Larger photos are only mentioned."""

MOST_PICTURES = 20

_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
"""The types that providers accept."""


async def prompt_of(parts: Sequence[MessagePart]) -> str | list[UserContent]:
    """Return the texts of all parts, with placeholders for photos, then the photos.

    So a model without vision, and the history, still mention the photos and their paths.
    """
    words = "\n".join(part.text for part in parts)
    photos = [part for part in parts if isinstance(part, FilePart) and _type(part)]
    if not photos:
        return words
    read = await asyncio.to_thread(lambda: [_read(photo) for photo in photos[:MOST_PICTURES]])
    pictures = [picture for picture in read if picture is not None]
    return [words, *pictures] if pictures else words


def _type(part: FilePart) -> str:
    """Return the media type of a photo; "" for other files."""
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
