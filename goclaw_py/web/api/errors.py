"""Every answer that is not a good one: ``{"error": …}`` with the right status (SPEC OPS-2)."""

from __future__ import annotations

import re
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from goclaw_py.model.errors import GoclawError
from goclaw_py.web.api.error_json import error_json, status_of
from goclaw_py.web.api.wire import ApiError, dump
from goclaw_py.web.content import NOT_JSON, is_json


def handle_errors(app: FastAPI) -> None:
    """Let an app answer all errors."""
    for kind in (GoclawError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, _on_error)


async def _on_error(request: Request, error: Exception) -> Response:
    headers = None
    body = None
    match error:
        case HTTPException():
            code, text, headers = error.status_code, str(error.detail), error.headers
            if code == 405:
                headers = {"Allow": ", ".join(_methods(request))}
        case RequestValidationError():
            code = 400 if any(map(_is_unreadable, error.errors())) else 422
            text = "; ".join(_sentence(detail) for detail in error.errors())
            if code == 400 and not is_json(request):
                code, text = 415, NOT_JSON
        case GoclawError():
            code, text, body = status_of(error), str(error), error_json(error)
        case _:
            # Starlette raises it again after this answer, so the server logs it and hangs up.
            code, text = 500, "internal error; the log of the gateway has the details"
            headers = {"Connection": "close"}
    body = body or dump(ApiError, ApiError(text))
    return Response(body, status_code=code, headers=headers, media_type="application/json")


def _methods(request: Request) -> list[str]:
    """What can be done at the path of a request; Starlette knows only its first route."""
    path = request.scope["path"]
    known: list[tuple[re.Pattern[str], frozenset[str]]] = request.app.state.methods
    return sorted({one for pattern, methods in known if pattern.match(path) for one in methods})


def _is_unreadable(detail: dict[str, Any]) -> bool:
    """Whether the body as a whole is wrong, not a value in it."""
    return detail["type"] == "json_invalid" or tuple(detail["loc"]) == ("body",)


def _sentence(detail: dict[str, Any]) -> str:
    where = ".".join(str(part) for part in detail["loc"][1:]) or "body"
    unknown = detail["type"] in ("extra_forbidden", "unexpected_keyword_argument")
    return f"{where}: {'unknown key' if unknown else detail['msg']}"
