"""The controls over HTTP: each public method under ``/control/<name>``, with a JSON object."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import asdict, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, get_type_hints

import orjson
from aiohttp import web
from pydantic import TypeAdapter

from tests.botapi.knobs import Knobs

if TYPE_CHECKING:
    from tests.botapi.server import BotApi

WAITS = frozenset(["wait_calls", "wait_texts", "wait_visible", "wait_confirmed", "wait_deliveries"])


def controls() -> dict[str, Callable[..., object]]:
    """The controls that answer at once, by name."""
    return {
        name: function
        for name, function in inspect.getmembers(Knobs, inspect.isfunction)
        if not name.startswith("_")
    }


async def control(api: BotApi, request: web.BaseRequest) -> web.Response:
    """Answer a control: ``{"result": …}``, or ``{"error": …}``."""
    name = request.path.removeprefix("/control").strip("/")
    if not name:
        return _json({"result": {"port": api.control_port}})
    if name not in controls() and name not in WAITS:
        return _json({"error": f"no control named {name}"}, status=404)
    try:
        method = getattr(api, name)
        result = method(**_decoded(type(api), name, decoded(await request.read())))
        if inspect.isawaitable(result):
            result = await result
    except (TypeError, ValueError, KeyError, TimeoutError) as wrong:
        return _json({"error": f"{name}: {wrong!r}"}, status=400)
    return _json({"result": result})


def _decoded(owner: type, name: str, arguments: dict[str, object]) -> dict[str, object]:
    adapters = _adapters(owner, name)
    return {
        key: adapters[key].validate_python(value) if key in adapters else value
        for key, value in arguments.items()
    }


@cache
def _adapters(owner: type, name: str) -> dict[str, TypeAdapter[object]]:
    """What reads each named argument of a control."""
    function = getattr(owner, name)
    hints = get_type_hints(function, include_extras=True)
    named = [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD and parameter.name != "self"
    ]
    # A text stays as it is: what reads it would refuse lone surrogates.
    return {key: TypeAdapter(hints[key]) for key in named if hints[key] is not str}


def encoded(value: object) -> bytes:
    """JSON of arguments or a result; bytes become hexadecimal digits."""
    try:
        return orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS)
    except orjson.JSONEncodeError:
        # Only the slower encoder takes lone surrogates.
        return json.dumps(value, default=_plain).encode()


def decoded(body: bytes) -> Any:
    """The value of such JSON."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return json.loads(body)


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return value.hex()
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(f"no JSON for {type(value).__name__}")


def _json(value: object, *, status: int = 200) -> web.Response:
    return web.Response(body=encoded(value), status=status, content_type="application/json")
