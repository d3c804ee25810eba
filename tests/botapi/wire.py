"""HTTP as the emulator speaks it, well and badly."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
from collections.abc import Mapping

import aiohttp
import orjson
from aiohttp import web

from tests.botapi.faults import Fault, FaultKind
from tests.botapi.files import UPLOAD_BYTES
from tests.botapi.rules import Refusal, Upload, bad_request, dumps, flood

_PAGE = "<html><head><title>{0}</title></head><body><h1>{0}</h1><hr>nginx</body></html>"
_ROOM = 1 << 20
"""For the other fields of an upload."""


async def read(request: web.BaseRequest) -> tuple[dict[str, object], dict[str, Upload]]:
    """Parameters from the query, a form or a JSON body, and files. Raises ``Refusal``."""
    values: dict[str, object] = dict(request.query) if request.query_string else {}
    uploads: dict[str, Upload] = {}
    if request.content_type == "application/json":
        values.update(_decode(await request.read()))
    elif request.content_type == "multipart/form-data":
        await _read_parts(request, values, uploads)
    elif request.can_read_body:
        values.update({key: str(value) for key, value in (await request.post()).items()})
    return values, uploads


def _decode(body: bytes) -> Mapping[str, object]:
    if not body:
        return {}
    try:
        decoded: object = orjson.loads(body)
    except orjson.JSONDecodeError:
        # Only the slower decoder reads lone surrogates.
        try:
            decoded = json.loads(body)
        except ValueError as wrong:
            raise bad_request("can't parse request JSON object") from wrong
    return decoded if isinstance(decoded, dict) else {}


async def _read_parts(
    request: web.BaseRequest, values: dict[str, object], uploads: dict[str, Upload]
) -> None:
    size = 0
    reader = await request.multipart()
    while (part := await reader.next()) is not None:
        if not isinstance(part, aiohttp.BodyPartReader) or part.name is None:
            raise bad_request("can't parse multipart form data")
        content = bytearray()
        while chunk := await part.read_chunk(1 << 16):
            content += chunk
            size += len(chunk)
            if size > UPLOAD_BYTES + _ROOM:
                raise Refusal(413, "Request Entity Too Large")
        if part.filename is None:
            values[part.name] = content.decode()
        else:
            mime = part.headers.get("Content-Type", "application/octet-stream")
            uploads[part.name] = Upload(part.filename, mime, bytes(content))


def answer(body: object, status: int = 200) -> web.Response:
    return web.Response(
        body=dumps(body), status=status, headers={"Content-Type": "application/json"}
    )


async def fail_before(request: web.BaseRequest, fault: Fault) -> web.Response:
    """Go wrong instead of doing what was asked."""
    match fault.kind:
        case FaultKind.FLOOD:
            refusal = flood(int(fault.seconds))
            return answer(refusal.body(), refusal.code)
        case FaultKind.ERROR:
            return answer(Refusal(fault.status, fault.words).body(), fault.status)
        case FaultKind.PAGE:
            return _page(fault.status)
        case FaultKind.HANG:
            await _for_ever()
    _reset(request)
    return web.Response()


async def fail_after(
    request: web.BaseRequest, fault: Fault, good: web.Response
) -> web.StreamResponse:
    """Go wrong instead of giving ``good``, the answer to what was done."""
    match fault.kind:
        case FaultKind.GARBAGE_AFTER:
            return _page(200)
        case FaultKind.HANG_AFTER:
            await _for_ever()
        case FaultKind.DELAY_AFTER:
            await asyncio.sleep(fault.seconds)
            return good
        case FaultKind.DRIP:
            return await _drip(request, good, fault.seconds)
        case FaultKind.CUT:
            await _begin(request, good)
        case FaultKind.BROKEN_AFTER:
            _babble(request)
            return web.Response()
    _reset(request)
    return web.Response()


async def _for_ever() -> None:
    # Ends by cancellation, when the caller goes away.
    await asyncio.get_running_loop().create_future()


async def _drip(request: web.BaseRequest, good: web.Response, pause_s: float) -> web.StreamResponse:
    body = _bytes(good)
    slow = web.StreamResponse(status=good.status, headers=good.headers)
    slow.content_length = len(body)
    await slow.prepare(request)
    for place in range(len(body)):
        await slow.write(body[place : place + 1])
        await asyncio.sleep(pause_s)
    await slow.write_eof()
    return slow


async def _begin(request: web.BaseRequest, good: web.Response) -> None:
    """Send half of an answer."""
    body = _bytes(good)
    half = web.StreamResponse(status=good.status, headers=good.headers)
    half.content_length = len(body)
    await half.prepare(request)
    await half.write(body[: len(body) // 2])
    if request.transport is not None:
        # Not by RST, which would make the other end forget what has come.
        request.transport.close()


def _bytes(good: web.Response) -> bytes:
    body = good.body
    assert isinstance(body, bytes)
    return body


def _page(status: int) -> web.Response:
    return web.Response(
        status=status, text=_PAGE.format(f"{status} Trouble"), content_type="text/html"
    )


def _babble(request: web.BaseRequest) -> None:
    """Send a line that is no status line, and end the connection."""
    if request.transport is not None:
        request.transport.write(f"{request.method} {request.raw_path} what?\r\n\r\n".encode())
        request.transport.close()


def _reset(request: web.BaseRequest) -> None:
    """Close the connection with RST instead of FIN."""
    if request.transport is None or request.transport.is_closing():
        return
    connection = request.transport.get_extra_info("socket")
    # Loops differ in what they let one do with their socket; a copy is an ordinary one.
    with socket.socket(fileno=os.dup(connection.fileno())) as copy:
        copy.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    request.transport.abort()
