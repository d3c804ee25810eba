"""Conversion of a person's message for a model: photos become pictures. Heavy imports."""

from __future__ import annotations

import asyncio
import mimetypes
from collections.abc import Sequence

from pydantic_ai.messages import BinaryContent, UserContent

from goclaw_py.core.messages import FileKind
from goclaw_py.runs.agent_loop import FilePart, MessagePart

MOST_BYTES = 5_000_000
"""Larger photos are only mentioned."""

MOST_PICTURES = 20
MOST_TOGETHER_BYTES = 15_000_000
"""The most bytes of all pictures of a prompt; further photos are only mentioned.

While a request is written they are in memory six times, and Base64 makes them a third larger:
servers refuse requests from 32 MB on.
"""

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
    pictures = await asyncio.to_thread(_read, photos)
    return [words, *pictures] if pictures else words


def _type(part: FilePart) -> str:
    """Return the media type of a photo; "" for other files."""
    if part.kind is not FileKind.PHOTO:
        return ""
    mime = part.mime or mimetypes.guess_type(part.path.name)[0] or ""
    return mime if mime in _TYPES else ""


def _read(photos: Sequence[FilePart]) -> list[BinaryContent]:
    """Return the photos that fit the limits, in their order."""
    pictures: list[BinaryContent] = []
    room = MOST_TOGETHER_BYTES
    for photo in photos[:MOST_PICTURES]:
        most = min(MOST_BYTES, room)
        try:
            # Never more than that, although the agent itself can change files of its workspace.
            with photo.path.open("rb") as file:
                data = file.read(most + 1)
        except OSError:
            continue
        if len(data) <= most:
            pictures.append(BinaryContent(data, media_type=_type(photo)))
            room -= len(data)
    return pictures
