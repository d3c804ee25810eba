"""A size limit for request bodies."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from goclaw_py.web.api.wire import ApiError, dump


class BodyLimit:
    """Responds with 413 to a body over ``max_bytes``, with the API's error body.

    FastAPI's own limit responds in plain text.
    """

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        if announced.isdigit() and int(announced) > self._max_bytes:
            body = dump(ApiError, ApiError(self._text))
            response = Response(body, status_code=413, media_type="application/json")
            await response(scope, receive, send)
            return
        await self._app(scope, self._counted(receive), send)

    def _counted(self, receive: Receive) -> Receive:
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._max_bytes:
                raise HTTPException(413, self._text)
            return message

        return counted

    @property
    def _text(self) -> str:
        return f"the body is longer than {self._max_bytes} bytes"
