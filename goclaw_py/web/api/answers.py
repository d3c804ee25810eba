"""Good answers."""

from __future__ import annotations

from typing import Any

from fastapi.responses import Response

from goclaw_py.web.api.wire import dump


def answer(kind: Any, value: object, *, status_code: int = 200) -> Response:
    """Write a value the way the wire has it; FastAPI would check it once more."""
    return Response(dump(kind, value), status_code=status_code, media_type="application/json")
