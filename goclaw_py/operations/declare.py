"""What an operation says of itself, beside its signature: read by all who offer operations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

_Method = TypeVar("_Method", bound=Callable[..., Any])

_ATTRIBUTE: Final = "declared_operation"


@dataclass(frozen=True, slots=True)
class Operation:
    """How an operation is reached.

    Args:
        route: Method and path in the API, such as ``GET /api/runs/{prefix}``. Placeholders are
            names of arguments. The others are query parameters of a GET, and else keys of the body;
            of a query record its fields.
    """

    route: str


def operation(route: str) -> Callable[[_Method], _Method]:
    """Declare an operation; see ``Operation``."""

    def declare(method: _Method) -> _Method:
        setattr(method, _ATTRIBUTE, Operation(route))
        return method

    return declare


def declared(method: Callable[..., Any]) -> Operation:
    """Return what a method has declared."""
    found: Operation = getattr(method, _ATTRIBUTE)
    return found


def operations_of(service: type) -> dict[str, Operation]:
    """Return the operations of a service by their names."""
    methods = vars(service).items()
    return {name: declared(one) for name, one in methods if hasattr(one, _ATTRIBUTE)}
