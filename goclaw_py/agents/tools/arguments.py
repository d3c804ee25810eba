"""The arguments of tools: their types, JSON schemas and validation errors."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from goclaw_py.core.errors import ToolFailed
from goclaw_py.core.text import is_blank, well_formed

_GIVEN_CHARS = 60
_MAX_MISTAKES = 20


class Arguments(BaseModel):
    """The arguments of a tool. Unknown fields and type conversions are not allowed."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True, frozen=True)


A = TypeVar("A", bound=Arguments)


def _not_blank(text: str) -> str:
    if is_blank(text):
        raise ValueError("must not be empty")
    return text


NOT_BLANK: Final = AfterValidator(_not_blank)
"""Rejects texts without visible characters."""


def one_line(text: str) -> str:
    """Return the text without line breaks, control characters and repeated spaces."""
    plain = "".join(" " if unicodedata.category(char) == "Cc" else char for char in text)
    return " ".join(plain.split())


def one_of(names: tuple[str, ...]) -> Any:
    """Create the type of a text that must be one of these names."""

    def check(value: str) -> str:
        if value not in names:
            raise ValueError(f"must be one of {', '.join(names)}")
        return value

    return Annotated[str, AfterValidator(check), Field(json_schema_extra={"enum": list(names)})]


def read(model: type[A], given: Mapping[str, object]) -> A:
    """Validate arguments. Raises ``ToolFailed`` with one line for each mistake."""
    try:
        # Unpaired surrogates can neither be stored nor sent.
        return model.model_validate(
            {
                key: well_formed(value) if isinstance(value, str) else value
                for key, value in given.items()
            }
        )
    except ValidationError as error:
        details = error.errors(include_url=False)
        mistakes = [_mistake(dict(detail), model) for detail in details[:_MAX_MISTAKES]]
    # Outside of ``except``: otherwise pydantic's error, with all values, would be chained.
    raise ToolFailed("\n".join(["invalid arguments:", *mistakes]))


def _mistake(detail: Mapping[str, Any], model: type[Arguments]) -> str:
    where = ".".join(_shown(part) for part in detail["loc"])
    match detail["type"]:
        case "missing":
            return f"{where}: is required"
        case "extra_forbidden":
            return (
                f"{where}: unknown argument; known here: {', '.join(model.model_fields) or 'none'}"
            )
        case _:
            # Pydantic adds "Value error, " to the messages of our own checks.
            said = str(detail["msg"]).removeprefix("Value error, ")
            allowed = (said[:1].lower() + said[1:]).replace("input should", "must")
            allowed = allowed.replace("string should", "must")
    return ": ".join(filter(None, [where, f"{allowed}; given {_given(detail['input'])}"]))


def _given(value: object) -> str:
    """Return the beginning of a value."""
    text = repr(value[: _GIVEN_CHARS + 1]) if isinstance(value, str) else repr(value)
    return text if len(text) <= _GIVEN_CHARS else text[:_GIVEN_CHARS] + "…"


def _shown(part: object) -> str:
    text = str(part)
    text = text if text.isprintable() else repr(text)
    return text if len(text) <= _GIVEN_CHARS else text[:_GIVEN_CHARS] + "…"


def schema(model: type[Arguments]) -> dict[str, object]:
    """Return the JSON schema of a model without titles and the like, which only cost tokens."""
    plain = _plain(model.model_json_schema())
    assert isinstance(plain, dict)
    plain.pop("description", None)
    return {**plain, "properties": plain.get("properties", {})}


def _plain(node: object) -> object:
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: _named(value) if key in _OF_NAMES else _plain(value) for key, value in _members(node)
    }


_OF_NAMES = ("properties", "$defs")
"""Keys of these objects are names, not keywords of JSON schema."""


def _named(node: object) -> object:
    assert isinstance(node, dict)
    return {name: _plain(value) for name, value in node.items()}


def _members(node: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Return the members of a schema; optional fields do not allow null."""
    members = dict(node)
    members.pop("title", None)
    match members.get("anyOf"):
        case [dict() as kind, {"type": "null"}] if members.get("default", "") is None:
            members.pop("anyOf")
            members.pop("default")
            members |= {key: value for key, value in kind.items() if key != "title"}
        case _:
            pass
    yield from members.items()
