"""Recognises raster images by their first bytes: a name or a declared type may be wrong."""

from __future__ import annotations

from typing import Final

HEAD_BYTES: Final = 16
"""The number of bytes that ``raster_type`` looks at."""


def raster_type(head: bytes) -> str:
    """Return the media type of a PNG, JPEG, GIF or WebP image; "" for any other file.

    Only these may be shown in a page: other formats, such as SVG, can contain scripts.
    """
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return ""
