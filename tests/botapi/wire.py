"""HTTP as the emulator speaks it, well and badly."""

from __future__ import annotations

import asyncio
import json
import socket
import struct

from aiohttp import web

from tests.botapi.faults import Fault, FaultKind
from tests.botapi.rules import flood

_PAGE = "<html><head><title>{0}</title></head><body><h1>{0}</h1><hr>nginx</body></html>"


async def read(request: web.Request) -> dict[str, object]:
    """Parameters from the query, a form or a JSON body."""
    values: dict[str, object] = dict(request.query)
    if request.content_type == "application/json":
        body = await request.read()
        decoded: object = json.loads(body) if body else {}
        if isinstance(decoded, dict):
            values.update(decoded)
    else:
        values.update({key: str(value) for key, value in (await request.post()).items()})
    return values


async def fail(request: web.Request, fault: Fault) -> web.StreamResponse:
    match fault.kind:
        case FaultKind.FLOOD:
            refusal = flood(int(fault.seconds))
            return web.json_response(refusal.body(), status=refusal.code)
        case FaultKind.PAGE:
            return _page(fault.status)
        case FaultKind.GARBAGE_AFTER:
            return _page(200)
        case FaultKind.HANG | FaultKind.HANG_AFTER:
            # Ends by cancellation, when the caller goes away.
            await asyncio.get_running_loop().create_future()
        case FaultKind.BROKEN_AFTER:
            _babble(request)
            return web.Response()
    _reset(request)
    return web.Response()


def _page(status: int) -> web.Response:
    return web.Response(
        status=status, text=_PAGE.format(f"{status} Trouble"), content_type="text/html"
    )


def _babble(request: web.Request) -> None:
    """Send a line that is no status line, and end the connection."""
    if request.transport is not None:
        request.transport.write(f"{request.method} {request.raw_path} what?\r\n\r\n".encode())
        request.transport.close()


def _reset(request: web.Request) -> None:
    """Close the connection with RST instead of FIN."""
    if request.transport is None:
        return
    connection = request.transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    request.transport.abort()
