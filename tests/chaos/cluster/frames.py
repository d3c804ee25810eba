"""What a PostgreSQL server sends, message by message: a type, an ``int32`` length, a body. Pure."""

from __future__ import annotations

from typing import Final

NOTICE: Final = b"A"[0]
"""The type of ``NotificationResponse``."""
_HEAD: Final = 5


class Frames:
    """Cuts a stream into messages; an unfinished one waits for its rest."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        """The messages that are whole by now. Raises ``ValueError`` for what is no message."""
        self._rest += chunk
        found: list[bytes] = []
        at = 0
        while len(self._rest) - at >= _HEAD:
            length = int.from_bytes(self._rest[at + 1 : at + _HEAD], "big")
            if length < _HEAD - 1:
                raise ValueError(f"a message of {length} bytes")
            end = at + 1 + length
            if end > len(self._rest):
                break
            found.append(bytes(self._rest[at:end]))
            at = end
        del self._rest[:at]
        return found


def without_notices(messages: list[bytes]) -> list[bytes]:
    """All but notices."""
    return [message for message in messages if message[0] != NOTICE]
