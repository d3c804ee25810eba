"""Requests to a gateway, and their query parameters."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from datetime import datetime
from typing import Protocol

from goclaw_py.model.pagination import Cursor

Value = str | int | bool | datetime | Cursor
Params = Mapping[str, str | int | bool | list[str]]


class RequestSender(Protocol):
    """Sends a request to the gateway; returns the body, or raises the error in the response."""

    def __call__(
        self, method: str, path: str, body: object = None, *, params: Params | None = None
    ) -> Awaitable[bytes]:
        """Raises ``NoGateway`` as well."""


def given(**params: Value | None) -> Params:
    """Return the parameters that have a value, as in a URL."""
    return {name: _text(value) for name, value in params.items() if value is not None}


def _text(value: Value) -> str | int | bool:
    match value:
        case datetime():
            return value.isoformat()
        case Cursor():
            return str(value)
        case str():
            # Use the value of an enum; httpx would send its name.
            return str.__str__(value)
        case _:
            return value
