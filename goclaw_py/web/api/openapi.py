"""The description of the API: FastAPI's, with additions (SPEC OPS-2).

Over TCP every request passes the guard, whose errors belong to every operation. The examples are
whole responses of a gateway, in ``examples.json`` here and in the folders of nouns, by the names of
their schemas.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from threading import Lock
from typing import Any, Final

import orjson
from fastapi import APIRouter, FastAPI
from fastapi.responses import Response

from goclaw_py.operations.nouns import NOUNS
from goclaw_py.web.guard import OPEN_PATHS

_Json = dict[str, Any]

PLACE: Final = "/openapi.json"
JSON: Final = "application/json"
METHODS: Final = ("get", "put", "post", "delete", "patch")
_EXAMPLES: Final = "examples.json"
_LIKE: Final = "$like"
_ERROR: Final[_Json] = {"$ref": "#/components/schemas/ApiError"}
_REFUSED: Final = {
    401: "The token is missing or wrong. Only over TCP.",
    403: "The request comes from a page of another or an unknown site. Only over TCP.",
    421: "The name in `Host` is not a name of this gateway. Only over TCP.",
}
_SAID: Final = {
    400: "the body is not valid JSON",
    401: "a token is required: send the header Authorization: Bearer <token>",
    403: "requests from pages of other sites are refused",
    404: "there is no run '0190'",
    405: "Method Not Allowed",
    409: "no gateway is running here",
    413: "the body is longer than 1265536 bytes",
    415: "the body must be JSON, with the header Content-Type: application/json",
    421: "evil.example is not a name of this gateway; use localhost or its address",
    422: "limit: must be at most 1000",
    500: "internal error; the log of the gateway has the details",
    503: "the database does not answer",
}
_ABOUT: Final = """\
What an operator can see and do. Over TCP a request needs the token, if one is set:
`Authorization: Bearer <token>`. Every answer that is not 2xx is `{"error": "a sentence"}`, some
with more. Long lists come in pages: `limit` says how long one may be, the header `Link` has the
next.
"""
_FIRST: Final = re.compile(r"(.+?[.:;])(?:\s+|$)(.*)", re.DOTALL)


def describe(app: FastAPI) -> APIRouter:
    """Return the route with the complete description of an app.

    It is created once, at the first request, in a thread: that takes seconds.
    """
    found = app.openapi
    lock = Lock()

    def whole() -> _Json:
        with lock:
            if app.openapi_schema is None:
                app.openapi_schema = _complete(deepcopy(found()))
        return app.openapi_schema

    @cache
    def document() -> bytes:
        return orjson.dumps(whole())

    routes = APIRouter()

    @routes.get(PLACE, include_in_schema=False)
    async def description() -> Response:
        return Response(await asyncio.to_thread(document), media_type=JSON)

    app.openapi = whole  # type: ignore[method-assign]  # as FastAPI's manual has it
    return routes


def operations(document: _Json) -> Iterator[tuple[str, str, _Json]]:
    """Yield path, method and description of each operation."""
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                yield path, method, item[method]


def _complete(document: _Json) -> _Json:
    document["info"]["description"] = _ABOUT
    schemas = document["components"]["schemas"]
    schemas.setdefault("ApiError", _schema_of_error())
    for path, _, operation in operations(document):
        _in_words(operation)
        operation.setdefault("tags", ["gateway"])
        _with_refusals(path, operation)
        _with_examples(operation, schemas)
    for left_over in ("HTTPValidationError", "ValidationError"):
        schemas.pop(left_over, None)
    return document


def _schema_of_error() -> _Json:
    text = {"type": "string", "title": "Error"}
    return {
        "type": "object",
        "title": "ApiError",
        "properties": {"error": text},
        "required": ["error"],
    }


def _in_words(operation: _Json) -> None:
    """Use the first sentence as summary, in place of the function's name."""
    text = operation.get("description", "").replace("``", "`").strip()
    found = _FIRST.match(text)
    if found:
        operation["summary"] = " ".join(found[1].rstrip(".:;").split())
    operation["description"] = text


def _with_refusals(path: str, operation: _Json) -> None:
    responses = operation["responses"]
    invalid = responses.get("422", {}).get("content", {}).get(JSON, {}).get("schema", {})
    if invalid.get("$ref", "").endswith("/HTTPValidationError"):
        # These routes answer 400.
        del responses["422"]
    for status, about in _REFUSED.items():
        if status == 401 and path in OPEN_PATHS:
            continue
        known = responses.get(str(status))
        if known is None:
            responses[str(status)] = _refusal(about)
        else:
            schema = known["content"][JSON]["schema"]
            if schema != _ERROR:
                known["content"][JSON]["schema"] = {"anyOf": [schema, _ERROR]}
    if "requestBody" in operation:
        responses["415"] = _refusal("The `Content-Type` of the body is not JSON.")
    for code in [*responses]:
        responses[code].setdefault("description", HTTPStatus(int(code)).phrase)
    operation["responses"] = dict(sorted(responses.items()))


def _refusal(about: str) -> _Json:
    return {"description": about, "content": {JSON: {"schema": _ERROR}}}


def _with_examples(operation: _Json, schemas: _Json) -> None:
    body = operation.get("requestBody", {}).get("content", {}).get(JSON)
    if body is not None:
        _add(body, schemas)
    for code, response in operation["responses"].items():
        content = response.get("content", {}).get(JSON)
        if content is None:
            continue
        if int(code) < 400:
            _add(content, schemas)
        else:
            content.setdefault("example", _error_example(content["schema"], int(code)))


def _error_example(schema: _Json, code: int) -> object:
    name = _name(schema["anyOf"][0] if "anyOf" in schema else schema)
    return _known().get(name, {"error": _SAID.get(code, HTTPStatus(code).phrase)})


def _add(content: _Json, schemas: _Json) -> None:
    """Give a body an example, unless it has one."""
    schema = content.get("schema", {})
    # A body that may be missing: the first one is that which may be there.
    schema = schema["anyOf"][0] if "anyOf" in schema else schema
    is_list = schema.get("type") == "array"
    name = _name(schema["items"] if is_list else schema)
    # Ours first: FastAPI leaves the nulls out of those that stand in a schema.
    example = _known().get(name.rpartition("__")[2])
    if example is None and "examples" in schemas.get(name, {}):
        example = schemas[name]["examples"][0]
    if example is not None:
        content.setdefault("example", [example] if is_list else example)


def _name(schema: _Json) -> str:
    """Return the name of the schema, "" for one without a name."""
    reference: str = schema.get("$ref", "")
    return reference.rpartition("/")[2]


@cache
def _known() -> _Json:
    """Return the examples by the names of schemas.

    Within them ``{"$like": "OutboxRow", "error": null}`` is the example of ``OutboxRow`` with
    another value, so that a new field of a record needs one example.
    """
    nouns = (files(noun.package) / _EXAMPLES for noun in NOUNS)
    known: _Json = {}
    for place in (files(__package__) / _EXAMPLES, *nouns):
        known |= json.loads(place.read_text())

    def whole(value: Any) -> Any:
        if isinstance(value, list):
            return [whole(one) for one in value]
        if not isinstance(value, dict):
            return value
        own = {key: whole(one) for key, one in value.items() if key != _LIKE}
        return whole(known[value[_LIKE]]) | own if _LIKE in value else own

    return {name: whole(example) for name, example in known.items()}
