"""The content type of requests."""

from __future__ import annotations

from typing import Final

from fastapi import Request

NOT_JSON: Final = "the body must be JSON, with the header Content-Type: application/json"


def is_json(request: Request) -> bool:
    """Return whether a body is declared as JSON; True without a body."""
    has_body = request.headers.get("content-length", "0") != "0"
    if not has_body and "transfer-encoding" not in request.headers:
        return True
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json" or (
        kind.startswith("application/") and kind.endswith("+json")
    )
