"""JSON that others have written: servers, programs, and the people who write to them."""

from __future__ import annotations

import json

import orjson


def parse_json(data: bytes) -> object:
    """Parse JSON, also with lone surrogates, raw control characters or invalid UTF-8.

    Invalid bytes become U+FFFD; surrogates are kept, because a later text may have the other half.
    Refusing the whole would lose everything beside one such text. Raises ``ValueError``.
    """
    try:
        found: object = orjson.loads(data)
    except orjson.JSONDecodeError:
        try:
            found = json.loads(data.decode("utf-8-sig", "replace"), strict=False)
        except RecursionError:
            raise ValueError("nested too deeply") from None
    return found
