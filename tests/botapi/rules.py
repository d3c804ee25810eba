"""The server's refusals and how it reads parameters."""

from __future__ import annotations

import json
from collections.abc import Mapping

Json = dict[str, object]


class Refusal(Exception):
    """An answer with ``ok: false``, as the real server words it."""

    def __init__(self, code: int, description: str, *, retry_after: int | None = None) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.retry_after = retry_after

    def body(self) -> Json:
        """The JSON of the answer."""
        answer: Json = {"ok": False, "error_code": self.code, "description": self.description}
        if self.retry_after is not None:
            answer["parameters"] = {"retry_after": self.retry_after}
        return answer


def bad_request(words: str) -> Refusal:
    """A 400."""
    return Refusal(400, f"Bad Request: {words}")


def flood(seconds: int) -> Refusal:
    """A 429."""
    return Refusal(429, f"Too Many Requests: retry after {seconds}", retry_after=seconds)


class Parameters:
    """One call's parameters. Like the server it takes numbers as text and JSON as text."""

    def __init__(self, values: Mapping[str, object]) -> None:
        self._values = values

    def text(self, name: str) -> str:
        value = self._values.get(name, "")
        if not isinstance(value, str):
            raise bad_request(f"parameter {name} must be a string")
        try:
            value.encode()
        except UnicodeEncodeError as lone_surrogate:
            raise bad_request("strings must be encoded in UTF-8") from lone_surrogate
        return value

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
        if not isinstance(value, dict):
            raise bad_request(f"expected an Object in {name}")
        return value
