"""The server's refusals and how it reads parameters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeGuard

import orjson

Json = dict[str, object]


class Refusal(Exception):
    """An answer with ``ok: false``, as the real server words it."""

    def __init__(self, code: int, description: str, **parameters: int) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters = parameters

    def body(self) -> Json:
        """The JSON of the answer."""
        answer: Json = {"ok": False, "error_code": self.code, "description": self.description}
        if self.parameters:
            answer["parameters"] = dict(self.parameters)
        return answer


def bad_request(words: str) -> Refusal:
    """A 400."""
    return Refusal(400, f"Bad Request: {words}")


def forbidden(words: str) -> Refusal:
    """A 403."""
    return Refusal(403, f"Forbidden: {words}")


def flood(seconds: int) -> Refusal:
    """A 429."""
    return Refusal(429, f"Too Many Requests: retry after {seconds}", retry_after=seconds)


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that came with a call, as multipart form data."""

    name: str
    mime: str
    content: bytes


class Parameters:
    """One call's parameters. Like the server it takes numbers as text and JSON as text."""

    def __init__(
        self, values: Mapping[str, object], uploads: Mapping[str, Upload] | None = None
    ) -> None:
        self._values = values
        self.uploads = uploads or {}

    def has(self, name: str) -> bool:
        return self._values.get(name) is not None

    def text(self, name: str) -> str:
        value = self._values.get(name, "")
        if not isinstance(value, str):
            raise bad_request(f"parameter {name} must be a string")
        return utf8(value)

    def written(self, name: str) -> str:
        """A number or text, as text; absent is empty."""
        return str(self._values.get(name, ""))

    def number(self, name: str, default: int = 0) -> int:
        value = self._values.get(name, default)
        try:
            return int(str(value))
        except ValueError as wrong:
            raise bad_request(f'can\'t parse "{name}" as an integer') from wrong

    def flag(self, name: str) -> bool:
        return self._values.get(name, False) in (True, "true", "True", "1", 1)

    def json(self, name: str) -> object:
        """The decoded value, or None if it is absent."""
        value = self._values.get(name)
        if not isinstance(value, str):
            return value
        try:
            decoded: object = json.loads(value)
        except ValueError as wrong:
            raise bad_request(f"can't parse {name} JSON object") from wrong
        return decoded

    def items(self, name: str) -> list[object]:
        """A JSON list; absent is empty."""
        value = self.json(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise bad_request(f"expected an Array in {name}")
        return value

    def fields(self, name: str) -> Mapping[str, object]:
        """A JSON object; absent is empty."""
        value = self.json(name)
        if value is None:
            return {}
        if not is_object(value):
            raise bad_request(f"expected an Object in {name}")
        return value


def utf8(text: str) -> str:
    """The text. Raises ``Refusal`` if it holds lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError as lone_surrogate:
        raise bad_request("strings must be encoded in UTF-8") from lone_surrogate
    return text


def units(text: str) -> int:
    """The length in UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def is_object(value: object) -> TypeGuard[Json]:
    """Whether a decoded value is a JSON object."""
    return isinstance(value, dict)


def dumps(value: object) -> bytes:
    """JSON, also of text with lone surrogates, which only the slower encoder takes."""
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    except orjson.JSONEncodeError:
        return json.dumps(value).encode()
