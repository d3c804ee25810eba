"""Headers with which no browser takes an answer for something else, or stores it (SPEC SEC-7)."""

from __future__ import annotations

from typing import Final

from starlette.types import Message, Send

SEAL: Final = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))


def sealed(send: Send, seal: tuple[tuple[bytes, bytes], ...] = SEAL) -> Send:
    """Add to an answer those headers that it does not have."""

    async def send_sealed(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            names = {name.lower() for name, _ in headers}
            headers += [each for each in seal if each[0] not in names]
            message = {**message, "headers": headers}
        await send(message)

    return send_sealed
